//! A folder on the leader: its files, and the changes that are not applied to them yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanline_engine::store::{Disk, DiskError, FileId};

use super::codec::Operation;
use super::journal::{Journal, WRITE_BYTES_MAX};
use super::names::Names;

/// `EINVAL`
const INVALID: DiskError = DiskError::Other(22);

/// A disk that records all changes in a [`Journal`]. Reads return what was written, whether it is applied or not.
/// Syncs have no effect: a change is durable when its entry is committed. Clones share the folder.
#[derive(Clone)]
pub struct JournaledDisk(Arc<Mutex<Folder>>);

/// The state of a disk.
struct Folder {
    journal: Journal,
    name: String,
    names: Names,
    /// The files by their numbers, as far as they are applied, or some entries later.
    disk: Box<dyn Disk>,
    /// Files that are open, or have changes that are not applied.
    files: BTreeMap<u64, File>,
    handles: BTreeMap<FileId, u64>,
    next_handle: u32,
    /// Number of the last entry that is taken into account.
    applied: u64,
}

#[derive(Default)]
struct File {
    /// The file of `disk`, if it is open there. If not, `changes` has all of its bytes.
    of_disk: Option<FileId>,
    length: u64,
    /// Changes that are not applied, each with the number of its entry.
    changes: VecDeque<(u64, Change)>,
    handles: usize,
    /// Whether it has no name any more.
    is_removed: bool,
}

enum Change {
    Write(u64, Vec<u8>),
    /// Cuts the file off at a length.
    Truncate(u64),
}

