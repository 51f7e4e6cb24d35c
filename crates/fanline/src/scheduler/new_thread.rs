use super::Scheduler;
use super::panics::PanicHook;
use super::thread_worker::{Config, Driver, ThreadWorker};
use crate::{Clock, Precise, Time};
use alloc::borrow::ToOwned;

/// A scheduler with one thread for each worker.
///
/// The thread is named `fanline-worker`. It starts with the worker's first action, and ends when the worker's
/// handles are dropped and its queue is empty. A panic ends only its own action: the process's panic hook
/// reports the panic, and the thread continues.
///
/// Scheduling an action panics if the system cannot start a thread.
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{Scheduler, scheduler::NewThread};
///
/// let (tx, rx) = mpsc::channel();
/// NewThread
///     .schedule(move || tx.send(std::thread::current().id()).unwrap())
///     .detach();
/// assert_ne!(rx.recv().unwrap(), std::thread::current().id());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NewThread;

impl Scheduler for NewThread {
    type Worker = ThreadWorker;

    fn worker(&self) -> ThreadWorker {
        ThreadWorker::new(Config {
            driver: Driver::Own {
                name: "fanline-worker".to_owned(),
                idle_max: None,
            },
            on_panic: PanicHook::default(),
        })
    }

    fn now(&self) -> Time {
        Precise.now()
    }
}
