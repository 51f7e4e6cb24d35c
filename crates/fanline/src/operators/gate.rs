//! The gate in front of what several upstreams share: one at a time goes in, the others leave a
//! message and go on.

use std::collections::VecDeque;
use std::sync::Arc;

use super::upstreams::Upstreams;
use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::{Guard, Observer, Time, Worker};

/// What stands behind a [`Gate`]: the downstream observer and what an operator keeps.
pub(super) trait Stage: Sized + Send + 'static {
    /// What is left at the gate when someone else is inside.
    type Message: Send + 'static;

    /// Deals with a message that was left.
    fn receive(&mut self, message: Self::Message, gate: &Gate<Self>);

    /// Whether it has ended, or nobody downstream wants more. Asked after each turn; then all is
    /// dropped, upstream subscriptions included.
    fn is_over(&self) -> bool;
}

/// Lets one caller at a time to the [`Stage`] and never blocks for longer than a few instructions.
///
/// Whoever finds the gate free takes the stage out, works on it with no lock held, then deals with
/// the messages that others left meanwhile, and puts it back. Whoever finds it taken, on another
/// thread or further out on the same one, leaves a message. So calls never overlap, what one
/// upstream says keeps its order, and re-entrance is breadth first.
///
/// A panic inside a turn ends everything: the stage is dropped while unwinding.
pub(super) struct Gate<S: Stage> {
    shared: Arc<Shared<S>>,
}

struct Shared<S: Stage> {
    cell: Mutex<Cell<S>>,
    /// Says to a source in a loop that it can stop; what is decided is decided under the lock, so
    /// relaxed loads and stores suffice.
    over: AtomicBool,
    upstreams: Upstreams,
}

struct Cell<S: Stage> {
    /// In a box, to be taken out and put back by moving a pointer. `None` while someone is inside,
    /// and when all is over.
    stage: Option<Box<S>>,
    /// Empty whenever the stage is here.
    waiting: VecDeque<S::Message>,
    over: bool,
}

enum Entry<S> {
    Free(Box<S>),
    Taken,
    Over,
}

impl<S: Stage> Gate<S> {
    pub(super) fn new(stage: S) -> Self {
        Self {
            shared: Arc::new(Shared {
                cell: Mutex::new(Cell {
                    stage: Some(Box::new(stage)),
                    waiting: VecDeque::new(),
                    over: false,
                }),
                over: AtomicBool::new(false),
                upstreams: Upstreams::default(),
            }),
        }
    }

    /// Brings `input` to the stage with `direct`, or leaves what `later` makes of it.
    #[inline]
    pub(super) fn enter<I>(
        &self,
        input: I,
        direct: impl FnOnce(&mut S, I, &Self),
        later: impl FnOnce(I) -> S::Message,
    ) {
        match self.shared.take_stage() {
            Entry::Free(stage) => self.turn(stage, |stage| direct(stage, input, self)),
            Entry::Taken => self.leave(later(input)),
            Entry::Over => {}
        }
    }

    /// Brings a message, at once or later.
    pub(super) fn send(&self, message: S::Message) {
        self.enter(
            message,
            |stage, message, gate| stage.receive(message, gate),
            |message| message,
        );
    }

    /// Brings a message when it is due, unless all is over before.
    pub(super) fn send_at(&self, worker: &impl Worker, due: Time, message: S::Message) {
        self.connect(|key| {
            worker.schedule_at(due, (self.clone(), message), move |(gate, message), _| {
                gate.send(message);
                // After: until then whoever unsubscribes and waits has to find the action.
                gate.upstreams().finish(key);
            })
        });
    }

    /// Leaves a message for whoever is inside; the gate may have come free since it was made.
    #[cold]
    fn leave(&self, message: S::Message) {
        let mut cell = lock(&self.shared.cell);
        if cell.over {
            drop(cell);
            drop(message);
        } else if let Some(stage) = cell.stage.take() {
            drop(cell);
            self.turn(stage, |stage| stage.receive(message, self));
        } else {
            cell.waiting.push_back(message);
        }
    }

    fn turn(&self, stage: Box<S>, first: impl FnOnce(&mut S)) {
        let mut turn = Turn {
            shared: &self.shared,
            stage: Some(stage),
        };
        let Some(stage) = &mut turn.stage else { return };
        first(stage);
        while let Some(stage) = &mut turn.stage {
            if stage.is_over() {
                return; // The turn's end drops the stage.
            }
            let mut cell = lock(&self.shared.cell);
            if cell.over {
                return;
            }
            let Some(message) = cell.waiting.pop_front() else {
                cell.stage = turn.stage.take();
                return;
            };
            drop(cell);
            stage.receive(message, self);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed)
    }

