//! A log file with rotation.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Zoned;

/// Mode of the file, as in nats-server. Other users cannot read it, because the log contains users,
/// addresses, and subjects.
const MODE: u32 = 0o640;

pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Size in bytes at which the file is rotated; 0 means never.
    bytes_max: u64,
    /// Largest number of log files, including the current one; 0 means no limit.
    files_max: usize,
}

impl LogFile {
    /// Opens the file for appending, and creates it if necessary.
    pub(super) fn open(path: &Path, bytes_max: u64, files_max: usize) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(MODE)
            .open(path)?;
        let bytes = file.metadata()?.len();
        Ok(LogFile {
            path: path.to_owned(),
            file,
            bytes,
            bytes_max,
            files_max,
        })
    }

    /// Closes the file, which may have been renamed, and opens the path again.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path, self.bytes_max, self.files_max)?;
        Ok(())
    }

    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Renames a full file to `<file>.YYYY.MM.DD.hh.mm.ss.nnnnnnnnn`, and continues with an empty one.
    /// Returns the new name.
    pub(super) fn rotate_when_full(&mut self) -> Option<PathBuf> {
        if self.bytes_max == 0 || self.bytes < self.bytes_max {
            return None;
        }
        let mut backup = self.path.clone().into_os_string();
        backup.push(Zoned::now().strftime(".%Y.%m.%d.%H.%M.%S.%9f").to_string());
        let backup = PathBuf::from(backup);
        let renamed = fs::rename(&self.path, &backup).and_then(|()| self.reopen());
        if renamed.is_err() {
            // Continue with the old file, and try again after another `bytes_max` bytes.
            self.bytes = 0;
            return None;
        }
        self.remove_oldest();
        Some(backup)
    }

    /// Removes the oldest rotated files beyond the limit.
    fn remove_oldest(&self) {
        if self.files_max == 0 {
            return;
        }
        let mut backups = self.backups();
        let retained = self.files_max - 1;
        // The names contain times, so sorting them sorts the files by time.
        backups.sort();
        for backup in &backups[..backups.len().saturating_sub(retained)] {
            // If a file cannot be removed, logging continues.
            let _ = fs::remove_file(backup);
        }
    }

    /// Returns the rotated files, whose names are this file's name followed by a time.
    fn backups(&self) -> Vec<PathBuf> {
        let folder = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let Ok(entries) = fs::read_dir(folder) else {
            return Vec::new();
        };
        let found = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let is_backup = |path: &PathBuf| {
            let found = path.file_name().unwrap_or_default().to_string_lossy();
            let stamp = found
                .strip_prefix(&*name)
                .and_then(|rest| rest.strip_prefix('.'));
            stamp.is_some_and(is_stamp)
        };
        found.filter(is_backup).collect()
    }
}

/// Returns whether a text is the time in a rotated file's name: seven numbers with dots between.
fn is_stamp(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split('.').count() == 7 && text.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_file_is_rotated_and_the_oldest_removed() {
        let name = format!("fanline-log-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        for other in [
            "x.log.old",
            "x.log.2020.01.01.00.00.00.1",
            "y.log.2020.01.01.00.00.00.1",
        ] {
            fs::write(folder.join(other), "").expect("a file");
        }
        let mut log = LogFile::open(&folder.join("x.log"), 10, 3).expect("a log");
        for _ in 0..5 {
            log.write(b"0123456789\n").expect("written");
            assert!(log.rotate_when_full().is_some());
        }
        log.write(b"short").expect("written");
        assert_eq!(log.rotate_when_full(), None);
        assert_eq!(log.backups().len(), 2);
        for (name, is_retained) in [
            ("x.log", true),
            ("x.log.old", true),
            ("x.log.2020.01.01.00.00.00.1", false),
        ] {
            assert_eq!(folder.join(name).exists(), is_retained, "{name}");
        }
        assert!(folder.join("y.log.2020.01.01.00.00.00.1").exists());
        fs::remove_dir_all(&folder).expect("removed");
    }
}
