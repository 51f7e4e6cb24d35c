//! Group commit, as the shell sees it.

use std::time::Duration;

use super::disk::FileId;

/// When an acknowledgement may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// When the record is on the disk.
    #[default]
    Commit,
    /// When the operating system has it; it is brought to the disk this often.
    Interval(Duration),
    /// When the operating system has it, which brings it to the disk when it likes.
    None,
}

/// Names one [`SyncRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncId(pub u64);

/// What is to be brought to the disk, by a thread that may wait for it. Files first, then the
/// folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// To be given to [`Store::synced`](super::Store::synced).
    pub id: SyncId,
    /// Files to sync.
    pub files: Vec<FileId>,
    /// Whether to sync the folder after them.
    pub folder: bool,
}
