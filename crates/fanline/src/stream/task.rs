//! A stream or future that is polled on a worker, and the observer of what it yields.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::guard::Registry;
use crate::sync::thread::{self, ThreadId};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock};
use crate::{Guard, Observer, Worker};

/// Values that are passed on in one turn of a worker. Then the others on its thread have theirs: a
/// stream that always has a value ready must not keep an event loop to itself.
const TURN_VALUES_MAX: usize = 64;

/// What is polled.
pub(super) trait Poller: Send + 'static {
    type Item;
    type Error;

    /// The next value; `None` when there is no more. Not asked again after `None` or an error.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Self::Item, Self::Error>>>;
}

/// Polls on `worker` from now on, until the end or until the guard is dropped.
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
    /// Where those wait who must know that the turn is over.
    over: Condvar,
    /// Looked at between two values. Relaxed: `phase` decides; this only ends a turn early.
    cancelled: AtomicBool,
}

struct Body<S, O, W> {
    poller: S,
    observer: O,
    /// Shared, because the worker's own clone is not to be called under a lock.
    worker: Arc<W>,
}

/// Who holds the body, and what is next.
enum Phase<S, O, W> {
    /// The stream has nothing; its waker has.
    Idle(Body<S, O, W>),
    /// A turn is scheduled.
    Queued(Body<S, O, W>),
    /// A turn is running, and has the body.
    Running { thread: ThreadId, woken: bool },
    /// A turn is over and schedules the next.
    Yielding(Body<S, O, W>),
    /// The worker ran the next turn at once, inside the one that is over; that one goes on instead,
    /// so that a worker without a queue does not use up the stack.
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
        // Cancelling empties the task, so what waits on the worker then is a husk.
        worker.schedule(self, |task, _| task.run()).detach();
    }

    fn run(self: Arc<Self>) {
        let Some(mut body) = self.begin() else { return };
        // The same for all turns of the loop: a waker is compared with the one that is registered.
        let waker = Waker::from(self.clone());
        let mut context = Context::from_waker(&waker);
        loop {
            let mut unwinding = OnUnwind(Some(&*self));
            let turn = self.turn(&mut body, &mut context);
            unwinding.0 = None;
            match self
                .finish(body, turn)
                .and_then(|worker| self.pass(&worker))
            {
                Some(again) => body = again,
                None => return,
            }
        }
    }

    /// The body, if it is this turn's.
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

    fn turn(&self, body: &mut Body<S, O, W>, context: &mut Context<'_>) -> Turn {
        for _ in 0..TURN_VALUES_MAX {
            if self.cancelled.load(Ordering::Relaxed) {
                return Turn::Over;
            }
            match body.poller.poll(context) {
                Poll::Pending => return Turn::Pending,
                Poll::Ready(Some(Ok(value))) => {
                    if self.cancelled.load(Ordering::Relaxed) {
                        return Turn::Over;
                    }
                    body.observer.next_owned(value);
                    if body.observer.is_closed() {
                        return Turn::Over;
                    }
                }
                Poll::Ready(end) => {
                    if !self.cancelled.load(Ordering::Relaxed) {
                        match end {
                            Some(Err(error)) => body.observer.error(&error),
                            _ => body.observer.complete(),
                        }
                    }
                    return Turn::Over;
                }
            }
        }
        Turn::UsedUp
    }

    /// Puts the body back; gives the worker on which to go on, if it is known that there is more.
    fn finish(&self, body: Body<S, O, W>, turn: Turn) -> Option<Arc<W>> {
        let mut phase = lock(&self.phase);
        let woken = matches!(phase.take(), Phase::Running { woken: true, .. });
        let turn = if self.cancelled.load(Ordering::Relaxed) {
            Turn::Over
        } else {
            turn
        };
        let mut unneeded = None;
        let mut next = None;
        match turn {
            Turn::Over => unneeded = Some(body),
            Turn::Pending if !woken => *phase = Phase::Idle(body),
            Turn::Pending | Turn::UsedUp => {
                next = Some(body.worker.clone());
                *phase = Phase::Yielding(body);
            }
        }
        drop(phase);
        self.over.notify_all();
        drop(unneeded);
        next
    }

    /// Schedules the next turn; gives the body back if the worker has tried to run it at once.
    fn pass(self: &Arc<Self>, worker: &W) -> Option<Body<S, O, W>> {
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
        // Under the lock, so that the end of a turn either sees it or has put the body back.
        self.cancelled.store(true, Ordering::Relaxed);
        let unneeded = match *phase {
            // Its turn has the body, and drops it.
            Phase::Running { .. } => None,
            _ => Some(phase.take()),
        };
        drop(phase);
        drop(unneeded);
    }
}

/// How a turn ended.
enum Turn {
    /// Nothing to do until the waker is called.
    Pending,
    /// There may be more at once.
    UsedUp,
    /// There is no more, or no more is wanted.
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

/// A turn that panics is the last: the body is lost with it.
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
    use std::sync::Mutex as Unseen;
    use std::time::Duration;

    use super::*;
    use crate::Time;
    use crate::sync::AtomicUsize;

    type Action = Box<dyn FnOnce() + Send>;

    /// Actions wait until they are run; loom need not see this lock, which is never waited for.
    #[derive(Clone, Default)]
    struct Turns(Arc<Unseen<VecDeque<Action>>>);

    impl Turns {
        fn run_all(&self) {
            loop {
                let action = self.0.lock().unwrap().pop_front();
                let Some(action) = action else { return };
                action();
            }
        }
    }

    impl Worker for Turns {
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

    /// Has a value as soon as the flag is up, and keeps the waker where the flag's owner finds it.
    struct Flagged {
        flag: Arc<AtomicBool>,
        waker: Arc<Mutex<Option<Waker>>>,
    }

    impl Poller for Flagged {
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

    /// Raises the flag on another thread while a turn runs; `cancel` also unsubscribes there.
    fn model(cancel: bool) {
        loom::model(move || {
            let (flag, waker) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
            let completed = Arc::new(AtomicUsize::new(0));
            let turns = Turns::default();
            let poller = Flagged {
                flag: flag.clone(),
                waker: waker.clone(),
            };
            let mut guard = Some(spawn(poller, Count(completed.clone()), turns.clone()));
            let unsubscribed = if cancel { guard.take() } else { None };
            let raiser = thread::spawn(move || {
                flag.store(true, Ordering::SeqCst);
                let waker = lock(&waker).take();
                if let Some(waker) = waker {
                    waker.wake();
                }
                drop(unsubscribed);
            });
            turns.run_all();
            raiser.join().unwrap();
            turns.run_all();
            let count = completed.load(Ordering::SeqCst);
            assert!(count == 1 || cancel && count == 0, "{count} ends");
            // Nothing holds the observer any more.
            assert_eq!(Arc::strong_count(&completed), 1);
        });
    }

    #[test]
    fn loom_a_wake_is_not_lost() {
        model(false);
    }

    #[test]
    fn loom_a_cancelled_task_lets_go() {
        model(true);
    }
}
