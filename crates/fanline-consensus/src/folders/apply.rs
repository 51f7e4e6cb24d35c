//! Executes committed entries on files.

use std::collections::BTreeMap;

use fanline_engine::store::{Disk, DiskError, FileId};

use super::codec::{self, Malformed, Operation};
use super::disk::file_name;
use super::names::{Names, TABLES};

/// The folders of a lane on this member.
pub trait Folders {
    /// Opens a folder. A missing folder is created if `create` is set, and `None` otherwise.
    ///
    /// # Errors
    /// The operating system's error.
    fn open(&mut self, folder: &str, create: bool) -> Result<Option<Box<dyn Disk>>, DiskError>;

    /// Removes a folder with its files; a missing one is no error.
    ///
    /// # Errors
    /// The operating system's error.
    fn remove(&mut self, folder: &str) -> Result<(), DiskError>;
}

/// Executes the entries of one lane in order.
///
/// The files are synced from time to time: [`unsynced`](Self::unsynced) returns what to sync. When this is done, the
/// entries that were executed before the call are not needed any more, and the lane can be compacted.
pub struct Applier<F> {
    folders: F,
    open: BTreeMap<String, Folder>,
}

struct Folder {
    disk: Box<dyn Disk>,
    names: Names,
    /// Version of the table of names on the disk.
    version: u64,
    /// Whether `names` differs from the table on the disk.
    has_new_names: bool,
    /// Whether files were created or removed since the last sync.
    has_new_files: bool,
    files: BTreeMap<u64, OpenFile>,
}

struct OpenFile {
    id: FileId,
    is_dirty: bool,
}

/// The changes of a folder that are not synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// Name of the folder.
    pub folder: String,
    /// Files to sync. A file that was closed meanwhile has been removed, and needs no sync.
    pub files: Vec<FileId>,
    /// Whether to sync the folder, after the files.
    pub is_folder_dirty: bool,
}

