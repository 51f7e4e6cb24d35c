//! The input damages a write-ahead log of four segments and three lanes. Each step has five bytes, which are an
//! operation, a file, an offset (two bytes), and a value; see [`damage`].

use std::collections::BTreeMap;

use fanline_consensus::wal::{Condition, Identity, Options, Recovery, Vote, Wal, WalError};
use fanline_engine::store::{Disk as _, SyncRequest};

use super::memory_disk::MemoryDisk;

const STEPS_MAX: usize = 64;
const SALT: u32 = 0x5A17_0001;
const LANES: u16 = 3;
/// Maximum number of entries that are read from a lane.
const READ_MAX: u64 = 1000;
const AREA_BYTES: usize = 1024;
const HEAD_BYTES: usize = 48;

/// Checks that a log opens or is refused whatever happened to its files, that it reads no entry that was not
/// appended, and that a second recovery finds what the first one left. If damaged heads have valid checksums:
/// that it opens or is refused, and accepts entries.
pub fn check(data: &[u8]) {
    let disk = MemoryDisk::default();
    let known = fill(&disk);
    let mut is_forged = false;
    for step in data.chunks_exact(5).take(STEPS_MAX) {
        is_forged |= damage(
            &disk,
            step[0],
            step[1],
            u16::from_le_bytes([step[2], step[3]]),
            step[4],
        );
    }
    let before = content(&disk);
    let Ok((mut wal, _)) = Wal::open(disk.clone(), &options()) else {
        assert_eq!(before, content(&disk), "a refused log is not changed");
        return;
    };
    read_all(&mut wal, (!is_forged).then_some(&known));
    let found = state(&wal);
    drop(wal);
    let (mut wal, recovery) = Wal::open(disk.clone(), &options()).expect("it opened before");
    if !is_forged {
        assert_eq!(
            (recovery.torn_bytes, recovery.corrected),
            (0, 0),
            "{recovery:?}"
        );
        assert_eq!(state(&wal), found);
    }
    use_log(&disk, &mut wal, &recovery, is_forged);
}

type Known = BTreeMap<(u16, u64, u64), Vec<u8>>;

fn options() -> Options {
    let identity = Identity {
        cluster: 1,
        node: 2,
    };
    Options {
        segment_bytes: 2000,
        segments_wanted: 8,
        ..Options::new(identity, 77, SALT)
    }
}

/// Writes a log, and returns its entries.
fn fill(disk: &MemoryDisk) -> Known {
    let (mut wal, _) = Wal::open(disk.clone(), &options()).expect("an empty folder");
    let mut known = Known::new();
    for index in 1..=12 {
        for lane in 0..LANES {
            let payload = vec![lane.to_le_bytes()[0] + 1; 10 + 40 * usize::from(lane)];
            let term = index / 5 + 1;
            let vote = Vote {
                term,
                voted_for: Some(2),
            };
            wal.set_vote(lane, vote).expect("in order");
            wal.append(lane, index, term, &payload).expect("in order");
            known.insert((lane, index, term), payload);
        }
        sync(disk, &mut wal);
    }
    wal.compact(1, 4, 1, b"members").expect("in order");
    wal.truncate(2, 11).expect("in order");
    sync(disk, &mut wal);
    wal.write_mark().expect("the disk has room");
    known
}

fn sync(disk: &MemoryDisk, wal: &mut Wal<MemoryDisk>) {
    while let Some(SyncRequest { id, files, .. }) = wal.poll_sync().expect("the disk has room") {
        let mut disk = disk.clone();
        for file in files {
            disk.sync_file(file).expect("never fails");
        }
        wal.handle_synced(id, Ok(())).expect("the sync succeeded");
    }
}

