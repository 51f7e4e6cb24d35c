//! The list of waiting consumers. Consumers push themselves on it, and a waking thread takes it as a whole.
//!
//! ```text
//! consumer                              waking thread (producer, kill switch, sweep)
//!   waker <- its own                      tail <- more
//!   push on the list                      full fence
//!   full fence                            list empty?
//!   tail moved?                             no: take the whole list, wake each
//!     yes: continue, still listed
//!     no:  pending
//! ```
//!
//! Each side writes one word, executes a full fence, and reads the word of the other side. So at least one
//! side sees the other's write. A consumer executes one compare-and-swap for each batch of elements. If no
//! consumer waits, waking is one load. There is no summary of the list, because one consumer would have to
//! rely on another one to update it.
//!
//! The hub's registry owns the members in the list. When the receiver of a listed member is dropped, the list
//! becomes the owner, and the next thread that takes the list frees the member. A sweep bounds the number of
//! such *orphans*.
#![expect(
    unsafe_code,
    reason = "an intrusive list; each member's state names the owner of its waker"
)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use crate::sync::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Mutex, Ordering, SharedCell, fence, lock,
};

/// The member is not in the list. Its waker and its link to the next member belong to the consumer.
const OUT: u8 = 0;
/// The member is in the list, or in a taken list and not processed yet. The link belongs to the list. The
/// waker and the state belong to the thread that holds the lock.
const LISTED: u8 = 1;
/// Like `LISTED`, but the receiver is gone, so the list owns the member.
const ORPHANED: u8 = 2;

/// Number of wakers that are taken under one lock before they are woken. With a larger number, more members
/// share the cost of the lock, and more cache lines load at the same time.
const WAKE_AT_ONCE: usize = 16;

/// The hub's entry for one consumer. It has a cache line of its own, because the consumer writes to it for
/// each element.
#[repr(align(64))]
pub(super) struct Member {
    /// Position of the next element that the consumer has not finished with.
    pub(super) position: AtomicUsize,
    /// Id of the consumer. The hub never reuses an id, so a stale id cannot name the wrong laggard.
    pub(super) id: u64,
    /// Index in the registry; used only under the hub's lock.
    pub(super) index: AtomicUsize,
    /// Whether the consumer is reading elements. Used only if consumers can be revoked.
    pub(super) claimed: AtomicBool,
    /// Whether the consumer was revoked. Used only if consumers can be revoked.
    pub(super) revoked: AtomicBool,
    state: AtomicU8,
    waker: SharedCell<Option<Waker>>,
    next: SharedCell<*const Member>,
}

// SAFETY: the state names one owner of the waker and the link at any time, and only the owner uses them.
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

    /// Replaces the waker. In the member's current state, the caller must be the owner of the waker.
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: in the state `OUT`, the caller is the member's consumer; in any other state, the caller
        // holds the lock.
        let own = unsafe { &mut *self.waker.get() };
        std::mem::replace(own, waker)
    }
}

pub(super) struct Parked {
    head: AtomicPtr<Member>,
    /// Number of members in the list whose receivers are gone.
    orphans: AtomicUsize,
    /// A number that identifies the thread that last woke a consumer; 0 if none has.
    woken_by: AtomicUsize,
    /// Held while a listed member's waker or state changes. A waking thread holds the lock for several
    /// members at once. A consumer takes it to leave, or to poll again before it was woken. A member in the
    /// state `OUT` needs no lock. May be taken while the hub's lock is held.
    wakers: Mutex<()>,
}