/// Reason for which an entry was not executed, or not in full. It can be executed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The entry is invalid. Nothing was executed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl<F: Folders> Applier<F> {
    /// Creates an applier.
    pub fn new(folders: F) -> Self {
        Applier {
            folders,
            open: BTreeMap::new(),
        }
    }

    /// Executes an entry.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub fn apply(&mut self, entry: &[u8]) -> Result<(), ApplyError> {
        let (mut folder, mut file) = ("", 0);
        for operation in codec::parse(entry)? {
            match operation {
                Operation::Folder(name) => folder = name,
                Operation::File(number) => file = number,
                Operation::RemoveFolder => self.remove_folder(folder)?,
                operation => {
                    let Some(folder) = self.folder(folder, true)? else {
                        continue;
                    };
                    folder.execute(file, operation)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the names of a folder after all executed entries.
    ///
    /// # Errors
    /// The disk failed.
    pub fn names(&mut self, folder: &str) -> Result<Names, DiskError> {
        let found = self.folder(folder, false)?;
        Ok(found.map_or_else(Names::default, |folder| folder.names.clone()))
    }

    /// Writes tables of names, and returns what has changed since the last call, to be synced in any order.
    ///
    /// # Errors
    /// The disk failed. Call it again later.
    pub fn unsynced(&mut self) -> Result<Vec<Unsynced>, DiskError> {
        let mut all = Vec::new();
        for (name, folder) in &mut self.open {
            folder.write_names()?;
            let mut files = Vec::new();
            for file in folder.files.values_mut() {
                if std::mem::take(&mut file.is_dirty) {
                    files.push(file.id);
                }
            }
            let is_folder_dirty = std::mem::take(&mut folder.has_new_files);
            if is_folder_dirty || !files.is_empty() {
                all.push(Unsynced {
                    folder: name.clone(),
                    files,
                    is_folder_dirty,
                });
            }
        }
        Ok(all)
    }

    /// Closes the files without changes since the last call of [`unsynced`](Self::unsynced), whose sync has ended.
    pub fn close_synced(&mut self) {
        for folder in self.open.values_mut() {
            let disk = &mut folder.disk;
            folder.files.retain(|_, file| {
                if !file.is_dirty {
                    disk.close(file.id);
                }
                file.is_dirty
            });
        }
        self.open
            .retain(|_, folder| folder.is_dirty() || !folder.files.is_empty());
    }

    fn remove_folder(&mut self, name: &str) -> Result<(), DiskError> {
        if let Some(mut folder) = self.open.remove(name) {
            for file in folder.files.values() {
                folder.disk.close(file.id);
            }
        }
        self.folders.remove(name)
    }

    fn folder(&mut self, name: &str, create: bool) -> Result<Option<&mut Folder>, DiskError> {
        if !self.open.contains_key(name) {
            let Some(mut disk) = self.folders.open(name, create)? else {
                return Ok(None);
            };
            let (names, version) = Names::read(&mut *disk)?;
            let folder = Folder {
                disk,
                names,
                version,
                has_new_names: false,
                has_new_files: false,
                files: BTreeMap::new(),
            };
            self.open.insert(name.to_owned(), folder);
        }
        Ok(self.open.get_mut(name))
    }
}

/// Numbers of the tables' files among the open files, which no other file has.
const FIRST_TABLE: u64 = u64::MAX - 1;

impl Folder {
    fn execute(&mut self, file: u64, operation: Operation<'_>) -> Result<(), DiskError> {
        match operation {
            Operation::Write(offset, bytes) => {
                let file = self.dirty_file(file)?;
                self.disk.write_at(file, offset, bytes)
            }
            Operation::Truncate(length) => {
                let file = self.dirty_file(file)?;
                match self.disk.len(file)? > length {
                    true => self.disk.truncate(file, length),
                    false => Ok(()),
                }
            }
            Operation::Link(name) => {
                self.dirty_file(file)?;
                self.has_new_names = true;
                self.names.insert(name, file);
                Ok(())
            }
            Operation::Unlink(name) => {
                self.has_new_names = true;
                self.names.remove(name);
                Ok(())
            }
            Operation::Remove => {
                if let Some(open) = self.files.remove(&file) {
                    self.disk.close(open.id);
                }
                self.has_new_files = true;
                self.disk.remove(&file_name(file))
            }
            Operation::Folder(_) | Operation::File(_) | Operation::RemoveFolder => Ok(()),
        }
    }

    /// Opens a file to write it.
    fn dirty_file(&mut self, number: u64) -> Result<FileId, DiskError> {
        self.names.note_used(number);
        self.open_dirty(number, &file_name(number))
    }

    fn open_dirty(&mut self, number: u64, name: &str) -> Result<FileId, DiskError> {
        if let Some(file) = self.files.get_mut(&number) {
            file.is_dirty = true;
            return Ok(file.id);
        }
        let id = match self.disk.open(name, false) {
            Err(DiskError::NotFound) => {
                self.has_new_files = true;
                self.disk.open(name, true)?
            }
            opened => opened?,
        };
        self.files.insert(number, OpenFile { id, is_dirty: true });
        Ok(id)
    }

    /// Writes the names to the table that is not the newest one. If a power cut tears it, the newest one is left.
    fn write_names(&mut self) -> Result<(), DiskError> {
        if !self.has_new_names {
            return Ok(());
        }
        let version = self.version + 1;
        let place = version % TABLES.len() as u64;
        let name = TABLES[usize::from(place == 1)];
        let file = self.open_dirty(FIRST_TABLE + place, name)?;
        let bytes = self.names.encode(version);
        self.disk.write_at(file, 0, &bytes)?;
        self.version = version;
        self.has_new_names = false;
        Ok(())
    }

    fn is_dirty(&self) -> bool {
        self.has_new_names || self.has_new_files
    }
}
