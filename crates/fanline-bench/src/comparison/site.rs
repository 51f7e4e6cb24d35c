//! Directories for the files that servers write for one row.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;

use super::Comparison;
use crate::servers::System;

/// The unit of `st_blocks`. It does not depend on the file system's block size.
const BLOCK_BYTES: u64 = 512;

/// Number of syncs whose median is the time of one.
const SYNCS: usize = 101;

#[derive(Args)]
pub(crate) struct StoredComparison {
    /// Parent directory of the servers' files; do not use a tmpfs, on which syncing costs nothing
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) comparison: Comparison,
}

/// A directory for each server. All are removed when this value is dropped.
pub(crate) struct Site {
    root: PathBuf,
}

impl Site {
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        let root = parent.join(format!("fanline-bench-{}", std::process::id()));
        fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        Ok(Self { root })
    }

    /// Returns the directory of one server, with the files of its earlier runs.
    pub(crate) fn existing(&self, system: System) -> Result<String> {
        self.folder("kept", system.label())
    }

    /// Returns an empty directory of one server.
    pub(crate) fn empty(&self, system: System) -> Result<String> {
        self.empty_for(system.label())
    }

    /// Does the same as [`empty`](Self::empty), for a server that is not compared.
    pub(crate) fn empty_for(&self, name: &str) -> Result<String> {
        fs::remove_dir_all(self.folder("empty", name)?)?;
        self.folder("empty", name)
    }

    /// Returns the time of one sync of a file in these directories, after it has grown by a block.
    pub(crate) fn sync_time(&self) -> Result<Duration> {
        let path = self.root.join("sync");
        let mut file = fs::File::create(path)?;
        let mut times = [Duration::ZERO; SYNCS];
        for time in &mut times {
            let start = Instant::now();
            file.write_all(&[1; 4096])?;
            file.sync_data()?;
            *time = start.elapsed();
        }
        times.sort_unstable();
        Ok(times[SYNCS / 2])
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
        // If this fails, the files remain in a directory for temporary files.
        let _ = fs::remove_dir_all(&self.root);
    }
}

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
