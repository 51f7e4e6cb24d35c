//! The disk as a store sees it: one folder of files.

/// An open file of a [`Disk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// How the disk failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// No space, or a quota is used up. What is there can still be read.
    #[error("no space left on the disk")]
    Full,
    /// There is no such file.
    #[error("no such file")]
    NotFound,
    /// Anything else, with the operating system's number.
    #[error("disk error {0}")]
    Other(i32),
}

/// One folder. All calls are made by the thread that owns the store; they return when the operating
/// system has taken the bytes, which [`sync_file`](Disk::sync_file) alone brings to the disk.
///
/// A [`SyncRequest`](super::SyncRequest) names files by their [`FileId`], so that another thread can
/// sync them; that is between the disk and its shell.
pub trait Disk: Send {
    /// The names of all files in the folder, in any order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    fn list(&mut self) -> Result<Vec<String>, DiskError>;

    /// Opens a file for reading and writing; one that is not there is an error unless `create`.
    ///
    /// # Errors
    /// [`DiskError::NotFound`], or as the system says.
    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError>;

    /// Closes a file. A sync that is under way still has its effect.
    fn close(&mut self, file: FileId);

    /// Writes all bytes at a place; a file grows as needed.
    ///
    /// # Errors
    /// Any part of the bytes may have been written.
    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Fills `bytes` from a place, as far as the file goes; gives how many.
    ///
    /// # Errors
    /// As the system says.
    fn read_at(&mut self, file: FileId, offset: u64, bytes: &mut [u8]) -> Result<usize, DiskError>;

    /// How long a file is.
    ///
    /// # Errors
    /// As the system says.
    fn len(&mut self, file: FileId) -> Result<u64, DiskError>;

    /// Cuts a file to a length.
    ///
    /// # Errors
    /// As the system says.
    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError>;

    /// Removes a file; that it is not there is no error.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&mut self, name: &str) -> Result<(), DiskError>;

    /// Gives a file another name, in the place of what has that name.
    ///
    /// # Errors
    /// As the system says.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Brings a file's bytes and length to the disk (`fdatasync`).
    ///
    /// # Errors
    /// Nothing written since the last success may be taken to be there.
    fn sync_file(&mut self, file: FileId) -> Result<(), DiskError>;

    /// Brings creations, removals and renames to the disk.
    ///
    /// # Errors
    /// As the system says.
    fn sync_folder(&mut self) -> Result<(), DiskError>;
}
