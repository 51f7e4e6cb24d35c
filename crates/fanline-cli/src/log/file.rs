//! A log file that is put aside when it is full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Zoned;

pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// 0 is no limit.
    bytes_max: u64,
}

impl LogFile {
    /// Opens the file to append to it; it is made when it is not there.
    pub(super) fn open(path: &Path, bytes_max: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(LogFile {
            path: path.to_owned(),
            file,
            bytes,
            bytes_max,
        })
    }

    /// Lets go of what may have been renamed, and opens the path again.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path, self.bytes_max)?;
        Ok(())
    }

    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Renames a file that reached its limit to `<file>.YYYY.MM.DD.hh.mm.ss.nnnnnnnnn`, and goes on
    /// with an empty one. Gives the old one's name.
    pub(super) fn rotate_when_full(&mut self) -> Option<PathBuf> {
        if self.bytes_max == 0 || self.bytes < self.bytes_max {
            return None;
        }
        let mut backup = self.path.clone().into_os_string();
        backup.push(Zoned::now().strftime(".%Y.%m.%d.%H.%M.%S.%9f").to_string());
        let backup = PathBuf::from(backup);
        let renamed = fs::rename(&self.path, &backup).and_then(|()| self.reopen());
        if renamed.is_err() {
            // Writing goes on in the old file; the next attempt comes after as many bytes.
            self.bytes = 0;
            return None;
        }
        Some(backup)
    }
}
