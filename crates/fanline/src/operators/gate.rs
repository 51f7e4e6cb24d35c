//! State that several upstreams share. One caller at a time works on it; the others queue a message and
//! continue.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::upstreams::Upstreams;
use crate::guard::Registry;
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::{Guard, Observer, Time, Worker};

/// The state behind a [`Gate`]: the downstream observer and the data of an operator.
pub(super) trait Stage: Sized + Send + 'static {
    /// A call that is queued while another caller works on the stage.
    type Message: Send + 'static;

    /// Handles a message.
    fn receive(&mut self, message: Self::Message, gate: &Gate<Self>);

    /// Returns whether the operator has ended, or the observer downstream is closed. The gate checks this
    /// after each message. If the result is `true`, it drops the stage, the queue, and the upstream
    /// subscriptions.
    fn is_over(&self) -> bool;
}

/// Admits one caller at a time to the [`Stage`], and never blocks for longer than a few instructions.
///
/// A caller that finds the gate free takes the stage out and works on it without a lock. Then it handles the
/// messages that were queued meanwhile, and puts the stage back. A caller that finds the stage taken, on
/// another thread or further up on the same stack, queues a message. So calls never overlap, the calls of one
/// upstream stay in order, and re-entrant calls are handled breadth first.
///
/// If a caller panics while it has the stage, unwinding drops the stage and closes the gate.
pub(super) struct Gate<S: Stage> {
    shared: Arc<Shared<S>>,
}

struct Shared<S: Stage> {
    cell: Mutex<Cell<S>>,
    /// Whether the gate is closed. Sources that emit in a loop read it to stop. Relaxed, because decisions
    /// are made under the lock.
    over: AtomicBool,
    upstreams: Upstreams,
}

struct Cell<S: Stage> {
    /// The stage, in a box, so that taking the stage out moves only a pointer. `None` while a caller works on
    /// the stage, and after the gate was closed.
    stage: Option<Box<S>>,
    /// Empty whenever the stage is present.
    queue: VecDeque<S::Message>,
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
                    queue: VecDeque::new(),
                    over: false,
                }),
                over: AtomicBool::new(false),
                upstreams: Upstreams::default(),
            }),
        }
    }

    /// Passes `input` to the stage with `direct`, or queues the message that `to_message` makes from `input`.
    #[inline]
    pub(super) fn enter<I>(
        &self,
        input: I,
        direct: impl FnOnce(&mut S, I, &Self),
        to_message: impl FnOnce(I) -> S::Message,
    ) {
        match self.shared.take_stage() {
            Entry::Free(stage) => self.run(stage, |stage| direct(stage, input, self)),
            Entry::Taken => self.enqueue(to_message(input)),
            Entry::Over => {}
        }
    }

    /// Sends a message to the stage. The stage handles it now, or after the current caller has finished.
    pub(super) fn send(&self, message: S::Message) {
        self.enter(
            message,
            |stage, message, gate| stage.receive(message, gate),
            |message| message,
        );
    }

    /// Sends a message at the time `due`, unless the gate is closed before that time.
    pub(super) fn send_at(&self, worker: &impl Worker, due: Time, message: S::Message) {
        self.connect(|key| {
            worker.schedule_at(due, (self.clone(), message), move |(gate, message), _| {
                gate.send(message);
                // Called last, because until then `remove_and_wait` must find the action's guard.
                gate.upstreams().finish(key);
            })
        });
    }

    /// Queues a message for the caller that has the stage, or handles it if the gate has become free.
    #[cold]
    fn enqueue(&self, message: S::Message) {
        let mut cell = lock(&self.shared.cell);
        if cell.over {
            drop(cell);
            drop(message);
        } else if let Some(stage) = cell.stage.take() {
            drop(cell);
            self.run(stage, |stage| stage.receive(message, self));
        } else {
            cell.queue.push_back(message);
        }
    }

    fn run(&self, stage: Box<S>, first: impl FnOnce(&mut S)) {
        let mut guard = StageGuard {
            shared: &self.shared,
            stage: Some(stage),
        };
        let Some(stage) = &mut guard.stage else {
            return;
        };
        first(stage);
        while let Some(stage) = &mut guard.stage {
            if stage.is_over() {
                return; // The guard drops the stage.
            }
            let mut cell = lock(&self.shared.cell);
            if cell.over {
                return;
            }
            let Some(message) = cell.queue.pop_front() else {
                cell.stage = guard.stage.take();
                return;
            };
            drop(cell);
            stage.receive(message, self);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed)
    }

    /// Drops the stage, the queue, and the upstream subscriptions, without a call to the observer.
    pub(super) fn close(&self) {
        self.shared.close();
    }

    pub(super) fn upstreams(&self) -> &Upstreams {
        &self.shared.upstreams
    }

    /// Returns the guard for the subscriber.
    pub(super) fn guard(&self) -> Guard {
        Guard::registered(Arc::clone(&self.shared) as Arc<dyn Registry>, 0)
    }

    /// Calls `subscribe` with a new key and stores the guard it returns, unless the gate is closed.
    pub(super) fn connect(&self, subscribe: impl FnOnce(u64) -> Guard) {
        if let Some(key) = self.upstreams().reserve() {
            self.upstreams().set(key, subscribe(key));
        }
    }

    /// Returns a guard that closes the gate if user code panics before [`CloseOnPanic::disarm`].
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
        let removed = {
            let mut cell = lock(&self.cell);
            cell.over = true;
            (cell.stage.take(), core::mem::take(&mut cell.queue))
        };
        self.upstreams.close();
        drop(removed);
    }
}

