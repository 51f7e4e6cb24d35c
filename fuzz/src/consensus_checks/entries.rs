//! The input is an entry of a lane with folders, from its operations on, and also a script of calls of a disk. Each
//! step of the script has four bytes: a call, a name, an offset, and a length; see [`step`].

use std::collections::BTreeMap;

use fanline_consensus::folders::{Applier, ApplyError, Folders, Journal};
use fanline_engine::store::{Disk, DiskError};

use super::memory_disk::{MemoryDisk, MemoryFolders};

const FOLDER: &str = "shop/orders";
const NAMES: [&str; 4] = ["a", "b", "c.new", "c"];
const STEPS_MAX: usize = 200;

/// Checks that invalid entries are refused, and that the entries of a disk leave the files that a plain disk would
/// have, also if they are executed again from any earlier one on.
pub fn check(data: &[u8]) {
    parse(data);
    let mut plain = MemoryDisk::default();
    let (lane, journal) = (Lane::default(), Journal::new());
    let mut applier = Applier::new(lane.clone());
    let names = applier.names(FOLDER).expect("it is readable");
    let files = lane.0.folder(FOLDER);
    let mut disk = journal.disk(FOLDER, names, Box::new(files));
    let mut entries = Vec::new();
    for chunk in data.chunks_exact(4).take(STEPS_MAX) {
        step(&mut disk, &mut plain, chunk);
        if chunk[0] % 5 == 0
            && let Some((batch, entry)) = journal.take()
        {
            applier.apply(&entry).expect("it was recorded");
            entries.push(entry);
            if chunk[0] % 2 == 0 {
                journal.set_applied(batch);
            }
        }
    }
    for (_, entry) in std::iter::from_fn(|| journal.take()) {
        applier.apply(&entry).expect("it was recorded");
        entries.push(entry);
    }
    journal.end();
    let expected = content(&plain);
    assert_eq!(replicated(&mut applier, &lane), expected);
    let from = data.first().map_or(0, |byte| usize::from(*byte)) % entries.len().max(1);
    for entry in &entries[from.min(entries.len())..] {
        applier.apply(entry).expect("it was recorded");
    }
    assert_eq!(replicated(&mut applier, &lane), expected);
}

/// Passes operations to an applier whose disk is full.
fn parse(operations: &[u8]) {
    let mut entry = vec![1];
    entry.extend_from_slice(&crc32fast::hash(operations).to_le_bytes());
    entry.extend_from_slice(operations);
    match Applier::new(Full).apply(&entry) {
        Ok(()) | Err(ApplyError::Disk(DiskError::Full) | ApplyError::Malformed(_)) => {}
        Err(error) => panic!("{error}"),
    }
    entry[1] ^= 1;
    let refused = Applier::new(Full).apply(&entry);
    assert!(matches!(refused, Err(ApplyError::Malformed(_))));
}

/// Makes the same call on both disks.
fn step(disk: &mut dyn Disk, plain: &mut dyn Disk, chunk: &[u8]) {
    let name = NAMES[usize::from(chunk[1]) % NAMES.len()];
    let other = NAMES[usize::from(chunk[3]) % NAMES.len()];
    let (offset, length) = (u64::from(chunk[2] % 64), usize::from(chunk[3] % 32));
    match chunk[0] % 6 {
        0 => assert_eq!(disk.remove(name), plain.remove(name)),
        1 if name != other => assert_eq!(disk.rename(name, other), plain.rename(name, other)),
        kind => {
            let files = (disk.open(name, kind > 2), plain.open(name, kind > 2));
            let (Ok(file), Ok(of_plain)) = files else {
                assert_eq!(files.0.is_err(), files.1.is_err());
                return;
            };
            let before = plain.len(of_plain);
            assert_eq!(disk.len(file), before);
            if kind == 3 {
                let length = before.expect("it is open").min(offset);
                assert_eq!(
                    disk.truncate(file, length),
                    plain.truncate(of_plain, length)
                );
            } else if kind > 3 {
                let bytes = vec![chunk[2]; length];
                let written = disk.write_at(file, offset, &bytes);
                assert_eq!(written, plain.write_at(of_plain, offset, &bytes));
            }
            disk.close(file);
        }
    }
}

type Content = BTreeMap<String, Vec<u8>>;

fn content(disk: &MemoryDisk) -> Content {
    let names = disk.names().into_iter();
    names.map(|name| (name.clone(), disk.read(&name))).collect()
}

fn replicated(applier: &mut Applier<Lane>, lane: &Lane) -> Content {
    let names = applier.names(FOLDER).expect("it is readable");
    let disk = lane.0.folder(FOLDER);
    let read = |(name, number)| (String::from(name), disk.read(&format!("{number:020}")));
    names.iter().map(read).collect()
}

#[derive(Clone, Default)]
struct Lane(MemoryFolders);

impl Folders for Lane {
    fn open(&mut self, folder: &str, create: bool) -> Result<Option<Box<dyn Disk>>, DiskError> {
        let is_there = create || self.0.names().iter().any(|name| name == folder);
        Ok(is_there.then(|| Box::new(self.0.folder(folder)) as Box<dyn Disk>))
    }

    fn remove(&mut self, folder: &str) -> Result<(), DiskError> {
        fanline_engine::jetstream::Folders::remove(&mut self.0, folder)
    }
}

/// Folders on a full disk.
struct Full;

impl Folders for Full {
    fn open(&mut self, _: &str, _: bool) -> Result<Option<Box<dyn Disk>>, DiskError> {
        Err(DiskError::Full)
    }

    fn remove(&mut self, _: &str) -> Result<(), DiskError> {
        Ok(())
    }
}
