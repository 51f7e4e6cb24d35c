//! Operations that are recorded, but not proposed yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanline_engine::store::{Disk, DiskError};

use super::codec::{self, HEAD_BYTES, Operation};
use super::disk::JournaledDisk;
use super::names::Names;

/// Length in bytes at which an entry ends and the next one begins.
const ENTRY_BYTES_WANTED: usize = 4 << 20;
/// Longest write in one operation. A longer one is several operations.
pub(super) const WRITE_BYTES_MAX: usize = 1 << 20;

/// The operations of a lane's folders on its leader. Clones share them.
#[derive(Clone)]
pub struct Journal(Arc<Mutex<State>>);

struct State {
    /// Complete entries, oldest first.
    complete: VecDeque<Vec<u8>>,
    /// The entry that is being recorded.
    entry: Vec<u8>,
    /// Its number, counted from 1.
    batch: u64,
    /// Number of the last applied entry.
    applied: u64,
    /// The folder and the file to which the next operation applies.
    folder: String,
    file: Option<u64>,
    has_ended: bool,
    /// The open folders. They refer to this journal until it ends.
    disks: BTreeMap<String, JournaledDisk>,
}

impl Default for Journal {
    fn default() -> Self {
        Journal::new()
    }
}

impl Journal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Journal(Arc::new(Mutex::new(State {
            complete: VecDeque::new(),
            entry: codec::begin(),
            batch: 1,
            applied: 0,
            folder: String::new(),
            file: None,
            has_ended: false,
            disks: BTreeMap::new(),
        })))
    }

    /// Returns a disk that records the changes of a folder, of which [`open_disk`](Self::open_disk) has none. `names`
    /// are the folder's names after all entries so far, and `files` reads its files. The name of a folder is not
    /// empty.
    pub fn disk(&self, folder: &str, names: Names, files: Box<dyn Disk>) -> JournaledDisk {
        let disk = JournaledDisk::new(self.clone(), folder, names, files);
        self.lock().disks.insert(folder.to_owned(), disk.clone());
        disk
    }

    /// Returns the disk of a folder, if it was opened. It shows changes that are not applied, so the journal keeps it.
    pub fn open_disk(&self, folder: &str) -> Option<JournaledDisk> {
        self.lock().disks.get(folder).cloned()
    }

    /// Records the removal of a folder with its files. Its disk is not used any more.
    ///
    /// # Errors
    /// The journal has ended.
    pub fn remove_folder(&self, folder: &str) -> Result<(), DiskError> {
        let mut state = self.open()?;
        state.select_folder(folder);
        Operation::RemoveFolder.encode(&mut state.entry);
        state.folder.clear();
        state.file = None;
        let disk = state.disks.remove(folder);
        drop(state);
        drop(disk);
        Ok(())
    }

    /// Returns the oldest recorded operations, as an entry, and its number; `None` if there are none. Call it until
    /// it returns `None`.
    pub fn take(&self) -> Option<(u64, Vec<u8>)> {
        let mut state = self.lock();
        if state.complete.is_empty() {
            state.complete_entry();
        }
        let entry = state.complete.pop_front()?;
        Some((state.batch - 1 - state.complete.len() as u64, entry))
    }

    /// Reports that all entries up to a number are applied.
    pub fn set_applied(&self, batch: u64) {
        let mut state = self.lock();
        state.applied = state.applied.max(batch);
    }

    /// Discards everything that is not applied, because this node does not lead the lane any more. All disks fail
    /// from now on. A journal must be ended: until then, its disks and it refer to each other.
    pub fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.complete.clear();
        state.entry = codec::begin();
        let disks = std::mem::take(&mut state.disks);
        drop(state);
        drop(disks);
    }

    /// Returns the number of the last applied entry.
    pub(super) fn applied(&self) -> Result<u64, DiskError> {
        Ok(self.open()?.applied)
    }

    /// Records an operation on a file, or on the folder. Returns the number of its entry.
    pub(super) fn record(
        &self,
        folder: &str,
        file: Option<u64>,
        operation: Operation<'_>,
    ) -> Result<u64, DiskError> {
        let mut state = self.open()?;
        let bytes = match operation {
            Operation::Write(_, bytes) => bytes.len(),
            _ => 0,
        };
        if state.entry.len() + bytes > ENTRY_BYTES_WANTED {
            state.complete_entry();
        }
        state.select_folder(folder);
        if let Some(number) = file
            && state.file != file
        {
            Operation::File(number).encode(&mut state.entry);
            state.file = file;
        }
        operation.encode(&mut state.entry);
        if matches!(operation, Operation::Remove) {
            state.file = None;
        }
        Ok(state.batch)
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, DiskError> {
        let state = self.lock();
        match state.has_ended {
            true => Err(ENDED),
            false => Ok(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `ESTALE`: the file belongs to another server now.
const ENDED: DiskError = DiskError::Other(116);

impl State {
    /// Ends the current entry, if it has operations.
    fn complete_entry(&mut self) {
        if self.entry.len() == HEAD_BYTES {
            return;
        }
        let mut entry = std::mem::replace(&mut self.entry, codec::begin());
        codec::finish(&mut entry);
        self.complete.push_back(entry);
        self.batch += 1;
        self.folder.clear();
        self.file = None;
    }

    fn select_folder(&mut self, folder: &str) {
        if self.folder != folder {
            Operation::Folder(folder).encode(&mut self.entry);
            folder.clone_into(&mut self.folder);
            self.file = None;
        }
    }
}