    /// Ends everything without a word to the observer.
    pub(super) fn close(&self) {
        self.shared.close();
    }

    pub(super) fn upstreams(&self) -> &Upstreams {
        &self.shared.upstreams
    }

    /// The guard to give to the subscriber.
    pub(super) fn guard(&self) -> Guard {
        Guard::registered(Arc::clone(&self.shared) as Arc<dyn Registry>, 0)
    }

    /// Keeps the guard that `subscribe` gives back for the key that it is given, unless all is over.
    pub(super) fn connect(&self, subscribe: impl FnOnce(u64) -> Guard) {
        if let Some(key) = self.upstreams().reserve() {
            self.upstreams().set(key, subscribe(key));
        }
    }

    /// Closes everything if the caller's user code panics before [`CloseOnPanic::disarm`].
    pub(super) fn close_on_panic(&self) -> CloseOnPanic<'_, S> {
        CloseOnPanic { gate: Some(self) }
    }
}

impl<S: Stage> Clone for Gate<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: Stage> Shared<S> {
    #[inline]
    fn take_stage(&self) -> Entry<S> {
        let mut cell = lock(&self.cell);
        match cell.stage.take() {
            Some(stage) => Entry::Free(stage),
            None if cell.over => Entry::Over,
            None => Entry::Taken,
        }
    }

    fn close(&self) {
        self.over.store(true, Ordering::Relaxed);
        let taken_out = {
            let mut cell = lock(&self.cell);
            cell.over = true;
            (cell.stage.take(), std::mem::take(&mut cell.waiting))
        };
        self.upstreams.close();
        drop(taken_out);
    }
}

/// Ends everything when a turn ends with the stage in its hands: because it is over, or by a panic.
struct Turn<'a, S: Stage> {
    shared: &'a Shared<S>,
    stage: Option<Box<S>>,
}

impl<S: Stage> Drop for Turn<'_, S> {
    fn drop(&mut self) {
        if let Some(stage) = self.stage.take() {
            self.shared.close();
            drop(stage);
        }
    }
}

impl<S: Stage> Registry for Shared<S> {
    fn remove(&self, _key: u64) {
        self.close();
    }

    fn remove_and_wait(&self, _key: u64) {
        // Marked first, so that the caller inside stops after this message.
        self.over.store(true, Ordering::Relaxed);
        lock(&self.cell).over = true;
        self.upstreams.close_and_wait();
        self.close();
    }

    fn contains(&self, _key: u64) -> bool {
        !self.over.load(Ordering::Relaxed)
    }
}

/// See [`Gate::close_on_panic`].
pub(super) struct CloseOnPanic<'a, S: Stage> {
    gate: Option<&'a Gate<S>>,
}

impl<S: Stage> CloseOnPanic<'_, S> {
    pub(super) fn disarm(mut self) {
        self.gate = None;
    }
}

impl<S: Stage> Drop for CloseOnPanic<'_, S> {
    fn drop(&mut self) {
        if let Some(gate) = self.gate {
            gate.close();
        }
    }
}

/// One call of an observer, as a value.
pub(super) enum Event<T, E> {
    Next(T),
    Slice(Vec<T>),
    Error(E),
    Complete,
}

impl<T, E> Event<T, E> {
    /// Makes the call.
    pub(super) fn deliver(self, observer: &mut impl Observer<T, E>) {
        match self {
            Self::Next(value) => observer.next_owned(value),
            Self::Slice(values) => {
                for value in values {
                    if observer.is_closed() {
                        break;
                    }
                    observer.next_owned(value);
                }
            }
            Self::Error(error) => observer.error(&error),
            Self::Complete => observer.complete(),
        }
    }
}

/// An observer that remembers that it has ended, and hears nothing after; no end either when it has
/// closed itself.
pub(super) struct Out<O> {
    observer: O,
    ended: bool,
}

impl<O> Out<O> {
    pub(super) fn new(observer: O) -> Self {
        Self {
            observer,
            ended: false,
        }
    }

