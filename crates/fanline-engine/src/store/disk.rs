//! The interface between a store and the disk: one folder of files.

/// Id of an open file of a [`Disk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Reason for which a disk operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// No space left, or a quota is exhausted. Existing data can still be read.
    #[error("no space left on the disk")]
    Full,
    /// The file does not exist.
    #[error("no such file")]
    NotFound,
    /// Any other error, with the operating system's error number.
    #[error("disk error {0}")]
    Other(i32),
}

/// One folder of files. All calls come from the thread that owns the store. A call returns when the operating
/// system has the bytes; only [`sync_file`](Disk::sync_file) and [`sync_folder`](Disk::sync_folder) wait
/// until they are on disk.
///
/// A [`SyncRequest`](super::SyncRequest) contains [`FileId`]s, so that another thread can sync the files. The
/// implementation defines how that thread finds the file of an id.
pub trait Disk: Send {
    /// Returns the names of all files in the folder, in any order.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn list(&mut self) -> Result<Vec<String>, DiskError>;

    /// Opens a file for reading and writing. A missing file is an error unless `create` is set.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], or the operating system's error.
    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError>;

    /// Closes a file. A sync that is under way still takes effect.
    fn close(&mut self, file: FileId);

    /// Writes all bytes at an offset; the file grows as needed.
    ///
    /// # Errors
    /// Any part of the bytes may have been written.
    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Reads from an offset into `bytes` up to the end of the file, and returns the number of bytes read.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_at(&mut self, file: FileId, offset: u64, bytes: &mut [u8]) -> Result<usize, DiskError>;

    /// Returns the length of a file in bytes.
    ///
    /// # Errors
    /// The operating system's error.
    fn len(&mut self, file: FileId) -> Result<u64, DiskError>;

    /// Truncates a file to a length in bytes.
    ///
    /// # Errors
    /// The operating system's error.
    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError>;

    /// Removes a file; a missing file is no error.
    ///
    /// # Errors
    /// The operating system's error.
    fn remove(&mut self, name: &str) -> Result<(), DiskError>;

    /// Renames a file, replacing any file of the new name.
    ///
    /// # Errors
    /// The operating system's error.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Writes a file's bytes and length to the disk and waits until this is done (`fdatasync`).
    ///
    /// # Errors
    /// The operating system's error. Anything written since the last success may be missing from the disk.
    fn sync_file(&mut self, file: FileId) -> Result<(), DiskError>;

    /// Writes creations, removals, and renames to the disk and waits until this is done.
    ///
    /// # Errors
    /// The operating system's error.
    fn sync_folder(&mut self) -> Result<(), DiskError>;
}
