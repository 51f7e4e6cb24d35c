//! The input is a script for a store on disk. The bits of its first byte choose the options: 1 compresses
//! records, 2 encrypts them, and 4 gives damaged parts valid checksums, as an attacker would. Each step has
//! four bytes, which are an operation and three numbers; see [`Simulation::step`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanline_engine::store::{
    Compression, Disk, FileOptions, Filters, Key, NewRecord, Record, Recovery, Store, StoreError,
    StoreLimits,
};

use super::memory_disk::MemoryDisk;

const STEPS_MAX: usize = 200;
/// A small size, so that there are several segments.
const SEGMENT_BYTES: usize = 1000;
/// Maximum number of records, and of ranges, that are read from a store.
const READ_MAX: usize = 3000;
/// Maximum length of a file.
const FILE_BYTES_MAX: usize = 64 * 1024;
const SUBJECTS: [&[u8]; 6] = [
    b"a",
    b"b",
    b"a.b",
    b"a.b.c",
    b"x.y",
    b"x.a-much-longer-name.y",
];
const FILTERS: [&[u8]; 6] = [b">", b"a", b"a.>", b"*.y", b"x.*.y", b"none"];
/// Format of the log in bytes: the two headers at the start of a segment together, the header of a record,
/// and the header of a compressed record. `COMPRESSED` contains the flags of a compressed record.
const SEGMENT_HEAD_BYTES: usize = 48;
const RECORD_HEAD_BYTES: usize = 32;
const COMPRESSED_HEAD_BYTES: usize = 36;
const COMPRESSED: u8 = 8 | 16;

/// Checks that a store opens whatever happened to its files, that its counts agree with its records, and that
/// it returns no record that was not stored. A flipped bit may lose at most one record.
pub fn check(data: &[u8]) {
    let Some((manners, script)) = data.split_first() else {
        return;
    };
    let mut simulation = Simulation::new(*manners);
    let mut rest = script;
    for _ in 0..STEPS_MAX {
        let Some(([what, a, b, c], after)) = rest.split_first_chunk() else {
            break;
        };
        rest = after;
        simulation.step(*what, *a, *b, *c, &mut rest);
    }
    simulation.use_all();
    simulation.restart(true);
    simulation.use_all();
}

/// The fields of a record except its sequence.
type Known = (Vec<u8>, Vec<u8>, Vec<u8>, i64);

fn known(record: &Record<'_>) -> Known {
    let (subject, headers) = (record.subject.to_vec(), record.headers.to_vec());
    (subject, headers, record.payload.to_vec(), record.unix_nanos)
}

/// How much the files were damaged since they were written.
#[derive(Clone, Copy, PartialEq)]
enum Damage {
    Nothing,
    OneBit,
    Much,
}

struct Simulation {
    options: FileOptions,
    is_forged: bool,
    disk: MemoryDisk,
    limits: StoreLimits,
    store: Option<Store>,
    damage: Damage,
    /// Whether the files were ever damaged.
    was_damaged: bool,
    /// All records that were ever stored. A sequence may have several: it is used again after the damaged end
    /// of a log was cut off.
    stored: BTreeMap<u64, Vec<Known>>,
    /// The sequences that the store contained when it was last closed, without those of an unfinished atomic
    /// batch.
    before: BTreeSet<u64>,
    /// The first sequence of an unfinished atomic batch, which a restart drops.
    batch: Option<u64>,
    now: i64,
}

impl Simulation {
    fn new(manners: u8) -> Self {
        let options = FileOptions {
            compression: match manners & 1 {
                0 => Compression::None,
                _ => Compression::Lz4,
            },
            key: (manners & 2 != 0).then(|| Key::new([7; 32])),
            segment_bytes: SEGMENT_BYTES,
            ..FileOptions::default()
        };
        Simulation {
            options,
            is_forged: manners & 4 != 0,
            disk: MemoryDisk::default(),
            limits: StoreLimits::default(),
            store: None,
            damage: Damage::Nothing,
            was_damaged: false,
            stored: BTreeMap::new(),
            before: BTreeSet::new(),
            batch: None,
            now: 1_700_000_000_000_000_000,
        }
    }

