//! What producer, consumers and handles of one hub share, and the protocol between them; the module
//! documentation of [`hub::broadcast`](super) has the whole picture.
#![expect(
    unsafe_code,
    reason = "the producer's and the consumers' access to the ring, by their positions"
)]

use std::ops::Deref;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::options::{NobodyListens, Rules, Start};
use super::parked::{Member, Parked};
use super::patience::Patience;
use super::ring::{Lap, Ring};
use super::roster::Roster;
use super::watch::Watch;
use crate::fence::Fences;
use crate::hub::Ended;
use crate::hub::bell::both;
use crate::sync::{AtomicU8, AtomicUsize, Mutex, MutexGuard, Ordering, lock};

/// No end yet.
const OPEN: u8 = 0;
/// What is published is all there will be.
const CLOSED: u8 = 1;

/// A join looks at the positions of so many consumers at most, so that it takes the same time however
/// many there are.
const JOIN_LOOKS_MAX: usize = 64;
/// So many consumers are through with a full buffer about as soon as one that sleeps is woken from another
/// thread. With more, there is work for the producer's thread, from which its turns would keep it.
const TURNS_CONSUMERS_MAX: usize = 256;
/// So many turns take about as long as that, and a fence on all threads costs.
const TURNS_MAX: u8 = 64;
/// A sweep comes after so many members were left in the list of those who wait, or one for each
/// consumer. In a model, with the second.
const LEFT_MIN: usize = if cfg!(all(test, fanline_loom)) { 1 } else { 64 };

/// On cache lines that it shares with nothing: two, since they are fetched in pairs.
#[repr(align(128))]
pub(super) struct Apart<T>(T);

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

pub(super) struct Shared<T, E> {
    ring: Ring<T>,
    pub(super) rules: Rules,
    can_cut_off: bool,
    pub(super) fences: Fences,
    /// Up to where the producer has dropped elements; told when it goes.
    dropped_to: AtomicUsize,
    /// The end of what is published; written by the producer alone.
    tail: Apart<AtomicUsize>,
    signals: Apart<Signals>,
    pub(super) parked: Apart<Parked>,
    core: Apart<Mutex<Core<E>>>,
}

/// Written seldom and read for each element.
struct Signals {
    watch: Watch,
    /// Whether the hub has ended. Written under the lock.
    end: AtomicU8,
}

/// What the lock protects. No code of users runs while it is held; wakers are taken out and woken
/// after.
pub(super) struct Core<E> {
    pub(super) roster: Roster,
    /// Consumers that were cut off and have not noticed.
    cut_off: Roster,
    /// No consumer is behind it, and the elements from here on are kept.
    pub(super) head: usize,
    /// No consumer in the roster is behind it; at or past the head. It spares looking at all of them
    /// while elements are overwritten one by one.
    floor: usize,
    last_id: u64,
    /// The laggard was found at this place of the roster, and nobody is at the watched position behind it.
    unnamed: usize,
    /// Handles that can subscribe.
    handles: usize,
    /// Whether as many consumers as asked for were there once.
    started: bool,
    /// To be woken when it is worth looking for room again.
    producer: Option<Waker>,
    pub(super) end: Option<Ended<E>>,
}

/// What the producer finds when it looks for room.
pub(super) enum Room {
    /// This is the head now; there is room behind it.
    From(usize),
    /// The waker is kept, and woken when it is worth looking again.
    Wait,
    /// As `Wait`, and no consumer is to blame: there is none, or not enough of them came yet.
    Alone,
    /// None yet, and worth another turn before waiting.
    Soon,
    /// Nobody takes elements any more.
    Closed,
}

