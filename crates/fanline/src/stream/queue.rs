//! The queue between an observer, which the source calls, and the one consumer of a stream.
//!
//! Where every value is kept, the consumer takes many at a time, so that a burst costs it one lock;
//! where values are dropped it takes one, so that what is dropped is always what it has not seen.
//!
//! One mutex, held for a few moves and no more: values, wakers and errors are taken out under it and
//! dropped, woken and cloned outside.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::policy::sealed::Event;
use crate::sync::{AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// A buffer with room for more values than this is freed when it has been emptied, so that one burst
/// does not hold its memory for as long as the stream lives.
const KEPT_CAPACITY_MAX: usize = 1024;

/// How much a queue holds and what happens beyond.
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

    /// Whether every value is taken in as long as the stream goes on. Then the consumer can be given
    /// many at once; where values are dropped, they must be within reach.
    fn keeps_all(self) -> bool {
        match self.when_full {
            WhenFull::Grow | WhenFull::Block | WhenFull::Fail => true,
            WhenFull::DropOldest | WhenFull::DropNewest => false,
        }
    }

    /// How many values the consumer takes at once: with a capacity half of it, so that the source can
    /// fill one half while the consumer reads the other.
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
    /// Where the source waits under [`WhenFull::Block`].
    room: Condvar,
    /// Nothing more is wanted. Relaxed: it only spares the source work that would come to nothing;
    /// `State::is_closed` decides.
    closed: AtomicBool,
    /// How many values of its batch the consumer has still to read; they count towards the capacity.
    /// Relaxed: a number and nothing else. Read late it is too high, and the source then waits until
    /// the consumer comes for more.
    in_hand: AtomicUsize,
}

struct State<T, E> {
    values: VecDeque<T>,
    /// Values that left the front, taken or dropped: the number of the value at the front.
    passed: u64,
    /// What the consumer took along last: at least as many as it has in hand.
    batch: usize,
    /// Where values are missing, in order; at most one per value held and one behind the last.
    gaps: VecDeque<Gap>,
    lost: u64,
    end: Option<End<E>>,
    waker: Option<Waker>,
    /// The consumer is gone.
    is_closed: bool,
    /// The subscription is still being made, on the consumer's thread: waiting for it would never end.
    is_subscribing: bool,
    /// The source waits for room.
    is_blocked: bool,
}

struct Gap {
    /// The number of the value behind it.
    before: u64,
    lost: u64,
}

enum End<E> {
    Complete,
    Error(E),
    Overflow,
}

/// What a consumer is given.
pub(super) enum Taken<T, E> {
    Event(Event<T>),
    Error(E),
    End,
}

/// The observer's end of a queue. Dropping it ends the stream.
pub(super) struct Sender<T, E> {
    queue: Arc<Queue<T, E>>,
    /// Copies of a slice on their way into the queue; empty otherwise, and kept for its buffer.
    staged: VecDeque<T>,
    has_ended: bool,
}

/// The consumer's end of a queue. Dropping it unsubscribes.
pub(super) struct Receiver<T, E> {
    queue: Arc<Queue<T, E>>,
    /// What was taken out of a queue that keeps all, many at once.
    batch: VecDeque<T>,
    guard: Guard,
    has_ended: bool,
}

