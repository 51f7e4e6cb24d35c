//! Operations as bytes: the entries of a lane with folders.

use crate::bytes::{put, take, take_byte, take_slice};

/// Version of the format.
const VERSION: u8 = 1;
/// Version and checksum.
pub(super) const HEAD_BYTES: usize = 5;

const FOLDER: u8 = 1;
const FILE: u8 = 2;
const WRITE: u8 = 3;
const TRUNCATE: u8 = 4;
const REMOVE: u8 = 5;
const LINK: u8 = 6;
const UNLINK: u8 = 7;
const REMOVE_FOLDER: u8 = 8;

/// A change of files, or the selection of what the next ones change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation<'a> {
    /// Selects a folder. No file is selected then.
    Folder(&'a str),
    /// Selects a file of the folder by its number, and creates it if it is missing.
    File(u64),
    /// Writes bytes at an offset.
    Write(u64, &'a [u8]),
    /// Cuts the file off at a length.
    Truncate(u64),
    /// Removes the file. No file is selected then.
    Remove,
    /// Gives a name to the file, also if another file had it.
    Link(&'a str),
    /// Removes a name from the folder.
    Unlink(&'a str),
    /// Removes the folder with its files. No folder is selected then.
    RemoveFolder,
}

/// An entry that is none: of another version, damaged, or incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry is not a valid list of operations on files")]
pub struct Malformed;

impl Operation<'_> {
    /// Appends the operation to an entry.
    pub(super) fn encode(self, entry: &mut Vec<u8>) {
        match self {
            Operation::Folder(name) => named(entry, FOLDER, name),
            Operation::File(number) => numbered(entry, FILE, number),
            Operation::Write(offset, bytes) => {
                numbered(entry, WRITE, offset);
                // The caller splits longer writes.
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                entry.extend_from_slice(&length.to_le_bytes());
                entry.extend_from_slice(bytes);
            }
            Operation::Truncate(length) => numbered(entry, TRUNCATE, length),
            Operation::Remove => entry.push(REMOVE),
            Operation::Link(name) => named(entry, LINK, name),
            Operation::Unlink(name) => named(entry, UNLINK, name),
            Operation::RemoveFolder => entry.push(REMOVE_FOLDER),
        }
    }
}

fn numbered(entry: &mut Vec<u8>, kind: u8, number: u64) {
    entry.push(kind);
    put(entry, number);
}

fn named(entry: &mut Vec<u8>, kind: u8, name: &str) {
    entry.push(kind);
    let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
    entry.extend_from_slice(&length.to_le_bytes());
    entry.extend_from_slice(name.as_bytes());
}

/// Begins an entry.
pub(super) fn begin() -> Vec<u8> {
    vec![VERSION, 0, 0, 0, 0]
}

/// Completes the head of an entry.
pub(super) fn finish(entry: &mut [u8]) {
    let sum = crc32fast::hash(&entry[HEAD_BYTES..]);
    entry[1..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
}

/// Returns whether the head is right.
pub(super) fn is_intact(entry: &[u8]) -> bool {
    entry
        .split_at_checked(HEAD_BYTES)
        .is_some_and(|(head, rest)| {
            head[0] == VERSION && head[1..] == crc32fast::hash(rest).to_le_bytes()
        })
}

/// Parses an entry.
pub(super) fn parse(entry: &[u8]) -> Result<Vec<Operation<'_>>, Malformed> {
    if !is_intact(entry) {
        return Err(Malformed);
    }
    let mut rest = &entry[HEAD_BYTES..];
    let mut operations = Vec::new();
    let (mut has_folder, mut has_file) = (false, false);
    while !rest.is_empty() {
        let operation = next(&mut rest).ok_or(Malformed)?;
        let (needs_folder, needs_file) = match operation {
            Operation::Folder(_) => (false, false),
            Operation::File(_) | Operation::Unlink(_) | Operation::RemoveFolder => (true, false),
            _ => (true, true),
        };
        if needs_folder && !has_folder || needs_file && !has_file {
            return Err(Malformed);
        }
        match operation {
            Operation::Folder(_) => (has_folder, has_file) = (true, false),
            Operation::File(_) => has_file = true,
            Operation::Remove => has_file = false,
            Operation::RemoveFolder => (has_folder, has_file) = (false, false),
            _ => {}
        }
        operations.push(operation);
    }
    Ok(operations)
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<Operation<'a>> {
    let kind = take_byte(rest)?;
    Some(match kind {
        FOLDER => Operation::Folder(name(rest)?),
        FILE => Operation::File(take(rest)?),
        WRITE => {
            let offset = take(rest)?;
            let length = u32::from_le_bytes(take_slice(rest, 4)?.try_into().ok()?);
            let bytes = take_slice(rest, usize::try_from(length).ok()?)?;
            offset.checked_add(u64::from(length))?;
            Operation::Write(offset, bytes)
        }
        TRUNCATE => Operation::Truncate(take(rest)?),
        REMOVE => Operation::Remove,
        LINK => Operation::Link(name(rest)?),
        UNLINK => Operation::Unlink(name(rest)?),
        REMOVE_FOLDER => Operation::RemoveFolder,
        _ => return None,
    })
}

pub(super) fn name<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = u16::from_le_bytes(take_slice(rest, 2)?.try_into().ok()?);
    let name = take_slice(rest, usize::from(length))?;
    std::str::from_utf8(name).ok()
}
