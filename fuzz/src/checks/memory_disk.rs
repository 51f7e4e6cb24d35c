//! A disk in memory, whose bytes a check can read and change.
#![allow(
    clippy::disallowed_types,
    reason = "a check reads the disk that its store owns"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use fanline_engine::jetstream::Folders;
use fanline_engine::store::{Disk, DiskError, FileId};

/// One folder. Clones refer to the same folder.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    names: BTreeMap<String, usize>,
    /// All files that were ever created, because an open file can be read after its name is removed.
    files: Vec<Vec<u8>>,
}

impl MemoryDisk {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().expect("no panic under the lock")
    }

    /// Returns the names of the folder's files, in order.
    pub fn names(&self) -> Vec<String> {
        self.content().names.keys().cloned().collect()
    }

    /// Returns the content of a file. It is empty if the file does not exist.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let content = self.content();
        let file = content.names.get(name);
        file.map_or_else(Vec::new, |at| content.files[*at].clone())
    }

    /// Writes a file, and replaces an existing one.
    pub fn write(&self, name: &str, bytes: Vec<u8>) {
        let mut content = self.content();
        content.files.push(bytes);
        let at = content.files.len() - 1;
        content.names.insert(name.to_owned(), at);
    }

    /// Removes a file.
    pub fn forget(&self, name: &str) {
        self.content().names.remove(name);
    }
}

fn index(file: FileId) -> usize {
    usize::try_from(file.0).expect("made from a usize")
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).expect("a file of a check is short")
}

impl Disk for MemoryDisk {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(self.names())
    }

    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError> {
        let mut content = self.content();
        let at = match content.names.get(name) {
            Some(at) => *at,
            None if create => {
                content.files.push(Vec::new());
                let at = content.files.len() - 1;
                content.names.insert(name.to_owned(), at);
                at
            }
            None => return Err(DiskError::NotFound),
        };
        Ok(FileId(u32::try_from(at).expect("few files")))
    }

    fn close(&mut self, _: FileId) {}

    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let file = &mut self.content().files[index(file)];
        let end = at(offset) + bytes.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[at(offset)..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&mut self, file: FileId, offset: u64, bytes: &mut [u8]) -> Result<usize, DiskError> {
        let content = self.content();
        let file = &content.files[index(file)];
        let rest = usize::try_from(offset).ok().and_then(|at| file.get(at..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(self.content().files[index(file)].len() as u64)
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        self.content().files[index(file)].resize(at(bytes), 0);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        self.forget(name);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut content = self.content();
        let file = content.names.remove(from).ok_or(DiskError::NotFound)?;
        content.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync_file(&mut self, _: FileId) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_folder(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

/// The folders of streams. Clones refer to the same folders.
#[derive(Clone, Default)]
pub struct MemoryFolders(Arc<Mutex<BTreeMap<String, MemoryDisk>>>);

impl MemoryFolders {
    /// Returns a folder, and creates it if it does not exist.
    pub fn folder(&self, name: &str) -> MemoryDisk {
        let mut folders = self.0.lock().expect("no panic under the lock");
        folders.entry(name.to_owned()).or_default().clone()
    }

    /// Returns the names of all folders, in order.
    pub fn names(&self) -> Vec<String> {
        let folders = self.0.lock().expect("no panic under the lock");
        folders.keys().cloned().collect()
    }
}

impl Folders for MemoryFolders {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(self.names())
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        Ok(Box::new(self.folder(stream)))
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        let mut folders = self.0.lock().expect("no panic under the lock");
        folders.remove(stream);
        Ok(())
    }
}