/// Subscribes an observer that `wrap` makes of a queue's sender.
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
            in_hand: AtomicUsize::new(0),
        }
    }

    /// How many more values may be put in.
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
        // Only now, because the consumer writes to it all the time.
        let in_hand = self.in_hand.load(Ordering::Relaxed);
        self.rule
            .capacity
            .saturating_sub(state.values.len() + in_hand)
    }

    fn push(&self, value: T) {
        let mut state = lock(&self.state);
        let mut unneeded = None;
        if !state.is_over() && self.room(&state) == 0 {
            match self.rule.when_full {
                WhenFull::Grow | WhenFull::Block => state = self.wait_for_room(state),
                WhenFull::DropOldest => unneeded = state.drop_oldest(),
                WhenFull::DropNewest => {
                    state.count_newest();
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
        drop(unneeded);
        wake(waker);
    }

    /// Puts in as many as there is room for at a time; for a queue that keeps all.
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
        // An overflow has ended it before.
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

    /// The consumer is gone.
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
        // A waker's clone and drop are user code and stay outside the lock, so a new one is made
        // between two looks. Declared before the lock, and so dropped after it.
        let mut fresh = None;
        let mut state = lock(&self.state);
        loop {
            if let Some(taken) = state.take(self.rule, batch) {
                state.batch = batch.len();
                self.in_hand.store(batch.len(), Ordering::Relaxed);
                let held = state.values.len() + batch.len();
                let has_room = state.is_blocked && held <= self.rule.capacity / 2;
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
            if let Some(fresh) = fresh.take() {
                let old = state.waker.replace(fresh);
                drop(state);
                drop(old);
                return Poll::Pending;
            }
            drop(state);
            fresh = Some(waker.clone());
            state = lock(&self.state);
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Moves up to `count` values from the front of one to the back of the other.
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
    /// Whether no value is taken in any more.
    fn is_over(&self) -> bool {
        self.is_closed || self.end.is_some()
    }

    fn take(&mut self, rule: Rule, batch: &mut VecDeque<T>) -> Option<Taken<T, E>> {
        let value = if rule.keeps_all() {
            move_front(rule.batch_max(), &mut self.values, batch);
            batch.pop_front()
        } else if let Some(gap) = self.gaps.pop_front_if(|gap| gap.before <= self.passed) {
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

    /// Takes note of a value that is not taken in.
    fn count_newest(&mut self) {
        self.lost += 1;
        let held = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        let before = self.passed.saturating_add(held);
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

    /// Ends the stream; what comes after it is not looked at.
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

    pub(super) fn is_unwanted(&self) -> bool {
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
        if self.queue.rule.keeps_all() {
            // Not empty only after a clone that panicked.
            self.staged.clear();
            self.staged.extend(values.iter().cloned());
            self.queue.append(&mut self.staged);
            return;
        }
        for value in values {
            if self.is_unwanted() {
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
        self.is_unwanted()
    }
}

impl<T, E> Drop for Sender<T, E> {
    /// The source went away, with or without an end.
    fn drop(&mut self) {
        self.finish();
    }
}

impl<T, E> Receiver<T, E> {
    /// After an error, an overflow or the end there is only the end, and the source is let go.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Taken<T, E>> {
        if let Some(value) = self.batch.pop_front() {
            if self.queue.rule.when_full != WhenFull::Grow {
                let in_hand = self.batch.len();
                self.queue.in_hand.store(in_hand, Ordering::Relaxed);
            }
            return Poll::Ready(Taken::Event(Event::Value(value)));
        }
        if self.has_ended {
            return Poll::Ready(Taken::End);
        }
        if self.batch.capacity() > KEPT_CAPACITY_MAX {
            self.batch = VecDeque::new();
        }
        let taken = self.queue.poll(&mut self.batch, context);
        if let Poll::Ready(Taken::Error(_) | Taken::End | Taken::Event(Event::Overflow)) = taken {
            self.has_ended = true;
            self.guard = Guard::closed();
        }
        taken
    }

    /// Lets the source go; what is in the queue stays.
    pub(super) fn unsubscribe(&mut self) {
        self.guard = Guard::closed();
    }

    pub(super) fn lost(&self) -> u64 {
        lock(&self.queue.state).lost
    }

    /// Values that are there to be taken.
    pub(super) fn ready(&self) -> usize {
        lock(&self.queue.state).values.len() + self.batch.len()
    }
}

impl<T, E> Drop for Receiver<T, E> {
    fn drop(&mut self) {
        // First, so that a source that waits for room goes on and can be unsubscribed.
        self.queue.close();
        self.guard = Guard::closed();
    }
}

#[cfg(all(test, fanline_loom))]
mod loom_tests {
    use super::super::park::block_on;
    use super::*;
    use crate::sync::thread;

    /// A thread emits three values and goes; what the consumer has got by then.
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
    fn loom_nothing_is_lost_and_nobody_sleeps_on() {
        model(Rule::UNBOUNDED, |seen, _| assert_eq!(seen, [0, 1, 2]));
    }

    #[test]
    fn loom_a_source_that_waits_is_woken() {
        model(Rule::bounded(1, WhenFull::Block), |seen, _| {
            assert_eq!(seen, [0, 1, 2]);
        });
    }

    #[test]
    fn loom_what_is_dropped_is_counted() {
        model(Rule::bounded(1, WhenFull::DropOldest), |seen, lost| {
            assert_eq!(seen.len() as u64 + lost, 3);
            assert!(seen.is_sorted());
            assert_eq!(seen.last(), Some(&2));
        });
    }

    #[test]
    fn loom_a_consumer_that_goes_frees_a_source_that_waits() {
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
