//! A task that polls a stream or future on a worker, and calls an observer with its values.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::guard::Registry;
use crate::sync::thread::{self, ThreadId};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock};
use crate::{Guard, Observer, Worker};

/// Maximum number of values per run on a worker. After the run, other work on the worker's thread continues:
/// a stream that always has a value ready must not monopolize an event loop.
const RUN_VALUES_MAX: usize = 64;

/// A stream or future of values.
pub(super) trait Poller: Send + 'static {
    type Item;
    type Error;

    /// Returns the next value, or `None` if the stream or future has ended. Not called again after `None` or
    /// an error.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Self::Item, Self::Error>>>;
}

/// Polls on `worker` from now on, until `poller` has ended or the guard is dropped.
pub(super) fn spawn<S, O, W>(poller: S, observer: O, worker: W) -> Guard
where
    S: Poller,
    O: Observer<S::Item, S::Error> + Send + 'static,
    W: Worker,
{
    let task = Arc::new(Task {
        phase: Mutex::new(Phase::Idle(Body {
            poller,
            observer,
            worker: Arc::new(worker),
        })),
        over: Condvar::new(),
        cancelled: AtomicBool::new(false),
    });
    task.clone().wake();
    Guard::registered(task, 0)
}

struct Task<S, O, W> {
    phase: Mutex<Phase<S, O, W>>,
    /// Notified at the end of a run.
    over: Condvar,
    /// Whether the task was cancelled; read between two values. Relaxed: it only ends a run early.
    cancelled: AtomicBool,
}

struct Body<S, O, W> {
    poller: S,
    observer: O,
    /// In an `Arc`, because the worker's own `clone` is user code, which must not run under a lock.
    worker: Arc<W>,
}

/// The state of a task, with the body unless a run owns it.
enum Phase<S, O, W> {
    /// Waits for the stream's waker.
    Idle(Body<S, O, W>),
    /// A run is scheduled.
    Queued(Body<S, O, W>),
    /// A run is in progress, and owns the body.
    Running { thread: ThreadId, woken: bool },
    /// A run is over and schedules the next.
    Yielding(Body<S, O, W>),
    /// The worker has called the next run at once, from inside the previous run. The next run does nothing
    /// and returns; the previous run continues in its place. So a worker without a queue does not exhaust the
    /// stack.
    Yielded(Body<S, O, W>),
    /// Ended or cancelled.
    Over,
}

impl<S, O, W> Phase<S, O, W> {
    fn running() -> Self {
        Self::Running {
            thread: thread::current().id(),
            woken: false,
        }
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Over)
    }
}