    fn step(&mut self, what: u8, a: u8, b: u8, c: u8, rest: &mut &[u8]) {
        self.now += 1;
        match what % 16 {
            0..=4 => self.append(a, b, c),
            5 => {
                let sequence = self.sequence_near(a, b);
                let _ = self.store().remove(sequence, c & 1 != 0);
            }
            6 => {
                let filter = FILTERS[usize::from(a) % FILTERS.len()];
                let below = (b & 1 != 0).then(|| self.sequence_near(b >> 1, c));
                let _ = self.store().purge(filter, below, u64::from(c % 4));
            }
            7 => {
                let store = self.store();
                let next = store.last_sequence().saturating_add(1 << (a % 63));
                let _ = store.skip_to(next);
            }
            8 => {
                let _ = self.store().sync_now(Duration::ZERO);
            }
            9 => {
                self.store();
                let some = |number: u8| (number != 0).then_some(u64::from(number));
                self.limits.messages_max = some(a);
                self.limits.messages_per_subject_max = some(b);
                self.limits.age_nanos_max = (c != 0).then_some(i64::from(c));
                let limits = self.limits;
                let _ = self.store().set_limits(&limits);
            }
            10 => {
                self.now += 1 << (a % 40);
                let now = self.now;
                let _ = self.store().expire(now);
            }
            11 => self.restart(a & 1 != 0),
            12 => self.change(a >> 4, b, c, |bytes, at| {
                bytes[at] ^= 1 << (a & 7);
            }),
            13 => {
                let number = rest.split_off(..8).unwrap_or_default();
                self.change(a, b, c, |bytes, at| {
                    let end = (at + number.len()).min(bytes.len());
                    bytes[at..end].copy_from_slice(&number[..end - at]);
                });
            }
            14 => self.mangle(a, b, c),
            _ => {
                let length = usize::from(u16::from_le_bytes([b, c])).min(rest.len());
                let content = rest.split_off(..length).unwrap_or_default();
                self.replace(a, content);
            }
        }
    }

    fn append(&mut self, a: u8, b: u8, c: u8) {
        let subject = SUBJECTS[usize::from(a) % SUBJECTS.len()];
        let length = usize::from(b) * usize::from(1 + c % 8);
        // Every second payload compresses well.
        let byte = |at: usize| match c & 8 {
            0 => a,
            _ => u8::try_from(at * at % 251).unwrap_or(0),
        };
        let payload: Vec<u8> = (0..length).map(byte).collect();
        let now = self.now;
        let record = NewRecord {
            unix_nanos: now,
            subject,
            headers: if c & 16 != 0 {
                b"NATS/1.0\r\n\r\n"
            } else {
                b""
            },
            payload: &payload,
            expires_at: (c & 32 != 0).then_some(now + i64::from(b)),
            more_in_batch: c & 64 != 0,
        };
        let store = self.store();
        let gap = if c & 64 != 0 { u64::from(a) + 1 } else { 1 };
        let sequence = store.last_sequence() + gap;
        let appended = store.append_at(sequence, &record);
        match appended {
            Ok(()) => {
                self.batch = record.more_in_batch.then(|| self.batch.unwrap_or(sequence));
                let known = (subject.to_vec(), record.headers.to_vec(), payload, now);
                self.stored.entry(sequence).or_default().push(known);
            }
            Err(StoreError::Damaged(_)) => assert!(self.was_damaged),
            Err(StoreError::TooLarge | StoreError::SequenceTaken { .. }) => {}
            Err(error) => panic!("{error} with a working disk"),
        }
    }

    /// Returns a sequence near the first or the last one in the store.
    fn sequence_near(&mut self, a: u8, b: u8) -> u64 {
        let store = self.store();
        match a & 1 {
            0 => store.first_sequence().saturating_add(u64::from(b)),
            _ => (store.last_sequence() + 1).saturating_sub(u64::from(b)),
        }
    }

    /// Changes the bytes of a file from a position on.
    fn change(&mut self, number: u8, b: u8, c: u8, change: impl FnOnce(&mut [u8], usize)) {
        let Some((name, before)) = self.file(number) else {
            return;
        };
        if before.is_empty() {
            return;
        }
        let at = usize::from(u16::from_le_bytes([b, c])) % before.len();
        let mut bytes = before.clone();
        change(&mut bytes, at);
        let flipped: u32 = (before.iter().zip(&bytes))
            .map(|(x, y)| (x ^ y).count_ones())
            .sum();
        if self.is_forged {
            fix_checksums(&name, &before, &mut bytes, at);
        }
        self.disk.write(&name, bytes);
        self.damage = match (self.damage, flipped) {
            (damage, 0) => damage,
            (Damage::Nothing, 1) if !self.is_forged => Damage::OneBit,
            _ => Damage::Much,
        };
    }

