//! The folder that everything is stored in. It belongs to one server at a time.
//!
//! ```text
//! <store_dir>/jetstream/fanline/lock                          held by the server that runs
//! <store_dir>/jetstream/fanline/streams/<account>/<stream>/   one stream
//! ```
//!
//! A `store_dir` that ends in `jetstream` is not extended by another one, so that a server finds its streams
//! again with the folder that it reports. A store in `<store_dir>/fanline`, where the first versions put it, is
//! used where it is.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fanline_engine::store::{Disk, DiskError};

use crate::private_files;

use super::disk::{FolderDisk, OpenFiles, child, disk_error, names, sync_folder};

/// Other servers keep other things in the same folder.
const OWN: &str = "fanline";
/// What nats-server appends to a `store_dir`, and reports.
const JETSTREAM: &str = "jetstream";
const LOCK: &str = "lock";
const STREAMS: &str = "streams";
/// A stream's folder that is being removed has a name that no stream has.
const GONE: &str = ".gone";

/// Why a store folder cannot be had.
#[derive(Debug)]
pub(crate) enum StoreFolderError {
    /// Another server has it: this process, if it says so.
    InUse(Option<u32>),
    /// It cannot be made, read or written.
    Io(io::Error),
}

impl From<io::Error> for StoreFolderError {
    fn from(error: io::Error) -> Self {
        StoreFolderError::Io(error)
    }
}

/// The folder, held until this is dropped.
#[derive(Debug)]
pub(crate) struct StoreFolder {
    path: PathBuf,
    /// Whoever has the lock on it has the folder. The system gives it back when the process ends.
    _lock: File,
}

/// The folder that a server with this `store_dir` has, or would make.
pub(crate) fn path_of(store_dir: &Path) -> PathBuf {
    let places = places(store_dir);
    let found = places.iter().find(|place| is_store(place));
    let new = || places.first().cloned();
    found.cloned().or_else(new).unwrap_or_default()
}

/// The same as servers report it: with this as `store_dir` they find the store again.
pub(crate) fn reported(store_dir: &Path) -> PathBuf {
    let path = path_of(store_dir);
    path.parent().unwrap_or(&path).to_owned()
}

/// Where the store of a `store_dir` may be; a new one is made in the first place.
fn places(store_dir: &Path) -> Vec<PathBuf> {
    let is_called = |name| store_dir.file_name().is_some_and(|last| last == name);
    let mut places = vec![store_dir.join(OWN)];
    if !is_called(JETSTREAM) {
        places.insert(0, store_dir.join(JETSTREAM).join(OWN));
    }
    if is_called(OWN) {
        // The first versions reported this one.
        places.push(store_dir.to_owned());
    }
    places
}

/// Whether a server has run there.
fn is_store(path: &Path) -> bool {
    path.join(LOCK).is_file()
}

/// Refuses to choose between two stores: the streams of the other would seem to be lost.
fn check_places(store_dir: &Path) -> io::Result<()> {
    let mut places = places(store_dir);
    places.retain(|place| is_store(place));
    match &*places {
        [_, other, ..] => Err(io::Error::other(format!(
            "{} holds streams, too: move one of the two elsewhere",
            other.display()
        ))),
        _ => Ok(()),
    }
}

/// Creates a folder and its parents, and calls `sync` for each folder that got a new entry: a power cut removes entries
/// that were not synced, with all that is below them.
fn make(path: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let missing = path.ancestors().take_while(|folder| !folder.exists());
    let missing: Vec<&Path> = missing.collect();
    private_files::create_folders(path)?;
    // If none is missing, the process that created the last one may have been killed before the sync.
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
            // It may be written, but not read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

impl StoreFolder {
    /// Makes the folder if it is not there, and takes it.
    pub(crate) fn open(store_dir: &Path) -> Result<Self, StoreFolderError> {
        check_places(store_dir)?;
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
        // Whoever wants it too is told who has it.
        lock.set_len(0)?;
        writeln!(lock, "{}", std::process::id())?;
        Ok(StoreFolder { path, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folders of all accounts.
    pub(super) fn accounts(&self, files: &OpenFiles) -> io::Result<AccountsFolder> {
        let path = self.path.join(STREAMS);
        private_files::create_folders(&path)?;
        Ok(AccountsFolder {
            path,
            files: files.clone(),
        })
    }
}

/// A folder for each account that has streams.
#[derive(Clone)]
pub(crate) struct AccountsFolder {
    path: PathBuf,
    files: OpenFiles,
}

impl AccountsFolder {
    /// Whether an account has one.
    pub(super) fn has(&self, account: &str) -> bool {
        child(&self.path, account).is_ok_and(|path| path.is_dir())
    }

    /// The folders of an account's streams.
    pub(super) fn account(&self, account: &str) -> Result<StreamFolders, DiskError> {
        let path = child(&self.path, account)?;
        private_files::create_folders(&path).map_err(disk_error)?;
        // What is kept in a folder that is forgotten after a power cut is not kept.
        for folder in path.ancestors().take(3) {
            sync_folder(folder)?;
        }
        Ok(StreamFolders {
            path,
            files: self.files.clone(),
        })
    }

    /// Where a stream is kept.
    pub(super) fn folder(&self, account: &str, stream: &str) -> Result<PathBuf, DiskError> {
        child(&child(&self.path, account)?, stream)
    }
}

/// A folder for each stream of an account.
#[derive(Clone)]
pub(crate) struct StreamFolders {
    path: PathBuf,
    files: OpenFiles,
}

impl StreamFolders {
    /// What is open of them.
    #[cfg(test)]
    pub(super) fn open_files(&self) -> OpenFiles {
        self.files.clone()
    }

    /// Where a stream is kept.
    pub(super) fn folder(&self, stream: &str) -> Result<PathBuf, DiskError> {
        child(&self.path, stream)
    }

    /// Removes what was about to be removed.
    fn finish_removal(&self) -> Result<(), DiskError> {
        match fs::remove_dir_all(self.path.join(GONE)) {
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

    /// All of it goes or nothing: half a stream is none.
    pub(super) fn remove(&self, stream: &str) -> Result<(), DiskError> {
        self.finish_removal()?;
        match fs::rename(self.folder(stream)?, self.path.join(GONE)) {
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

    /// The power was cut after the first acknowledgements of a new server. `fanline` was not in the store folder any
    /// more, as only the folders below it had been synced.
    #[test]
    fn each_folder_that_gets_an_entry_is_synced() {
        let name = format!("fanline-store-{:x}", crate::identity::random_u64());
        let root = std::env::temp_dir().join(name);
        fs::create_dir(&root).expect("a folder");
        let mut synced = Vec::new();
        let mut sync = |folder: &Path| {
            // A sync before the entry is there covers nothing.
            let entries = fs::read_dir(folder)?.count();
            synced.push((folder.to_owned(), entries));
            Ok(())
        };
        let path = root.join("a").join(JETSTREAM).join(OWN);
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
