//! The queue between an observer, which the source calls, and the one consumer of a stream.
//!
//! If the queue delivers all values, the consumer takes many at a time, so that a burst costs one lock. If
//! values may be dropped, the consumer takes one at a time, so that only unread values are dropped.
//!
//! One mutex protects the queue, and is held only while values move in or out. Values, wakers, and errors are
//! taken out under the mutex. They are dropped, woken, or cloned after it is released.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::policy::sealed::Event;
use crate::sync::{AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// Capacity above which an emptied buffer is freed, so that one burst does not occupy memory for the life
/// of the stream.
const RETAINED_CAPACITY_MAX: usize = 1024;

/// The capacity of a queue, and what happens when the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    capacity: usize,
    when_full: WhenFull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// Never full.
    Grow,
    Block,
    DropOldest,
    DropNewest,
    Fail,
}

impl Rule {
    pub(super) const UNBOUNDED: Self = Self {
        capacity: usize::MAX,
        when_full: WhenFull::Grow,
    };

    /// Creates a rule with a capacity.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    #[track_caller]
    pub(super) fn bounded(capacity: usize, when_full: WhenFull) -> Self {
        assert!(capacity >= 1, "`capacity` must be at least 1");
        Self {
            capacity,
            when_full,
        }
    }

    /// Returns whether the rule drops no values. If so, the consumer may take many values at once. Otherwise
    /// values must stay in the queue, so that they can be dropped.
    fn delivers_all(self) -> bool {
        match self.when_full {
            WhenFull::Grow | WhenFull::Block | WhenFull::Fail => true,
            WhenFull::DropOldest | WhenFull::DropNewest => false,
        }
    }

    /// Maximum number of values that the consumer takes at once. For a bounded queue it is half of the
    /// capacity, so that the source can fill one half while the consumer reads the other.
    fn batch_max(self) -> usize {
        match self.when_full {
            WhenFull::Grow => usize::MAX,
            _ => self.capacity.div_ceil(2),
        }
    }
}

struct Queue<T, E> {
    rule: Rule,
    state: Mutex<State<T, E>>,
    /// Notified when there is room, for a source that waits under [`WhenFull::Block`].
    room: Condvar,
    /// Whether the consumer needs no more values. Relaxed: the flag only saves the source unnecessary work;
    /// `State::is_closed` decides.
    closed: AtomicBool,
    /// Number of unread values in the consumer's batch, which count toward the capacity. Relaxed: the number
    /// protects no other data. If the source reads an outdated number, the number is too high, so the source
    /// waits until the consumer polls for more.
    unread: AtomicUsize,
}

struct State<T, E> {
    values: VecDeque<T>,
    /// Number of values that were taken or dropped from the front. It is also the position of the value at
    /// the front.
    passed: u64,
    /// Size of the consumer's last batch: an upper bound for the number of unread values.
    batch: usize,
    /// Gaps where values are missing, in order. There is at most one gap before each queued value, and one
    /// after the last value.
    gaps: VecDeque<Gap>,
    lost: u64,
    end: Option<End<E>>,
    waker: Option<Waker>,
    /// Whether the consumer was dropped.
    is_closed: bool,
    /// Whether the subscription is in progress. The subscription runs on the consumer's thread, where waiting
    /// for the consumer would deadlock.
    is_subscribing: bool,
    /// Whether the source waits for room.
    is_blocked: bool,
}

struct Gap {
    /// Position of the value that follows the gap.
    before: u64,
    lost: u64,
}

enum End<E> {
    Complete,
    Error(E),
    Overflow,
}

/// The result of a poll by the consumer.
pub(super) enum Taken<T, E> {
    Event(Event<T>),
    Error(E),
    End,
}

/// The observer's end of a queue. Dropping it ends the stream.
pub(super) struct Sender<T, E> {
    queue: Arc<Queue<T, E>>,
    /// Clones of a slice's values while they are being queued. Otherwise empty; its buffer is reused.
    staged: VecDeque<T>,
    has_ended: bool,
}

/// The consumer's end of a queue. Dropping it unsubscribes.
pub(super) struct Receiver<T, E> {
    queue: Arc<Queue<T, E>>,
    /// The batch taken from a queue that delivers all values.
    batch: VecDeque<T>,
    guard: Guard,
    has_ended: bool,
}

