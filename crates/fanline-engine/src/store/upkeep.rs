//! Maintenance that keeps a store's folder small and its start short: checkpoints, compaction, and removal of
//! files.

use super::Store;
use super::checkpoint::Checkpoint;
use super::disk::{DiskError, FileId};
use super::files::SegmentFile;
use super::index;
use super::removal::Erasure;
use super::segment::Body;

/// A checkpoint is due when this many segments' worth of bytes were written since the last,
const SEGMENTS_PER_CHECKPOINT: u64 = 4;
/// and this multiple of its own size.
const SIZES_PER_CHECKPOINT: u64 = 4;

/// Approximate size of a checkpoint: minimum, per segment, per subject.
const INDEX_BYTES_MIN: u64 = 256;
const SEGMENT_BYTES: u64 = 100;
const SUBJECT_BYTES: u64 = 50;

/// Phase of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// Being written, step by step.
    Writing,
    /// Written beside the old one; the next sync must cover it.
    Written(FileId),
    /// The sync under way covers it.
    Syncing(FileId),
    /// Renamed over the old one; the folder must be synced.
    Renamed,
}

/// State of the maintenance.
pub(super) struct Upkeep {
    pub(super) phase: Phase,
    /// The checkpoint being written.
    pub(super) checkpoint: Option<Box<Checkpoint>>,
    /// Files of removed segments, in order. The checkpoint being written does not refer to the first
    /// `removable`.
    pub(super) retired: Vec<Retired>,
    pub(super) removable: usize,
    /// Position of the last checkpoint, in bytes written so far or read at the start.
    pub(super) written_then: u64,
    pub(super) written: u64,
    /// Bytes of files that the next checkpoint frees.
    pub(super) retired_bytes: u64,
    /// Records to overwrite. The sync under way covers the removal of the first `erasable`.
    pub(super) erasures: Vec<Erasure>,
    pub(super) erasable: usize,
}

/// File of a segment without live records.
pub(super) struct Retired {
    pub(super) file: SegmentFile,
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

    /// Notes that a checkpoint begins.
    pub(super) fn begin(&mut self) {
        self.phase = Phase::Writing;
        self.removable = self.retired.len();
        self.written_then = self.written;
        self.retired_bytes = 0;
    }

    /// Whether a checkpoint of about `checkpoint_bytes` bytes is due.
    pub(super) fn is_due(&self, segment_bytes: usize, checkpoint_bytes: u64) -> bool {
        let since = self.written - self.written_then;
        let worth_it = SIZES_PER_CHECKPOINT * checkpoint_bytes;
        let enough = SEGMENTS_PER_CHECKPOINT * segment_bytes as u64;
        let is_wanted = since >= enough.max(worth_it) || self.retired_bytes >= worth_it;
        self.phase == Phase::Idle && is_wanted
    }
}

impl Store {
    /// Writes and syncs everything, with a checkpoint, so that the next start is short. Afterwards only
    /// another `close` may be called on this store.
    ///
    /// # Errors
    /// The disk fails; acknowledged records are still safe.
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

    /// Frees space on a full disk at once; usually a checkpoint comes first, which needs space itself.
    ///
    /// Removes only files before all remaining ones. The index is then invalid until the next checkpoint, and a
    /// start without an index reads all remaining files. A record that a limit removed for another one stays
    /// until that one is durable.
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

    /// Estimates the size of a checkpoint taken now.
    pub(super) fn checkpoint_bytes(&self) -> u64 {
        INDEX_BYTES_MIN
            + self.segments.len() as u64 * SEGMENT_BYTES
            + self.subjects.len() as u64 * SUBJECT_BYTES
    }
}
