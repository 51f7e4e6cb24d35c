//! The folder of stored streams. One server uses it at a time.
//!
//! ```text
//! <store_dir>/jetstream/fanline/lock                          held by the running server
//! <store_dir>/jetstream/fanline/streams/<account>/<stream>/   one stream
//! ```
//!
//! A `store_dir` that ends in `jetstream` is used without appending that name again, so that a server finds
//! its streams if it is configured with the folder that it reported. The first versions used
//! `<store_dir>/fanline`; an existing store stays there.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fanline_engine::store::{Disk, DiskError};

use crate::private_files;

use super::disk::{FolderDisk, OpenFiles, child, disk_error, names, sync_folder};

/// nats-server stores its own files next to this folder.
const FOLDER_NAME: &str = "fanline";
/// Name that nats-server appends to `store_dir`. It reports the result.
const JETSTREAM: &str = "jetstream";
const LOCK: &str = "lock";
const STREAMS: &str = "streams";
/// Name of a stream's folder during its removal. No stream can have this name.
const BEING_REMOVED: &str = ".gone";

/// Reason for which a store folder cannot be used.
#[derive(Debug)]
pub(crate) enum StoreFolderError {
    /// Another server uses the folder: the process with this id, if known.
    InUse(Option<u32>),
    /// The folder cannot be created, read, or written.
    Io(io::Error),
}

impl From<io::Error> for StoreFolderError {
    fn from(error: io::Error) -> Self {
        StoreFolderError::Io(error)
    }
}

/// The store folder, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct StoreFolder {
    path: PathBuf,
    /// The lock file. The operating system releases the lock when the process ends.
    _lock: File,
}

/// Returns the store folder of a `store_dir`.
pub(crate) fn path_of(store_dir: &Path) -> PathBuf {
    let candidates = candidates(store_dir);
    let found = candidates.iter().find(|place| is_store(place));
    let new = || candidates.first().cloned();
    found.cloned().or_else(new).unwrap_or_default()
}

/// Returns the folder that the server reports. A server that is configured with this folder as `store_dir`
/// finds the same store.
pub(crate) fn reported(store_dir: &Path) -> PathBuf {
    let path = path_of(store_dir);
    path.parent().unwrap_or(&path).to_owned()
}

/// Returns the possible store folders of a `store_dir`. A new store is created in the first.
fn candidates(store_dir: &Path) -> Vec<PathBuf> {
    let is_called = |name| store_dir.file_name().is_some_and(|last| last == name);
    let mut candidates = vec![store_dir.join(FOLDER_NAME)];
    if !is_called(JETSTREAM) {
        candidates.insert(0, store_dir.join(JETSTREAM).join(FOLDER_NAME));
    }
    if is_called(FOLDER_NAME) {
        // The first versions reported the store folder itself.
        candidates.push(store_dir.to_owned());
    }
    candidates
}

/// Returns whether a server has used the folder.
fn is_store(path: &Path) -> bool {
    path.join(LOCK).is_file()
}

/// Fails if there are two stores, because the streams of one of them would seem to be lost.
fn check_candidates(store_dir: &Path) -> io::Result<()> {
    let mut candidates = candidates(store_dir);
    candidates.retain(|place| is_store(place));
    match &*candidates {
        [_, other, ..] => Err(io::Error::other(format!(
            "{} also holds streams: move one of the two elsewhere",
            other.display()
        ))),
        _ => Ok(()),
    }
}