    /// Damages a whole file in the ways in which failing disks and operators damage files.
    fn mangle(&mut self, a: u8, b: u8, c: u8) {
        let Some((name, mut bytes)) = self.file(a & 15) else {
            return;
        };
        let at = usize::from(u16::from_le_bytes([b, c])).min(bytes.len());
        self.damage = Damage::Much;
        match a >> 4 {
            0..=3 => bytes.truncate(at),
            4 => return self.disk.forget(&name),
            5 => bytes[at..].fill(0),
            6 | 7 => {
                let again = bytes[at..].to_vec();
                bytes.extend(again);
            }
            8 => {
                let names = self.disk.names();
                bytes = self.disk.read(&names[usize::from(b) % names.len()]);
            }
            9 => self
                .disk
                .write(&format!("{b:010}-{c:05}.log"), bytes.clone()),
            10 => bytes.drain(..at).for_each(drop),
            _ => bytes
                .iter_mut()
                .skip(at)
                .step_by(1 + at)
                .for_each(|byte| *byte ^= 1),
        }
        bytes.truncate(FILE_BYTES_MAX);
        self.disk.write(&name, bytes);
    }

    fn replace(&mut self, number: u8, content: &[u8]) {
        let Some((name, before)) = self.file(number) else {
            return;
        };
        let mut bytes = content.to_vec();
        if self.is_forged && name == "index" {
            set_sum(&mut bytes);
        } else if self.is_forged {
            // Put the two headers of the old file first, because they contain the stream's salt.
            bytes.splice(..0, before.iter().take(2 * SEGMENT_HEAD_BYTES).copied());
            let mut at = 2 * SEGMENT_HEAD_BYTES;
            while at < bytes.len() {
                at += fix_record(&mut bytes, at).max(1);
            }
        }
        self.damage = Damage::Much;
        self.disk.write(&name, bytes);
    }

    /// Closes the store, and returns one of its files.
    fn file(&mut self, number: u8) -> Option<(String, Vec<u8>)> {
        self.close(false);
        let names = self.disk.names();
        let name = names.get(usize::from(number) % names.len().max(1))?;
        Some((name.clone(), self.disk.read(name)))
    }

    fn close(&mut self, properly: bool) {
        let Some(mut store) = self.store.take() else {
            return;
        };
        let (held, _) = self.read_all(&mut store);
        self.before = match self.batch {
            Some(batch) => held.range(..batch).copied().collect(),
            None => held,
        };
        if properly {
            store.close().expect("a working disk");
        } else {
            store.sync_now(Duration::ZERO).expect("a working disk");
        }
    }

    fn restart(&mut self, properly: bool) {
        self.store();
        self.close(properly);
        self.store();
    }

    fn store(&mut self) -> &mut Store {
        if self.store.is_none() {
            let store = self.open();
            self.store = Some(store);
        }
        self.store.as_mut().expect("just opened")
    }

    fn open(&mut self) -> Store {
        self.options.seed += 2;
        let disk: Box<dyn Disk> = Box::new(self.disk.clone());
        let opened = Store::file(disk, &self.options, &self.limits);
        let damage = std::mem::replace(&mut self.damage, Damage::Nothing);
        let was_damaged = self.was_damaged;
        self.was_damaged |= damage != Damage::Nothing;
        let (mut store, recovery) = match opened {
            Ok(opened) => opened,
            Err(StoreError::WrongKey | StoreError::Damaged(_)) => {
                assert!(damage != Damage::Nothing, "undamaged files do not open");
                self.disk = MemoryDisk::default();
                self.before.clear();
                return self.open();
            }
            Err(error) => panic!("{error} with a working disk"),
        };
        let (held, _) = self.read_all(&mut store);
        let had_batch = self.batch.take().is_some();
        match damage {
            Damage::Nothing if !self.was_damaged => {
                assert_eq!(recovery.lost, Recovery::default().lost);
                assert!(!recovery.index_was_bad);
                assert!(had_batch || recovery.torn_bytes == 0);
                let missing = self.before.difference(&held);
                assert_eq!(missing.count(), 0, "{:?} of {held:?}", self.before);
            }
            Damage::OneBit if !was_damaged => {
                let missing = self.before.difference(&held).count();
                assert!(missing <= 1, "{:?}, then {held:?}", self.before);
            }
            _ => {}
        }
        store
    }

