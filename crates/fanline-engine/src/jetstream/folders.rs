//! Where streams are kept: a folder for each.

use crate::store::{Disk, DiskError};

/// The folders of one account's streams. A folder is named as its stream.
pub trait Folders: Send {
    /// The names of all folders, in any order.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn list(&mut self) -> Result<Vec<String>, DiskError>;

    /// Opens a folder, which is made when it is not there.
    ///
    /// # Errors
    /// As the system says.
    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError>;

    /// Removes a folder with all that is in it.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&mut self, stream: &str) -> Result<(), DiskError>;
}
