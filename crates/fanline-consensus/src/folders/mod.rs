//! Folders of files that a group replicates.
//!
//! The leader opens a folder through a [`JournaledDisk`]. Its changes of files and names are *operations*. They do not
//! reach the files: they are recorded in the [`Journal`] of the lane, and only this disk shows their effects.
//! [`Journal::take`] returns the recorded operations as an entry for the group. Each member executes a committed
//! entry with its [`Applier`], the leader too, and then calls [`Journal::set_applied`]. If the leader is deposed, the
//! journal is [ended](Journal::end) and the disks are dropped. The files contain nothing that was not committed.
//!
//! On the disk a file has a number instead of a name, which is never used again, and a table has the names. So an
//! operation sets bytes or a name regardless of what was there before, and a missing file is no error. After a
//! crash, entries are executed again from any earlier one on, over files that contain any part of their effects, and
//! the result is the same. For this reason a member may also copy the files of another one while they change, and
//! then execute the entries since the beginning of the copy.
//!
//! `docs/formats/entries.md` describes entries and tables.
//!
//! ```
//! use fanline_consensus::folders::{Applier, Folders, Journal};
//! use fanline_engine::store::{Disk, DiskError, simulated_disk::SimulatedDisk};
//!
//! /// The folders of a lane that has only one.
//! struct One(SimulatedDisk);
//!
//! impl Folders for One {
//!     fn open(&mut self, _: &str, _: bool) -> Result<Option<Box<dyn Disk>>, DiskError> {
//!         Ok(Some(Box::new(self.0.clone())))
//!     }
//!
//!     fn remove(&mut self, _: &str) -> Result<(), DiskError> {
//!         Ok(())
//!     }
//! }
//!
//! let files = SimulatedDisk::new();
//! let mut applier = Applier::new(One(files.clone()));
//! let journal = Journal::new();
//! let names = applier.names("shop/orders").unwrap();
//! let mut disk = journal.disk("shop/orders", names, Box::new(files.clone()));
//! let file = disk.open("log", true).unwrap();
//! disk.write_at(file, 0, b"3 apples").unwrap();
//!
//! let (batch, entry) = journal.take().unwrap();
//! // The entry is committed.
//! applier.apply(&entry).unwrap();
//! journal.set_applied(batch);
//! assert_eq!(applier.names("shop/orders").unwrap().iter().next(), Some(("log", 1)));
//! ```

mod apply;
mod codec;
mod disk;
mod journal;
mod names;
#[cfg(test)]
mod tests;

pub use apply::{Applier, ApplyError, Folders, Unsynced};
pub use codec::Malformed;
pub use disk::JournaledDisk;
pub use journal::Journal;
pub use names::Names;
