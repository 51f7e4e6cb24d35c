//! Files with correct checksums and inconsistent content, which only an attacker or a bug can write.

use std::time::Duration;

use super::disk_tests::options;
use super::recovery::Recovery;
use super::simulated_disk::SimulatedDisk;
use super::*;

const HEAD_COPY_BYTES: usize = 48;

/// Returns the disk of a closed store with several segments.
fn stored() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let mut store = open(&disk).0;
    for number in 0..30 {
        let record = NewRecord {
            subject: b"a.b",
            payload: &[b'x'; 200],
            unix_nanos: number,
            ..NewRecord::default()
        };
        store.append(&record).unwrap();
    }
    store.sync_now(Duration::ZERO).unwrap();
    store.close().unwrap();
    disk
}

fn open(disk: &SimulatedDisk) -> (Store, Recovery) {
    let limits = StoreLimits::default();
    Store::file(Box::new(disk.clone()), &options(), &limits).unwrap()
}

/// Rewrites a file as a whole.
fn change(disk: &SimulatedDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut disk = disk.clone();
    let file = disk.open(name, false).unwrap();
    let mut bytes = vec![0; usize::try_from(disk.len(file).unwrap()).unwrap()];
    disk.read_at(file, 0, &mut bytes).unwrap();
    change(&mut bytes);
    disk.truncate(file, 0).unwrap();
    disk.write_at(file, 0, &bytes).unwrap();
    disk.close(file);
}

fn put_sum(bytes: &mut [u8]) {
    let (content, sum) = bytes.split_last_chunk_mut::<4>().unwrap();
    *sum = crc32fast::hash(content).to_le_bytes();
}

/// Regression: an index that counted more records than its segments hold made the store search forever.
#[test]
fn inconsistent_index_is_ignored() {
    // Columns: offset of a field in a checkpoint, and the wrong value. Fields by offset: first sequence (32),
    // last sequence (40), number of messages (72), bytes (80), and number of the last segment (8).
    for (at, number) in [
        (32, 31_u64),
        (40, 29),
        (64 + 8, 29),
        (64 + 8, 31),
        (64 + 8, u64::MAX),
        (64 + 16, u64::MAX),
        (8, 1),
    ] {
        let disk = stored();
        change(&disk, "index", |bytes| {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            put_sum(bytes);
        });
        let (mut store, recovery) = open(&disk);
        assert!(recovery.index_was_bad, "{number} at {at}");
        assert_eq!(recovery.lost, Lost::default());
        assert_eq!(store.state().messages, 30);
        assert_eq!(store.purge(b"", Some(20), 0), Ok(19));
        assert_eq!(store.first_sequence(), 20);
    }
}

/// Regression: if the head of a segment contained the highest possible number, no number was left for the
/// next segment.
#[test]
fn segment_is_identified_by_its_file_name() {
    let disk = stored();
    let mut index = disk.clone();
    index.remove("index").unwrap();
    let names = disk.names();
    change(&disk, &names[1], |bytes| {
        for head in bytes.chunks_exact_mut(HEAD_COPY_BYTES).take(2) {
            head[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
            head[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
            put_sum(head);
        }
    });
    let (mut store, _) = open(&disk);
    let before = store.last_sequence();
    let record = NewRecord {
        subject: b"a.b",
        payload: &[b'y'; 4000],
        ..NewRecord::default()
    };
    assert_eq!(store.append(&record), Ok(before + 1));
    assert_eq!(store.append(&record), Ok(before + 2));
    store.sync_now(Duration::ZERO).unwrap();
    assert_eq!(open(&disk).0.last_sequence(), before + 2);
}