impl Parked {
    pub(super) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            orphans: AtomicUsize::new(0),
            woken_by: AtomicUsize::new(0),
            wakers: Mutex::new(()),
        }
    }

    /// Adds the consumer to the list, to be woken once. The caller then checks the tail again; the fence here
    /// orders that check after the push. Only the member's own consumer calls this.
    pub(super) fn park(&self, member: &Arc<Member>, waker: &Waker) {
        // The waker's own code runs only before or after the changes here.
        let mut waker = Some(waker.clone());
        // Acquire: a consumer that sees `OUT` also sees that the waking thread has taken the waker.
        if member.state.load(Ordering::Acquire) != OUT {
            let guard = lock(&self.wakers);
            // Relaxed: the lock orders the load. The member is still in the list if the task polls again
            // before the list has woken it.
            if member.state.load(Ordering::Relaxed) == LISTED {
                waker = member.replace_waker(waker);
                drop(guard);
                fence(Ordering::SeqCst);
                drop(waker);
                return;
            }
        }
        drop(member.replace_waker(waker));
        // Relaxed: the push below releases the store, and no other thread reads the state before the push.
        member.state.store(LISTED, Ordering::Relaxed);
        self.push(Arc::as_ptr(member), member);
        fence_after_exchange();
    }

    /// Pushes a chain of linked members, from `first` to `last`.
    fn push(&self, first: *const Member, last: &Member) {
        // Relaxed: the value is only compared.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the chain belongs to the caller until the exchange succeeds.
            unsafe { *last.next.get() = head.cast_const() };
            // Release: a thread that takes the list with an acquiring swap sees the pushed members' links,
            // wakers, and states.
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

    /// Wakes all listed consumers, in the order in which they parked. The caller has published elements or
    /// the end of the hub; the fence here orders the check of the list after the publication.
    #[inline(always)]
    pub(super) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders the load, and the swap in `take` acquires the members.
        if !self.head.load(Ordering::Relaxed).is_null() {
            self.wake_listed();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_listed(&self) {
        // Relaxed: the number is only a hint.
        self.woken_by.store(this_thread(), Ordering::Relaxed);
        self.take().wake_all();
    }

    /// Takes the list, in the order in which consumers parked.
    fn take(&self) -> Listed<'_> {
        // Acquire: see `push`.
        let mut rest = self
            .head
            .swap(ptr::null_mut(), Ordering::Acquire)
            .cast_const();
        let mut reversed = ptr::null();
        while !rest.is_null() {
            // SAFETY: listed members are alive, and their links belong to the list, which this call now owns.
            let link = unsafe { &mut *(*rest).next.get() };
            let after = std::mem::replace(link, reversed);
            reversed = rest;
            rest = after;
        }
        Listed {
            parked: self,
            next: reversed,
            wakers: Default::default(),
        }
    }

    /// Handles the drop of a member's receiver. Takes the registry's reference, and passes it on to the list
    /// if the member is listed. Returns the waker, which the caller must drop where user code may run.
    pub(super) fn disown(&self, member: Arc<Member>) -> Option<Waker> {
        let guard = lock(&self.wakers);
        let waker = member.replace_waker(None);
        // Relaxed: the lock orders this load.
        if member.state.load(Ordering::Relaxed) == LISTED {
            // Relaxed: the count only decides about a sweep, which may happen late.
            self.orphans.fetch_add(1, Ordering::Relaxed);
            // Relaxed: the lock orders the store. The reference moves to the list.
            member.state.store(ORPHANED, Ordering::Relaxed);
            let _ = Arc::into_raw(member);
        }
        // A member in the state `OUT` has no other reference.
        drop(guard);
        waker
    }

    /// Returns whether another thread than the current one woke consumers last.
    pub(super) fn is_woken_by_other_thread(&self) -> bool {
        // Relaxed: only a hint.
        let thread = self.woken_by.load(Ordering::Relaxed);
        thread != 0 && thread != this_thread()
    }

    /// Returns the number of listed members whose receivers are gone.
    pub(super) fn orphans(&self) -> usize {
        self.orphans.load(Ordering::Relaxed)
    }

    /// Frees the listed members whose receivers are gone. Returns whether a remaining member has a position
    /// other than `tail`. In that case a waking thread may have found the list empty in the meantime, so the
    /// caller must wake all members. Called only under the hub's lock, so that no receiver leaves.
    pub(super) fn sweep(&self, tail: impl FnOnce() -> usize) -> bool {
        let mut first: *const Member = ptr::null();
        let mut last: *const Member = ptr::null();
        let mut listed = self.take();
        let mut positions = Vec::new();
        while let Some(member) = listed.step() {
            // SAFETY: the member is listed, and listed members are alive.
            let it = unsafe { &*member };
            // Relaxed: set under the hub's lock, which the caller holds.
            if it.state.load(Ordering::Relaxed) == ORPHANED {
                // SAFETY: the member is orphaned, so the list owns a reference to it, and the list belongs to
                // this call.
                unsafe { self.free(member) };
                continue;
            }
            positions.push(it.position.load(Ordering::Relaxed));
            // Taking the list reversed it, so reverse it again: the first to park comes last.
            // SAFETY: the link belongs to the list, which belongs to this call.
            unsafe { *it.next.get() = first };
            first = member;
            if last.is_null() {
                last = member;
            }
        }
        if last.is_null() {
            return false;
        }
        // SAFETY: the member is alive, because it is in the chain.
        self.push(first, unsafe { &*last });
        fence(Ordering::SeqCst);
        let tail = tail();
        positions.iter().any(|position| *position != tail)
    }

    /// Frees an orphan.
    ///
    /// # Safety
    ///
    /// The member was orphaned and is in no list, and this is called only once for it.
    unsafe fn free(&self, member: *const Member) {
        self.orphans.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: `disown` turned one reference into this raw pointer, and did so only once.
        drop(unsafe { Arc::from_raw(member) });
    }
}

