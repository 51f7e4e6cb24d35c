//! The state that the producer, consumers, and handles of one hub share, and the protocol between them. The
//! module documentation of [`hub::broadcast`](super) describes the protocol.
#![expect(
    unsafe_code,
    reason = "the producer's and the consumers' access to the ring, by their positions"
)]

use std::ops::Deref;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::options::{OnEmpty, Rules, Start};
use super::parked::{Member, Parked};
use super::registry::ConsumerRegistry;
use super::ring::{Lap, Ring};
use super::watch::Watch;
use super::yield_backoff::YieldBackoff;
use crate::fence::Fences;
use crate::hub::Ended;
use crate::hub::waker_slot::both;
use crate::sync::{AtomicU8, AtomicUsize, Mutex, MutexGuard, Ordering, lock};

/// The hub has not ended.
const OPEN: u8 = 0;
/// The hub has ended; no more elements will be published.
const CLOSED: u8 = 1;

/// Largest number of consumers whose positions are read when a consumer joins. This bounds the time that
/// joining takes.
const JOIN_LOOKS_MAX: usize = 64;
/// Largest number of consumers for which the producer yields repeatedly. This many consumers read a full
/// buffer in about the time in which another thread wakes a sleeping consumer. With more consumers, repeated
/// yields keep the producer's thread from useful work.
const YIELD_CONSUMERS_MAX: usize = 256;
/// Largest number of yields in a row. They take about as long as a wake-up from another thread and a fence on
/// all threads.
const YIELDS_MAX: u8 = 64;
/// The list is swept when it has more orphaned members than this, and more than the hub has consumers. In a
/// loom model, the second orphan triggers the sweep.
const ORPHANS_MIN: usize = if cfg!(all(test, fanline_loom)) { 1 } else { 64 };