    /// Ends it without a word.
    pub(super) fn abandon(&mut self) {
        self.ended = true;
    }
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for Out<O> {
    #[inline]
    fn next(&mut self, value: &T) {
        if !self.ended {
            self.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if !self.ended {
            self.observer.next_owned(value);
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        if !self.ended {
            self.observer.next_slice(values);
        }
    }

    fn error(&mut self, error: &E) {
        if !std::mem::replace(&mut self.ended, true) && !self.observer.is_closed() {
            self.observer.error(error);
        }
    }

    fn complete(&mut self) {
        if !std::mem::replace(&mut self.ended, true) && !self.observer.is_closed() {
            self.observer.complete();
        }
    }

    fn is_closed(&self) -> bool {
        self.ended || self.observer.is_closed()
    }
}

/// Every interleaving of two threads, by loom.
#[cfg(all(test, fanline_loom))]
mod models {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use crate::operators::funnel::{Confluence, Funnel};
    use crate::{Guard, Observable, Observer};

    /// What the observer was told, 0 for the end.
    type Seen = Arc<Mutex<Vec<u32>>>;

    /// Its state is not loom's: it adds nothing to explore but the moment inside each call, at which
    /// another call would show.
    struct Witness {
        seen: Seen,
        inside: Arc<AtomicBool>,
        /// Dropped with the observer.
        _token: Arc<()>,
    }

    impl Witness {
        fn call(&self, value: u32) {
            assert!(!self.inside.swap(true, Ordering::SeqCst), "calls overlap");
            loom::thread::yield_now();
            self.seen.lock().unwrap().push(value);
            self.inside.store(false, Ordering::SeqCst);
        }
    }

    impl Observer<u32> for Witness {
        fn next(&mut self, value: &u32) {
            self.call(*value);
        }

        fn error(&mut self, error: &Infallible) {
            match *error {}
        }

        fn complete(&mut self) {
            self.call(0);
        }
    }

    fn witness() -> (Witness, Seen, Arc<()>) {
        let (seen, token) = (Seen::default(), Arc::new(()));
        let witness = Witness {
            seen: Arc::clone(&seen),
            inside: Arc::default(),
            _token: Arc::clone(&token),
        };
        (witness, seen, token)
    }

    /// Hands its observer out, to be called from the thread that the model likes.
    struct Handed(Arc<Mutex<Option<Box<dyn Observer<u32> + Send>>>>);

    impl Observable for Handed {
        type Item = u32;
        type Error = Infallible;

        fn subscribe_with<O: Observer<u32> + Send + 'static>(self, observer: O) -> Guard {
            *self.0.lock().unwrap() = Some(Box::new(observer));
            Guard::closed()
        }
    }

    fn arm(confluence: &Confluence<u32, Infallible, Witness>) -> Box<dyn Observer<u32> + Send> {
        let slot = Arc::default();
        confluence.add(Handed(Arc::clone(&slot)));
        let observer = slot.lock().unwrap().take();
        observer.unwrap()
    }

    fn explore(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    #[test]
    fn loom_two_at_the_gate_lose_nothing_and_end_once() {
        explore(|| {
            let (witness, seen, token) = witness();
            let confluence = Confluence::new(witness, 2);
            let (mut one, mut other) = (arm(&confluence), arm(&confluence));
            drop(confluence);
            let thread = loom::thread::spawn(move || {
                one.next(&1);
                one.next_owned(2);
                one.complete();
            });
            other.next(&3);
            other.complete();
            drop(other);
            thread.join().unwrap();
            let seen = seen.lock().unwrap();
            let expected = [[1, 2, 3, 0], [1, 3, 2, 0], [3, 1, 2, 0]];
            assert!(expected.iter().any(|all| *all == **seen), "{seen:?}");
            assert_eq!(Arc::strong_count(&token), 1, "the observer is gone");
        });
    }

    #[test]
    fn loom_an_end_that_meets_values_is_the_last_word() {
        explore(|| {
            let (witness, seen, token) = witness();
            let funnel = Funnel::<u32, Infallible, _>::new(witness);
            let other = funnel.clone();
            let thread = loom::thread::spawn(move || {
                other.next(&1);
                other.complete();
            });
            funnel.next(&2);
            funnel.complete();
            thread.join().unwrap();
            let seen = seen.lock().unwrap();
            let ends = seen.iter().filter(|value| **value == 0).count();
            assert_eq!((ends, seen.last()), (1, Some(&0)), "{seen:?}");
            assert_eq!(Arc::strong_count(&token), 1, "the observer is gone");
        });
    }

    #[test]
    fn loom_who_unsubscribes_leaves_nothing_behind() {
        explore(|| {
            let (witness, seen, token) = witness();
            let funnel = Funnel::<u32, Infallible, _>::new(witness);
            let guard = funnel.guard();
            let other = funnel.clone();
            let thread = loom::thread::spawn(move || {
                other.next(&1);
                other.next(&2);
            });
            drop(guard);
            thread.join().unwrap();
            assert!([1, 2].starts_with(&seen.lock().unwrap()), "a beginning");
            assert_eq!(Arc::strong_count(&token), 1, "the observer is gone");
            drop(funnel);
        });
    }
}
