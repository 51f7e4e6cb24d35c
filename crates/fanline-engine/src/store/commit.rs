//! Group commit: what to sync, when, and which records a finished sync makes durable.
//!
//! [`Store::poll_sync`] writes pending bytes and returns a [`SyncRequest`]. A thread that may block performs
//! it. [`Store::handle_synced`] takes the result, after which [`Store::durable`] may have advanced.

use std::time::Duration;

use super::Store;
use super::disk::{DiskError, FileId};
use super::files::Files;
use super::index;
use super::upkeep::Phase;

/// Number of unsynced bytes at which a store with another mode than `Commit` requests a sync earlier than it
/// would otherwise.
const UNSYNCED_BYTES_WANTED: u64 = 32 << 20;
/// Maximum delay of a sync for changes that no client waits for, such as the removal of an acknowledged
/// record. Usually the sync for the next record includes them.
pub(super) const UNAWAITED_MAX: Duration = Duration::from_millis(250);
/// Maximum number of compactions before a checkpoint.
const COMPACTIONS_PER_CHECKPOINT: usize = 2;

/// Condition under which the acknowledgement of a record may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// A record is acknowledged when it is synced to disk.
    #[default]
    Commit,
    /// A record is acknowledged when the operating system has it. The log is synced at this interval.
    Interval(Duration),
    /// A record is acknowledged when the operating system has it, which decides when to write it to the disk.
    None,
}

/// Id of a [`SyncRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncId(pub u64);

/// A sync to perform, on a thread that may block: files first, then the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// Id to pass to [`Store::handle_synced`](super::Store::handle_synced).
    pub id: SyncId,
    /// Files to sync.
    pub files: Vec<FileId>,
    /// Whether to sync the folder after the files.
    pub folder: bool,
}

/// The sync under way, and the changes that it covers.
pub(super) struct InFlight {
    id: u64,
    sequence: u64,
    active_bytes: u64,
    sealed: usize,
    folder: bool,
}

impl Store {
    /// Writes pending bytes and returns the next sync to perform; `None` if there is nothing to sync, or
    /// while a sync is under way. Call it after every batch of appends, after
    /// [`handle_synced`](Self::handle_synced), and at [`next_sync_at`](Self::next_sync_at).
    pub fn poll_sync(&mut self, now: Duration) -> Option<SyncRequest> {
        self.log_floor();
        self.log_sync_point(now);
        self.free_full_disk();
        // If the checkpoint fails, a new one begins when the next is due.
        let _ = self.continue_checkpoint();
        if self.files.as_ref()?.is_syncing() {
            // Writes pending bytes while a sync is under way, so that the next sync can begin as soon as the
            // current one ends.
            let _ = self.files.as_mut()?.write();
            return None;
        }
        let checkpoint_bytes = self.checkpoint_bytes();
        if self.upkeep.is_due(self.segment_bytes, checkpoint_bytes) {
            for _ in 0..COMPACTIONS_PER_CHECKPOINT {
                self.compact();
            }
            // If this fails, the old checkpoint stays valid, and a new one begins when the next is due.
            if self.begin_checkpoint().is_err() {
                self.upkeep.written_then = self.upkeep.written;
                self.upkeep.retired_bytes = 0;
            }
        }
        let (extra, must) = match self.upkeep.phase {
            Phase::Idle | Phase::Writing => (None, false),
            Phase::Written(file) | Phase::Syncing(file) => (Some(file), true),
            Phase::Renamed => (None, true),
        };
        let erasable = self.upkeep.ready_erasures();
        let must = must || erasable > 0;
        let request = self.files.as_mut()?.begin_sync(now, extra, must)?;
        self.upkeep.erasable = erasable;
        if let Some(file) = extra {
            self.upkeep.phase = Phase::Syncing(file);
        }
        Some(request)
    }

    /// Requests that the next [`poll_sync`](Self::poll_sync) syncs all changes so far, including removals,
    /// because a client waits for them. Records are synced without this request.
    pub fn request_sync(&mut self) {
        if let Some(files) = &mut self.files {
            files.is_awaited = true;
        }
    }

    /// Returns the time at which to call [`poll_sync`](Self::poll_sync) even if no record is appended.
    pub fn next_sync_at(&self) -> Option<Duration> {
        match self.upkeep.phase {
            // Due immediately, but other streams can run between two parts of a checkpoint.
            Phase::Writing => Some(Duration::ZERO),
            _ => self.files.as_ref()?.next_sync_at(),
        }
    }

    /// Takes the result of a sync that [`poll_sync`](Self::poll_sync) requested.
    pub fn handle_synced(&mut self, id: SyncId, result: Result<(), DiskError>) {
        let Some(files) = &mut self.files else { return };
        let Some(done) = files.end_sync(id, result) else {
            if let (Phase::Syncing(file), Err(_)) = (self.upkeep.phase, result) {
                files.disk.close(file);
                self.upkeep.phase = Phase::Idle;
            }
            return;
        };
        let erasable = std::mem::take(&mut self.upkeep.erasable);
        self.overwrite_erased(erasable);
        let Some(files) = &mut self.files else { return };
        match self.upkeep.phase {
            Phase::Idle | Phase::Writing | Phase::Written(_) => {}
            Phase::Syncing(file) => {
                files.disk.close(file);
                let renamed = files.disk.rename(index::NEW_NAME, index::NAME);
                files.is_folder_dirty = true;
                self.upkeep.phase = match renamed {
                    Ok(()) => Phase::Renamed,
                    Err(_) => Phase::Idle,
                };
            }
            Phase::Renamed if done.folder => {
                self.upkeep.phase = Phase::Idle;
                for mut retired in self.upkeep.retired.drain(..self.upkeep.removable) {
                    files.close(&mut retired.file);
                    // The next start removes the remaining files.
                    let _ = files.disk.remove(&retired.file.name());
                }
            }
            Phase::Renamed => {}
        }
    }

