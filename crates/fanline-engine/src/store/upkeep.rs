//! What keeps the folder of a store small and its start short: checkpoints, compaction, removal of
//! files.

use std::time::Duration;

use super::Store;
use super::checkpoint::Checkpoint;
use super::disk::{DiskError, FileId};
use super::files::SegmentFile;
use super::index;
use super::removal::Erasure;
use super::segment::Body;
use super::sync::{SyncId, SyncRequest};

/// A checkpoint is made when so many segments' worth of bytes were written since the last,
const SEGMENTS_PER_CHECKPOINT: u64 = 4;
/// and so many times its own size.
const SIZES_PER_CHECKPOINT: u64 = 4;

/// What a checkpoint takes, about: at least, for each segment, for each subject.
const INDEX_BYTES_MIN: u64 = 256;
const SEGMENT_BYTES: u64 = 100;
const SUBJECT_BYTES: u64 = 50;
/// So many compactions go before it, at most.
const COMPACTIONS_PER_CHECKPOINT: usize = 2;

/// How far a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// Being written, step by step.
    Writing,
    /// Written beside the old one; the next sync is to cover it.
    Written(FileId),
    /// The sync that is under way covers it.
    Syncing(FileId),
    /// In the place of the old one; the folder is to be synced.
    Renamed,
}

/// The state of it.
pub(super) struct Upkeep {
    pub(super) phase: Phase,
    /// The one that is being written.
    pub(super) checkpoint: Option<Box<Checkpoint>>,
    /// Files of segments that are gone, in order; the first `removable` are not in the checkpoint
    /// that is being made.
    retired: Vec<Retired>,
    removable: usize,
    /// Where the log ended at the last checkpoint, in bytes ever written, or read at the start.
    written_then: u64,
    pub(super) written: u64,
    /// Bytes of files that the next one sets free.
    retired_bytes: u64,
    /// Records to be overwritten; of the first so many the sync that is under way brings the removal.
    pub(super) erasures: Vec<Erasure>,
    erasable: usize,
}

/// The file of a segment in which nothing lives.
struct Retired {
    file: SegmentFile,
    /// See [`Segment::limited_by`](super::segment::Segment::limited_by).
    limited_by: u64,
}

impl Default for Upkeep {
    fn default() -> Self {
        Upkeep {
            phase: Phase::Idle,
            checkpoint: None,
            retired: Vec::new(),
            removable: 0,
            written_then: 0,
            written: 0,
            retired_bytes: 0,
            erasures: Vec::new(),
            erasable: 0,
        }
    }
}

impl Upkeep {
    pub(super) fn retire(&mut self, file: SegmentFile, limited_by: u64) {
        self.retired.push(Retired { file, limited_by });
        self.retired_bytes += file.bytes;
    }

    /// A checkpoint is begun.
    pub(super) fn begin(&mut self) {
        self.phase = Phase::Writing;
        self.removable = self.retired.len();
        self.written_then = self.written;
        self.retired_bytes = 0;
    }

    /// Whether a checkpoint of about so many bytes is due.
    fn is_due(&self, segment_bytes: usize, checkpoint_bytes: u64) -> bool {
        let since = self.written - self.written_then;
        let worth_it = SIZES_PER_CHECKPOINT * checkpoint_bytes;
        let enough = SEGMENTS_PER_CHECKPOINT * segment_bytes as u64;
        let is_wanted = since >= enough.max(worth_it) || self.retired_bytes >= worth_it;
        self.phase == Phase::Idle && is_wanted
    }
}