    /// Returns the sequences of all records and the sum of their sizes. Checks that each record was stored.
    fn read_all(&self, store: &mut Store) -> (BTreeSet<u64>, u64) {
        let mut all = Filters::new([&b">"[..]]).expect("a filter");
        let (mut held, mut bytes, mut from) = (BTreeSet::new(), 0, 0);
        for _ in 0..READ_MAX {
            let Ok(Some(sequence)) = store.next_matching(&mut all, from) else {
                break;
            };
            assert!(sequence >= from, "sequences go back to {sequence}");
            from = sequence + 1;
            let read = store
                .read(sequence)
                .map(|record| record.map(|r| (known(&r), r.expires_at)));
            let Ok(Some((record, expires_at))) = read else {
                assert!(self.was_damaged || self.damage != Damage::Nothing);
                continue;
            };
            if !self.is_forged {
                let stored = self.stored.get(&sequence);
                let is_known = stored.is_some_and(|stored| stored.contains(&record));
                assert!(is_known, "{sequence} was never stored with: {record:?}");
            }
            held.insert(sequence);
            let (subject, headers, payload, unix_nanos) = &record;
            bytes += store.record_bytes(&NewRecord {
                unix_nanos: *unix_nanos,
                subject,
                headers,
                payload,
                expires_at,
                more_in_batch: false,
            });
        }
        (held, bytes)
    }

    /// Calls all methods of the store, and checks their results.
    fn use_all(&mut self) {
        self.store();
        let mut store = self.store.take().expect("just opened");
        let (held, bytes) = self.read_all(&mut store);
        let state = store.state();
        if !self.is_forged {
            // Damage that was found before is excluded from the counts.
            let (again, _) = self.read_all(&mut store);
            assert_eq!(again, held);
            assert_eq!(state.messages, held.len() as u64);
            // The size of a lost record is unknown.
            assert!(state.bytes == bytes || self.was_damaged);
        }
        let mut counted = 0;
        store.subjects(b">", &mut |_, subject| counted += subject.messages);
        for filter in FILTERS {
            let mut filters = Filters::new([filter]).expect("a filter");
            let last = store.last_matching(filter);
            let first = store.next_matching(&mut filters, 0);
            let count = store.count_matching(&filters, 0);
            let _ = store.count_matching(&filters, state.last_sequence / 2);
            if !self.was_damaged {
                assert_eq!(
                    last.is_ok_and(|last| last.is_some()),
                    count.is_ok_and(|c| c > 0)
                );
                assert!(first.is_ok());
            }
        }
        let mut ranges = 0;
        let _ = store.deleted(&mut |_| ranges += 1);
        let _ = store.sequence_at(self.now / 2 + 850_000_000_000_000_000);
        let _ = store.next_expiry();
        self.store = Some(store);
        if !self.was_damaged {
            assert_eq!(counted, state.messages);
        }
        self.append(1, 9, 16);
        self.append(4, 200, 1);
        let now = self.now + 100;
        let store = self.store();
        let _ = store.expire(now);
        store.removed(&mut |_| {});
        store.sync_now(Duration::ZERO).expect("a working disk");
    }
}

fn sum(start: u32, bytes: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new_with_initial(start);
    hasher.update(bytes);
    hasher.finalize().to_le_bytes()
}

/// Sets a valid checksum at the end of a file.
fn set_sum(bytes: &mut [u8]) {
    if let Some((content, last)) = bytes.split_last_chunk_mut::<4>() {
        *last = sum(0, content);
    }
}

/// Sets valid checksums for the changed part of a file.
fn fix_checksums(name: &str, before: &[u8], bytes: &mut [u8], changed: usize) {
    if !name.ends_with(".log") {
        return set_sum(bytes);
    }
    for head in bytes.chunks_exact_mut(SEGMENT_HEAD_BYTES).take(2) {
        set_sum(head);
    }
    let mut at = 2 * SEGMENT_HEAD_BYTES;
    while let Some(length) = record_bytes(before, at).filter(|length| *length > 0) {
        if at + length > changed {
            fix_record(bytes, at);
            return;
        }
        at += length;
    }
}

fn record_bytes(bytes: &[u8], at: usize) -> Option<usize> {
    let length = bytes.get(at + 8..at + 12)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(length)).ok()
}

/// Sets valid checksums for the record at a position, and returns its length.
fn fix_record(bytes: &mut [u8], at: usize) -> usize {
    let Some(salt) = bytes.get(20..24).and_then(|salt| salt.try_into().ok()) else {
        return 0;
    };
    let salt = u32::from_le_bytes(salt);
    let length = record_bytes(bytes, at).unwrap_or(0);
    let end = (at + length).clamp(at, bytes.len());
    let record = &mut bytes[at..end];
    let head_bytes = match record.get(15) {
        Some(flags) if flags & COMPRESSED != 0 => COMPRESSED_HEAD_BYTES,
        _ => RECORD_HEAD_BYTES,
    };
    if record.len() >= head_bytes {
        let body = sum(salt, &record[head_bytes..]);
        record[4..8].copy_from_slice(&body);
        let head = sum(salt, &record[4..head_bytes]);
        record[..4].copy_from_slice(&head);
    }
    length
}