    /// Requests a sync, performs it, and blocks until it is done.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub fn sync_now(&mut self, now: Duration) -> Result<(), DiskError> {
        self.request_sync();
        while let Some(request) = self.poll_sync(now) {
            let Some(files) = &mut self.files else { break };
            let result = files.perform(&request);
            self.handle_synced(request.id, result);
            result?;
        }
        self.failure().map_or(Ok(()), Err)
    }
}

impl Files {
    /// Returns the highest sequence up to which the mode allows acknowledgements.
    pub(super) fn durable(&self) -> u64 {
        match self.mode {
            SyncMode::Commit => self.synced,
            SyncMode::Interval(_) | SyncMode::None => self.written,
        }
    }

    /// Begins a sync of all written bytes and of the file `extra`. With `must`, it begins even if the mode
    /// would wait.
    fn begin_sync(
        &mut self,
        now: Duration,
        extra: Option<FileId>,
        must: bool,
    ) -> Option<SyncRequest> {
        if self.in_flight.is_some() || self.write().is_err() {
            return None;
        }
        let is_dirty =
            self.synced_to < self.dirty_to || !self.sealed.is_empty() || self.is_folder_dirty;
        if !is_dirty {
            self.is_awaited = false;
        }
        let is_due = match self.mode {
            SyncMode::Commit => is_dirty && self.must_commit(now),
            SyncMode::Interval(interval) => {
                now >= self.last_sync + interval || self.unsynced_bytes() > UNSYNCED_BYTES_WANTED
            }
            SyncMode::None => self.unsynced_bytes() > UNSYNCED_BYTES_WANTED,
        };
        if !(must || extra.is_some() || is_dirty && is_due) {
            return None;
        }
        self.last_sync = now;
        self.is_awaited = false;
        self.unawaited_since = None;
        self.unsynced_removals.request();
        let id = self.next_id;
        self.next_id += 1;
        self.in_flight = Some(InFlight {
            id,
            sequence: self.written,
            active_bytes: self.written_to,
            sealed: self.sealed.len(),
            folder: self.is_folder_dirty,
        });
        let mut files: Vec<FileId> = self.sealed.iter().map(|s| s.file).collect();
        files.push(self.active);
        files.extend(extra);
        let folder = std::mem::take(&mut self.is_folder_dirty);
        Some(SyncRequest {
            id: SyncId(id),
            files,
            folder,
        })
    }

    /// Returns whether to sync now: a record or a client waits for it, or other changes have waited long
    /// enough.
    fn must_commit(&mut self, now: Duration) -> bool {
        let has_new = self.synced < self.written;
        if has_new || self.is_awaited || !self.sealed.is_empty() || self.is_folder_dirty {
            return true;
        }
        let since = *self.unawaited_since.get_or_insert(now);
        now >= since + UNAWAITED_MAX
    }

    /// Returns the time at which a sync or a sync point (a record of what is on disk) is due if nothing else
    /// happens.
    fn next_sync_at(&self) -> Option<Duration> {
        if self.is_syncing() {
            return None;
        }
        let is_dirty = self.synced_to < self.dirty_to || !self.sealed.is_empty();
        let sync_at = match self.mode {
            SyncMode::Commit => self.unawaited_since.map(|since| since + UNAWAITED_MAX),
            SyncMode::Interval(interval) if is_dirty => Some(self.last_sync + interval),
            _ => None,
        };
        let sync_point_at = self.sync_point_since.map(|since| since + UNAWAITED_MAX);
        sync_at.into_iter().chain(sync_point_at).min()
    }

    fn is_syncing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Takes the result of a sync, and returns what the sync covered. Returns `None` if the sync failed, or
    /// is not the current one.
    fn end_sync(&mut self, id: SyncId, result: Result<(), DiskError>) -> Option<InFlight> {
        let in_flight = self.in_flight.take_if(|in_flight| in_flight.id == id.0)?;
        self.unsynced_removals.finish(id, result.is_ok());
        if let Err(error) = result {
            self.failure = Some(error);
            self.must_rewrite = true;
            self.is_awaited = true;
            self.is_folder_dirty |= in_flight.folder;
            return None;
        }
        self.synced = self.synced.max(in_flight.sequence);
        // Appends may have filled and sealed the active file during the sync.
        if self.sealed.len() > in_flight.sealed {
            let sealed = &mut self.sealed[in_flight.sealed];
            let done = in_flight.active_bytes.saturating_sub(sealed.from);
            let done = usize::try_from(done)
                .unwrap_or(usize::MAX)
                .min(sealed.bytes.len());
            sealed.bytes.drain(..done);
            sealed.from += done as u64;
        } else {
            self.synced_to = self.synced_to.max(in_flight.active_bytes);
        }
        for mut sealed in self.sealed.drain(..in_flight.sealed) {
            sealed.bytes.clear();
            if sealed.bytes.capacity() > self.spare.capacity() {
                self.spare = sealed.bytes;
            }
        }
        self.trim();
        Some(in_flight)
    }
}
