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
//! Both sides write one word and then read the other's, with a full fence in between, so one of them sees
//! the other (hazard 3). One push is one compare-and-swap for a whole batch of elements;
//! when nobody waits, waking is one load. There is no summary of who is in the list that one consumer
//! might rely on another to raise (hazard 2).
//!
//! A member in the list is kept alive by the hub's roster. When its receiver leaves, the list itself
//! takes that ownership over, and the next to take the list frees it; a sweep bounds how many such
//! there are.
#![expect(
    unsafe_code,
    reason = "an intrusive list; each member's waker belongs to whoever its state names"
)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use crate::sync::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Mutex, Ordering, SharedCell, fence, lock,
};

/// Not in the list: waker and link are the consumer's.
const OUT: u8 = 0;
/// In the list, or taken out with it and not come to yet: the link is the list's, and waker and state
/// belong to whoever holds the lock.
const LISTED: u8 = 1;
/// As listed, and the receiver is gone: the list owns the member.
const LEFT: u8 = 2;

/// So many wakers are taken at once, and then woken. Each lock costs a part of it, and so many cache
/// lines can be on their way at the same time.
const WAKE_AT_ONCE: usize = 16;

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

    /// For whoever is in the state that owns the waker.
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: callers are the consumer and in the state `OUT`, or hold the lock in another one.
        let own = unsafe { &mut *self.waker.get() };
        std::mem::replace(own, waker)
    }
}

pub(super) struct Parked {
    head: AtomicPtr<Member>,
    /// Members in the list whose receivers are gone.
    left: AtomicUsize,
    /// The thread that last woke somebody.
    woken_by: AtomicUsize,
    /// Held while a listed member's waker or state is changed: for a few of them by whoever wakes, and
    /// for one by a consumer that leaves, or asks again without having been woken. A member that is out
    /// is its consumer's without it. Inside the hub's lock, or alone.
    wakers: Mutex<()>,
}

impl Parked {
    pub(super) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            left: AtomicUsize::new(0),
            woken_by: AtomicUsize::new(0),
            wakers: Mutex::new(()),
        }
    }

    /// Lists the consumer, to be woken once. The caller looks at the tail again afterwards, which the
    /// fence here orders. Only for the member's own consumer.
    pub(super) fn park(&self, member: &Arc<Member>, waker: &Waker) {
        // The waker's own code runs before anything is changed or after.
        let mut waker = Some(waker.clone());
        // Acquire: whoever put it out has taken the waker.
        if member.state.load(Ordering::Acquire) != OUT {
            let guard = lock(&self.wakers);
            // Relaxed: the lock orders it. Listed from before, and polled for another reason.
            if member.state.load(Ordering::Relaxed) == LISTED {
                waker = member.replace_waker(waker);
                drop(guard);
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

    /// Wakes all who are listed, in the order in which they came. The fence orders this behind what the
    /// caller has published.
    #[inline(always)]
    pub(super) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it; what is read through it is acquired by the swap.
        if !self.head.load(Ordering::Relaxed).is_null() {
            self.wake_listed();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_listed(&self) {
        // Relaxed: for a guess.
        self.woken_by.store(this_thread(), Ordering::Relaxed);
        self.take().wake_all();
    }

    /// Takes the list, in the order in which they were listed.
    fn take(&self) -> Listed<'_> {
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
            wakers: Default::default(),
        }
    }

    /// The receiver of a member is gone (hazard 7). The roster's ownership comes here, and goes on to the list if
    /// the member is listed. Returns the waker, to be dropped where its code may run.
    pub(super) fn disown(&self, member: Arc<Member>) -> Option<Waker> {
        let guard = lock(&self.wakers);
        let waker = member.replace_waker(None);
        // Relaxed: the lock orders it.
        if member.state.load(Ordering::Relaxed) == LISTED {
            // Relaxed: a count, for a decision that may come late.
            self.left.fetch_add(1, Ordering::Relaxed);
            // Relaxed: as above; the ownership goes with it.
            member.state.store(LEFT, Ordering::Relaxed);
            let _ = Arc::into_raw(member);
        }
        // Where it was out, nobody else knows it.
        drop(guard);
        waker
    }

    /// Whether consumers were last woken, and by another thread than this.
    pub(super) fn is_woken_from_elsewhere(&self) -> bool {
        // Relaxed: a guess.
        let thread = self.woken_by.load(Ordering::Relaxed);
        thread != 0 && thread != this_thread()
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
            // Relaxed: set under the hub's lock, which the caller holds.
            if it.state.load(Ordering::Relaxed) == LEFT {
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

/// Some number that no other thread that is there has; not 0.
fn this_thread() -> usize {
    thread_local! {
        static HERE: Cell<u8> = const { Cell::new(0) };
    }
    // No destructor, so it is there for as long as the thread is.
    HERE.with(|here| ptr::from_ref(here).addr())
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
        self.wake_listed();
    }
}

/// Members taken from the list. Those that are left when it is dropped are woken all the same, so a
/// waker that panics costs nobody else the wake-up.
struct Listed<'a> {
    parked: &'a Parked,
    next: *const Member,
    /// Taken out of their members, and not woken yet.
    wakers: [Option<Waker>; WAKE_AT_ONCE],
}

impl Listed<'_> {
    fn wake_all(mut self) {
        while self.take_wakers() {
            // No member is touched here: a waker may drop the receiver that it wakes.
            for waker in &mut self.wakers {
                if let Some(waker) = waker.take() {
                    waker.wake();
                }
            }
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

    /// Puts the next ones out, and takes their wakers; whether there were any.
    fn take_wakers(&mut self) -> bool {
        if self.next.is_null() {
            return false;
        }
        let mut count = 0;
        let _guard = lock(&self.parked.wakers);
        while count < WAKE_AT_ONCE
            && let Some(member) = self.step()
        {
            // SAFETY: listed, and so alive: until we say that it is out, or free it.
            let it = unsafe { &*member };
            // Relaxed: the lock orders it.
            if it.state.load(Ordering::Relaxed) == LEFT {
                // SAFETY: left, so the list's reference is ours.
                unsafe { self.parked.free(member) };
                continue;
            }
            let waker = it.replace_waker(None);
            if let Some(waker) = &waker {
                fetch_soon(waker.data());
            }
            self.wakers[count] = waker;
            count += 1;
            // Release: the consumer finds no waker, and the link is its own again. Nothing of the
            // member is touched after this.
            it.state.store(OUT, Ordering::Release);
        }
        count > 0
    }
}

/// With many consumers what is woken is in no near cache: it is asked for before it is needed.
#[inline(always)]
fn fetch_soon(address: *const ()) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which any address may be given.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        loop {
            for waker in &mut self.wakers {
                if let Some(waker) = waker.take() {
                    // Only after a panic of another waker: a second one would abort.
                    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                }
            }
            if !self.take_wakers() {
                return;
            }
        }
    }
}
