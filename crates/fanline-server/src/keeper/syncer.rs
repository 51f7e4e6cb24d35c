//! The threads that wait for the disk, so that the keeper does not.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use fanline_engine::store::{DiskError, SyncId};
use tokio::sync::mpsc::UnboundedSender;

use super::disk::{disk_error, sync_folder};
use super::sync_times::SyncTimes;
use super::work::Whose;
use crate::sync::Mutex;

/// How many streams' files are synced at once; the files of others wait. The disk itself brings
/// several together.
const THREADS: usize = 4;

/// What is to be brought to the disk for a stream.
pub(super) struct Job {
    pub(super) whose: Whose,
    pub(super) id: SyncId,
    pub(super) files: Vec<Arc<File>>,
    /// To be synced after the files.
    pub(super) folder: Option<PathBuf>,
}

/// A job that is done, or has failed.
pub(super) struct Synced {
    pub(super) whose: Whose,
    pub(super) id: SyncId,
    pub(super) result: Result<(), DiskError>,
}

/// Threads that sync. They end when it is dropped and what it was given is done.
pub(super) struct Syncer {
    jobs: Sender<Job>,
}

impl Syncer {
    /// Each job is reported to `done`.
    pub(super) fn start(
        done: &UnboundedSender<Synced>,
        times: &Arc<SyncTimes>,
    ) -> io::Result<Self> {
        let (jobs, todo) = channel();
        let todo = Arc::new(Mutex::new(todo));
        for index in 0..THREADS {
            let (todo, done, times) = (Arc::clone(&todo), done.clone(), Arc::clone(times));
            let thread = std::thread::Builder::new().name(format!("sync-{index}"));
            thread.spawn(move || work(&todo, &done, &times))?;
        }
        Ok(Syncer { jobs })
    }

    /// Whether somebody will do it; nobody does when the threads have died.
    pub(super) fn give(&self, job: Job) -> bool {
        self.jobs.send(job).is_ok()
    }
}

fn work(todo: &Mutex<Receiver<Job>>, done: &UnboundedSender<Synced>, times: &SyncTimes) {
    loop {
        // Whoever holds the lock waits for the next job; the others wait for the lock.
        let next = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        let began = Instant::now();
        let synced = Synced {
            whose: job.whose,
            id: job.id,
            result: perform(&job),
        };
        times.record(began.elapsed());
        // The keeper may have ended.
        let _ = done.send(synced);
    }
}

fn perform(job: &Job) -> Result<(), DiskError> {
    for file in &job.files {
        file.sync_data().map_err(disk_error)?;
    }
    job.folder.as_deref().map_or(Ok(()), sync_folder)
}