impl JournaledDisk {
    pub(super) fn new(journal: Journal, name: &str, names: Names, disk: Box<dyn Disk>) -> Self {
        JournaledDisk(Arc::new(Mutex::new(Folder {
            journal,
            name: name.to_owned(),
            names,
            disk,
            files: BTreeMap::new(),
            handles: BTreeMap::new(),
            next_handle: 0,
            applied: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Folder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for JournaledDisk {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        self.lock().list()
    }

    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError> {
        self.lock().open(name, create)
    }

    fn close(&mut self, file: FileId) {
        self.lock().close(file);
    }

    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        offset.checked_add(bytes.len() as u64).ok_or(INVALID)?;
        let mut folder = self.lock();
        // The parts may be in several entries. A leader that is lost between them leaves a torn write, as a power cut does.
        let parts = bytes.chunks(WRITE_BYTES_MAX);
        let parts = parts.chain(bytes.is_empty().then_some(bytes));
        for (offset, part) in (offset..).step_by(WRITE_BYTES_MAX).zip(parts) {
            folder.change(file, Change::Write(offset, part.to_vec()))?;
        }
        Ok(())
    }

    fn read_at(&mut self, file: FileId, offset: u64, bytes: &mut [u8]) -> Result<usize, DiskError> {
        self.lock().read_at(file, offset, bytes)
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(self.lock().file(file)?.1.length)
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        self.lock().change(file, Change::Truncate(bytes))
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        self.lock().remove(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.lock().rename(from, to)
    }

    fn sync_file(&mut self, _file: FileId) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_folder(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

impl Folder {
    /// Forgets the changes that have been applied since the last call.
    fn forget_applied(&mut self) -> Result<(), DiskError> {
        let applied = self.journal.applied()?;
        if applied == self.applied {
            return Ok(());
        }
        self.applied = applied;
        for (number, file) in &mut self.files {
            let is_applied = |entry: &(u64, Change)| entry.0 <= applied;
            if file.is_removed || !file.changes.front().is_some_and(is_applied) {
                continue;
            }
            if file.of_disk.is_none() {
                file.of_disk = Some(self.disk.open(&file_name(*number), false)?);
            }
            while file
                .changes
                .pop_front_if(|entry| is_applied(entry))
                .is_some()
            {}
        }
        let disk = &mut self.disk;
        self.files.retain(|_, file| {
            let is_needed = file.is_needed();
            if !is_needed && let Some(of_disk) = file.of_disk {
                disk.close(of_disk);
            }
            is_needed
        });
        Ok(())
    }

    /// Returns a file, which is open from then on.
    fn load(&mut self, number: u64) -> Result<&mut File, DiskError> {
        if !self.files.contains_key(&number) {
            let of_disk = self.disk.open(&file_name(number), false)?;
            let file = File {
                of_disk: Some(of_disk),
                length: self.disk.len(of_disk)?,
                ..File::default()
            };
            self.files.insert(number, file);
        }
        self.files.get_mut(&number).ok_or(DiskError::NotFound)
    }

    /// Removes a file that has lost its name. Open handles can still use it.
    fn remove_file(&mut self, number: u64) -> Result<(), DiskError> {
        self.record(Some(number), Operation::Remove)?;
        if let Some(file) = self.files.get_mut(&number) {
            file.is_removed = true;
            self.forget_if_unneeded(number);
        }
        Ok(())
    }

    fn forget_if_unneeded(&mut self, number: u64) {
        if self
            .files
            .get(&number)
            .is_some_and(|file| !file.is_needed())
            && let Some(file) = self.files.remove(&number)
            && let Some(of_disk) = file.of_disk
        {
            self.disk.close(of_disk);
        }
    }

    fn file(&mut self, handle: FileId) -> Result<(u64, &mut File), DiskError> {
        let number = *self.handles.get(&handle).ok_or(DiskError::NotFound)?;
        let file = self.files.get_mut(&number).ok_or(DiskError::NotFound)?;
        Ok((number, file))
    }

    fn record(&self, file: Option<u64>, operation: Operation<'_>) -> Result<u64, DiskError> {
        self.journal.record(&self.name, file, operation)
    }

    fn change(&mut self, handle: FileId, change: Change) -> Result<(), DiskError> {
        self.forget_applied()?;
        let (number, file) = self.file(handle)?;
        // A removed file, which only its handles show, needs no operation.
        let batch = match file.is_removed {
            true => 0,
            false => self.record(Some(number), change.operation())?,
        };
        let (_, file) = self.file(handle)?;
        file.length = match &change {
            Change::Write(offset, bytes) => file.length.max(offset + bytes.len() as u64),
            Change::Truncate(length) => file.length.min(*length),
        };
        file.changes.push_back((batch, change));
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        self.forget_applied()?;
        Ok(self.names.iter().map(|(name, _)| name.to_owned()).collect())
    }

    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError> {
        check_name(name)?;
        self.forget_applied()?;
        let number = match self.names.get(name) {
            Some(number) => number,
            None if create => {
                let number = self.names.next();
                let batch = self.record(Some(number), Operation::Link(name))?;
                self.names.insert(name, number);
                let mut file = File::default();
                // The file exists on the disk from this entry on.
                file.changes.push_back((batch, Change::Truncate(0)));
                self.files.insert(number, file);
                number
            }
            None => return Err(DiskError::NotFound),
        };
        self.load(number)?.handles += 1;
        let handle = FileId(self.next_handle);
        self.next_handle = self.next_handle.wrapping_add(1);
        self.handles.insert(handle, number);
        Ok(handle)
    }

    fn close(&mut self, handle: FileId) {
        if let Some(number) = self.handles.remove(&handle)
            && let Some(file) = self.files.get_mut(&number)
        {
            file.handles -= 1;
            self.forget_if_unneeded(number);
        }
    }

    fn read_at(
        &mut self,
        handle: FileId,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, DiskError> {
        self.forget_applied()?;
        let number = *self.handles.get(&handle).ok_or(DiskError::NotFound)?;
        let file = self.files.get(&number).ok_or(DiskError::NotFound)?;
        let there = usize::try_from(file.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let there = there.min(bytes.len());
        let window = &mut bytes[..there];
        window.fill(0);
        if let Some(of_disk) = file.of_disk {
            self.disk.read_at(of_disk, offset, window)?;
        }
        for (_, change) in &file.changes {
            change.show(offset, window);
        }
        Ok(there)
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        check_name(name)?;
        self.forget_applied()?;
        let Some(number) = self.names.get(name) else {
            return Ok(());
        };
        self.record(None, Operation::Unlink(name))?;
        self.names.remove(name);
        self.remove_file(number)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        check_name(from)?;
        check_name(to)?;
        self.forget_applied()?;
        let number = self.names.get(from).ok_or(DiskError::NotFound)?;
        if from == to {
            return Ok(());
        }
        self.record(Some(number), Operation::Link(to))?;
        self.record(None, Operation::Unlink(from))?;
        self.names.remove(from);
        match self.names.insert(to, number) {
            Some(replaced) => self.remove_file(replaced),
            None => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for file in self.files.values() {
            if let Some(of_disk) = file.of_disk {
                self.disk.close(of_disk);
            }
        }
    }
}

impl File {
    /// Whether the disk does not show it alone: it is open, or has changes that are not applied.
    fn is_needed(&self) -> bool {
        self.handles > 0 || !self.is_removed && !self.changes.is_empty()
    }
}

impl Change {
    fn operation(&self) -> Operation<'_> {
        match self {
            Change::Write(offset, bytes) => Operation::Write(*offset, bytes),
            Change::Truncate(length) => Operation::Truncate(*length),
        }
    }

    /// Applies the change to the part of the file from an offset on.
    fn show(&self, offset: u64, window: &mut [u8]) {
        let place = |at: u64| {
            let place = usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
            place.min(window.len())
        };
        match self {
            Change::Truncate(length) => {
                let from = place(*length);
                window[from..].fill(0);
            }
            Change::Write(at, bytes) => {
                let (from, to) = (place(*at), place(at + bytes.len() as u64));
                let skipped = usize::try_from(offset.saturating_sub(*at)).unwrap_or(usize::MAX);
                if from < to {
                    window[from..to].copy_from_slice(&bytes[skipped..skipped + (to - from)]);
                }
            }
        }
    }
}

/// Returns the name of a file on the disk.
pub(super) fn file_name(number: u64) -> String {
    format!("{number:020}")
}

/// Entries contain names with 16 bits for the length.
fn check_name(name: &str) -> Result<(), DiskError> {
    match name.is_empty() || name.len() > usize::from(u16::MAX) {
        true => Err(INVALID),
        false => Ok(()),
    }
}
