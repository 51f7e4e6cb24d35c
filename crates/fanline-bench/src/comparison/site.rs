//! The folders in which the servers of one row keep their files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::servers::System;

/// `st_blocks` counts these, whatever the file system's own blocks are.
const BLOCK_BYTES: u64 = 512;

/// A folder for each server, removed when this is dropped.
pub(crate) struct Site {
    root: PathBuf,
}

impl Site {
    /// A new one below `parent`.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        let root = parent.join(format!("fanline-bench-{}", std::process::id()));
        fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        Ok(Self { root })
    }

    /// A folder of one server, as it was left.
    pub(crate) fn kept(&self, system: System) -> Result<String> {
        self.folder("kept", system.label())
    }

    /// Another folder of one server, empty.
    pub(crate) fn empty(&self, system: System) -> Result<String> {
        self.empty_for(system.label())
    }

    /// The same for one that is not compared.
    pub(crate) fn empty_for(&self, name: &str) -> Result<String> {
        fs::remove_dir_all(self.folder("empty", name)?)?;
        self.folder("empty", name)
    }

    fn folder(&self, kind: &str, name: &str) -> Result<String> {
        let folder = self.root.join(kind).join(name);
        fs::create_dir_all(&folder)?;
        let folder = folder.into_os_string().into_string();
        folder.ok().context("the folder is not UTF-8")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What stays behind is in a folder for such things.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// What everything below `folder` takes on the disk, in bytes.
pub(crate) fn disk_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += match about.is_dir() {
            true => disk_bytes(&entry.path())?,
            false => about.blocks() * BLOCK_BYTES,
        };
    }
    Ok(bytes)
}
