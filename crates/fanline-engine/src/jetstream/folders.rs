//! Storage of streams: a folder for each.

use crate::store::{Disk, DiskError};

/// The folders of one account's streams, named after them.
pub trait Folders: Send {
    /// Returns the names of all folders, in any order.
    ///
    /// # Errors
    /// The folders cannot be listed.
    fn list(&mut self) -> Result<Vec<String>, DiskError>;

    /// Opens a folder, creating it if necessary.
    ///
    /// # Errors
    /// The operating system's error.
    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError>;

    /// Removes a folder with its content.
    ///
    /// # Errors
    /// The operating system's error.
    fn remove(&mut self, stream: &str) -> Result<(), DiskError>;
}
