//! Rules of access to a subject's store and list.
//!
//! One thread at a time emits, the *emitter*. It takes no lock and makes no read-modify-write. It writes
//! its phase (idle, storing, or calling), and reads one word, the *signal*. All other operations
//! (subscribe, unsubscribe, read, dispose) hold the subject's lock, raise the signal, and read the phase:
//!
//! ```text
//! emitter                              holder of the lock
//!   phase <- storing | calling           signal <- raised
//!   light fence                          heavy fence
//!   signal raised?                       read phase, until it is not storing
//!     yes: phase <- idle, take the lock    idle:    the emitter cannot begin before it has the lock:
//!     no:  continue                                 store and list are the holder's
//!                                          calling: the store is the holder's, the list is the emitter's
//! ```
//!
//! With the fences, at least one side sees the other's write. Storing is short and runs no user code, so
//! waiting until the emitter has stored takes nanoseconds. While the emitter calls observers, it checks the
//! signal after each of them. Only the emitter lowers the signal, under the lock; until then the holder of
//! the lock need not repeat the heavy fence.
#![expect(
    unsafe_code,
    reason = "cells that belong to the emitter or the lock's holder, by phase"
)]

use core::ptr::{NonNull, null_mut};

use super::list::{List, Vacant};
use crate::fence::Fences;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering, SharedCell, thread};

const IDLE: usize = 0;
const STORING: usize = 1;
// Any other phase is a thread's token: the emitter is calling observers on that thread. Without the feature `std`,
// threads cannot be distinguished.
#[cfg(not(feature = "std"))]
const CALLING: usize = 2;

/// The phase that the holder of the lock finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halted {
    /// No emission is in progress, and none can begin: the holder owns store and list.
    Idle,
    /// Observers are being called; the holder owns the store, but not the list.
    Calling,
}

pub(super) struct Gate<S, L> {
    phase: AtomicUsize,
    /// The only observer in the list, if the signal is down and the fences are asymmetric; otherwise null.
    /// Most subjects have one observer. For these the emitter reads only this word before the call: it shows
    /// that there is no work to do, and which observer to call.
    alone: AtomicPtr<L>,
    /// 1 if the emitter has to take the lock, otherwise 0; checked between two observers. It is a byte so
    /// that one instruction combines it with the observer's result.
    signal: AtomicU8,
    /// Whether the emitter must check `signal` before an emission. With asymmetric fences, this is set while
    /// `signal` is 1, so the emitter need not read `signal` itself. With symmetric fences, this is always
    /// set, because the emitter must execute a full fence and then read `signal`.
    must_check: AtomicBool,
    fences: Fences,
    store: SharedCell<S>,
    list: SharedCell<List<L>>,
}

// SAFETY: by the rules in the module's documentation, one thread at a time has access to the cells.
unsafe impl<S: Send, L: Send> Sync for Gate<S, L> {}

impl<S, L: Vacant> Gate<S, L> {
    pub(super) fn new(store: S, fences: Fences) -> Self {
        Self {
            phase: AtomicUsize::new(IDLE),
            alone: AtomicPtr::new(null_mut()),
            signal: AtomicU8::new(0),
            must_check: AtomicBool::new(fences == Fences::Symmetric),
            fences,
            store: SharedCell::new(store),
            list: SharedCell::new(List::new()),
        }
    }

    /// Returns the store: for the emitter while storing, and for the lock's holder after
    /// [`halt`](Self::halt).
    #[inline(always)]
    pub(super) fn store(&self) -> *mut S {
        self.store.get()
    }

    /// Returns the list: for the emitter while storing or calling, and for the lock's holder if the emitter
    /// is idle.
    #[inline(always)]
    pub(super) fn list(&self) -> *mut List<L> {
        self.list.get()
    }

    /// Moves the emitter from idle to storing. If the list has exactly one observer, and there is no other
    /// work, returns that observer. Otherwise the emitter must check whether it
    /// [`may_continue`](Self::may_continue).
    #[inline(always)]
    pub(super) fn enter_storing(&self) -> Option<NonNull<L>> {
        self.enter(STORING)
    }

    /// Moves the emitter from idle to calling. Otherwise it does the same as
    /// [`enter_storing`](Self::enter_storing).
    #[inline(always)]
    pub(super) fn enter_calling(&self) -> Option<NonNull<L>> {
        self.enter(thread_token())
    }

    #[inline(always)]
    fn enter(&self, phase: usize) -> Option<NonNull<L>> {
        // Relaxed: the fence here, or the one in `may_continue` if the fences are symmetric, orders this
        // store before the loads that follow. The emitter has not yet written any data that a thread that
        // reads the new phase would have to see.
        self.phase.store(phase, Ordering::Relaxed);
        self.fences.light_if_asymmetric();
        // Relaxed: a pointer that is not null means that the signal is down. The emitter, which is this thread,
        // lowered the signal after other threads had finished their changes.
        NonNull::new(self.alone.load(Ordering::Relaxed))
    }