impl Store {
    /// What is to be brought to the disk now; `None` when nothing is, or while it is being done.
    /// Writes what waits to be written. To be asked after every batch of appends, after
    /// [`synced`](Self::synced), and at [`next_sync_at`](Self::next_sync_at).
    pub fn next_sync(&mut self, now: Duration) -> Option<SyncRequest> {
        self.log_floor();
        self.log_sync_point(now);
        self.free_full_disk();
        // One that fails is begun anew when the next is due.
        let _ = self.go_on_with_checkpoint();
        if self.files.as_ref()?.is_syncing() {
            // Written while the last batch is synced: it is ready for the next.
            let _ = self.files.as_mut()?.write();
            return None;
        }
        let checkpoint_bytes = self.checkpoint_bytes();
        if self.upkeep.is_due(self.segment_bytes, checkpoint_bytes) {
            for _ in 0..COMPACTIONS_PER_CHECKPOINT {
                self.compact();
            }
            // The old one stays good when this fails; it is tried again later.
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
        let must = must || !self.upkeep.erasures.is_empty();
        let request = self.files.as_mut()?.next_sync(now, extra, must)?;
        self.upkeep.erasable = self.upkeep.erasures.len();
        if let Some(file) = extra {
            self.upkeep.phase = Phase::Syncing(file);
        }
        Some(request)
    }

    /// All that was done so far, removals too, is brought to the disk without delay: somebody waits for
    /// it. To be said before [`next_sync`](Self::next_sync) is asked; records need no such word.
    pub fn hasten(&mut self) {
        if let Some(files) = &mut self.files {
            files.hasten();
        }
    }

    /// When [`next_sync`](Self::next_sync) has something to do although nothing was appended.
    pub fn next_sync_at(&self) -> Option<Duration> {
        match self.upkeep.phase {
            // At once, when others have had their turn.
            Phase::Writing => Some(Duration::ZERO),
            _ => self.files.as_ref()?.next_sync_at(),
        }
    }

    /// The shell has done, or failed to do, what [`next_sync`](Self::next_sync) asked for.
    pub fn synced(&mut self, id: SyncId, result: Result<(), DiskError>) {
        let Some(files) = &mut self.files else { return };
        let Some(done) = files.synced(id, result) else {
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
                    // What is left is removed at the next start.
                    let _ = files.disk.remove(&retired.file.name());
                }
            }
            Phase::Renamed => {}
        }
    }

    /// Does by itself what [`next_sync`](Self::next_sync) would ask of the shell, and waits for it.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync_now(&mut self, now: Duration) -> Result<(), DiskError> {
        self.hasten();
        while let Some(request) = self.next_sync(now) {
            let Some(files) = &mut self.files else { break };
            let result = files.perform(&request);
            self.synced(request.id, result);
            result?;
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// Writes all and syncs it, with a checkpoint, so that the next start is short. The store is good
    /// for nothing else afterwards but another try.
    ///
    /// # Errors
    /// The disk fails; everything acknowledged is safe all the same.
    pub fn close(&mut self) -> Result<(), DiskError> {
        self.log_floor();
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.write()?;
        self.write_checkpoint()?;
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.cut_ahead()?;
        files.sync_all()?;
        self.overwrite_erased(self.upkeep.erasures.len());
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        if let Phase::Written(file) = self.upkeep.phase {
            files.disk.sync_file(file)?;
            files.disk.rename(index::NEW_NAME, index::NAME)?;
            self.upkeep.phase = Phase::Renamed;
        }
        files.disk.sync_folder()?;
        for retired in self.upkeep.retired.drain(..) {
            files.disk.remove(&retired.file.name())?;
        }
        Ok(())
    }

    /// A full disk gets room at once, where else a checkpoint would come first, which takes some. Only
    /// what came before all that is left is removed: the index does not fit any more until there is
    /// another, and without one all that is left is read. A record that a limit dropped for another one stays until
    /// that one is durable.
    pub(super) fn free_full_disk(&mut self) {
        let front = self.segments.front().map(|segment| &segment.body);
        let (Some(Body::File(front)), Some(files)) = (front, &mut self.files) else {
            return;
        };
        if files.failure != Some(DiskError::Full) {
            return;
        }
        let mut removable = self.upkeep.removable;
        let mut number = 0;
        let durable = files.durable();
        self.upkeep.retired.retain_mut(|retired| {
            number += 1;
            let file = &mut retired.file;
            let goes = file.number < front.number
                && retired.limited_by <= durable
                && files.close(file)
                && files.disk.remove(&file.name()).is_ok();
            removable -= usize::from(goes && number <= self.upkeep.removable);
            !goes
        });
        self.upkeep.removable = removable;
    }

    /// About how large one would be now.
    fn checkpoint_bytes(&self) -> u64 {
        INDEX_BYTES_MIN
            + self.segments.len() as u64 * SEGMENT_BYTES
            + self.subjects.len() as u64 * SUBJECT_BYTES
    }
}
