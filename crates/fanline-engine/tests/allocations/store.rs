//! Allocations of appends to a log.

use std::time::Duration;

use fanline_engine::store::{Disk, DiskError, FileId, FileOptions, NewRecord, Store, StoreLimits};

use crate::{allocated_bytes, allocations};

const RECORDS: u64 = 100_000;
const BATCH: u64 = 1000;
/// Minimum number of appended records per allocation. A new segment allocates its name, its Bloom filter, and
/// its set of dead records.
const RECORDS_PER_ALLOCATION_MIN: u64 = 500;

#[track_caller]
fn check(mut store: Store, subjects: u64) {
    let names: Vec<String> = (0..subjects).map(|n| format!("orders.{n}")).collect();
    let mut at = 0;
    let mut append = |store: &mut Store| {
        for _ in 0..BATCH {
            at += 1;
            let subject = names[usize::try_from(at % subjects).unwrap_or(0)].as_bytes();
            let record = NewRecord {
                unix_nanos: 1,
                subject,
                payload: &[b'x'; 128],
                ..NewRecord::default()
            };
            store.append(&record).expect("no limit refuses");
        }
        store.removed(&mut |_| {});
    };
    for _ in 0..2 * RECORDS / BATCH {
        append(&mut store);
        store
            .sync_now(Duration::ZERO)
            .expect("the disk accepts everything");
    }
    let mut allocated = 0;
    for _ in 0..RECORDS / BATCH {
        allocated += allocations(|| append(&mut store));
        // Syncs each batch, without counting the allocations of the sync.
        store
            .sync_now(Duration::ZERO)
            .expect("the disk accepts everything");
    }
    assert!(
        allocated * RECORDS_PER_ALLOCATION_MIN < RECORDS,
        "{allocated}"
    );
}

fn limits() -> StoreLimits {
    StoreLimits {
        messages_max: Some(10_000),
        ..StoreLimits::default()
    }
}

#[test]
fn append_in_memory_allocates_nothing() {
    check(Store::memory(&limits()), 1);
    check(Store::memory(&limits()), 500);
}

#[test]
fn append_in_memory_with_subject_limit_allocates_nothing() {
    let limits = StoreLimits {
        messages_per_subject_max: Some(1),
        ..StoreLimits::default()
    };
    check(Store::memory(&limits), 5000);
}

#[test]
fn append_on_disk_allocates_nothing() {
    let open = || {
        Store::file(
            Box::new(Sink::default()),
            &FileOptions::default(),
            &limits(),
        )
    };
    check(open().expect("an empty disk").0, 1);
    check(open().expect("an empty disk").0, 500);
}

/// Returns the bytes of memory that a store on disk uses.
fn store_bytes(records: u64, subjects: u64) -> u64 {
    let before = allocated_bytes();
    let options = FileOptions::default();
    let opened = Store::file(Box::new(Sink::default()), &options, &StoreLimits::default());
    let (mut store, _) = opened.expect("an empty disk");
    let mut name = Vec::new();
    for number in 0..records {
        use std::io::Write;
        name.clear();
        write!(name, "orders.{:08}", number % subjects).expect("writing to memory succeeds");
        let record = NewRecord {
            subject: &name,
            payload: &[b'x'; 128],
            ..NewRecord::default()
        };
        store.append(&record).expect("no limit refuses");
        if number % BATCH == 0 {
            store
                .sync_now(Duration::ZERO)
                .expect("the disk accepts everything");
        }
    }
    u64::try_from(allocated_bytes() - before).expect("a store holds something")
}

/// Checks the memory targets in `docs/formats/log.md`. The subject names are so short that they need no
/// allocation of their own.
#[test]
fn store_on_disk_meets_memory_targets() {
    const RECORDS: u64 = 600_000;
    const SUBJECTS: u64 = 300_000;
    let few = store_bytes(RECORDS, 1);
    assert!(few <= 24 * RECORDS, "{} a record", few / RECORDS);
    let many = store_bytes(RECORDS, SUBJECTS) - few;
    assert!(many <= 120 * SUBJECTS, "{} a subject", many / SUBJECTS);
}

/// A disk that stores only the lengths of files, because nothing is read.
#[derive(Default)]
struct Sink {
    bytes: Vec<u64>,
}

impl Sink {
    fn file(&mut self, file: FileId) -> &mut u64 {
        &mut self.bytes[file.0 as usize]
    }
}

impl Disk for Sink {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(Vec::new())
    }

    fn open(&mut self, _name: &str, _create: bool) -> Result<FileId, DiskError> {
        self.bytes.push(0);
        Ok(FileId(
            u32::try_from(self.bytes.len() - 1).expect("few files"),
        ))
    }

    fn close(&mut self, _file: FileId) {}

    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let end = offset + bytes.len() as u64;
        let file = self.file(file);
        *file = end.max(*file);
        Ok(())
    }

    fn read_at(&mut self, _file: FileId, _at: u64, _out: &mut [u8]) -> Result<usize, DiskError> {
        Ok(0)
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(*self.file(file))
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        *self.file(file) = bytes;
        Ok(())
    }

    fn remove(&mut self, _name: &str) -> Result<(), DiskError> {
        Ok(())
    }

    fn rename(&mut self, _from: &str, _to: &str) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_file(&mut self, _file: FileId) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_folder(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}