/// Creates a folder and missing parents, and calls `sync` for each folder that has a new entry. A power cut
/// may remove unsynced entries with everything below them.
fn make(path: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let missing = path.ancestors().take_while(|folder| !folder.exists());
    let missing: Vec<&Path> = missing.collect();
    private_files::create_folders(path)?;
    // All folders may exist, but the last one may be unsynced, if an earlier process was killed after it had
    // created the folder.
    let synced = if missing.is_empty() {
        &[path][..]
    } else {
        &missing
    };
    for above in synced.iter().filter_map(|folder| folder.parent()) {
        let above = if above.as_os_str().is_empty() {
            Path::new(".")
        } else {
            above
        };
        match sync(above) {
            // Write permission suffices to create entries, but syncing needs read permission.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

impl StoreFolder {
    /// Creates the folder if it does not exist, and locks it.
    pub(crate) fn open(store_dir: &Path) -> Result<Self, StoreFolderError> {
        check_candidates(store_dir)?;
        let path = path_of(store_dir);
        make(&path, &mut |folder| File::open(folder)?.sync_all())?;
        let mut options = private_files::file_options();
        let opened = options.write(true).create(true).truncate(false);
        let mut lock = opened.open(path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process = fs::read_to_string(path.join(LOCK)).ok();
                let process = process.and_then(|text| text.trim().parse().ok());
                return Err(StoreFolderError::InUse(process));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // Other servers read the process id from the file.
        lock.set_len(0)?;
        writeln!(lock, "{}", std::process::id())?;
        Ok(StoreFolder { path, _lock: lock })
    }

    /// Returns the folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folders of all accounts.
    pub(super) fn accounts(&self, files: &OpenFiles) -> io::Result<AccountsFolder> {
        let path = self.path.join(STREAMS);
        private_files::create_folders(&path)?;
        Ok(AccountsFolder {
            path,
            files: files.clone(),
        })
    }
}

/// One folder for each account with streams.
#[derive(Clone)]
pub(crate) struct AccountsFolder {
    path: PathBuf,
    files: OpenFiles,
}

impl AccountsFolder {
    /// Returns whether an account has a folder.
    pub(super) fn has(&self, account: &str) -> bool {
        child(&self.path, account).is_ok_and(|path| path.is_dir())
    }

    /// Returns the stream folders of an account.
    pub(super) fn account(&self, account: &str) -> Result<StreamFolders, DiskError> {
        let path = child(&self.path, account)?;
        private_files::create_folders(&path).map_err(disk_error)?;
        // A power cut may remove unsynced folders with everything in them.
        for folder in path.ancestors().take(3) {
            sync_folder(folder)?;
        }
        Ok(StreamFolders {
            path,
            files: self.files.clone(),
        })
    }

    /// Returns the folder of a stream.
    pub(super) fn folder(&self, account: &str, stream: &str) -> Result<PathBuf, DiskError> {
        child(&child(&self.path, account)?, stream)
    }
}

/// One folder for each stream of an account.
#[derive(Clone)]
pub(crate) struct StreamFolders {
    path: PathBuf,
    files: OpenFiles,
}

impl StreamFolders {
    /// Returns the open files of these folders.
    #[cfg(test)]
    pub(super) fn open_files(&self) -> OpenFiles {
        self.files.clone()
    }

    /// Returns the folder of a stream.
    pub(super) fn folder(&self, stream: &str) -> Result<PathBuf, DiskError> {
        child(&self.path, stream)
    }

    /// Completes a removal that a crash has interrupted.
    fn finish_removal(&self) -> Result<(), DiskError> {
        match fs::remove_dir_all(self.path.join(BEING_REMOVED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk_error(error)),
            _ => Ok(()),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<String>, DiskError> {
        let mut streams = names(&self.path, fs::FileType::is_dir)?;
        streams.retain(|name| !name.starts_with('.'));
        streams.sort_unstable();
        Ok(streams)
    }

    pub(super) fn open(&self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        let folder = self.folder(stream)?;
        match private_files::create_folder(&folder) {
            Ok(()) => sync_folder(&self.path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(disk_error(error)),
        }
        Ok(Box::new(FolderDisk::new(folder, self.files.clone())))
    }

    /// Removes a stream's folder. Renames the folder first, so that a crash never leaves only a part of it
    /// under the stream's name.
    pub(super) fn remove(&self, stream: &str) -> Result<(), DiskError> {
        self.finish_removal()?;
        match fs::rename(self.folder(stream)?, self.path.join(BEING_REMOVED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(disk_error)?,
        }
        sync_folder(&self.path)?;
        self.finish_removal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Story: a power cut lost the first acknowledged records of a new server. `fanline` was missing in the
    /// store folder, because only the folders below it had been synced.
    #[test]
    fn each_folder_that_gets_an_entry_is_synced() {
        let name = format!("fanline-store-{:x}", crate::identity::random_u64());
        let root = std::env::temp_dir().join(name);
        fs::create_dir(&root).expect("a folder");
        let mut synced = Vec::new();
        let mut sync = |folder: &Path| {
            // A sync has no effect on entries that are created later.
            let entries = fs::read_dir(folder)?.count();
            synced.push((folder.to_owned(), entries));
            Ok(())
        };
        let path = root.join("a").join(JETSTREAM).join(FOLDER_NAME);
        make(&path, &mut sync).expect("it can be created");
        make(&path, &mut sync).expect("it is there");
        let above = root.join("a").join(JETSTREAM);
        let wanted = [above.clone(), root.join("a"), root.clone(), above];
        assert_eq!(synced, wanted.map(|folder| (folder, 1)));
        let mut failing = |_: &Path| Err(io::ErrorKind::StorageFull.into());
        assert!(make(&root.join("b"), &mut failing).is_err());
        fs::remove_dir_all(&root).expect("a folder");
    }
}