/// The stage while a caller works on it. If the guard is dropped with the stage still in it, the drop closes
/// the gate.
struct StageGuard<'a, S: Stage> {
    shared: &'a Shared<S>,
    stage: Option<Box<S>>,
}

impl<S: Stage> Drop for StageGuard<'_, S> {
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
        // The flag is set first, so that a caller that has the stage stops after the current message.
        self.over.store(true, Ordering::Relaxed);
        lock(&self.cell).over = true;
        self.upstreams.close_and_wait();
        self.close();
    }

    fn contains(&self, _key: u64) -> bool {
        !self.over.load(Ordering::Relaxed)
    }
}

/// A guard that closes a gate on a panic; see [`Gate::close_on_panic`].
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

/// A call of an observer, as a value.
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

/// A wrapper of an observer. It forwards no call after a completion or an error, and forwards no completion
/// or error to an observer that is closed.
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

    /// Ends without a call to the observer.
    pub(super) fn end_silently(&mut self) {
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
        if !core::mem::replace(&mut self.ended, true) && !self.observer.is_closed() {
            self.observer.error(error);
        }
    }

    fn complete(&mut self) {
        if !core::mem::replace(&mut self.ended, true) && !self.observer.is_closed() {
            self.observer.complete();
        }
    }

    fn is_closed(&self) -> bool {
        self.ended || self.observer.is_closed()
    }
}

/// loom models: all interleavings of two threads.
#[cfg(all(test, fanline_loom))]
mod models {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use crate::operators::funnel::{Funnel, MergedSources};
    use crate::{Guard, Observable, Observer};

    /// The calls of the observer; 0 stands for the completion.
    type Seen = Arc<Mutex<Vec<u32>>>;

    /// An observer that detects overlapping calls. Its state does not use loom's types. So it adds only one
    /// point to each call at which loom may switch threads.
    struct OverlapDetector {
        seen: Seen,
        inside: Arc<AtomicBool>,
        /// Dropped with the observer.
        _token: Arc<()>,
    }

    impl OverlapDetector {
        fn call(&self, value: u32) {
            assert!(!self.inside.swap(true, Ordering::SeqCst), "calls overlap");
            loom::thread::yield_now();
            self.seen.lock().unwrap().push(value);
            self.inside.store(false, Ordering::SeqCst);
        }
    }

    impl Observer<u32> for OverlapDetector {
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

    fn overlap_detector() -> (OverlapDetector, Seen, Arc<()>) {
        let (seen, token) = (Seen::default(), Arc::new(()));
        let overlap_detector = OverlapDetector {
            seen: Arc::clone(&seen),
            inside: Arc::default(),
            _token: Arc::clone(&token),
        };
        (overlap_detector, seen, token)
    }

    /// A source that stores its observer, so that a model can call it on any thread.
    struct ObserverCapture(Arc<Mutex<Option<Box<dyn Observer<u32> + Send>>>>);

    impl Observable for ObserverCapture {
        type Item = u32;
        type Error = Infallible;

        fn subscribe_with<O: Observer<u32> + Send + 'static>(self, observer: O) -> Guard {
            *self.0.lock().unwrap() = Some(Box::new(observer));
            Guard::closed()
        }
    }

    fn arm(
        merged: &MergedSources<u32, Infallible, OverlapDetector>,
    ) -> Box<dyn Observer<u32> + Send> {
        let slot = Arc::default();
        merged.add(ObserverCapture(Arc::clone(&slot)));
        let observer = slot.lock().unwrap().take();
        observer.unwrap()
    }

    fn explore(model: impl Fn() + Sync + Send + 'static) {
        crate::sync::model(3).check(model);
    }

    #[test]
    fn loom_two_callers_deliver_all_values_and_end_once() {
        explore(|| {
            let (overlap_detector, seen, token) = overlap_detector();
            let merged = MergedSources::new(overlap_detector, 2);
            let (mut one, mut other) = (arm(&merged), arm(&merged));
            drop(merged);
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
            assert_eq!(Arc::strong_count(&token), 1, "the observer is dropped");
        });
    }

    #[test]
    fn loom_end_concurrent_with_values_is_last() {
        explore(|| {
            let (overlap_detector, seen, token) = overlap_detector();
            let funnel = Funnel::<u32, Infallible, _>::new(overlap_detector);
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
            assert_eq!(Arc::strong_count(&token), 1, "the observer is dropped");
        });
    }

    #[test]
    fn loom_unsubscription_drops_observer() {
        explore(|| {
            let (overlap_detector, seen, token) = overlap_detector();
            let funnel = Funnel::<u32, Infallible, _>::new(overlap_detector);
            let guard = funnel.guard();
            let other = funnel.clone();
            let thread = loom::thread::spawn(move || {
                other.next(&1);
                other.next(&2);
            });
            drop(guard);
            thread.join().unwrap();
            assert!([1, 2].starts_with(&seen.lock().unwrap()), "a beginning");
            assert_eq!(Arc::strong_count(&token), 1, "the observer is dropped");
            drop(funnel);
        });
    }
}
