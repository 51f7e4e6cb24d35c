//! The names of a folder's files.

use std::collections::BTreeMap;

use fanline_engine::store::{Disk, DiskError};

use super::codec::{self, HEAD_BYTES};
use crate::bytes::{put, take};

/// The files of the table on the disk, which are written in turn.
pub(super) const TABLES: [&str; 2] = ["names.0", "names.1"];

/// The names of the files of a folder, each with the file's number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    numbers: BTreeMap<String, u64>,
    /// The highest number that was ever used.
    last: u64,
}

impl Names {
    /// Returns the names in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.numbers.iter().map(|(name, number)| (&**name, *number))
    }

    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).copied()
    }

    pub(super) fn insert(&mut self, name: &str, number: u64) -> Option<u64> {
        self.note_used(number);
        self.numbers.insert(name.to_owned(), number)
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<u64> {
        self.numbers.remove(name)
    }

    pub(super) fn note_used(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    /// Returns a number that was not used before.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Reads the newest intact table of a folder. Returns it and its version, which is 0 if there is none.
    pub(super) fn read(disk: &mut dyn Disk) -> Result<(Self, u64), DiskError> {
        let mut newest = (Names::default(), 0);
        for table in TABLES {
            let file = match disk.open(table, false) {
                Err(DiskError::NotFound) => continue,
                opened => opened?,
            };
            let mut bytes = vec![0; usize::try_from(disk.len(file)?).unwrap_or(0)];
            let read = disk.read_at(file, 0, &mut bytes);
            disk.close(file);
            bytes.truncate(read?);
            if let Some(found) = Names::parse(&bytes)
                && found.1 > newest.1
            {
                newest = found;
            }
        }
        Ok(newest)
    }

    pub(super) fn encode(&self, version: u64) -> Vec<u8> {
        let mut bytes = codec::begin();
        put(&mut bytes, version);
        put(&mut bytes, self.last);
        put(&mut bytes, self.numbers.len() as u64);
        for (name, number) in &self.numbers {
            put(&mut bytes, *number);
            // Names are checked when they are recorded.
            let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        codec::finish(&mut bytes);
        bytes
    }

    /// Parses a table, and its version. Bytes of an earlier, longer table may follow.
    fn parse(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut rest = bytes.get(HEAD_BYTES..)?;
        let version = take(&mut rest)?;
        let mut names = Names {
            last: take(&mut rest)?,
            ..Names::default()
        };
        for _ in 0..take(&mut rest)? {
            let number = take(&mut rest)?;
            let name = codec::name(&mut rest)?;
            names.numbers.insert(name.to_owned(), number);
        }
        let whole = &bytes[..bytes.len() - rest.len()];
        codec::is_intact(whole).then_some((names, version))
    }
}
