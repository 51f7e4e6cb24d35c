//! Threads for slow authentication: password hashes and signatures. On a shard's thread, they would delay its
//! other clients.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use fanline_engine::auth::{Check, Grant};
use tokio::sync::oneshot;

use crate::clock::unix_seconds;
use crate::sync::Mutex;

/// Largest number of threads. More threads would take cores from the shards.
const THREADS_MAX: usize = 4;

/// A check, and the channel for its result. Each connection has at most one job.
type Job = (Check, oneshot::Sender<Option<Grant>>);

/// A pool of threads. They start with the first check, and end when the pool is dropped.
#[derive(Default)]
pub(crate) struct AuthPool {
    jobs: OnceLock<Sender<Job>>,
}

impl AuthPool {
    /// Starts a check. It still runs if the client disconnects first; its result is discarded.
    pub(crate) fn perform(&self, check: Check) -> oneshot::Receiver<Option<Grant>> {
        let (reply, grant) = oneshot::channel();
        // If no thread could be started, the receiver ends, and the client is refused.
        drop(self.jobs.get_or_init(start).send((check, reply)));
        grant
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
        // One idle thread waits here with the lock, and the others wait for the lock.
        let job = match next.lock() {
            Ok(next) => next.recv(),
            Err(_) => return,
        };
        let Ok((check, reply)) = job else { return };
        if !reply.is_closed() {
            drop(reply.send(check.perform(unix_seconds())));
        }
    }
}