impl<S, O, W> Task<S, O, W>
where
    S: Poller,
    O: Observer<S::Item, S::Error> + Send + 'static,
    W: Worker,
{
    fn schedule(self: Arc<Self>, worker: &W) {
        // The action is detached: a cancellation removes the body, so a run that is still scheduled does
        // nothing.
        worker.schedule(self, |task, _| task.run()).detach();
    }

    fn run(self: Arc<Self>) {
        let Some(mut body) = self.begin() else { return };
        // One waker for all iterations, because a stream compares the waker with the one that it has stored.
        let waker = Waker::from(self.clone());
        let mut context = Context::from_waker(&waker);
        loop {
            let mut unwinding = OnUnwind(Some(&*self));
            let outcome = self.poll_values(&mut body, &mut context);
            unwinding.0 = None;
            match self
                .finish(body, outcome)
                .and_then(|worker| self.schedule_next(&worker))
            {
                Some(again) => body = again,
                None => return,
            }
        }
    }

    /// Takes the body for a run. Returns `None` if the task is over, or if the previous run is still on the
    /// stack.
    fn begin(&self) -> Option<Body<S, O, W>> {
        let mut phase = lock(&self.phase);
        match phase.take() {
            Phase::Queued(body) => {
                *phase = Phase::running();
                Some(body)
            }
            Phase::Yielding(body) => {
                *phase = Phase::Yielded(body);
                None
            }
            other => {
                *phase = other;
                None
            }
        }
    }

    fn poll_values(&self, body: &mut Body<S, O, W>, context: &mut Context<'_>) -> Outcome {
        for _ in 0..RUN_VALUES_MAX {
            if self.cancelled.load(Ordering::Relaxed) {
                return Outcome::Over;
            }
            match body.poller.poll(context) {
                Poll::Pending => return Outcome::Pending,
                Poll::Ready(Some(Ok(value))) => {
                    if self.cancelled.load(Ordering::Relaxed) {
                        return Outcome::Over;
                    }
                    body.observer.next_owned(value);
                    if body.observer.is_closed() {
                        return Outcome::Over;
                    }
                }
                Poll::Ready(end) => {
                    if !self.cancelled.load(Ordering::Relaxed) {
                        match end {
                            Some(Err(error)) => body.observer.error(&error),
                            _ => body.observer.complete(),
                        }
                    }
                    return Outcome::Over;
                }
            }
        }
        Outcome::Yield
    }

    /// Puts the body back. Returns the worker if it must schedule another run.
    fn finish(&self, body: Body<S, O, W>, outcome: Outcome) -> Option<Arc<W>> {
        let mut phase = lock(&self.phase);
        let woken = matches!(phase.take(), Phase::Running { woken: true, .. });
        let outcome = if self.cancelled.load(Ordering::Relaxed) {
            Outcome::Over
        } else {
            outcome
        };
        let mut dropped = None;
        let mut next = None;
        match outcome {
            Outcome::Over => dropped = Some(body),
            Outcome::Pending if !woken => *phase = Phase::Idle(body),
            Outcome::Pending | Outcome::Yield => {
                next = Some(body.worker.clone());
                *phase = Phase::Yielding(body);
            }
        }
        drop(phase);
        self.over.notify_all();
        drop(dropped);
        next
    }

    /// Schedules the next run. If the worker has called it at once, returns the body to this run.
    fn schedule_next(self: &Arc<Self>, worker: &W) -> Option<Body<S, O, W>> {
        self.clone().schedule(worker);
        let mut phase = lock(&self.phase);
        match phase.take() {
            Phase::Yielding(body) => {
                *phase = Phase::Queued(body);
                None
            }
            Phase::Yielded(body) => {
                *phase = Phase::running();
                Some(body)
            }
            other => {
                *phase = other;
                None
            }
        }
    }

    fn cancel(&self) {
        let mut phase = lock(&self.phase);
        // The flag is set under the lock: `finish` either sees the flag, or has already put the body back.
        self.cancelled.store(true, Ordering::Relaxed);
        let dropped = match *phase {
            // The run has the body, and drops it.
            Phase::Running { .. } => None,
            _ => Some(phase.take()),
        };
        drop(phase);
        drop(dropped);
    }
}

/// The result of a run.
enum Outcome {
    /// Nothing to do until the waker is called.
    Pending,
    /// There may be more values.
    Yield,
    /// The stream has ended, or the observer is closed.
    Over,
}

impl<S, O, W> Wake for Task<S, O, W>
where
    S: Poller,
    O: Observer<S::Item, S::Error> + Send + 'static,
    W: Worker,
{
    fn wake(self: Arc<Self>) {
        let mut phase = lock(&self.phase);
        match phase.take() {
            Phase::Idle(body) => {
                let worker = body.worker.clone();
                *phase = Phase::Queued(body);
                drop(phase);
                self.schedule(&worker);
            }
            Phase::Running { thread, .. } => {
                *phase = Phase::Running {
                    thread,
                    woken: true,
                };
            }
            other => *phase = other,
        }
    }
}