    /// Returns whether the signal is down after the emitter has entered. If it is raised, makes the emitter
    /// idle again.
    #[inline(always)]
    pub(super) fn may_continue(&self) -> bool {
        // Relaxed: if `must_check` is false, the signal is down. The emitter, which is this thread, lowered
        // the signal with the lock held, after other threads had finished their changes under that lock.
        !self.must_check.load(Ordering::Relaxed) || self.may_continue_fenced()
    }

    #[cold]
    fn may_continue_fenced(&self) -> bool {
        self.fences.light();
        if !self.is_signalled() {
            return true;
        }
        // Release: as in `leave`.
        self.phase.store(IDLE, Ordering::Release);
        false
    }

    /// Moves the emitter from storing to calling.
    #[inline(always)]
    pub(super) fn call(&self) {
        // Release: a thread that reads this phase sees the stored value.
        self.phase.store(thread_token(), Ordering::Release);
    }

    /// Makes the emitter idle.
    #[inline(always)]
    pub(super) fn leave(&self) {
        // Release: a thread that reads this phase sees the store and the list as the emitter left them.
        self.phase.store(IDLE, Ordering::Release);
    }

    /// Returns whether the emitter has to take the lock.
    #[inline(always)]
    pub(super) fn is_signalled(&self) -> bool {
        self.signal_byte() != 0
    }

    /// Returns a value other than 0 if the emitter has to take the lock.
    #[inline(always)]
    pub(super) fn signal_byte(&self) -> u8 {
        // Relaxed: the signal announces work, and the emitter reads that work only after it has taken the
        // lock.
        self.signal.load(Ordering::Relaxed)
    }

    /// Raises the signal without waiting, for work that the emitter can do later. The lock must be held.
    pub(super) fn signal(&self) {
        // Relaxed: the emitter reads the announced work only after it has taken the lock. An emission that
        // misses the signal counts as begun before the signal was raised.
        self.signal.store(1, Ordering::Relaxed);
        self.must_check.store(true, Ordering::Relaxed);
        self.alone.store(null_mut(), Ordering::Relaxed);
    }

    /// Lowers the signal. Only for the emitter, with the lock held, which also protects `fenced`.
    pub(super) fn lower_signal(&self, fenced: &mut bool) {
        self.signal.store(0, Ordering::Relaxed);
        if self.fences == Fences::Asymmetric {
            self.must_check.store(false, Ordering::Relaxed);
            // SAFETY: the emitter is storing, calling, or between the two, so it owns the list.
            let alone = unsafe { (*self.list.get()).only() };
            self.alone.store(alone, Ordering::Relaxed);
        }
        *fenced = false;
    }

    /// Prevents the emitter from storing until the lock is released, and returns the emitter's phase. The
    /// lock must be held. It also protects `fenced`: whether a heavy fence was executed since the signal was
    /// raised.
    pub(super) fn halt(&self, fenced: &mut bool) -> Halted {
        if self.is_calling_here() {
            // This thread is the emitter: this code runs inside an observer that the emitter calls. A wait for the
            // emitter would never end.
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

    /// Returns whether this thread is calling observers, further up on its stack; `false` if that is not known.
    #[inline]
    pub(super) fn is_calling_here(&self) -> bool {
        // Relaxed: only this thread writes its own token. Without the feature `std`, all threads have the same, so
        // the result is not known.
        cfg!(feature = "std") && self.phase.load(Ordering::Relaxed) == thread_token()
    }
}

/// Returns a number that differs from all phases and from the tokens of all other living threads.
#[inline(always)]
fn thread_token() -> usize {
    #[cfg(feature = "std")]
    #[repr(align(8))]
    struct Token(#[expect(dead_code, reason = "only its address matters")] u8);
    // loom runs the threads of a model on one real thread, and has thread locals of its own.
    #[cfg(all(test, fanline_loom))]
    loom::thread_local! {
        static TOKEN: Box<Token> = Box::new(Token(0));
    }
    #[cfg(all(test, fanline_loom))]
    return TOKEN.with(|token| core::ptr::from_ref(&**token).addr());
    #[cfg(not(feature = "std"))]
    return CALLING;
    #[cfg(all(feature = "std", not(all(test, fanline_loom))))]
    {
        thread_local! {
            static TOKEN: Token = const { Token(0) };
        }
        TOKEN.with(|token| core::ptr::from_ref(token).addr())
    }
}
