//! Threads that sync files, so that the JetStream service does not wait for the disk.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use fanline_engine::auth::AccountId;
use fanline_engine::jetstream::StreamId;
use fanline_engine::store::{DiskError, SyncId};
use tokio::sync::mpsc::UnboundedSender;

use super::disk::{disk_error, sync_folder};
use crate::ipc::{Common, JetStreamAtWork};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Number of sync threads. Each performs one job at a time, and further jobs wait. There are
/// several threads, because the disk can combine syncs that run at the same time.
const THREADS: usize = 4;

/// What a sync belongs to.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "replication"),
    allow(dead_code, reason = "only replicated streams have them")
)]
pub(crate) enum SyncOf {
    Stream(AccountId, StreamId, SyncId),
    /// The log of the node, or files of a lane.
    Replicas(SyncOfReplicas),
}

/// What a sync of replicated data belongs to.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "replication"),
    allow(dead_code, reason = "only replicated streams have them")
)]
pub(crate) enum SyncOfReplicas {
    /// The node's log.
    Log(SyncId),
    /// The files of a lane, with the effects of all entries up to this index; `None` for a copy of another member's.
    Lane { lane: u16, index: Option<u64> },
}

/// Files to sync.
pub(crate) struct Job {
    pub(super) of: SyncOf,
    pub(super) files: Vec<Arc<File>>,
    /// Folders to sync after the files.
    pub(super) folders: Vec<PathBuf>,
}

/// A finished job.
pub(super) struct Synced {
    pub(super) of: SyncOf,
    pub(super) result: Result<(), DiskError>,
}

/// Queue of pending jobs. Each new job wakes one thread.
#[derive(Default)]
struct JobQueue {
    queue: Mutex<Queue>,
    job_added: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Whether no more jobs will be added.
    is_closed: bool,
}

impl JobQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job and returns it. Returns `None` after the last job, when no more will be added.
    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.is_closed {
                return None;
            }
            let waited = self.job_added.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The sync threads. They end when this value is dropped and all jobs are done.
pub(super) struct Syncer {
    jobs: Arc<JobQueue>,
}

impl Syncer {
    /// Starts the threads. They send the result of each job to `done`.
    pub(super) fn start(done: &UnboundedSender<Synced>, common: &Arc<Common>) -> io::Result<Self> {
        let syncer = Syncer {
            jobs: Arc::default(),
        };
        for index in 0..THREADS {
            let (jobs, done, common) = (Arc::clone(&syncer.jobs), done.clone(), Arc::clone(common));
            let thread = std::thread::Builder::new().name(format!("sync-{index}"));
            thread.spawn(move || run_sync_thread(&jobs, &done, &common))?;
        }
        Ok(syncer)
    }

    pub(super) fn submit(&self, job: Job) {
        self.jobs.lock().jobs.push_back(job);
        self.jobs.job_added.notify_one();
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.jobs.lock().is_closed = true;
        self.jobs.job_added.notify_all();
    }
}

fn run_sync_thread(jobs: &JobQueue, done: &UnboundedSender<Synced>, common: &Common) {
    // If a sync panics, its result would never arrive, so the server stops instead.
    let _at_work = JetStreamAtWork::begin();
    let _guard = common.panic_stop.guard();
    while let Some(job) = jobs.next() {
        let began = Instant::now();
        let synced = Synced {
            of: job.of,
            result: perform(&job),
        };
        common.sync_times.record(began.elapsed());
        // The receiver is gone if the JetStream service has ended.
        let _ = done.send(synced);
    }
}

fn perform(job: &Job) -> Result<(), DiskError> {
    for file in &job.files {
        file.sync_data().map_err(disk_error)?;
    }
    job.folders
        .iter()
        .try_for_each(|folder| sync_folder(folder))
}