impl<S, O, W> Registry for Task<S, O, W>
where
    S: Poller,
    O: Observer<S::Item, S::Error> + Send + 'static,
    W: Worker,
{
    fn remove(&self, _key: u64) {
        self.cancel();
    }

    fn remove_and_wait(&self, _key: u64) {
        self.cancel();
        let own = thread::current().id();
        let mut phase = lock(&self.phase);
        while matches!(&*phase, Phase::Running { thread, .. } if *thread != own) {
            phase = self
                .over
                .wait(phase)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn contains(&self, _key: u64) -> bool {
        !self.cancelled.load(Ordering::Relaxed) && !matches!(&*lock(&self.phase), Phase::Over)
    }
}

/// Ends the task when a run panics, because unwinding drops the body.
struct OnUnwind<'a, S, O, W>(Option<&'a Task<S, O, W>>);

impl<S, O, W> Drop for OnUnwind<'_, S, O, W> {
    fn drop(&mut self) {
        if let Some(task) = self.0 {
            let running = lock(&task.phase).take();
            drop(running);
            task.over.notify_all();
        }
    }
}

#[cfg(all(test, fanline_loom))]
mod loom_tests {
    use std::collections::VecDeque;
    use std::ops::ControlFlow;
    use std::sync::Mutex as StdMutex;
    use std::time::Duration;

    use super::*;
    use crate::Time;
    use crate::sync::AtomicUsize;

    type Action = Box<dyn FnOnce() + Send>;

    /// Scheduled actions, run on demand. loom need not see this lock, because it is never contended.
    #[derive(Clone, Default)]
    struct ManualWorker(Arc<StdMutex<VecDeque<Action>>>);

    impl ManualWorker {
        fn run_all(&self) {
            loop {
                let action = self.0.lock().unwrap().pop_front();
                let Some(action) = action else { return };
                action();
            }
        }
    }

    impl Worker for ManualWorker {
        fn now(&self) -> Time {
            Time::ZERO
        }

        fn schedule_at<S, A>(&self, _due: Time, state: S, action: A) -> Guard
        where
            S: Send + 'static,
            A: FnOnce(S, &Self) + Send + 'static,
        {
            let worker = self.clone();
            let action = Box::new(move || action(state, &worker));
            self.0.lock().unwrap().push_back(action);
            Guard::closed()
        }

        fn schedule_periodic<S, A>(&self, _period: Duration, _state: S, _action: A) -> Guard
        where
            S: Send + 'static,
            A: FnMut(&mut S, &Self) -> ControlFlow<()> + Send + 'static,
        {
            unreachable!()
        }

        fn runs_here(&self) -> bool {
            true
        }
    }

    /// Completes when the flag is set. Until then, stores the waker, which the thread that sets the flag
    /// wakes.
    struct FlagPoller {
        flag: Arc<AtomicBool>,
        waker: Arc<Mutex<Option<Waker>>>,
    }

    impl Poller for FlagPoller {
        type Item = u32;
        type Error = u32;

        fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<u32, u32>>> {
            *lock(&self.waker) = Some(context.waker().clone());
            if self.flag.load(Ordering::SeqCst) {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        }
    }

    struct Count(Arc<AtomicUsize>);

    impl Observer<u32, u32> for Count {
        fn next(&mut self, _value: &u32) {}

        fn error(&mut self, _error: &u32) {}

        fn complete(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Sets the flag on another thread during a run; with `cancel`, that thread also unsubscribes.
    fn model(cancel: bool) {
        loom::model(move || {
            let (flag, waker) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
            let completed = Arc::new(AtomicUsize::new(0));
            let worker = ManualWorker::default();
            let poller = FlagPoller {
                flag: flag.clone(),
                waker: waker.clone(),
            };
            let mut guard = Some(spawn(poller, Count(completed.clone()), worker.clone()));
            let unsubscribed = if cancel { guard.take() } else { None };
            let setter = thread::spawn(move || {
                flag.store(true, Ordering::SeqCst);
                let waker = lock(&waker).take();
                if let Some(waker) = waker {
                    waker.wake();
                }
                drop(unsubscribed);
            });
            worker.run_all();
            setter.join().unwrap();
            worker.run_all();
            let count = completed.load(Ordering::SeqCst);
            assert!(count == 1 || cancel && count == 0, "{count} ends");
            // Nothing refers to the observer any more.
            assert_eq!(Arc::strong_count(&completed), 1);
        });
    }

    #[test]
    fn loom_wake_during_run_is_not_lost() {
        model(false);
    }

    #[test]
    fn loom_cancelled_task_drops_observer() {
        model(true);
    }
}
