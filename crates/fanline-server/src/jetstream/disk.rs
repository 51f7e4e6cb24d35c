//! A stream's folder on the real disk.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use fanline_engine::store::{Disk, DiskError, FileId};

use crate::private_files;
use crate::sync::{Mutex, MutexGuard};

/// Error numbers of the system: invalid argument, input/output error.
const EINVAL: i32 = 22;
pub(super) const EIO: i32 = 5;

/// Open files of all folders, shared with the sync threads.
#[derive(Clone, Default)]
pub(crate) struct OpenFiles(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    files: HashMap<FileId, Arc<File>>,
    next: u32,
}

impl OpenFiles {
    /// Returns an open file. It stays open while the caller holds it.
    pub(super) fn get(&self, id: FileId) -> Option<Arc<File>> {
        self.lock().files.get(&id).cloned()
    }

    /// Replaces an open file.
    #[cfg(test)]
    pub(super) fn replace(&self, id: FileId, file: Arc<File>) -> Option<Arc<File>> {
        self.lock().files.insert(id, file)
    }

    fn insert(&self, file: File) -> FileId {
        let mut table = self.lock();
        // There are far more ids than open files, so a free id is found soon.
        loop {
            let id = FileId(table.next);
            table.next = table.next.wrapping_add(1);
            if let Entry::Vacant(free) = table.files.entry(id) {
                free.insert(Arc::new(file));
                return id;
            }
        }
    }

    fn remove(&self, id: FileId) {
        self.lock().files.remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder of one stream.
pub(super) struct FolderDisk {
    folder: PathBuf,
    files: OpenFiles,
    /// Files opened here and not closed.
    opened: Vec<FileId>,
}

impl FolderDisk {
    pub(super) fn new(folder: PathBuf, files: OpenFiles) -> Self {
        FolderDisk {
            folder,
            files,
            opened: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> Result<PathBuf, DiskError> {
        child(&self.folder, name)
    }

    fn file(&self, id: FileId) -> Result<Arc<File>, DiskError> {
        self.files.get(id).ok_or(DiskError::NotFound)
    }
}

impl Drop for FolderDisk {
    fn drop(&mut self) {
        for id in &self.opened {
            self.files.remove(*id);
        }
    }
}

impl Disk for FolderDisk {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        names(&self.folder, fs::FileType::is_file)
    }

    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError> {
        let path = self.path(name)?;
        let mut options = private_files::file_options();
        let opened = options.read(true).write(true).create(create).open(path);
        let id = self.files.insert(opened.map_err(disk_error)?);
        self.opened.push(id);
        Ok(id)
    }

    fn close(&mut self, file: FileId) {
        self.opened.retain(|opened| *opened != file);
        self.files.remove(file);
    }

    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let written = self.file(file)?.write_all_at(bytes, offset);
        written.map_err(disk_error)
    }

    fn read_at(&mut self, file: FileId, offset: u64, bytes: &mut [u8]) -> Result<usize, DiskError> {
        let file = self.file(file)?;
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(disk_error(error)),
            }
        }
        Ok(filled)
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        let metadata = self.file(file)?.metadata().map_err(disk_error)?;
        Ok(metadata.len())
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        self.file(file)?.set_len(bytes).map_err(disk_error)
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        match fs::remove_file(self.path(name)?) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(disk_error(error)),
            _ => Ok(()),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        fs::rename(self.path(from)?, self.path(to)?).map_err(disk_error)
    }

    fn sync_file(&mut self, file: FileId) -> Result<(), DiskError> {
        self.file(file)?.sync_data().map_err(disk_error)
    }

    fn sync_folder(&mut self) -> Result<(), DiskError> {
        sync_folder(&self.folder)
    }
}

/// Syncs the entries of a folder: created, removed, and renamed files.
pub(super) fn sync_folder(folder: &Path) -> Result<(), DiskError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(disk_error)
}

/// Returns the path of an entry of a folder. Refuses names that lead out of the folder.
pub(super) fn child(folder: &Path, name: &str) -> Result<PathBuf, DiskError> {
    let leads_out = matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']);
    match leads_out {
        true => Err(DiskError::Other(EINVAL)),
        false => Ok(folder.join(name)),
    }
}

/// Returns the names of a folder's entries. Names that are not UTF-8 are omitted, because the server creates
/// none.
pub(super) fn names(
    folder: &Path,
    is_wanted: fn(&fs::FileType) -> bool,
) -> Result<Vec<String>, DiskError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(disk_error)? {
        let entry = entry.map_err(disk_error)?;
        let is_one = is_wanted(&entry.file_type().map_err(disk_error)?);
        if is_one && let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}

/// Translates a system error.
#[allow(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
pub(super) fn disk_error(error: io::Error) -> DiskError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => DiskError::Full,
        ErrorKind::NotFound => DiskError::NotFound,
        _ => DiskError::Other(error.raw_os_error().unwrap_or(EIO)),
    }
}