/// Creates a queue, and subscribes the observer that `wrap` makes of its sender.
pub(super) fn subscribe<S, W, O>(source: S, rule: Rule, wrap: W) -> Receiver<S::Item, S::Error>
where
    S: IntoObservable,
    W: FnOnce(Sender<S::Item, S::Error>) -> O,
    O: Observer<S::Item, S::Error> + Send + 'static,
{
    let queue = Arc::new(Queue::new(rule));
    let sender = Sender {
        queue: queue.clone(),
        staged: VecDeque::new(),
        has_ended: false,
    };
    let guard = source.into_observable().subscribe_with(wrap(sender));
    lock(&queue.state).is_subscribing = false;
    Receiver {
        queue,
        batch: VecDeque::new(),
        guard,
        has_ended: false,
    }
}

impl<T, E> Queue<T, E> {
    fn new(rule: Rule) -> Self {
        Self {
            rule,
            state: Mutex::new(State {
                values: VecDeque::new(),
                passed: 0,
                batch: 0,
                gaps: VecDeque::new(),
                lost: 0,
                end: None,
                waker: None,
                is_closed: false,
                is_subscribing: true,
                is_blocked: false,
            }),
            room: Condvar::new(),
            closed: AtomicBool::new(false),
            unread: AtomicUsize::new(0),
        }
    }

    /// Returns how many more values the queue may take.
    fn room(&self, state: &State<T, E>) -> usize {
        if self.rule.when_full == WhenFull::Block && state.is_subscribing {
            return usize::MAX;
        }
        let room = self
            .rule
            .capacity
            .saturating_sub(state.values.len() + state.batch);
        if room > 0 || state.batch == 0 {
            return room;
        }
        // `unread` is loaded only if necessary, because the consumer writes `unread` for each value.
        let unread = self.unread.load(Ordering::Relaxed);
        self.rule
            .capacity
            .saturating_sub(state.values.len() + unread)
    }

    fn push(&self, value: T) {
        let mut state = lock(&self.state);
        let mut dropped = None;
        if !state.is_over() && self.room(&state) == 0 {
            match self.rule.when_full {
                WhenFull::Grow | WhenFull::Block => state = self.wait_for_room(state),
                WhenFull::DropOldest => dropped = state.drop_oldest(),
                WhenFull::DropNewest => {
                    state.count_dropped_newest();
                    drop(state);
                    return;
                }
                WhenFull::Fail => self.overflow(&mut state),
            }
        }
        if state.is_over() {
            drop(state);
            return;
        }
        state.values.push_back(value);
        let waker = state.waker.take();
        drop(state);
        drop(dropped);
        wake(waker);
    }

    /// Appends all values, each time as many as there is room for. Only for queues that deliver all values.
    fn append(&self, values: &mut VecDeque<T>) {
        while !values.is_empty() {
            let mut state = lock(&self.state);
            if !state.is_over() && self.room(&state) == 0 {
                match self.rule.when_full {
                    WhenFull::Fail => self.overflow(&mut state),
                    _ => state = self.wait_for_room(state),
                }
            }
            if state.is_over() {
                drop(state);
                values.clear();
                return;
            }
            move_front(self.room(&state), values, &mut state.values);
            let waker = state.waker.take();
            drop(state);
            wake(waker);
        }
    }

    fn overflow(&self, state: &mut State<T, E>) {
        state.end = Some(End::Overflow);
        self.closed.store(true, Ordering::Relaxed);
    }