/// Alignment to two cache lines, because the hardware fetches lines in pairs.
#[repr(align(128))]
pub(super) struct CachePadded<T>(T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

pub(super) struct Shared<T, E> {
    ring: Ring<T>,
    pub(super) rules: Rules,
    can_revoke: bool,
    pub(super) fences: Fences,
    /// End of the elements that the producer has dropped. Stored when the producer itself is dropped.
    dropped_to: AtomicUsize,
    /// End of the published elements; only the producer writes it.
    tail: CachePadded<AtomicUsize>,
    signals: CachePadded<Signals>,
    pub(super) parked: CachePadded<Parked>,
    core: CachePadded<Mutex<Core<E>>>,
}

/// Words that are read for each element and rarely written.
struct Signals {
    watch: Watch,
    /// Whether the hub has ended. Written under the lock.
    end: AtomicU8,
}

/// The state that the lock protects. No user code runs while the lock is held: wakers are taken out and woken
/// afterwards.
pub(super) struct Core<E> {
    pub(super) registry: ConsumerRegistry,
    /// Consumers that were revoked and have not noticed it yet.
    revoked: ConsumerRegistry,
    /// Position of the oldest element that a consumer needs; no consumer is behind it. It moves back only for
    /// a consumer that joins with [`Start::Last`].
    pub(super) head: usize,
    /// First position at which a consumer can join, at or before the head. The producer takes the lock before
    /// it overwrites or drops elements from there on.
    oldest: usize,
    /// A position at or after the head. No consumer in the registry is behind it. It avoids a search of all
    /// consumers while the producer overwrites elements one by one.
    floor: usize,
    last_id: u64,
    /// Index in the registry at which the laggard was found. No consumer after this index is at the watched
    /// position.
    search_end: usize,
    /// Number of handles and receivers.
    handles: usize,
    /// Whether `start_after` consumers have been subscribed at the same time.
    started: bool,
    /// The producer's waker, woken when the producer should check for room again.
    producer: Option<Waker>,
    pub(super) end: Option<Ended<E>>,
}

/// The result of the producer's check for room in the ring.
pub(super) enum Room {
    /// There is room. Contains the head; the hub can store `capacity` elements from this position on.
    From(usize),
    /// There is no room. The waker is stored, and woken when the producer should check again.
    Wait,
    /// Like `Wait`, but there is no slow consumer: there are no consumers, or fewer than `start_after`.
    WaitForConsumers,
    /// There is no room, and the producer should yield before it waits.
    Yield,
    /// The hub is closed.
    Closed,
}

impl<T, E> Shared<T, E> {
    pub(super) fn new(ring: Ring<T>, rules: Rules, fences: Fences, origin: usize) -> Self {
        Self {
            ring,
            can_revoke: rules.can_revoke(),
            fences,
            dropped_to: AtomicUsize::new(origin),
            tail: CachePadded(AtomicUsize::new(origin)),
            signals: CachePadded(Signals {
                watch: Watch::new(),
                end: AtomicU8::new(OPEN),
            }),
            parked: CachePadded(Parked::new()),
            core: CachePadded(Mutex::new(Core {
                registry: ConsumerRegistry::default(),
                revoked: ConsumerRegistry::default(),
                head: origin,
                oldest: origin,
                floor: origin,
                last_id: 0,
                search_end: 0,
                handles: 1,
                started: rules.start_after.is_none(),
                producer: None,
                end: None,
            })),
            rules,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Core<E>> {
        lock(&self.core)
    }

    #[inline(always)]
    pub(super) fn tail(&self) -> usize {
        // Acquire: the elements before the tail are visible.
        self.tail.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: a thread that sees that the hub has ended also sees all elements that were published
        // before the end.
        self.signals.end.load(Ordering::Acquire) != OPEN
    }

    /// Returns whether the producer is probably running now, on another thread: the producer waits for no
    /// consumer, and the most recent wake-up of consumers came from another thread. Called by a consumer that
    /// has run out of elements.
    pub(super) fn more_is_likely(&self) -> bool {
        self.signals.watch.is_idle() && self.parked.is_woken_by_other_thread()
    }

    #[inline(always)]
    pub(super) fn has_failed(&self) -> bool {
        self.signals.watch.has_failed()
    }

    /// Wakes waiting consumers, in the order in which they parked.
    #[inline(always)]
    pub(super) fn wake_parked(&self) {
        self.parked.wake_all();
    }

    // ---- The producer's side. The producer owns `tail`.

    /// Publishes an element. `dropped_to` is the end of the elements that were dropped. Returns the
    /// overwritten element, which the caller must drop where user code may run.
    ///
    /// # Safety
    ///
    /// The caller is the one producer, `tail` is its own, and every consumer's position is past the element
    /// in the slot.
    #[inline(always)]
    pub(super) unsafe fn publish(
        &self,
        tail: usize,
        value: T,
        dropped_to: &mut usize,
    ) -> Option<T> {
        let mut old = None;
        if std::mem::needs_drop::<T>() && tail.wrapping_sub(*dropped_to) == self.ring.slots() {
            // SAFETY: this is the producer. The slot at `dropped_to` holds an element, and the caller
            // guarantees that no consumer reads it.
            old = Some(unsafe { self.ring.take(*dropped_to) });
            *dropped_to = dropped_to.wrapping_add(1);
        }
        // SAFETY: this is the producer, and no consumer reads the slot. An element that had to be dropped was
        // taken out.
        unsafe { self.ring.write(tail, value) };
        // Release: a reader that sees the new tail sees the element.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        old
    }

    /// Drops elements before `to`, which every consumer has received.
    ///
    /// # Safety
    ///
    /// The caller is the one producer, `dropped_to` is its own, and `to` is at or before the head.
    pub(super) unsafe fn drop_to(&self, dropped_to: &mut usize, to: usize) {
        let from = std::mem::replace(dropped_to, to);
        // SAFETY: the slots hold elements, no consumer reads behind the head, and no element is dropped
        // twice.
        unsafe { self.ring.drop_range(from, to) };
    }

    /// Checks for room for one more element, and stores the producer's waker if there is none. The caller
    /// passes a clone of its waker, because cloning is user code and must not run under the lock. `waker`
    /// returns a replaced or unused waker to the caller.
    pub(super) fn room(
        &self,
        tail: usize,
        waker: &mut Option<Waker>,
        backoff: &mut YieldBackoff,
    ) -> Room {
        let mut core = self.lock();
        loop {
            if core.end.is_some() {
                return Room::Closed;
            }
            if !core.started {
                std::mem::swap(&mut core.producer, waker);
                return Room::WaitForConsumers;
            }
            let is_held = core.make_room(tail, &self.rules);
            if tail.wrapping_sub(core.head) < self.rules.capacity {
                backoff.found();
                self.signals.watch.end();
                core.permit_overwriting(&self.rules);
                return Room::From(core.head);
            }
            if self.rules.overwrites() && self.revoke_slowest(&mut core) {
                continue;
            }
            if !is_held {
                // There is no consumer. A consumer that joins wakes the producer.
                std::mem::swap(&mut core.producer, waker);
                return Room::WaitForConsumers;
            }
            if backoff.should_yield(core.yields_for_room()) {
                return Room::Yield;
            }
            // Announce the watch, execute a fence, and check again. A consumer that leaves the head later
            // sees the watch. The laggard then takes the lock, and finds the waker that is stored below.
            self.signals.watch.begin(core.head);
            core.search_end = core.registry.len();
            self.fences.heavy();
            if self.name_laggard(&mut core) {
                std::mem::swap(&mut core.producer, waker);
                return Room::Wait;
            }
            self.signals.watch.end();
        }
    }

    /// Names the next consumer at the watched position as the laggard. Returns whether there is one.
    fn name_laggard(&self, core: &mut Core<E>) -> bool {
        let watch = &self.signals.watch;
        while let Some((index, member)) = core
            .registry
            .last_before(core.search_end, |position| watch.is_at(position))
        {
            watch.name(member.id);
            core.search_end = index;
            // Relaxed: the position is only compared. Before it writes to slots, the producer reads positions
            // with Acquire.
            if watch.is_at(member.position.load(Ordering::Relaxed)) {
                return true;
            }
        }
        false
    }

    /// Revokes the consumers at the head, except those that are reading an element. Returns whether it
    /// revoked any.
    pub(super) fn revoke_slowest(&self, core: &mut Core<E>) -> bool {
        let head = core.head;
        let slowest: Vec<Arc<Member>> = core
            .registry
            .iter()
            .filter(|member| member.position.load(Ordering::Relaxed) == head)
            .cloned()
            .collect();
        for member in &slowest {
            member.revoked.store(true, Ordering::Relaxed);
        }
        // One fence for all consumers. Either a consumer sees that it is revoked before it reads its next
        // element, or this thread sees the consumer's claim.
        self.fences.heavy();
        let mut any = false;
        for member in &slowest {
            // Acquire: if the consumer has ended its claim, its reads are complete.
            if member.claimed.load(Ordering::Acquire)
                || member.position.load(Ordering::Acquire) != head
            {
                member.revoked.store(false, Ordering::Relaxed);
                continue;
            }
            let member = core.registry.remove(member);
            core.revoked.add(member);
            any = true;
        }
        if any && core.has_no_consumers(&self.rules) {
            self.close_if_configured(core);
        }
        any
    }

    // ---- A consumer's side.

    pub(super) fn can_revoke(&self) -> bool {
        self.can_revoke
    }

    /// Returns the element at a position.
    ///
    /// # Safety
    ///
    /// The caller is a consumer that saw a tail past the position. While the reference lives, it does not
    /// publish a position past the element. If consumers can be revoked, the caller has a claim.
    #[cfg(all(test, fanline_loom))]
    pub(super) unsafe fn get(&self, position: usize) -> &T {
        // SAFETY: the element was published to the caller, and the producer does not pass the caller's
        // position.
        unsafe { self.ring.get(position) }
    }

    /// Returns the lap (the pass over the ring) of a position, and the number of positions left in it.
    pub(super) fn lap(&self, position: usize) -> (Lap<T>, usize) {
        (self.ring.lap(position), self.ring.left_in_lap(position))
    }

    /// Returns the contiguous elements from position `from`, at most up to `to`.
    ///
    /// # Safety
    ///
    /// The caller is a consumer that saw a tail at or past `to`. While the slice lives, it does not publish a
    /// position past `from`. If consumers can be revoked, the caller has a claim.
    #[inline(always)]
    pub(super) unsafe fn slice(&self, from: usize, to: usize) -> &[T] {
        // SAFETY: guaranteed by the caller.
        unsafe { self.ring.slice(from, to) }
    }

    /// Returns whether consumers can use [`advance_usual`](Self::advance_usual): they cannot be revoked, and
    /// the machine has the usual fences.
    pub(super) fn is_usual(&self) -> bool {
        !self.can_revoke && self.fences == Fences::USUAL
    }

    /// Publishes that the consumer has finished with everything before `position`. Allowed only if the hub
    /// [`is_usual`](Self::is_usual).
    #[inline(always)]
    pub(super) fn advance_usual(&self, member: &Member, position: usize) {
        // Relaxed: only this consumer writes the position. After a lent slice the position moves by more than
        // 1.
        let left = member.position.load(Ordering::Relaxed);
        // Release: for a thread that acquires the new position, this consumer's reads of earlier elements are
        // complete.
        member.position.store(position, Ordering::Release);
        Fences::USUAL.light();
        if self.signals.watch.is_at(left) {
            self.leave_head(member);
        }
    }

    /// Does the same as `advance_usual` for all other hubs: executes the fence that this machine needs, and
    /// ends the claim.
    #[cold]
    #[inline(never)]
    pub(super) fn advance_unusual(&self, member: &Member, position: usize) {
        // Relaxed and Release for the reasons given in `advance_usual`.
        let left = member.position.load(Ordering::Relaxed);
        member.position.store(position, Ordering::Release);
        self.fences.light();
        if self.signals.watch.is_at(left) {
            self.leave_head(member);
        }
        if self.can_revoke {
            // Release: the reads are complete.
            member.claimed.store(false, Ordering::Release);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_head(&self, member: &Member) {
        if self.signals.watch.is_laggard(member.id) {
            let mut core = self.lock();
            let waker = self.unwatch(&mut core, member.id);
            drop(core);
            wake(waker);
        }
    }

    /// Returns the producer's waker, if this consumer is the last one that the producer waits for.
    fn unwatch(&self, core: &mut Core<E>, id: u64) -> Option<Waker> {
        if !self.signals.watch.waits_for(id) || self.name_laggard(core) {
            return None;
        }
        self.signals.watch.end();
        core.producer.take()
    }

    // ---- Joining, leaving, and the end.

    /// Adds a consumer. Also returns a waker, which may panic. So the caller wakes it only after the member
    /// has got an owner that removes the member on drop.
    pub(super) fn join(&self, start: Start) -> (Arc<Member>, Option<Waker>) {
        let mut core = self.lock();
        let position = self.start_of(&mut core, start);
        self.add_consumer(&mut core, position)
    }

    /// Adds a consumer that starts at `position`, the next position of another consumer. The elements from
    /// there on are still stored, because the other consumer has not published a later position. Returns a
    /// waker as [`join`](Self::join) does.
    pub(super) fn join_beside(
        &self,
        member: &Member,
        position: usize,
    ) -> (Arc<Member>, Option<Waker>) {
        let mut core = self.lock();
        // Relaxed: `revoked` is set under the lock, which this thread holds. If the other consumer was
        // revoked, its next elements may be overwritten already, so start at the oldest stored element.
        let position = if member.revoked.load(Ordering::Relaxed) {
            self.start_of(&mut core, Start::Oldest)
        } else {
            position
        };
        self.add_consumer(&mut core, position)
    }

    fn add_consumer(&self, core: &mut Core<E>, position: usize) -> (Arc<Member>, Option<Waker>) {
        core.last_id += 1;
        let member = Arc::new(Member::new(core.last_id, position));
        core.admit(member.clone(), position);
        core.handles += 1;
        let mut waker = None;
        if !core.started
            && self
                .rules
                .start_after
                .is_some_and(|n| core.registry.len() >= n)
        {
            core.started = true;
            waker = core.producer.take();
        } else if core.registry.len() == 1 && core.started {
            // The producer may be waiting for the first consumer; it now checks for room again.
            waker = core.producer.take();
        }
        (member, waker)
    }

    /// Returns the start of a consumer that joins now. The head moves only under the lock, so it cannot
    /// overtake the joining consumer.
    fn start_of(&self, core: &mut Core<E>, start: Start) -> usize {
        if core.has_no_consumers(&self.rules) && self.rules.on_empty == OnEmpty::Drop {
            core.head = self.tail();
        }
        if start == Start::Latest {
            return self.tail();
        }
        if core.registry.len() <= JOIN_LOOKS_MAX {
            core.catch_up(&self.rules);
        }
        if let Start::Last(count) = start {
            let tail = self.tail();
            let position = tail.wrapping_sub(count.min(core.stored(tail, &self.rules)));
            if tail.wrapping_sub(position) > tail.wrapping_sub(core.head) {
                core.head = position;
            }
            return position;
        }
        core.head
    }

    /// Moves a revoked consumer to the oldest stored element. Returns the new position, and a waker that the
    /// caller wakes after it has stored that position. Returns `None` if the consumer was not revoked.
    pub(super) fn rejoin(&self, member: &Member) -> Option<(usize, Option<Waker>)> {
        let mut core = self.lock();
        if !member.revoked.load(Ordering::Relaxed) {
            return None;
        }
        let member = core.revoked.remove(member);
        // Relaxed: only the calling consumer writes its position. A consumer that joined with `Start::Last` may
        // have moved the head back to before that position.
        let own = member.position.load(Ordering::Relaxed);
        let is_lost = core.head.wrapping_sub(own).cast_signed() > 0;
        let position = if is_lost { core.head } else { own };
        // Relaxed: the lock orders the store.
        member.position.store(position, Ordering::Relaxed);
        member.revoked.store(false, Ordering::Relaxed);
        let first = core.registry.is_empty();
        core.admit(member, position);
        let waker = first.then(|| core.producer.take()).flatten();
        Some((position, waker))
    }

    /// Returns whether a consumer was revoked.
    pub(super) fn is_revoked(&self, member: &Member) -> bool {
        let _core = self.lock();
        member.revoked.load(Ordering::Relaxed)
    }

    /// Removes a consumer. Elements that only this consumer had not received may now be overwritten.
    pub(super) fn leave(&self, member: &Member) {
        let mut core = self.lock();
        let was_revoked = member.revoked.load(Ordering::Relaxed);
        let owned = if was_revoked {
            core.revoked.remove(member)
        } else {
            core.registry.remove(member)
        };
        let mut waker = self.unwatch(&mut core, member.id);
        if core.has_no_consumers(&self.rules) {
            if !was_revoked {
                // The next consumer resumes at this position, so it neither loses elements nor receives them
                // twice.
                core.head = member.position.load(Ordering::Acquire);
                core.floor = core.head;
            }
            self.close_if_configured(&mut core);
            waker = waker.or_else(|| core.producer.take());
        }
        let parked = self.parked.disown(owned);
        // While the sweep had taken the list, a thread that published an element or ended the hub may have
        // found the list empty. So wake all consumers.
        let sweep = self.parked.orphans() > ORPHANS_MIN.max(core.registry.len())
            && (self.parked.sweep(|| self.tail()) || core.end.is_some());
        let waker = self.drop_handle(&mut core).or(waker);
        drop(core);
        let others = || {
            if sweep {
                self.wake_parked();
            }
        };
        both(|| wake(waker), || both(others, || drop(parked)));
    }

    /// Returns ready if the hub has ended. Otherwise stores the waker, which is woken by every event that
    /// concerns the producer.
    pub(super) fn closed_or_wait(&self, waker: &mut Option<Waker>) -> Poll<()> {
        let mut core = self.lock();
        if core.end.is_some() {
            return Poll::Ready(());
        }
        std::mem::swap(&mut core.producer, waker);
        Poll::Pending
    }

    pub(super) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    pub(super) fn remove_handle(&self) {
        let mut core = self.lock();
        let orphan = self.drop_handle(&mut core);
        drop(core);
        wake(orphan);
    }

    /// Removes one handle. Without handles and receivers no consumer can join, so the hub closes. Returns the
    /// producer's waker if the hub closed.
    fn drop_handle(&self, core: &mut Core<E>) -> Option<Waker> {
        core.handles -= 1;
        if core.handles > 0 {
            return None;
        }
        self.close(core, Ended::Completed);
        core.producer.take()
    }

    /// Closes the hub after the last consumer left, if the options require it.
    fn close_if_configured(&self, core: &mut Core<E>) {
        if self.rules.on_empty == OnEmpty::Complete && core.started {
            self.close(core, Ended::Completed);
        }
    }

    fn close(&self, core: &mut Core<E>, end: Ended<E>) -> bool {
        if core.end.is_some() {
            return false;
        }
        if !matches!(end, Ended::Completed) {
            self.signals.watch.fail();
        }
        core.end = Some(end);
        // Release: see `is_closed`.
        self.signals.end.store(CLOSED, Ordering::Release);
        true
    }

    /// Ends the hub, unless it has ended before, and wakes waiting consumers. Returns whether this call ended
    /// the hub.
    pub(super) fn end(&self, end: Ended<E>) -> bool {
        let mut core = self.lock();
        let first = self.close(&mut core, end);
        let waker = core.producer.take();
        drop(core);
        both(|| wake(waker), || self.wake_parked());
        first
    }

    /// Returns each consumer's id and the number of elements that it is behind.
    pub(super) fn lags(&self) -> Vec<(u64, usize)> {
        let core = self.lock();
        let lags = core.registry.iter().chain(core.revoked.iter());
        lags.map(|member| (member.id, self.lag_of(member)))
            .collect()
    }

    pub(super) fn lag_of(&self, member: &Member) -> usize {
        // Read the position first: the tail is never behind a position that was read before the tail.
        let position = member.position.load(Ordering::Acquire);
        self.tail().wrapping_sub(position)
    }

    pub(super) fn consumers(&self) -> usize {
        let core = self.lock();
        core.registry.len() + core.revoked.len()
    }

    /// Stores the end of the dropped elements when the producer is dropped.
    pub(super) fn set_dropped_to(&self, position: usize) {
        // Relaxed: the last owner of the shared state reads this value. The reference count orders that read
        // after this store.
        self.dropped_to.store(position, Ordering::Relaxed);
    }

    /// Moves the head to the slowest consumer. Returns the number of elements before `tail`, the end of all
    /// elements, that must stay stored. The caller is the producer, which may drop the elements before them.
    pub(super) fn look_for_stored(&self, tail: usize) -> usize {
        let mut core = self.lock();
        core.catch_up(&self.rules);
        let stored = core.stored(tail, &self.rules);
        core.oldest = tail.wrapping_sub(stored);
        stored
    }
}

impl<T, E> Drop for Shared<T, E> {
    fn drop(&mut self) {
        let from = self.dropped_to.load(Ordering::Relaxed);
        // SAFETY: this is the last owner, and the slots from `from` to the tail hold elements.
        unsafe { self.ring.drop_range(from, self.tail()) };
    }
}

impl<E> Core<E> {
    /// Returns whether there is neither a consumer nor a revoked consumer that will resume.
    fn has_no_consumers(&self, rules: &Rules) -> bool {
        self.registry.is_empty() && !self.will_some_rejoin(rules)
    }

    /// Returns whether revoked consumers will resume. With `Disconnect` they do not, so they do not count.
    fn will_some_rejoin(&self, rules: &Rules) -> bool {
        rules.overwrites() && !self.revoked.is_empty()
    }

    /// Returns the number of elements before `tail`, the end of all elements, that consumers need or that can be
    /// replayed.
    fn stored(&self, tail: usize, rules: &Rules) -> usize {
        let replayed = rules.replay.min(tail.wrapping_sub(self.oldest));
        tail.wrapping_sub(self.head).max(replayed)
    }

    /// Allows the producer to overwrite elements until it looks for room again. The ring has slots for `replay`
    /// elements before the head, and for `capacity` elements after it.
    fn permit_overwriting(&mut self, rules: &Rules) {
        if self.head.wrapping_sub(self.oldest) > rules.replay {
            self.oldest = self.head.wrapping_sub(rules.replay);
        }
    }

    fn admit(&mut self, member: Arc<Member>, position: usize) {
        if position.wrapping_sub(self.head) < self.floor.wrapping_sub(self.head) {
            self.floor = position;
        }
        self.registry.add(member);
    }

    /// Returns the number of yields in a row that the producer should try before it waits for room.
    fn yields_for_room(&self) -> u8 {
        if self.registry.len() <= YIELD_CONSUMERS_MAX {
            YIELDS_MAX
        } else {
            1
        }
    }

    /// Moves the head as far as the consumers allow. Returns whether a consumer prevents the head from moving
    /// further.
    fn make_room(&mut self, tail: usize, rules: &Rules) -> bool {
        if self.will_some_rejoin(rules) {
            return self.make_room_for_one(tail, rules);
        }
        if let Some(ahead) = self.registry.slowest(self.head) {
            self.head = self.head.wrapping_add(ahead);
            self.floor = self.head;
            return true;
        }
        if rules.on_empty == OnEmpty::Drop {
            self.head = tail;
            self.floor = tail;
        }
        false
    }

    /// Does the same as `make_room`, but moves the head no further than needed, because revoked consumers
    /// resume at the oldest stored element.
    fn make_room_for_one(&mut self, tail: usize, rules: &Rules) -> bool {
        let kept = tail.wrapping_sub(self.head);
        if kept < rules.capacity {
            return false;
        }
        let needed = kept - rules.capacity + 1;
        if self.registry.is_empty() || self.floor.wrapping_sub(self.head) >= needed {
            self.head = self.head.wrapping_add(needed);
            self.floor = if self.registry.is_empty() {
                self.head
            } else {
                self.floor
            };
            return false;
        }
        let Some(ahead) = self.registry.slowest(self.head) else {
            return false;
        };
        self.floor = self.head.wrapping_add(ahead);
        self.head = self.head.wrapping_add(ahead.min(needed));
        true
    }

    /// Moves the head to the slowest consumer. Does not move the head if revoked consumers will resume there.
    fn catch_up(&mut self, rules: &Rules) {
        if self.will_some_rejoin(rules) {
            return;
        }
        if let Some(ahead) = self.registry.slowest(self.head) {
            self.head = self.head.wrapping_add(ahead);
            self.floor = self.head;
        }
    }
}

pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
