//! A single-threaded runtime for the library's tasks. Each group has one.
//!
//! Time is what the group's caller reports, random numbers come from a seed, and tasks run in the order in which they
//! became ready. So the same calls have the same effects.

mod channels;
mod executor;
mod time;

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use openraft::AsyncRuntime;
use openraft::OptionalSend;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;

pub(super) use channels::{Mpsc, Mutex, Oneshot, Watch};
pub(super) use executor::Executor;
pub(super) use time::{Elapsed, Instant, Sleep, Timeout};

/// The library's view of an [`Executor`]: the functions below use the one that runs on this thread.
#[derive(Debug)]
pub(super) struct Runtime;

/// The task was dropped with its executor.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the task was dropped")]
pub(super) struct Dropped;

/// The result of a task.
pub(super) struct JoinHandle<T>(channels::OneshotReceiver<T>);

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinHandle")
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Dropped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(|_| Dropped)
    }
}

impl AsyncRuntime for Runtime {
    type JoinError = Dropped;
    type JoinHandle<T: OptionalSend + 'static> = JoinHandle<T>;
    type Sleep = Sleep;
    type Instant = Instant;
    type TimeoutError = Elapsed;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = Timeout<T>;
    type ThreadLocalRng = SmallRng;
    type Mpsc = Mpsc;
    type Watch = Watch;
    type Oneshot = Oneshot;
    type Mutex<T: OptionalSend + 'static> = Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        use openraft::async_runtime::{Oneshot as _, OneshotSender as _};
        let (sender, receiver) = Oneshot::channel();
        Executor::current().spawn(async move {
            // The handle may have been dropped.
            let _ = sender.send(future.await);
        });
        JoinHandle(receiver)
    }

    fn sleep(duration: Duration) -> Sleep {
        Sleep::until(Executor::current().now() + duration)
    }

    fn sleep_until(deadline: Instant) -> Sleep {
        Sleep::until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(
        duration: Duration,
        future: F,
    ) -> Timeout<F> {
        Timeout::new(future, Self::sleep(duration))
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: Instant,
        future: F,
    ) -> Timeout<F> {
        Timeout::new(future, Self::sleep_until(deadline))
    }

    /// A panic of a task is one of the caller.
    fn is_panic(_: &Dropped) -> bool {
        false
    }

    fn thread_rng() -> SmallRng {
        SmallRng::seed_from_u64(Executor::current().random())
    }

    fn new(_threads: usize) -> Self {
        Runtime
    }

    fn block_on<F: Future<Output = T>, T>(&mut self, future: F) -> T {
        Executor::new(0, Duration::ZERO)
            .complete(future)
            .expect("nothing else can wake the future")
    }

    async fn spawn_blocking<F, T>(_: F) -> Result<T, io::Error>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Polls a future once.
pub(super) fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Shared state of one thread.
pub(super) type Shared<T> = Rc<std::cell::RefCell<T>>;