/// Damages a file. Returns whether the damage has a valid checksum.
fn damage(disk: &MemoryDisk, operation: u8, file: u8, offset: u16, value: u8) -> bool {
    let names = disk.names();
    if names.is_empty() {
        return false;
    }
    let name = &names[usize::from(file) % names.len()];
    let mut bytes = disk.read(name);
    let at = usize::from(offset) % bytes.len().max(1);
    match operation % 7 {
        _ if bytes.is_empty() => bytes.push(value),
        0 => bytes[at] ^= 1 << (value % 8),
        1 => bytes[at] = value,
        2 => bytes.truncate(at),
        3 => {
            let end = (at + 8 * usize::from(value)).min(bytes.len());
            bytes[at..end].fill(0);
        }
        4 => bytes.extend(std::iter::repeat_n(value, usize::from(offset) % 3000)),
        5 => {
            disk.forget(name);
            if value % 2 == 1 {
                disk.write(&format!("{:010}.wal", offset), bytes);
            }
            return false;
        }
        _ => return forge(disk, name, bytes, offset, value),
    }
    disk.write(name, bytes);
    false
}

/// Changes a byte of a head, and writes the right checksum.
fn forge(disk: &MemoryDisk, name: &str, mut bytes: Vec<u8>, offset: u16, value: u8) -> bool {
    let is_head = value.is_multiple_of(4);
    let count = bytes.len().saturating_sub(AREA_BYTES) / 8;
    let start = match is_head {
        true => 0,
        false => AREA_BYTES + 8 * (usize::from(offset >> 6) % count.max(1)),
    };
    let bytes_of_head = if is_head { 60 } else { HEAD_BYTES };
    let Some(head) = bytes.get_mut(start..start + bytes_of_head) else {
        return false;
    };
    let field = usize::from(offset % 64);
    let mut hasher = crc32fast::Hasher::new_with_initial(if is_head { 0 } else { SALT });
    if is_head {
        head[4 + field % 52] = value;
        hasher.update(&head[..56]);
        head[56..].copy_from_slice(&hasher.finalize().to_le_bytes());
    } else {
        head[4 + field % 44] = value;
        hasher.update(&head[4..]);
        head[..4].copy_from_slice(&hasher.finalize().to_le_bytes());
    }
    disk.write(name, bytes);
    true
}

fn content(disk: &MemoryDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.names().into_iter();
    names.map(|name| (name.clone(), disk.read(&name))).collect()
}

fn read_all(wal: &mut Wal<MemoryDisk>, known: Option<&Known>) {
    let lanes: Vec<_> = wal.lanes().collect();
    for lane in lanes {
        let (first, last) = (wal.floor(lane).index + 1, wal.last(lane).0);
        for index in (first..=last).take(usize::try_from(READ_MAX).expect("small")) {
            let term = wal.term(lane, index);
            match (wal.read(lane, index), known) {
                (Ok(payload), Some(known)) => {
                    let key = (lane, index, term.expect("it was read"));
                    assert_eq!(known.get(&key), Some(&payload), "{key:?}");
                }
                (Ok(_) | Err(WalError::NoEntry { .. } | WalError::Damaged { .. }), _) => {}
                (Err(error), _) => panic!("{error}"),
            }
        }
    }
}

type LaneState = (u16, Condition, Vote, u64, (u64, u64));

fn state(wal: &Wal<MemoryDisk>) -> (u64, Vec<LaneState>) {
    let lanes = wal.lanes().map(|lane| {
        let floor = wal.floor(lane).index;
        (
            lane,
            wal.condition(lane),
            wal.vote(lane),
            floor,
            wal.last(lane),
        )
    });
    (wal.durable(), lanes.collect())
}

/// Starts all lanes again, and uses the log.
fn use_log(disk: &MemoryDisk, wal: &mut Wal<MemoryDisk>, recovery: &Recovery, is_forged: bool) {
    let lanes: Vec<_> = wal.lanes().collect();
    for lane in lanes {
        wal.reset(lane, wal.member(lane) % 1000 + 1)
            .expect("accepted");
    }
    wal.accept_losses();
    for index in 1..=20 {
        wal.append(0, index, 1, &[9; 200]).expect("in order");
        sync(disk, wal);
        wal.scrub().expect("readable");
    }
    let (mut wal, after) = Wal::open(disk.clone(), &options()).expect("it was written by the log");
    assert!(is_forged || after.damage.len() <= recovery.damage.len());
    assert_eq!(wal.condition(0), Condition::Intact);
    for index in 1..=20 {
        assert_eq!(wal.read(0, index).as_deref(), Ok(&[9; 200][..]));
    }
}
