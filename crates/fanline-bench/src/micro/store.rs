//! Cases of a stream's log, which add, find, and remove records.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use fanline_engine::store::{
    Disk, DiskError, FileId, FileOptions, Filters, NewRecord, Store, StoreError, StoreLimits,
    SyncMode,
};

use super::{Case, Numbers, Work, case, in_batches};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("store append 128 B, memory", "records", &[], || append(Store::memory(&bounded()))),
    case("store append 128 B, file, not synced", "records", &[], || append(file(SyncMode::None))),
    case("store append 128 B, file, 1,000 a sync", "records", &[], || append(file(SyncMode::Commit))),
    case("store append 128 B, 100,000 subjects, file", "records", &[], || append_to_many(file(SyncMode::None))),
    case("store put of 100,000 keys, memory", "records", &[], || append_to_many(Store::memory(&one_each()))),
    case("store load last by subject of 100,000, memory", "records", &[], || load_last(Store::memory(&unbounded()))),
    case("store load last by subject of 100,000, file", "records", &[], || load_last(file(SyncMode::None))),
    case("store read of any of 1,000,000, file", "records", &[], read_any),
    case("store last by wildcard, 1,000 of 1,000,000 subjects", "questions", &[], || {
        ask(|store, _, _| store.last_matching(b"bench.17.*"))
    }),
    case("store last by wildcard, all of 1,000,000 subjects", "questions", &[], || {
        ask(|store, _, _| store.last_matching(b"bench.*.*"))
    }),
    case("store next by wildcard, 1,000 of 1,000,000 subjects", "records", &[], || ask(Store::next_matching)),
    case("store purge of a subject but for the last", "purges", &[], purge),
    case("store 1,000 appended and purged to 10,000, file, trimmed", "purges", &[], purge_and_trim),
    case("store start, 1,000,000 records, after a close", "starts", &[], || start(End::Closed)),
    case("store start, 1,000,000 records, after a crash", "starts", &[], || start(End::Killed)),
    case("store start, 1,000,000 records, without an index", "starts", &[], || start(End::WithoutIndex)),
];

const BATCH: u64 = 1000;
const SUBJECT: &[u8] = b"bench.orders.new";
const PAYLOAD: [u8; 128] = [b'x'; 128];
const SUBJECTS: u64 = 100_000;
const STORED: u64 = 1_000_000;
const PURGED_TO: u64 = 10_000;

/// Returns limits so that a long run does not fill memory or disk. With them, a run also measures the removal
/// of old records.
fn bounded() -> StoreLimits {
    StoreLimits {
        bytes_max: Some(48 << 20),
        ..StoreLimits::default()
    }
}

fn one_each() -> StoreLimits {
    StoreLimits {
        messages_per_subject_max: Some(1),
        ..StoreLimits::default()
    }
}

fn file(mode: SyncMode) -> Store {
    let options = FileOptions {
        mode,
        ..FileOptions::default()
    };
    opened(Folder::temporary(), &options, &bounded())
}

fn opened(folder: Folder, options: &FileOptions, limits: &StoreLimits) -> Store {
    let opened = Store::file(Box::new(folder), options, limits);
    opened.expect("a temporary folder").0
}

fn unbounded() -> StoreLimits {
    StoreLimits::default()
}

fn put(store: &mut Store, subject: &[u8], payload: &[u8]) {
    let record = NewRecord {
        unix_nanos: 1,
        subject,
        payload,
        ..NewRecord::default()
    };
    let stored = store.append(&record);
    stored.expect("a benchmark's own record");
}

/// Ends a batch like the I/O layer. The sync runs on the calling thread, not on a thread of its own.
fn end_batch(store: &mut Store) {
    store.removed(&mut |_| {});
    store.sync_now(Duration::ZERO).expect("a working disk");
}

fn append(mut store: Store) -> Box<Work> {
    in_batches(BATCH, move || {
        for _ in 0..BATCH {
            put(&mut store, SUBJECT, &PAYLOAD);
        }
        end_batch(&mut store);
    })
}

struct Names {
    names: Vec<Vec<u8>>,
    numbers: Numbers,
}

impl Names {
    fn new() -> Self {
        let name = |number| format!("bench.orders.{number}").into_bytes();
        Self {
            names: (0..SUBJECTS).map(name).collect(),
            numbers: Numbers::new(),
        }
    }

    fn any(&mut self) -> &[u8] {
        let at = self.numbers.below(self.names.len() as u64);
        &self.names[usize::try_from(at).unwrap_or_default()]
    }

    fn fill_batch(&mut self, store: &mut Store) {
        for _ in 0..BATCH {
            put(store, self.any(), &PAYLOAD);
        }
        end_batch(store);
    }
}

fn append_to_many(mut store: Store) -> Box<Work> {
    let mut names = Names::new();
    in_batches(BATCH, move || names.fill_batch(&mut store))
}

fn load_last(mut store: Store) -> Box<Work> {
    let mut names = Names::new();
    for name in names.names.iter().chain(&names.names) {
        put(&mut store, name, &PAYLOAD);
    }
    end_batch(&mut store);
    in_batches(1, move || {
        let last = store.subject(names.any()).map_or(0, |subject| subject.last);
        read(&mut store, last);
    })
}