impl<T, E> Shared<T, E> {
    pub(super) fn new(ring: Ring<T>, rules: Rules, fences: Fences, origin: usize) -> Self {
        Self {
            ring,
            can_cut_off: rules.can_cut_off(),
            fences,
            dropped_to: AtomicUsize::new(origin),
            tail: Apart(AtomicUsize::new(origin)),
            signals: Apart(Signals {
                watch: Watch::new(),
                end: AtomicU8::new(OPEN),
            }),
            parked: Apart(Parked::new()),
            core: Apart(Mutex::new(Core {
                roster: Roster::default(),
                cut_off: Roster::default(),
                head: origin,
                floor: origin,
                last_id: 0,
                unnamed: 0,
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
        // Acquire: the elements before it are there.
        self.tail.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: whoever sees the end sees what was published before it.
        self.signals.end.load(Ordering::Acquire) != OPEN
    }

    /// To one who has run out: whether the producer may be at work this moment. It waits for nobody, and
    /// was last seen on another thread.
    pub(super) fn more_is_likely(&self) -> bool {
        self.signals.watch.is_nobody() && self.parked.is_woken_from_elsewhere()
    }

    #[inline(always)]
    pub(super) fn has_failed(&self) -> bool {
        self.signals.watch.has_failed()
    }

    /// Wakes consumers that wait, in the order in which they came.
    #[inline(always)]
    pub(super) fn wake_parked(&self) {
        self.parked.wake_all();
    }

    // ---- The producer's side. `tail` is the producer's own.

    /// Publishes an element. `dropped_to` is up to where elements have been dropped; returns what was
    /// overwritten, to be dropped where user code may run.
    ///
    /// # Safety
    ///
    /// The caller is the one producer, `tail` its own, and every position is past what lies in the slot.
    #[inline(always)]
    pub(super) unsafe fn publish(
        &self,
        tail: usize,
        value: T,
        dropped_to: &mut usize,
    ) -> Option<T> {
        let mut old = None;
        if std::mem::needs_drop::<T>() && tail.wrapping_sub(*dropped_to) == self.ring.slots() {
            // SAFETY: the producer; an element is there, `dropped_to` having stopped there, and nobody
            // reads it, says the caller.
            old = Some(unsafe { self.ring.take(*dropped_to) });
            *dropped_to = dropped_to.wrapping_add(1);
        }
        // SAFETY: as above; what had to be dropped was taken.
        unsafe { self.ring.write(tail, value) };
        // Release: the element is there for whoever sees the new tail.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        old
    }

    /// Drops elements before `to`, which every consumer is past.
    ///
    /// # Safety
    ///
    /// The caller is the one producer, `dropped_to` its own, and `to` at or before the head.
    pub(super) unsafe fn drop_to(&self, dropped_to: &mut usize, to: usize) {
        let from = std::mem::replace(dropped_to, to);
        // SAFETY: they are there, nobody reads behind the head, and they are not dropped twice.
        unsafe { self.ring.drop_range(from, to) };
    }

    /// Looks for room for one more element, and has the producer woken if there is none. `waker` was
    /// cloned before, as that is user code; what is not needed is handed back through it.
    pub(super) fn room(
        &self,
        tail: usize,
        waker: &mut Option<Waker>,
        patience: &mut Patience,
    ) -> Room {
        let mut core = self.lock();
        loop {
            if core.end.is_some() {
                return Room::Closed;
            }
            if !core.started {
                std::mem::swap(&mut core.producer, waker);
                return Room::Alone;
            }
            let is_held = core.make_room(tail, &self.rules);
            if tail.wrapping_sub(core.head) < self.rules.capacity {
                patience.found();
                self.signals.watch.end();
                return Room::From(core.head);
            }
            if self.rules.overwrites() && self.cut_off_slowest(&mut core) {
                continue;
            }
            if !is_held {
                // Nobody is there: whoever comes wakes the producer.
                std::mem::swap(&mut core.producer, waker);
                return Room::Alone;
            }
            if patience.asks(core.turns_for_room()) {
                return Room::Soon;
            }
            // Announce, fence, look again (hazard 1): a consumer that leaves the head after this sees that
            // it is watched, and the last comes for the lock, under which the waker is there.
            self.signals.watch.begin(core.head);
            core.unnamed = core.roster.len();
            self.fences.heavy();
            if self.name_laggard(&mut core) {
                std::mem::swap(&mut core.producer, waker);
                return Room::Wait;
            }
            self.signals.watch.end();
        }
    }

    /// Names the next one of those who are at the watched position; whether there is any.
    fn name_laggard(&self, core: &mut Core<E>) -> bool {
        let watch = &self.signals.watch;
        while let Some((index, member)) = core
            .roster
            .last_before(core.unnamed, |position| watch.is_at(position))
        {
            watch.name(member.id);
            core.unnamed = index;
            // Relaxed: only compared; the producer looks at it with Acquire.
            if watch.is_at(member.position.load(Ordering::Relaxed)) {
                return true;
            }
        }
        false
    }

    /// Takes the consumers at the head out of those who are waited for, except those who look at an
    /// element just now: whether there were any.
    pub(super) fn cut_off_slowest(&self, core: &mut Core<E>) -> bool {
        let head = core.head;
        let slowest: Vec<Arc<Member>> = core
            .roster
            .iter()
            .filter(|member| member.position.load(Ordering::Relaxed) == head)
            .cloned()
            .collect();
        for member in &slowest {
            member.revoked.store(true, Ordering::Relaxed);
        }
        // One fence for all: each consumer sees that it is cut off before it next looks at an element,
        // or we see that it has begun to.
        self.fences.heavy();
        let mut any = false;
        for member in &slowest {
            // Acquire: what it read before it let go is read.
            if member.claimed.load(Ordering::Acquire)
                || member.position.load(Ordering::Acquire) != head
            {
                member.revoked.store(false, Ordering::Relaxed);
                continue;
            }
            let member = core.roster.remove(member);
            core.cut_off.add(member);
            any = true;
        }
        if any && core.is_deserted(&self.rules) {
            self.close_if_asked(core);
        }
        any
    }

    // ---- A consumer's side.

    pub(super) fn can_cut_off(&self) -> bool {
        self.can_cut_off
    }

    /// The element at a position.
    ///
    /// # Safety
    ///
    /// The caller is a consumer that saw a tail past the position, and does not publish a position past
    /// it while the reference lives; where consumers can be cut off, it has claimed its place.
    #[cfg(all(test, fanline_loom))]
    pub(super) unsafe fn get(&self, position: usize) -> &T {
        // SAFETY: published to the caller; the producer keeps behind its position.
        unsafe { self.ring.get(position) }
    }

    /// Where the elements of that position's lap are found, and how many follow in it.
    pub(super) fn lap(&self, position: usize) -> (Lap<T>, usize) {
        (self.ring.lap(position), self.ring.left_in_lap(position))
    }

    /// Elements from a position on, as far as they lie together, up to `to`.
    ///
    /// # Safety
    ///
    /// The caller is a consumer that saw a tail at or past `to`, and does not publish a position past
    /// `from` while the slice lives; where consumers can be cut off, it has claimed its place.
    #[inline(always)]
    pub(super) unsafe fn slice(&self, from: usize, to: usize) -> &[T] {
        // SAFETY: as above.
        unsafe { self.ring.slice(from, to) }
    }

    /// Whether consumers need no more than [`advance_usual`](Self::advance_usual).
    pub(super) fn is_usual(&self) -> bool {
        !self.can_cut_off && self.fences == Fences::USUAL
    }

    /// The consumer has finished with everything before `position`; all there is to do about it where the
    /// hub [`is_usual`](Self::is_usual).
    #[inline(always)]
    pub(super) fn advance_usual(&self, member: &Member, position: usize) {
        // Relaxed: its own. What was lent makes it more than one step.
        let left = member.position.load(Ordering::Relaxed);
        // Release: its reads are over for whoever sees it (hazard 5).
        member.position.store(position, Ordering::Release);
        Fences::USUAL.light();
        if self.signals.watch.is_at(left) {
            self.leave_head(member);
        }
    }

    /// And the rest elsewhere: the fence that this machine needs, and the claim is over.
    #[cold]
    #[inline(never)]
    pub(super) fn advance_unusual(&self, member: &Member, position: usize) {
        // Relaxed, Release: as above.
        let left = member.position.load(Ordering::Relaxed);
        member.position.store(position, Ordering::Release);
        self.fences.light();
        if self.signals.watch.is_at(left) {
            self.leave_head(member);
        }
        if self.can_cut_off {
            // Release: the reads are over.
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

    /// The producer's waker, if it waits for nobody but that consumer.
    fn unwatch(&self, core: &mut Core<E>, id: u64) -> Option<Waker> {
        if !self.signals.watch.waits_for(id) || self.name_laggard(core) {
            return None;
        }
        self.signals.watch.end();
        core.producer.take()
    }

    // ---- Coming, going, and the end.

    /// A new consumer, and whom to wake when it has an owner who drops it if that panics.
    pub(super) fn join(&self, start: Start) -> (Arc<Member>, Option<Waker>) {
        let mut core = self.lock();
        let position = self.start_of(&mut core, start);
        self.newcomer(&mut core, position)
    }

    /// A consumer beside another one, which begins where that one is: at or past the position that it
    /// has published, and so not behind what it keeps. Otherwise as [`join`](Self::join).
    pub(super) fn join_beside(
        &self,
        member: &Member,
        position: usize,
    ) -> (Arc<Member>, Option<Waker>) {
        let mut core = self.lock();
        // Relaxed: set under the lock. Who was cut off keeps nothing.
        let position = if member.revoked.load(Ordering::Relaxed) {
            self.start_of(&mut core, Start::Oldest)
        } else {
            position
        };
        self.newcomer(&mut core, position)
    }

    fn newcomer(&self, core: &mut Core<E>, position: usize) -> (Arc<Member>, Option<Waker>) {
        core.last_id += 1;
        let member = Arc::new(Member::new(core.last_id, position));
        core.admit(member.clone(), position);
        core.handles += 1;
        let mut waker = None;
        if !core.started
            && self
                .rules
                .start_after
                .is_some_and(|n| core.roster.len() >= n)
        {
            core.started = true;
            waker = core.producer.take();
        } else if core.roster.len() == 1 && core.started {
            // The producer may wait for somebody to come; it looks again whom it waits for.
            waker = core.producer.take();
        }
        (member, waker)
    }

    /// Where a consumer that comes now begins. Nothing behind the head is needed, and the head moves
    /// only under the lock: it cannot overtake who is joining (hazard 4).
    fn start_of(&self, core: &mut Core<E>, start: Start) -> usize {
        if core.is_deserted(&self.rules) && self.rules.nobody_listens == NobodyListens::Discard {
            core.head = self.tail();
        }
        if start == Start::Latest {
            return self.tail();
        }
        if core.roster.len() <= JOIN_LOOKS_MAX {
            core.catch_up(&self.rules);
        }
        core.head
    }

    /// Puts a consumer that was cut off at the oldest element that is kept: its position there, and whom to
    /// wake when it knows. Nothing if it was not cut off after all.
    pub(super) fn rejoin(&self, member: &Member) -> Option<(usize, Option<Waker>)> {
        let mut core = self.lock();
        if !member.revoked.load(Ordering::Relaxed) {
            return None;
        }
        let member = core.cut_off.remove(member);
        let position = core.head;
        // Relaxed: the lock orders it.
        member.position.store(position, Ordering::Relaxed);
        member.revoked.store(false, Ordering::Relaxed);
        let first = core.roster.is_empty();
        core.admit(member, position);
        let waker = first.then(|| core.producer.take()).flatten();
        Some((position, waker))
    }

    /// Whether that consumer was cut off.
    pub(super) fn is_cut_off(&self, member: &Member) -> bool {
        let _core = self.lock();
        member.revoked.load(Ordering::Relaxed)
    }

    /// A receiver goes. What it kept from being overwritten is free (hazard 8).
    pub(super) fn leave(&self, member: &Member) {
        let mut core = self.lock();
        let was_cut_off = member.revoked.load(Ordering::Relaxed);
        let owned = if was_cut_off {
            core.cut_off.remove(member)
        } else {
            core.roster.remove(member)
        };
        let mut waker = self.unwatch(&mut core, member.id);
        if core.is_deserted(&self.rules) {
            if !was_cut_off {
                // The next to come goes on where this one was: nothing is lost or seen twice.
                core.head = member.position.load(Ordering::Acquire);
                core.floor = core.head;
            }
            self.close_if_asked(&mut core);
            waker = waker.or_else(|| core.producer.take());
        }
        let parked = self.parked.disown(owned);
        // Whoever ended the hub may have found nobody in the list while it was swept, as may whoever
        // published.
        let sweep = self.parked.left() > LEFT_MIN.max(core.roster.len())
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

    /// Whether the hub has ended; if not, the waker is kept for that, and whatever else wakes the
    /// producer.
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

    /// One handle less; without any nobody can come again, and the producer may know.
    fn drop_handle(&self, core: &mut Core<E>) -> Option<Waker> {
        core.handles -= 1;
        if core.handles > 0 {
            return None;
        }
        self.close(core, Ended::Completed);
        core.producer.take()
    }

    /// Nobody listens any more.
    fn close_if_asked(&self, core: &mut Core<E>) {
        if self.rules.nobody_listens == NobodyListens::Close && core.started {
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

    /// Ends the hub, unless it has ended before. Consumers that wait are woken.
    pub(super) fn end(&self, end: Ended<E>) -> bool {
        let mut core = self.lock();
        let first = self.close(&mut core, end);
        let waker = core.producer.take();
        drop(core);
        both(|| wake(waker), || self.wake_parked());
        first
    }

    /// The published positions from the slowest consumer's point of view: how far each is behind.
    pub(super) fn lags(&self) -> Vec<(u64, usize)> {
        let core = self.lock();
        let lags = core.roster.iter().chain(core.cut_off.iter());
        lags.map(|member| (member.id, self.lag_of(member)))
            .collect()
    }

    pub(super) fn lag_of(&self, member: &Member) -> usize {
        // The position first: the tail is never behind a position that was seen before it.
        let position = member.position.load(Ordering::Acquire);
        self.tail().wrapping_sub(position)
    }

    pub(super) fn consumers(&self) -> usize {
        let core = self.lock();
        core.roster.len() + core.cut_off.len()
    }

    /// The producer goes: up to where it has dropped elements.
    pub(super) fn set_dropped_to(&self, position: usize) {
        // Relaxed: read by the last owner, whom counting owners orders.
        self.dropped_to.store(position, Ordering::Relaxed);
    }

    /// Where the slowest consumer is; nothing before it is needed.
    pub(super) fn look_for_head(&self) -> usize {
        let mut core = self.lock();
        core.catch_up(&self.rules);
        core.head
    }
}

impl<T, E> Drop for Shared<T, E> {
    fn drop(&mut self) {
        let from = self.dropped_to.load(Ordering::Relaxed);
        // SAFETY: nobody else is left; from there to the tail the elements are there.
        unsafe { self.ring.drop_range(from, self.tail()) };
    }
}

impl<E> Core<E> {
    /// Whether nobody is there, nor will be without coming anew.
    fn is_deserted(&self, rules: &Rules) -> bool {
        self.roster.is_empty() && !self.will_some_rejoin(rules)
    }

    /// Whether there are consumers that were cut off and go on all the same when they notice. Where they
    /// are disconnected they are as good as gone.
    fn will_some_rejoin(&self, rules: &Rules) -> bool {
        rules.overwrites() && !self.cut_off.is_empty()
    }

    fn admit(&mut self, member: Arc<Member>, position: usize) {
        if position.wrapping_sub(self.head) < self.floor.wrapping_sub(self.head) {
            self.floor = position;
        }
        self.roster.add(member);
    }

    /// How many turns the producer may ask for, one after the other, before it waits for room.
    fn turns_for_room(&self) -> u8 {
        if self.roster.len() <= TURNS_CONSUMERS_MAX {
            TURNS_MAX
        } else {
            1
        }
    }

    /// Moves the head on as far as the consumers allow; whether one of them holds it.
    fn make_room(&mut self, tail: usize, rules: &Rules) -> bool {
        if self.will_some_rejoin(rules) {
            return self.make_room_for_one(tail, rules);
        }
        if let Some(ahead) = self.roster.slowest(self.head) {
            self.head = self.head.wrapping_add(ahead);
            self.floor = self.head;
            return true;
        }
        if rules.nobody_listens == NobodyListens::Discard {
            self.head = tail;
            self.floor = tail;
        }
        false
    }

    /// The same, and no further than needed: those who were cut off come back at the oldest element
    /// that is kept.
    fn make_room_for_one(&mut self, tail: usize, rules: &Rules) -> bool {
        let kept = tail.wrapping_sub(self.head);
        if kept < rules.capacity {
            return false;
        }
        let needed = kept - rules.capacity + 1;
        if self.roster.is_empty() || self.floor.wrapping_sub(self.head) >= needed {
            self.head = self.head.wrapping_add(needed);
            self.floor = if self.roster.is_empty() {
                self.head
            } else {
                self.floor
            };
            return false;
        }
        let Some(ahead) = self.roster.slowest(self.head) else {
            return false;
        };
        self.floor = self.head.wrapping_add(ahead);
        self.head = self.head.wrapping_add(ahead.min(needed));
        true
    }

    /// Moves the head to the slowest consumer, if none comes back to what is kept.
    fn catch_up(&mut self, rules: &Rules) {
        if self.will_some_rejoin(rules) {
            return;
        }
        if let Some(ahead) = self.roster.slowest(self.head) {
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
