//! Tests of how many bytes are read to find a record in a segment that is not in memory.

use super::simulated_disk::{Dice, SimulatedDisk};
use super::*;

/// Maximum bytes of a random read: one part of a segment, and as much again as read-ahead.
const READ_BYTES_MAX: usize = 128 << 10;

fn payload(sequence: u64) -> Vec<u8> {
    let bytes = 200 + usize::try_from(sequence * 7919 % 1600).unwrap();
    vec![u8::try_from(sequence % 251).unwrap(); bytes]
}

fn subject(sequence: u64) -> Vec<u8> {
    format!("orders.{sequence}").into_bytes()
}

/// Creates a store of `records` records, closes it, and returns it reopened.
fn reopened(disk: &SimulatedDisk, options: &FileOptions, records: u64) -> Store {
    let limits = StoreLimits::default();
    let (mut store, _) = Store::file(Box::new(disk.clone()), options, &limits).unwrap();
    for sequence in 1..=records {
        let record = NewRecord {
            subject: &subject(sequence),
            payload: &payload(sequence),
            ..NewRecord::default()
        };
        store.append(&record).unwrap();
    }
    store.close().unwrap();
    drop(store);
    open(disk, options)
}

fn open(disk: &SimulatedDisk, options: &FileOptions) -> Store {
    let limits = StoreLimits::default();
    let (store, recovery) = Store::file(Box::new(disk.clone()), options, &limits).unwrap();
    assert_eq!(recovery, Recovery::default());
    disk.take_read_bytes();
    store
}

fn read(store: &mut Store, sequence: u64) {
    let record = store.read(sequence).unwrap().unwrap();
    assert_eq!(record.subject, subject(sequence));
    assert_eq!(record.payload, payload(sequence));
}

#[test]
fn random_read_reads_part_of_segment() {
    const RECORDS: u64 = 40_000;
    let disk = SimulatedDisk::new();
    let mut dice = Dice::new(3);
    let mut store = reopened(&disk, &FileOptions::default(), RECORDS);
    assert!(store.segments.len() > 2);
    let unloaded_last = store.segments[store.segments.len() - 2].last;
    let below = usize::try_from(unloaded_last).unwrap();
    for _ in 0..300 {
        let sequence = dice.below(below) as u64 + 1;
        read(&mut store, sequence);
        let bytes = disk.take_read_bytes();
        assert!(bytes <= READ_BYTES_MAX, "{bytes} for {sequence}");
    }
    // The limit also applies to the last record of a subject, to a removal, and to a missing record.
    for _ in 0..100 {
        let sequence = dice.below(below) as u64 + 1;
        let known = store.subject(&subject(sequence));
        if let Some(known) = known {
            read(&mut store, known.last);
            assert_eq!(store.remove(sequence, false), Ok(true));
        }
        assert_eq!(store.read(sequence), Ok(None));
        let bytes = disk.take_read_bytes();
        assert!(bytes <= READ_BYTES_MAX, "{bytes} for {sequence}");
    }
    store.check_numbers();
}

#[test]
fn many_random_reads_load_the_segment() {
    let disk = SimulatedDisk::new();
    let mut dice = Dice::new(4);
    let mut store = reopened(&disk, &FileOptions::default(), 40_000);
    const READS: usize = 3000;
    for _ in 0..READS {
        let sequence = dice.below(40_000) as u64 + 1;
        read(&mut store, sequence);
    }
    let bytes = disk.take_read_bytes();
    assert!(bytes <= READS * READ_BYTES_MAX, "{bytes}");
    assert!(
        store.segments[0].slots.is_some(),
        "many lookups load the slots"
    );
}

