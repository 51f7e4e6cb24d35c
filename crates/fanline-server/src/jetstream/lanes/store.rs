//! The folders of a lane on the disk.
//!
//! ```text
//! <store>/replicated/members.json                      the members of the lanes
//! <store>/replicated/log/                              the log of this node
//! <store>/replicated/<lane>/<account>/<stream>/        one stream
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fanline_consensus::folders::{Folders as LaneFolders, Journal, Names};
use fanline_engine::jetstream::{AccountFolders, Folders};
use fanline_engine::store::{Disk, DiskError};

use super::super::disk::{FolderDisk, OpenFiles, child, disk_error, names, sync_folder};
use crate::private_files;

/// Suffixes of the folder of a lane that is being replaced, and of the copy that replaces it.
const OLD: &str = "old";
pub(super) const COPY: &str = "copy";

/// The folders of a lane, as its entries change them. Names consist of an account and a stream.
#[derive(Clone)]
pub(super) struct LaneStore {
    path: PathBuf,
    files: OpenFiles,
}

impl LaneStore {
    /// Opens the folder of a lane, or of a copy of it, and creates it if it is missing.
    pub(super) fn open(store: &Path, name: &str, files: &OpenFiles) -> Result<Self, DiskError> {
        let opened = LaneStore {
            path: store.join(name),
            files: files.clone(),
        };
        opened.tidy().map_err(disk_error)?;
        private_files::create_folders(&opened.path).map_err(disk_error)?;
        Ok(opened)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes all folders.
    pub(super) fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => private_files::create_folders(&self.path),
        }
    }

    /// Replaces the lane's folders by those of a copy, which is synced.
    pub(super) fn replace_by(&self, copy: &LaneStore) -> io::Result<()> {
        let old = self.path.with_extension(OLD);
        fs::rename(&self.path, &old)?;
        fs::rename(&copy.path, &self.path)?;
        if let Some(above) = self.path.parent() {
            fs::File::open(above)?.sync_all()?;
        }
        fs::remove_dir_all(old)
    }

    /// Completes or undoes the replacement that a crash has interrupted, and removes an incomplete copy.
    fn tidy(&self) -> io::Result<()> {
        if self.path.extension().is_some() {
            return Ok(());
        }
        let (old, copy) = (
            self.path.with_extension(OLD),
            self.path.with_extension(COPY),
        );
        if old.is_dir() && !self.path.is_dir() {
            fs::rename(&old, &self.path)?;
        }
        for left in [old, copy] {
            match fs::remove_dir_all(left) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the names of all folders.
    pub(super) fn list(&self) -> Result<Vec<String>, DiskError> {
        let mut all = Vec::new();
        for account in names(&self.path, fs::FileType::is_dir)? {
            let streams = names(&child(&self.path, &account)?, fs::FileType::is_dir)?;
            all.extend(
                streams
                    .into_iter()
                    .map(|stream| format!("{account}/{stream}")),
            );
        }
        Ok(all)
    }

    /// Returns the path of a folder.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, DiskError> {
        let (account, stream) = name.rsplit_once('/').ok_or(DiskError::NotFound)?;
        child(&child(&self.path, account)?, stream)
    }
}

impl LaneFolders for LaneStore {
    fn open(&mut self, folder: &str, create: bool) -> Result<Option<Box<dyn Disk>>, DiskError> {
        let path = self.folder(folder)?;
        if !path.is_dir() {
            if !create {
                return Ok(None);
            }
            private_files::create_folders(&path).map_err(disk_error)?;
            for above in path.ancestors().skip(1).take(2) {
                sync_folder(above)?;
            }
        }
        Ok(Some(Box::new(FolderDisk::new(path, self.files.clone()))))
    }

    fn remove(&mut self, folder: &str) -> Result<(), DiskError> {
        match fs::remove_dir_all(self.folder(folder)?) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(disk_error(error)),
            _ => Ok(()),
        }
    }
}

/// The folders of a lane on its leader, whose changes are recorded.
#[derive(Clone)]
pub(super) struct JournaledFolders {
    pub(super) journal: Journal,
    pub(super) store: LaneStore,
    /// The folders when the leader began, with the names of their files.
    pub(super) found: BTreeMap<String, Names>,
}

impl JournaledFolders {
    fn streams_of(&self, account: &str) -> impl Iterator<Item = &str> {
        let folders = self.found.keys();
        folders.filter_map(move |name| {
            let (of, stream) = name.rsplit_once('/')?;
            (of == account).then_some(stream)
        })
    }
}

impl AccountFolders for JournaledFolders {
    fn has(&self, account: &str) -> bool {
        self.streams_of(account).next().is_some()
    }

    fn of(&mut self, account: &str) -> Result<Box<dyn Folders>, DiskError> {
        Ok(Box::new(OfAccount {
            account: account.to_owned(),
            folders: self.clone(),
        }))
    }
}

/// The folders of an account's streams.
struct OfAccount {
    account: String,
    folders: JournaledFolders,
}

impl OfAccount {
    fn name(&self, stream: &str) -> String {
        format!("{}/{stream}", self.account)
    }
}

impl Folders for OfAccount {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let streams = self.folders.streams_of(&self.account);
        Ok(streams.map(str::to_owned).collect())
    }

    fn open(&mut self, stream: &str) -> Result<Box<dyn Disk>, DiskError> {
        let name = self.name(stream);
        let JournaledFolders {
            journal,
            store,
            found,
        } = &mut self.folders;
        if let Some(disk) = journal.open_disk(&name) {
            return Ok(Box::new(disk));
        }
        let files = LaneFolders::open(store, &name, true)?.ok_or(DiskError::NotFound)?;
        let names = found.remove(&name).unwrap_or_default();
        Ok(Box::new(journal.disk(&name, names, files)))
    }

    fn remove(&mut self, stream: &str) -> Result<(), DiskError> {
        let name = self.name(stream);
        // A stream that never existed needs no entry.
        if self.folders.journal.open_disk(&name).is_none()
            && !self.folders.found.contains_key(&name)
        {
            return Ok(());
        }
        self.folders.journal.remove_folder(&name)
    }
}
