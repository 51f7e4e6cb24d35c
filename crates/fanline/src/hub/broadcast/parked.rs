//! Who waits for elements: a list that consumers push themselves on and a waker takes as a whole.
//!
//! ```text
//! consumer                              who wakes (producer, kill switch, sweep)
//!   waker <- its own                      tail <- more
//!   push on the list                      full fence
//!   full fence                            list empty?
//!   tail moved?                             no: take it whole, wake each
//!     yes: go on, listed as it is
//!     no:  pending
//! ```
//!
//! Both sides write one word and then read the other's, so one of them sees the other (hazards 1 to 3
//! of lost wake-ups are of this kind). One push is one compare-and-swap for a whole batch of elements;
//! when nobody waits, waking is one load. There is no summary of who is in the list that one consumer
//! might rely on another to raise.
//!
//! A member in the list is kept alive by the hub's roster. When its receiver leaves, the list itself
//! takes that ownership over, and the next to take the list frees it; a sweep bounds how many such
//! there are.
#![expect(
    unsafe_code,
    reason = "an intrusive list; each member's waker belongs to whoever its state names"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use crate::sync::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering, SharedCell, fence, thread,
};

/// Not in the list: waker and link are the consumer's.
const OUT: u8 = 0;
/// In the list, or taken out with it and not come to yet; the link is the list's.
const LISTED: u8 = 1;
/// Somebody moves the waker in or out, which takes a few instructions.
const BUSY: u8 = 2;
/// As listed, and the receiver is gone: the list owns the member.
const LEFT: u8 = 3;

/// What the hub knows of one consumer. On a cache line of its own: it is written by its consumer for
/// each element.
#[repr(align(64))]
pub(super) struct Member {
    /// The next element that its consumer has not finished with.
    pub(super) position: AtomicUsize,
    /// Never used again by another member of the same hub, so a late look at who is watched names
    /// nobody wrongly.
    pub(super) id: u64,
    /// Where it is in the roster; only under the hub's lock.
    pub(super) index: AtomicUsize,
    /// Where consumers can be cut off: the consumer is looking at elements.
    pub(super) claimed: AtomicBool,
    /// Where consumers can be cut off: it was.
    pub(super) revoked: AtomicBool,
    state: AtomicU8,
    waker: SharedCell<Option<Waker>>,
    next: SharedCell<*const Member>,
}

// SAFETY: waker and link are used by whoever the state names, one at a time.
unsafe impl Send for Member {}
// SAFETY: as above.
unsafe impl Sync for Member {}

impl Member {
    pub(super) fn new(id: u64, position: usize) -> Self {
        Self {
            position: AtomicUsize::new(position),
            id,
            index: AtomicUsize::new(0),
            claimed: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
            state: AtomicU8::new(OUT),
            waker: SharedCell::new(None),
            next: SharedCell::new(ptr::null()),
        }
    }

    /// Goes from listed to busy, or says why not: out, or left.
    fn lock_listed(&self) -> Result<(), u8> {
        loop {
            // Acquire: the waker as the one before left it.
            match self
                .state
                .compare_exchange(LISTED, BUSY, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(BUSY) => thread::yield_now(),
                Err(state) => return Err(state),
            }
        }
    }

    /// For whoever is in the state that owns the waker.
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: callers are in the state `OUT` as the consumer, or made it `BUSY`.
        let own = unsafe { &mut *self.waker.get() };
        std::mem::replace(own, waker)
    }
}

pub(super) struct Parked {
    head: AtomicPtr<Member>,
    /// Members in the list whose receivers are gone.
    left: AtomicUsize,
}

