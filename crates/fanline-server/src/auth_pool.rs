//! Threads for the work that it takes to know whether a client may connect: hashes of passwords and
//! signatures. A shard's thread would have to leave its other clients alone meanwhile.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use fanline_engine::auth::{Check, Grant};
use tokio::sync::oneshot;

use crate::clock::unix_seconds;
use crate::sync::Mutex;

/// More threads do not help: who checks passwords takes cores from those who carry messages.
const THREADS_MAX: usize = 4;

/// What is to be done, and whom to tell. There is at most one for each connection.
type Job = (Check, oneshot::Sender<Option<Grant>>);

/// The threads, which are started when there is something to do for the first time, and end with it.
#[derive(Default)]
pub(crate) struct AuthPool {
    jobs: OnceLock<Sender<Job>>,
}

impl AuthPool {
    /// Has a check performed. Whoever does not wait any more has it performed for nothing.
    pub(crate) fn perform(&self, check: Check) -> oneshot::Receiver<Option<Grant>> {
        let (tell, told) = oneshot::channel();
        // When no thread could be started, nobody tells, and nobody is let in.
        drop(self.jobs.get_or_init(start).send((check, tell)));
        told
    }
}

fn start() -> Sender<Job> {
    let (jobs, next) = channel();
    let next = Arc::new(Mutex::new(next));
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    for index in 0..cores.div_ceil(2).min(THREADS_MAX) {
        let next = Arc::clone(&next);
        let thread = std::thread::Builder::new().name(format!("check-{index}"));
        if let Err(error) = thread.spawn(move || work(&next)) {
            tracing::error!("a thread that checks passwords could not be started: {error}");
        }
    }
    jobs
}

fn work(next: &Mutex<Receiver<Job>>) {
    loop {
        // One at a time waits here, with the lock; the others wait for the lock.
        let job = match next.lock() {
            Ok(next) => next.recv(),
            Err(_) => return,
        };
        let Ok((check, tell)) = job else { return };
        if !tell.is_closed() {
            drop(tell.send(check.perform(unix_seconds())));
        }
    }
}