#[test]
fn sequential_read_reads_everything_about_once() {
    let disk = SimulatedDisk::new();
    let mut store = reopened(&disk, &FileOptions::default(), 40_000);
    let all = disk.used_bytes();
    let mut filters = Filters::default();
    let mut at = 0;
    while let Some(sequence) = store.next_matching(&mut filters, at + 1).unwrap() {
        assert_eq!(sequence, at + 1);
        read(&mut store, sequence);
        at = sequence;
    }
    assert_eq!(at, 40_000);
    let bytes = disk.take_read_bytes();
    assert!(bytes < all + all / 2, "{bytes} of {all}");
}

/// A new consumer with filters queries how many records match, and which is first.
#[test]
fn filtered_queries_do_not_scan_the_log() {
    let disk = SimulatedDisk::new();
    let mut store = reopened(&disk, &FileOptions::default(), 40_000);
    assert!(store.segments.len() > 2);
    let all = disk.used_bytes();
    // Numbers of filters: one, some, and more than the cache of matching subjects holds.
    for count in [1, 1_000, 9_000] {
        let names: Vec<Vec<u8>> = (20_000..20_000 + count).map(subject).collect();
        let filters = Filters::new(names.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(store.count_matching(&filters, 1), Ok(count));
        assert_eq!(store.count_matching(&filters, 40_001), Ok(0));
        assert_eq!(disk.take_read_bytes(), 0, "{count}");
    }
    let filters = Filters::new([&b"orders.*"[..]]).unwrap();
    assert_eq!(store.count_matching(&filters, 1), Ok(40_000));
    // Counting from the middle reads nothing, because no subject has records both before and after the
    // middle.
    assert_eq!(store.count_matching(&filters, 15_001), Ok(25_000));
    assert_eq!(disk.take_read_bytes(), 0);

    let names: Vec<Vec<u8>> = (20_000..21_000).map(subject).collect();
    let mut filters = Filters::new(names.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(store.next_matching(&mut filters, 1), Ok(Some(20_000)));
    let bytes = disk.take_read_bytes();
    assert!(
        2 * bytes < all,
        "read {bytes} of {all} bytes: more than one segment"
    );
}

#[test]
fn index_version_1_without_marks_is_readable() {
    let disk = SimulatedDisk::new();
    let options = disk_tests::options();
    drop(reopened(&disk, &options, 300));
    let mut old = disk.clone();
    let file = old.open(index::NAME, false).unwrap();
    let mut bytes = Vec::new();
    files::read_whole(&mut old, file, &mut bytes).unwrap();
    let bytes = without_marks(&bytes);
    old.truncate(file, 0).unwrap();
    old.write_at(file, 0, &bytes).unwrap();
    let mut store = open(&disk, &options);
    for round in 0..2 {
        assert_eq!(store.segments[0].marks.is_empty(), round == 0);
        for sequence in 1..=300 {
            read(&mut store, sequence);
        }
        store.unload();
    }
    assert!(!store.segments[0].marks.is_empty());
}

/// Converts an index to version 1, which had no marks.
fn without_marks(index: &[u8]) -> Vec<u8> {
    const COUNT_AT: usize = 28;
    const HEAD_BYTES: usize = 32 + 7 * 8;
    const SEGMENT_BYTES: usize = 8 + 16 + 8 + 16 + 16;
    let number = |at: usize| u32::from_le_bytes(index[at..at + 4].try_into().unwrap()) as usize;
    let mut old = index[..HEAD_BYTES].to_vec();
    old[4..6].copy_from_slice(&1u16.to_le_bytes());
    let mut at = HEAD_BYTES;
    for _ in 0..number(COUNT_AT) {
        let counts = at + SEGMENT_BYTES;
        let words = 8 * (number(counts) + number(counts + 4));
        old.extend_from_slice(&index[at..counts + 8]);
        old.extend_from_slice(&index[counts + 12..counts + 12 + words]);
        at = counts + 12 + words + 16 * number(counts + 8);
    }
    old.extend_from_slice(&index[at..index.len() - 4]);
    let sum = crc32fast::hash(&old);
    old.extend_from_slice(&sum.to_le_bytes());
    old
}