impl Parked {
    pub(super) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            left: AtomicUsize::new(0),
        }
    }

    /// Lists the consumer, to be woken once. The caller looks at the tail again afterwards, which the
    /// fence here orders. Only for the member's own consumer.
    pub(super) fn park(&self, member: &Arc<Member>, waker: &Waker) {
        // The waker's own code runs before anything is changed or after.
        let mut waker = Some(waker.clone());
        // Relaxed: a member that is out was put so by the waker who took it, whom `lock_listed`
        // synchronises with below, or by nobody; and its waker is not there.
        if member.state.load(Ordering::Acquire) != OUT {
            // Listed from before, and woken by something else than the list.
            if member.lock_listed().is_ok() {
                waker = member.replace_waker(waker);
                // Release: for the next in `lock_listed`.
                member.state.store(LISTED, Ordering::Release);
                fence(Ordering::SeqCst);
                drop(waker);
                return;
            }
        }
        drop(member.replace_waker(waker));
        // Relaxed: the push below releases it, and nobody looks before.
        member.state.store(LISTED, Ordering::Relaxed);
        self.push(Arc::as_ptr(member), member);
        fence_after_exchange();
    }

    /// Puts a chain of members on the list: from `first`, linked, to `last`.
    fn push(&self, first: *const Member, last: &Member) {
        // Relaxed: only compared.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the chain is the caller's until the exchange succeeds.
            unsafe { *last.next.get() = head.cast_const() };
            // Release: whoever takes the list sees the members as they are.
            match self.head.compare_exchange_weak(
                head,
                first.cast_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the list, in the order in which they were listed. The fence orders it behind what the
    /// caller has published.
    pub(super) fn take(&self) -> Listed<'_> {
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it; what is read through it is acquired by the swap.
        if self.head.load(Ordering::Relaxed).is_null() {
            return Listed {
                parked: self,
                next: ptr::null(),
            };
        }
        // Acquire: see `push`.
        let mut rest = self
            .head
            .swap(ptr::null_mut(), Ordering::Acquire)
            .cast_const();
        let mut turned = ptr::null();
        while !rest.is_null() {
            // SAFETY: listed members are alive, and their links are the list's, which is ours now.
            let link = unsafe { &mut *(*rest).next.get() };
            let after = std::mem::replace(link, turned);
            turned = rest;
            rest = after;
        }
        Listed {
            parked: self,
            next: turned,
        }
    }

    /// The receiver of a member is gone. The roster's ownership comes here, and goes on to the list if
    /// the member is listed. Returns the waker, to be dropped where its code may run.
    pub(super) fn disown(&self, member: Arc<Member>) -> Option<Waker> {
        if member.lock_listed().is_err() {
            // Out: nobody else knows it.
            return member.replace_waker(None);
        }
        let waker = member.replace_waker(None);
        let member = Arc::into_raw(member);
        // Relaxed: a count, for a decision that may come late.
        self.left.fetch_add(1, Ordering::Relaxed);
        // Release: the ownership goes with it. SAFETY: alive until the one who sees the state frees it.
        unsafe { (*member).state.store(LEFT, Ordering::Release) };
        waker
    }

    /// How many members are listed whose receivers are gone.
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Frees the members in the list whose receivers are gone. Returns whether one of the others is
    /// not at `tail`, who may have been passed over by a waker meanwhile: then wake all. Only under the
    /// hub's lock, so that nobody leaves.
    pub(super) fn sweep(&self, tail: impl FnOnce() -> usize) -> bool {
        let mut first: *const Member = ptr::null();
        let mut last: *const Member = ptr::null();
        let mut listed = self.take();
        let mut positions = Vec::new();
        while let Some(member) = listed.step() {
            // SAFETY: listed, and so alive.
            let it = unsafe { &*member };
            // Acquire: see `disown`.
            if it.state.load(Ordering::Acquire) == LEFT {
                // SAFETY: left, so the list's own reference is ours.
                unsafe { self.free(member) };
                continue;
            }
            positions.push(it.position.load(Ordering::Relaxed));
            // The list is turned when it is taken: the one listed first comes last.
            // SAFETY: the link is ours, with the list.
            unsafe { *it.next.get() = first };
            first = member;
            if last.is_null() {
                last = member;
            }
        }
        if last.is_null() {
            return false;
        }
        // SAFETY: alive, being in the chain.
        self.push(first, unsafe { &*last });
        fence(Ordering::SeqCst);
        let tail = tail();
        positions.iter().any(|position| *position != tail)
    }

    /// # Safety
    ///
    /// The member was left and is in no list, and this is called once for it.
    unsafe fn free(&self, member: *const Member) {
        self.left.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: `disown` made it a raw pointer, once.
        drop(unsafe { Arc::from_raw(member) });
    }
}

/// A full fence where an exchange was just made.
#[inline(always)]
fn fence_after_exchange() {
    // There an exchange is a full fence itself, and another would be the dearest part of parking.
    #[cfg(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri))))]
    fence(Ordering::SeqCst);
}

impl Drop for Parked {
    fn drop(&mut self) {
        // Receivers own the hub, so those still listed are without receivers.
        self.take().wake_all();
    }
}

/// Members taken from the list. Those that are left when it is dropped are woken all the same, so a
/// waker that panics costs nobody else the wake-up.
pub(super) struct Listed<'a> {
    parked: &'a Parked,
    next: *const Member,
}

impl Listed<'_> {
    pub(super) fn wake_all(mut self) {
        while let Some(waker) = self.next_waker() {
            // No member is touched here: a waker may drop the receiver that it wakes.
            waker.wake();
        }
    }

    fn step(&mut self) -> Option<*const Member> {
        let member = self.next;
        if member.is_null() {
            return None;
        }
        // SAFETY: listed, and so alive; the link is ours until the member is out.
        self.next = unsafe { *(*member).next.get() };
        Some(member)
    }

    fn next_waker(&mut self) -> Option<Waker> {
        loop {
            let member = self.step()?;
            // SAFETY: listed, and so alive: until we say that it is out, or free it.
            let it = unsafe { &*member };
            if it.lock_listed().is_err() {
                // SAFETY: not out, as it was listed, so it is left, and the list's reference is ours.
                unsafe { self.parked.free(member) };
                continue;
            }
            let waker = it.replace_waker(None);
            // Release: the consumer finds no waker, and the link is its own again. Nothing of the
            // member is touched after this.
            it.state.store(OUT, Ordering::Release);
            if waker.is_some() {
                return waker;
            }
        }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        while let Some(waker) = self.next_waker() {
            // Only after a panic of another waker: a second one would abort.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}