    fn wait_for_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<T, E>>,
    ) -> MutexGuard<'a, State<T, E>> {
        while !state.is_over() && self.room(&state) == 0 {
            state.is_blocked = true;
            state = self
                .room
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.is_blocked = false;
        state
    }

    fn end(&self, end: End<E>) {
        let mut state = lock(&self.state);
        // An overflow may already have ended the queue.
        let refused = if state.end.is_none() && !state.is_closed {
            state.end.replace(end)
        } else {
            Some(end)
        };
        let waker = state.waker.take();
        drop(state);
        drop(refused);
        wake(waker);
    }

    /// Closes the queue when the consumer is dropped.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let mut state = lock(&self.state);
        state.is_closed = true;
        let values = std::mem::take(&mut state.values);
        let end = state.end.take();
        let waker = state.waker.take();
        let is_blocked = state.is_blocked;
        drop(state);
        if is_blocked {
            self.room.notify_one();
        }
        drop((values, end, waker));
    }

    fn poll(&self, batch: &mut VecDeque<T>, context: &Context<'_>) -> Poll<Taken<T, E>> {
        // Cloning and dropping a waker is user code, which must not run under the lock. So a new waker is
        // cloned between two checks. `new_waker` is declared before the lock, and so dropped after it.
        let mut new_waker = None;
        let mut state = lock(&self.state);
        loop {
            if let Some(taken) = state.take(self.rule, batch) {
                state.batch = batch.len();
                self.unread.store(batch.len(), Ordering::Relaxed);
                let queued = state.values.len() + batch.len();
                let has_room = state.is_blocked && queued <= self.rule.capacity / 2;
                drop(state);
                if has_room {
                    self.room.notify_one();
                }
                return Poll::Ready(taken);
            }
            let waker = context.waker();
            if state.waker.as_ref().is_some_and(|w| w.will_wake(waker)) {
                return Poll::Pending;
            }
            if let Some(new_waker) = new_waker.take() {
                let old = state.waker.replace(new_waker);
                drop(state);
                drop(old);
                return Poll::Pending;
            }
            drop(state);
            new_waker = Some(waker.clone());
            state = lock(&self.state);
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Moves up to `count` values from the front of one queue to the back of the other.
fn move_front<T>(count: usize, from: &mut VecDeque<T>, to: &mut VecDeque<T>) {
    if count < from.len() {
        to.extend(from.drain(..count));
    } else if to.is_empty() {
        std::mem::swap(from, to);
    } else {
        to.append(from);
    }
}

impl<T, E> State<T, E> {
    /// Returns whether no more values are accepted.
    fn is_over(&self) -> bool {
        self.is_closed || self.end.is_some()
    }

    fn take(&mut self, rule: Rule, batch: &mut VecDeque<T>) -> Option<Taken<T, E>> {
        let value = if rule.delivers_all() {
            move_front(rule.batch_max(), &mut self.values, batch);
            batch.pop_front()
        } else if self
            .gaps
            .front()
            .is_some_and(|gap| gap.before <= self.passed)
            && let Some(gap) = self.gaps.pop_front()
        {
            return Some(Taken::Event(Event::Lost(gap.lost)));
        } else {
            self.values.pop_front().inspect(|_| self.passed += 1)
        };
        if let Some(value) = value {
            return Some(Taken::Event(Event::Value(value)));
        }
        Some(match self.end.take()? {
            End::Complete => Taken::End,
            End::Error(error) => Taken::Error(error),
            End::Overflow => Taken::Event(Event::Overflow),
        })
    }

    fn drop_oldest(&mut self) -> Option<T> {
        let oldest = self.values.pop_front();
        self.passed += 1;
        self.lost += 1;
        match self.gaps.front_mut() {
            Some(gap) => {
                gap.before = self.passed;
                gap.lost += 1;
            }
            None => self.gaps.push_back(Gap {
                before: self.passed,
                lost: 1,
            }),
        }
        oldest
    }

    /// Counts a value that is dropped on arrival.
    fn count_dropped_newest(&mut self) {
        self.lost += 1;
        let queued = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        let before = self.passed.saturating_add(queued);
        match self.gaps.back_mut() {
            Some(gap) if gap.before == before => gap.lost += 1,
            _ => self.gaps.push_back(Gap { before, lost: 1 }),
        }
    }
}

impl<T, E> Sender<T, E> {
    pub(super) fn push(&mut self, value: T) {
        self.queue.push(value);
    }

    /// Ends the stream. Has no effect if it has already ended.
    fn end(&mut self, end: End<E>) {
        if !self.has_ended {
            self.has_ended = true;
            self.queue.end(end);
        }
    }

    pub(super) fn fail(&mut self, error: E) {
        self.end(End::Error(error));
    }

    pub(super) fn finish(&mut self) {
        self.end(End::Complete);
    }

    pub(super) fn is_queue_closed(&self) -> bool {
        self.queue.closed.load(Ordering::Relaxed)
    }
}

impl<T: Clone, E: Clone> Observer<T, E> for Sender<T, E> {
    fn next(&mut self, value: &T) {
        self.queue.push(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        self.queue.push(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        if self.queue.rule.delivers_all() {
            // `staged` is empty here, unless an earlier clone panicked.
            self.staged.clear();
            self.staged.extend(values.iter().cloned());
            self.queue.append(&mut self.staged);
            return;
        }
        for value in values {
            if self.is_queue_closed() {
                break;
            }
            self.queue.push(value.clone());
        }
    }

    fn error(&mut self, error: &E) {
        self.fail(error.clone());
    }

    fn complete(&mut self) {
        self.finish();
    }

    fn is_closed(&self) -> bool {
        self.is_queue_closed()
    }
}

impl<T, E> Drop for Sender<T, E> {
    /// Ends the stream when the source drops its observer, whether or not the source has completed or failed.
    fn drop(&mut self) {
        self.finish();
    }
}

impl<T, E> Receiver<T, E> {
    /// Takes the next event. If the event is an error, an overflow, or the end, unsubscribes. Later calls
    /// then return only the end.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Taken<T, E>> {
        if let Some(value) = self.batch.pop_front() {
            if self.queue.rule.when_full != WhenFull::Grow {
                let unread = self.batch.len();
                self.queue.unread.store(unread, Ordering::Relaxed);
            }
            return Poll::Ready(Taken::Event(Event::Value(value)));
        }
        if self.has_ended {
            return Poll::Ready(Taken::End);
        }
        if self.batch.capacity() > RETAINED_CAPACITY_MAX {
            self.batch = VecDeque::new();
        }
        let taken = self.queue.poll(&mut self.batch, context);
        if let Poll::Ready(Taken::Error(_) | Taken::End | Taken::Event(Event::Overflow)) = taken {
            self.has_ended = true;
            self.guard = Guard::closed();
        }
        taken
    }

    /// Unsubscribes; queued values stay.
    pub(super) fn unsubscribe(&mut self) {
        self.guard = Guard::closed();
    }

    pub(super) fn lost(&self) -> u64 {
        lock(&self.queue.state).lost
    }

    /// Returns the number of values that can be taken now.
    pub(super) fn ready(&self) -> usize {
        lock(&self.queue.state).values.len() + self.batch.len()
    }
}

impl<T, E> Drop for Receiver<T, E> {
    fn drop(&mut self) {
        // The queue is closed first, so that a source that waits for room continues and can be unsubscribed.
        self.queue.close();
        self.guard = Guard::closed();
    }
}

#[cfg(all(test, fanline_loom))]
mod loom_tests {
    use super::super::park::block_on;
    use super::*;
    use crate::sync::thread;

    /// Emits three values on a thread, and checks the values and losses that the consumer receives.
    fn model(rule: Rule, check: impl Fn(&[u32], u64) + Send + Sync + 'static) {
        loom::model(move || {
            let queue = Arc::new(Queue::new(rule));
            lock(&queue.state).is_subscribing = false;
            let mut sender = Sender::<u32, u32> {
                queue: queue.clone(),
                staged: VecDeque::new(),
                has_ended: false,
            };
            let mut receiver = Receiver {
                queue,
                batch: VecDeque::new(),
                guard: Guard::closed(),
                has_ended: false,
            };
            let producer = thread::spawn(move || {
                sender.next_owned(0);
                sender.next_slice(&[1, 2]);
            });
            let (mut seen, mut lost) = (Vec::new(), 0);
            loop {
                match block_on(|context| receiver.poll(context)) {
                    Taken::Event(Event::Value(value)) => seen.push(value),
                    Taken::Event(Event::Lost(count)) => lost += count,
                    Taken::Event(Event::Overflow) | Taken::Error(_) => unreachable!(),
                    Taken::End => break,
                }
            }
            producer.join().unwrap();
            check(&seen, lost);
        });
    }

    #[test]
    fn loom_consumer_receives_all_values_and_wakes() {
        model(Rule::UNBOUNDED, |seen, _| assert_eq!(seen, [0, 1, 2]));
    }

    #[test]
    fn loom_blocked_source_is_woken() {
        model(Rule::bounded(1, WhenFull::Block), |seen, _| {
            assert_eq!(seen, [0, 1, 2]);
        });
    }

    #[test]
    fn loom_dropped_values_are_counted() {
        model(Rule::bounded(1, WhenFull::DropOldest), |seen, lost| {
            assert_eq!(seen.len() as u64 + lost, 3);
            assert!(seen.is_sorted());
            assert_eq!(seen.last(), Some(&2));
        });
    }

    #[test]
    fn loom_closing_consumer_unblocks_source() {
        loom::model(|| {
            let queue = Arc::new(Queue::<u32, u32>::new(Rule::bounded(1, WhenFull::Block)));
            lock(&queue.state).is_subscribing = false;
            let producer = thread::spawn({
                let queue = queue.clone();
                move || {
                    queue.push(0);
                    queue.push(1);
                }
            });
            queue.close();
            producer.join().unwrap();
            assert!(lock(&queue.state).values.is_empty());
        });
    }
}