fn read(store: &mut Store, sequence: u64) {
    let found = store.read(sequence).expect("a benchmark's own record");
    std::hint::black_box(found.map(|record| record.payload.len()));
}

fn purge() -> Box<Work> {
    let mut store = Store::memory(&unbounded());
    let mut names = Names::new();
    in_batches(1, move || {
        let name = names.any();
        put(&mut store, name, &PAYLOAD);
        std::hint::black_box(store.purge(name, None, 1)).expect("in memory");
    })
}

/// Purges records from the front, so that whole segments are returned to the disk.
fn purge_and_trim() -> Box<Work> {
    let mut store = file(SyncMode::None);
    in_batches(1, move || {
        for _ in 0..BATCH {
            put(&mut store, SUBJECT, &PAYLOAD);
        }
        std::hint::black_box(store.purge(b"", None, PURGED_TO)).expect("a working disk");
        end_batch(&mut store);
    })
}

fn filled(folder: Folder) -> Store {
    let mut store = opened(folder, &FileOptions::default(), &unbounded());
    let mut names = Names::new();
    for _ in 0..STORED / BATCH {
        names.fill_batch(&mut store);
    }
    store
}

fn read_any() -> Box<Work> {
    let mut store = filled(Folder::temporary());
    let mut numbers = Numbers::new();
    in_batches(1, move || read(&mut store, 1 + numbers.below(STORED)))
}

/// Stores one record for each of a million subjects. The measured queries start at increasing sequences.
fn ask(
    question: fn(&mut Store, &mut Filters, u64) -> Result<Option<u64>, StoreError>,
) -> Box<Work> {
    let mut store = Store::memory(&unbounded());
    for number in 0..STORED {
        let name = format!("bench.{}.{number}", number % 1000);
        put(&mut store, name.as_bytes(), b"x");
    }
    let mut filters = Filters::new([&b"bench.17.*"[..]]).expect("a filter");
    let mut from = 1;
    in_batches(1, move || {
        let found = question(&mut store, &mut filters, from).expect("in memory");
        from = found.map_or(1, |sequence| sequence + 1);
    })
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Closed,
    Killed,
    WithoutIndex,
}

fn start(end: End) -> Box<Work> {
    let folder = Folder::temporary();
    let mut store = filled(folder.again());
    if end == End::Closed {
        store.close().expect("a working disk");
    }
    drop(store);
    in_batches(1, move || {
        let mut again = folder.again();
        if end == End::WithoutIndex {
            again.remove("index").expect("a working disk");
        }
        let store = opened(again, &FileOptions::default(), &unbounded());
        assert_eq!(store.messages(), STORED);
    })
}

/// A disk in a directory. The directory is removed when its owner is dropped.
struct Folder {
    path: PathBuf,
    is_owner: bool,
    open: HashMap<u32, File>,
    next: u32,
}

impl Folder {
    fn temporary() -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("fanline-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a temporary folder");
        let mut folder = Self::new(path);
        folder.is_owner = true;
        folder
    }

    fn new(path: PathBuf) -> Self {
        Folder {
            path,
            is_owner: false,
            open: HashMap::new(),
            next: 0,
        }
    }

    /// Returns a second value for the same directory. Dropping the second value does not remove the
    /// directory.
    fn again(&self) -> Self {
        Self::new(self.path.clone())
    }

    fn file(&self, file: FileId) -> Result<&File, DiskError> {
        self.open.get(&file.0).ok_or(DiskError::NotFound)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_owner {
            // If this fails, the files remain in the directory for temporary files.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn error(error: std::io::Error) -> DiskError {
    match error.kind() {
        std::io::ErrorKind::NotFound => DiskError::NotFound,
        std::io::ErrorKind::StorageFull => DiskError::Full,
        _ => DiskError::Other(error.raw_os_error().unwrap_or(0)),
    }
}

impl Disk for Folder {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let entries = fs::read_dir(&self.path).map_err(error)?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.collect())
    }

    fn open(&mut self, name: &str, create: bool) -> Result<FileId, DiskError> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(create)
            .truncate(false);
        let file = options.open(self.path.join(name)).map_err(error)?;
        self.next += 1;
        self.open.insert(self.next, file);
        Ok(FileId(self.next))
    }

    fn close(&mut self, file: FileId) {
        self.open.remove(&file.0);
    }

    fn write_at(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.file(file)?.write_all_at(bytes, offset).map_err(error)
    }

    fn read_at(&mut self, file: FileId, offset: u64, out: &mut [u8]) -> Result<usize, DiskError> {
        self.file(file)?.read_at(out, offset).map_err(error)
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(self.file(file)?.metadata().map_err(error)?.len())
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        self.file(file)?.set_len(bytes).map_err(error)
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        match fs::remove_file(self.path.join(name)).map_err(error) {
            Err(DiskError::NotFound) => Ok(()),
            result => result,
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        fs::rename(self.path.join(from), self.path.join(to)).map_err(error)
    }

    fn sync_file(&mut self, file: FileId) -> Result<(), DiskError> {
        self.file(file)?.sync_data().map_err(error)
    }

    fn sync_folder(&mut self) -> Result<(), DiskError> {
        File::open(&self.path)
            .and_then(|folder| folder.sync_all())
            .map_err(error)
    }
}
