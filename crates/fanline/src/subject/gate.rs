//! Who may touch what of a subject, and when.
//!
//! One thread at a time emits, the *emitter*. It takes no lock and no read-modify-write; it writes in
//! which [`Phase`] it is and looks at one word, the *signal*. Everybody else (who subscribes,
//! unsubscribes, asks or disposes) holds the subject's lock, raises the signal and reads the phase:
//!
//! ```text
//! emitter                              the one with the lock
//!   phase <- storing | calling           signal <- raised
//!   light fence                          heavy fence
//!   signal raised?                       read phase, until it is not storing
//!     yes: phase <- idle, take the lock    idle:    the emitter cannot begin before it has the lock:
//!     no:  go on                                    store and list are ours
//!                                          calling: the store is ours, the list is the emitter's
//! ```
//!
//! The fences make it impossible that both miss the other's write. Storing is short and runs nothing
//! of the user's, so waiting for its end is a matter of nanoseconds. While it calls observers the
//! emitter looks at the signal after each of them. The signal is lowered only by the emitter, under
//! the lock; until then whoever holds the lock need not make the heavy fence again.
#![expect(
    unsafe_code,
    reason = "cells that the phases share out between the emitter and the lock's holder"
)]

use std::ptr::{NonNull, null_mut};

use super::list::{List, Vacant};
use crate::fence::Fences;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering, SharedCell, thread};

const IDLE: usize = 0;
const STORING: usize = 1;
// Any other value: calling observers, on the thread of this token.

/// What the holder of the lock finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halted {
    /// Nothing is being emitted, and nothing can be: store and list are the holder's.
    Idle,
    /// Observers are being called; the store is the holder's, the list is not.
    Calling,
}

pub(super) struct Gate<S, L> {
    phase: AtomicUsize,
    /// The only observer in the list, when the signal is down and the fences are asymmetric; else null. Most
    /// subjects have one observer, and this one word tells the emitter that there is nothing to look at
    /// and whom to call.
    alone: AtomicPtr<L>,
    /// 1 when somebody wants the emitter to take the lock, else 0; looked at between two observers. A
    /// byte, so that it is asked together with what the observer says in one instruction.
    signal: AtomicU8,
    /// The same, and always set where the emitter has to make a full fence before it looks: one word to
    /// look at before an emission spares the usual case, in which it has not, a question of its own.
    look: AtomicBool,
    fences: Fences,
    store: SharedCell<S>,
    list: SharedCell<List<L>>,
}

// SAFETY: the cells are handed out by the rules above, to one thread at a time.
unsafe impl<S: Send, L: Send> Sync for Gate<S, L> {}

impl<S, L: Vacant> Gate<S, L> {
    pub(super) fn new(store: S, fences: Fences) -> Self {
        Self {
            phase: AtomicUsize::new(IDLE),
            alone: AtomicPtr::new(null_mut()),
            signal: AtomicU8::new(0),
            look: AtomicBool::new(fences == Fences::Symmetric),
            fences,
            store: SharedCell::new(store),
            list: SharedCell::new(List::new()),
        }
    }

    /// The store: for the emitter while storing, and for the lock's holder after [`halt`](Self::halt).
    #[inline(always)]
    pub(super) fn store(&self) -> *mut S {
        self.store.get()
    }

    /// The list: for the emitter while storing or calling, and for the lock's holder when it found the
    /// emitter idle.
    #[inline(always)]
    pub(super) fn list(&self) -> *mut List<L> {
        self.list.get()
    }

    /// The emitter goes from idle to storing. Whom it is to call, when that is one observer and there is nothing
    /// else to look at; else none, and it has to ask whether it [`may_go_on`](Self::may_go_on).
    #[inline(always)]
    pub(super) fn enter_storing(&self) -> Option<NonNull<L>> {
        self.enter(STORING)
    }

    /// The same, from idle to calling.
    #[inline(always)]
    pub(super) fn enter_calling(&self) -> Option<NonNull<L>> {
        self.enter(thread_token())
    }

    #[inline(always)]
    fn enter(&self, phase: usize) -> Option<NonNull<L>> {
        // Relaxed: what orders it before the loads that follow is the fence, and nothing was written
        // yet that a reader of this value would have to see.
        self.phase.store(phase, Ordering::Relaxed);
        self.fences.light_if_asymmetric();
        // Relaxed: unless it is null the signal is down, and all that others did was done before the
        // emitter lowered it.
        NonNull::new(self.alone.load(Ordering::Relaxed))
    }