/// Returns a number, never 0, that is unique among the running threads.
fn this_thread() -> usize {
    thread_local! {
        static HERE: Cell<u8> = const { Cell::new(0) };
    }
    // A `Cell` without a destructor lives as long as its thread.
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// Executes a full fence directly after an exchange.
#[inline(always)]
fn fence_after_exchange() {
    // On x86-64 an exchange is already a full fence. A second one would be the most expensive part of
    // parking.
    #[cfg(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(all(test, fanline_loom)), not(miri))))]
    fence(Ordering::SeqCst);
}

impl Drop for Parked {
    fn drop(&mut self) {
        // Receivers own the hub, so the members that are still listed have no receivers.
        self.wake_listed();
    }
}

/// Members taken from the list. Its drop wakes the remaining ones, so if one waker panics, the others are
/// still woken.
struct Listed<'a> {
    parked: &'a Parked,
    next: *const Member,
    /// Wakers that were taken out of their members and not woken yet.
    wakers: [Option<Waker>; WAKE_AT_ONCE],
}

impl Listed<'_> {
    fn wake_all(mut self) {
        while self.take_wakers() {
            // Touch no member here: a waker may drop the receiver that it wakes.
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
        // SAFETY: the member is listed, so it is alive. Its link belongs to this list until its state is
        // `OUT`.
        self.next = unsafe { *(*member).next.get() };
        Some(member)
    }

    /// Takes the next members out of the list, and their wakers. Returns whether there were any.
    fn take_wakers(&mut self) -> bool {
        if self.next.is_null() {
            return false;
        }
        let mut count = 0;
        let _guard = lock(&self.parked.wakers);
        while count < WAKE_AT_ONCE
            && let Some(member) = self.step()
        {
            // SAFETY: the member is listed, so it is alive until its state becomes `OUT` or it is freed.
            let it = unsafe { &*member };
            // Relaxed: the lock orders this load.
            if it.state.load(Ordering::Relaxed) == ORPHANED {
                // SAFETY: the member is orphaned, so the list owns a reference to it, and the list belongs to
                // this call.
                unsafe { self.parked.free(member) };
                continue;
            }
            let waker = it.replace_waker(None);
            if let Some(waker) = &waker {
                prefetch(waker.data());
            }
            self.wakers[count] = waker;
            count += 1;
            // Release: a consumer that acquires the state `OUT` sees that the waker was taken, and owns the
            // link again. This thread must not touch the member after this store.
            it.state.store(OUT, Ordering::Release);
        }
        count > 0
    }
}

/// Prefetches an address. With many consumers, their wakers are unlikely to be in a fast cache.
#[inline(always)]
fn prefetch(address: *const ()) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint and accepts any address.
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
                    // Runs only after a panic of another waker. A second panic would abort the process.
                    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                }
            }
            if !self.take_wakers() {
                return;
            }
        }
    }
}
