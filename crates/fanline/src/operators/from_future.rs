use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::upstreams::Upstreams;
use crate::guard::Registry;
use crate::sync::{Mutex, lock};
use crate::{Guard, Observable, Observer, Scheduler, Worker};

/// Emits what `future` comes to, and completes.
///
/// The future is polled on a worker of `scheduler`, first when it is subscribed and then when it wakes;
/// it may be woken from anywhere. It is dropped when it is done, and when the guard is dropped. A panic
/// of the future goes where the scheduler's panics go, and the observer is dropped.
///
/// ```
/// use fanline::{prelude::*, operators::from_future, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let guard = from_future(async { 6 * 7 }, time.clone()).subscribe(|value| assert_eq!(*value, 42));
/// time.advance_by(std::time::Duration::ZERO);
/// assert!(guard.is_closed());
/// ```
pub fn from_future<F, C>(future: F, scheduler: C) -> FromFuture<F, C>
where
    F: Future + Send + 'static,
    C: Scheduler,
{
    FromFuture { future, scheduler }
}

/// See [`from_future`].
#[derive(Clone, Debug)]
pub struct FromFuture<F, C> {
    future: F,
    scheduler: C,
}

impl<F, C> Observable for FromFuture<F, C>
where
    F: Future + Send + 'static,
    C: Scheduler,
{
    type Item = F::Output;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<F::Output> + Send + 'static,
    {
        let task = Arc::new(Task {
            work: Mutex::new(Work::Asleep(Box::new((Box::pin(self.future), observer)))),
            worker: self.scheduler.worker(),
            scheduled: Arc::new(Upstreams::default()),
        });
        let guard = Guard::registered(Arc::clone(&task) as Arc<dyn Registry>, 0);
        task.wake_by_ref();
        guard
    }
}

struct Task<F: Future, O, W> {
    work: Mutex<Work<F, O>>,
    worker: W,
    scheduled: Arc<Upstreams>,
}

enum Work<F: Future, O> {
    /// Waits for a wake.
    Asleep(Box<(Pin<Box<F>>, O)>),
    /// A poll is scheduled.
    Scheduled(Box<(Pin<Box<F>>, O)>),
    /// Someone polls it.
    Polled,
    /// The same, and it has been woken since.
    Woken,
    Done,
}

impl<F, O, W> Task<F, O, W>
where
    F: Future + Send + 'static,
    O: Observer<F::Output> + Send + 'static,
    W: Worker,
{
    fn close(&self) {
        let work = std::mem::replace(&mut *lock(&self.work), Work::Done);
        self.scheduled.close();
        drop(work);
    }

    fn schedule(self: &Arc<Self>) {
        if let Some(key) = self.scheduled.reserve() {
            let guard = self.worker.schedule(Arc::clone(self), move |task, _| {
                task.scheduled.finish(key);
                task.poll();
            });
            self.scheduled.set(key, guard);
        }
    }

    fn poll(self: &Arc<Self>) {
        let mut parts = {
            let mut work = lock(&self.work);
            match std::mem::replace(&mut *work, Work::Polled) {
                Work::Scheduled(parts) => parts,
                other => {
                    *work = other;
                    return;
                }
            }
        };
        let mut finish = Finish {
            task: self,
            pending: false,
        };
        let waker = Waker::from(Arc::clone(self));
        if let Poll::Ready(value) = parts.0.as_mut().poll(&mut Context::from_waker(&waker)) {
            let (future, mut observer) = *parts;
            drop(future);
            let wanted = !matches!(*lock(&self.work), Work::Done);
            if wanted && !observer.is_closed() {
                observer.next_owned(value);
                if !observer.is_closed() {
                    observer.complete();
                }
            }
            return; // Closed by `finish`.
        }
        finish.pending = true;
        let mut work = lock(&self.work);
        if matches!(*work, Work::Polled) {
            *work = Work::Asleep(parts);
        } else if matches!(*work, Work::Woken) {
            *work = Work::Scheduled(parts);
            drop(work);
            self.schedule();
        }
        // Else it has been closed: the lock is let go of before the parts, which were there first.
    }
}

/// Nothing follows a poll that is ready or panics.
struct Finish<'a, F, O, W>
where
    F: Future + Send + 'static,
    O: Observer<F::Output> + Send + 'static,
    W: Worker,
{
    task: &'a Task<F, O, W>,
    pending: bool,
}

impl<F, O, W> Drop for Finish<'_, F, O, W>
where
    F: Future + Send + 'static,
    O: Observer<F::Output> + Send + 'static,
    W: Worker,
{
    fn drop(&mut self) {
        if !self.pending {
            self.task.close();
        }
    }
}

impl<F, O, W> Registry for Task<F, O, W>
where
    F: Future + Send + 'static,
    O: Observer<F::Output> + Send + 'static,
    W: Worker,
{
    fn remove(&self, _key: u64) {
        self.close();
    }

    fn contains(&self, _key: u64) -> bool {
        !self.scheduled.is_closed()
    }
}

impl<F, O, W> Wake for Task<F, O, W>
where
    F: Future + Send + 'static,
    O: Observer<F::Output> + Send + 'static,
    W: Worker,
{
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut work = lock(&self.work);
        match std::mem::replace(&mut *work, Work::Done) {
            Work::Asleep(parts) => {
                *work = Work::Scheduled(parts);
                drop(work);
                self.schedule();
            }
            Work::Polled => *work = Work::Woken,
            other => *work = other,
        }
    }
}