    /// Whether the emitter, having entered, finds the signal down. Else it is idle again.
    #[inline(always)]
    pub(super) fn may_go_on(&self) -> bool {
        // Relaxed: when the signal is down, all that others did was done before the emitter lowered
        // it, with the lock held, which orders it.
        !self.look.load(Ordering::Relaxed) || self.may_go_on_fenced()
    }

    #[cold]
    fn may_go_on_fenced(&self) -> bool {
        self.fences.light();
        if !self.is_signalled() {
            return true;
        }
        // Release: as in `leave`.
        self.phase.store(IDLE, Ordering::Release);
        false
    }

    /// The emitter goes from storing to calling.
    #[inline(always)]
    pub(super) fn call(&self) {
        // Release: whoever reads it sees what was stored.
        self.phase.store(thread_token(), Ordering::Release);
    }

    /// The emitter is idle again.
    #[inline(always)]
    pub(super) fn leave(&self) {
        // Release: whoever reads it sees the store and the list as the emitter left them.
        self.phase.store(IDLE, Ordering::Release);
    }

    /// Whether somebody wants the emitter to take the lock.
    #[inline(always)]
    pub(super) fn is_signalled(&self) -> bool {
        self.signal_byte() != 0
    }

    /// Not 0 when somebody wants the emitter to take the lock.
    #[inline(always)]
    pub(super) fn signal_byte(&self) -> u8 {
        // Relaxed: what it announces is read with the lock held.
        self.signal.load(Ordering::Relaxed)
    }

    /// Raises the signal without waiting: for what can be left until the emitter comes. Only with the
    /// lock held.
    pub(super) fn signal(&self) {
        // Relaxed: what it announces is read with the lock held. An emission that misses it began
        // before, as far as anybody can tell.
        self.signal.store(1, Ordering::Relaxed);
        self.look.store(true, Ordering::Relaxed);
        self.alone.store(null_mut(), Ordering::Relaxed);
    }

    /// Lowers the signal. Only for the emitter, with the lock held. `fenced` is behind the lock.
    pub(super) fn lower_signal(&self, fenced: &mut bool) {
        self.signal.store(0, Ordering::Relaxed);
        if self.fences == Fences::Asymmetric {
            self.look.store(false, Ordering::Relaxed);
            // SAFETY: the emitter is storing, calling or between the two, so the list is its own.
            let alone = unsafe { (*self.list.get()).only() };
            self.alone.store(alone, Ordering::Relaxed);
        }
        *fenced = false;
    }

    /// Keeps the emitter from storing, and says where it is. Only with the lock held; holds until the
    /// lock is released. `fenced` is behind the lock: whether a fence was made since the signal is up.
    pub(super) fn halt(&self, fenced: &mut bool) -> Halted {
        // Relaxed: changed only with the lock held.
        if self.phase.load(Ordering::Relaxed) == thread_token() {
            // The emitter is further up on this thread's own stack, in an observer.
            self.signal();
            return Halted::Calling;
        }
        self.signal();
        if !*fenced {
            self.fences.heavy();
            *fenced = true;
        }
        loop {
            // Acquire: see `call` and `leave`.
            match self.phase.load(Ordering::Acquire) {
                IDLE => return Halted::Idle,
                STORING => thread::yield_now(),
                _ => return Halted::Calling,
            }
        }
    }

    /// Whether this thread is the one that calls observers, further up on its stack.
    pub(super) fn is_calling_here(&self) -> bool {
        // Relaxed: another thread's token is never this one's.
        self.phase.load(Ordering::Relaxed) == thread_token()
    }
}

/// A number that no other living thread has, and that is no other phase.
#[inline(always)]
fn thread_token() -> usize {
    #[repr(align(8))]
    struct Token(#[expect(dead_code, reason = "what counts is its address")] u8);
    // loom's models run their threads on stacks of one thread, and have thread locals of their own.
    #[cfg(all(test, fanline_loom))]
    loom::thread_local! {
        static TOKEN: Box<Token> = Box::new(Token(0));
    }
    #[cfg(all(test, fanline_loom))]
    return TOKEN.with(|token| std::ptr::from_ref(&**token).addr());
    #[cfg(not(all(test, fanline_loom)))]
    {
        thread_local! {
            static TOKEN: Token = const { Token(0) };
        }
        TOKEN.with(|token| std::ptr::from_ref(token).addr())
    }
}
