//! Maintenance: checkpoints, compaction, and removal of files, so that the folder stays small and a start is
//! short.

use super::Store;
use super::checkpoint::Checkpoint;
use super::disk::{DiskError, FileId};
use super::files::SegmentFile;
use super::index;
use super::removal::Erasure;
use super::segment::Body;

/// Minimum number of bytes written between two checkpoints, as a number of full segments. The next minimum
/// must be reached, too.
const SEGMENTS_PER_CHECKPOINT: u64 = 4;
/// Minimum number of bytes written between two checkpoints, as a multiple of the checkpoint's size.
const SIZES_PER_CHECKPOINT: u64 = 4;

/// Approximate size of an empty checkpoint in bytes. The next two constants are the sizes for each segment
/// and each subject.
const INDEX_BYTES_MIN: u64 = 256;
const SEGMENT_BYTES: u64 = 100;
const SUBJECT_BYTES: u64 = 50;

/// Phase of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// Being written, step by step.
    Writing,
    /// Written to a file of its own. The next sync must include this file.
    Written(FileId),
    /// The current sync includes the file.
    Syncing(FileId),
    /// Renamed to replace the old checkpoint. The folder must be synced.
    Renamed,
}

/// State of the maintenance.
pub(super) struct Upkeep {
    pub(super) phase: Phase,
    /// The checkpoint being written.
    pub(super) checkpoint: Option<Box<Checkpoint>>,
    /// Files of removed segments, in order. The current checkpoint no longer needs the first `removable` of
    /// them.
    pub(super) retired: Vec<Retired>,
    pub(super) removable: usize,
    /// Value of `written` at the last checkpoint. `written` counts bytes that were written, or read at the
    /// start.
    pub(super) written_then: u64,
    pub(super) written: u64,
    /// Bytes of files that the next checkpoint makes removable.
    pub(super) retired_bytes: u64,
    /// Records to overwrite. The current sync covers the removal of the first `erasable` of them.
    pub(super) erasures: Vec<Erasure>,
    pub(super) erasable: usize,
    /// Whether the last record's atomic batch is incomplete. A start removes such a batch, and all that follows it in the
    /// log: also the removal of a record, which must therefore not be overwritten yet.
    pub(super) is_in_batch: bool,
}

/// The file of a segment without live records.
pub(super) struct Retired {
    pub(super) file: SegmentFile,
    /// See [`Segment::limited_by`](super::segment::Segment::limited_by).
    limited_by: u64,
}

impl Upkeep {
    /// Returns the number of erasures that may follow the next sync.
    pub(super) fn ready_erasures(&self) -> usize {
        match self.is_in_batch {
            true => 0,
            false => self.erasures.len(),
        }
    }
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
            is_in_batch: false,
        }
    }
}

impl Upkeep {
    pub(super) fn retire(&mut self, file: SegmentFile, limited_by: u64) {
        self.retired.push(Retired { file, limited_by });
        self.retired_bytes += file.bytes;
    }

    /// Registers the beginning of a checkpoint.
    pub(super) fn begin(&mut self) {
        self.phase = Phase::Writing;
        self.removable = self.retired.len();
        self.written_then = self.written;
        self.retired_bytes = 0;
    }

    /// Returns whether a checkpoint of about `checkpoint_bytes` bytes is due.
    pub(super) fn is_due(&self, segment_bytes: usize, checkpoint_bytes: u64) -> bool {
        let since = self.written - self.written_then;
        let worth_it = SIZES_PER_CHECKPOINT * checkpoint_bytes;
        let enough = SEGMENTS_PER_CHECKPOINT * segment_bytes as u64;
        let is_wanted = since >= enough.max(worth_it) || self.retired_bytes >= worth_it;
        self.phase == Phase::Idle && is_wanted
    }
}

impl Store {
    /// Syncs everything and writes a checkpoint, so that the next start is short. Afterward the store must
    /// not be used, except to call `close` again after an error.
    ///
    /// # Errors
    /// The disk fails. Acknowledged records are still safe.
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
        self.overwrite_erased(self.upkeep.ready_erasures());
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

    /// Removes files immediately if the disk is full. Usually files are removed after a checkpoint, but a
    /// checkpoint needs space.
    ///
    /// Removes only files that are older than all remaining files. The index is then invalid until the next
    /// checkpoint, but a start can read all remaining files without it. If a limit removed a record because
    /// of a newer one, the file with the removed record stays until the newer one is durable.
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
