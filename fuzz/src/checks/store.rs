//! The input is a script for a store on disk. Its first byte says how the store is kept, as bits: 1 compressed, 2 sealed,
//! 4 what is damaged gets right checksums, as of somebody who means it. Four bytes are a step, what it does and three
//! numbers: see [`World::step`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanline_engine::store::{
    Compression, Disk, FileOptions, Filters, Key, NewRecord, Record, Recovery, Store, StoreError,
    StoreLimits,
};

use super::memory_disk::MemoryDisk;

const STEPS_MAX: usize = 200;
/// Small, so that there are several segments.
const SEGMENT_BYTES: usize = 1000;
/// So many records are read of a store, and so many ranges.
const READ_MAX: usize = 3000;
/// Files are not made longer than this.
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
/// Where segments say how they are, twice; and what is told apart there.
const SEGMENT_HEAD_BYTES: usize = 48;
const RECORD_HEAD_BYTES: usize = 32;
const PACKED_HEAD_BYTES: usize = 36;
const PACKED: u8 = 8 | 16;

/// A store opens whatever became of its files, says the same of itself whoever asks, and shows no record that was never
/// stored. A bit that has flipped costs one record at the most.
pub fn check(data: &[u8]) {
    let Some((manners, script)) = data.split_first() else {
        return;
    };
    let mut world = World::new(*manners);
    let mut rest = script;
    for _ in 0..STEPS_MAX {
        let Some(([what, a, b, c], after)) = rest.split_first_chunk() else {
            break;
        };
        rest = after;
        world.step(*what, *a, *b, *c, &mut rest);
    }
    world.use_all();
    world.restart(true);
    world.use_all();
}

/// What a record is besides its sequence.
type Known = (Vec<u8>, Vec<u8>, Vec<u8>, i64);

fn known(record: &Record<'_>) -> Known {
    let (subject, headers) = (record.subject.to_vec(), record.headers.to_vec());
    (subject, headers, record.payload.to_vec(), record.unix_nanos)
}

/// What was done to the files since they were written.
#[derive(Clone, Copy, PartialEq)]
enum Damage {
    Nothing,
    OneBit,
    Much,
}

struct World {
    options: FileOptions,
    is_forged: bool,
    disk: MemoryDisk,
    limits: StoreLimits,
    store: Option<Store>,
    damage: Damage,
    /// Something was not as it was written, once.
    was_damaged: bool,
    /// All that was ever stored. A sequence is used again when a damaged end was cut.
    stored: BTreeMap<u64, Vec<Known>>,
    /// What the store held when it was last whole, without an atomic batch that had not ended.
    before: BTreeSet<u64>,
    /// The first sequence of an atomic batch that has not ended. A restart drops it.
    batch: Option<u64>,
    now: i64,
}

impl World {
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
        World {
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
                let sequence = self.near(a, b);
                let _ = self.store().remove(sequence, c & 1 != 0);
            }
            6 => {
                let filter = FILTERS[usize::from(a) % FILTERS.len()];
                let below = (b & 1 != 0).then(|| self.near(b >> 1, c));
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
        // Every second one is easy to compress.
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
        let was_taken = store.append_at(sequence, &record);
        match was_taken {
            Ok(()) => {
                self.batch = record.more_in_batch.then(|| self.batch.unwrap_or(sequence));
                let known = (subject.to_vec(), record.headers.to_vec(), payload, now);
                self.stored.entry(sequence).or_default().push(known);
            }
            Err(StoreError::Damaged(_)) => assert!(self.was_damaged),
            Err(StoreError::TooLarge | StoreError::SequenceTaken { .. }) => {}
            Err(error) => panic!("{error} with a sound disk"),
        }
    }

    /// A sequence around those that there are.
    fn near(&mut self, a: u8, b: u8) -> u64 {
        let store = self.store();
        match a & 1 {
            0 => store.first_sequence().saturating_add(u64::from(b)),
            _ => (store.last_sequence() + 1).saturating_sub(u64::from(b)),
        }
    }

    /// Changes a file from a place on.
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
            mend(&name, &before, &mut bytes, at);
        }
        self.disk.write(&name, bytes);
        self.damage = match (self.damage, flipped) {
            (damage, 0) => damage,
            (Damage::Nothing, 1) if !self.is_forged => Damage::OneBit,
            _ => Damage::Much,
        };
    }

    /// Does to a whole file what disks and people do.
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
            // The stream's own salt.
            bytes.splice(..0, before.iter().take(2 * SEGMENT_HEAD_BYTES).copied());
            let mut at = 2 * SEGMENT_HEAD_BYTES;
            while at < bytes.len() {
                at += mend_record(&mut bytes, at).max(1);
            }
        }
        self.damage = Damage::Much;
        self.disk.write(&name, bytes);
    }

    /// Of a store that is put away, one file.
    fn file(&mut self, number: u8) -> Option<(String, Vec<u8>)> {
        self.put_away(false);
        let names = self.disk.names();
        let name = names.get(usize::from(number) % names.len().max(1))?;
        Some((name.clone(), self.disk.read(name)))
    }

    fn put_away(&mut self, properly: bool) {
        let Some(mut store) = self.store.take() else {
            return;
        };
        let (held, _) = self.read_all(&mut store);
        self.before = match self.batch {
            Some(batch) => held.range(..batch).copied().collect(),
            None => held,
        };
        if properly {
            store.close().expect("a disk that is sound");
        } else {
            store
                .sync_now(Duration::ZERO)
                .expect("a disk that is sound");
        }
    }

    fn restart(&mut self, properly: bool) {
        self.store();
        self.put_away(properly);
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
                assert!(damage != Damage::Nothing, "it was written so");
                self.disk = MemoryDisk::default();
                self.before.clear();
                return self.open();
            }
            Err(error) => panic!("{error} with a sound disk"),
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

    /// Which records there are and how many bytes they count for, each of which was stored so.
    fn read_all(&self, store: &mut Store) -> (BTreeSet<u64>, u64) {
        let mut all = Filters::new([&b">"[..]]).expect("a filter");
        let (mut held, mut bytes, mut from) = (BTreeSet::new(), 0, 0);
        for _ in 0..READ_MAX {
            let Ok(Some(sequence)) = store.next_matching(&mut all, from) else {
                break;
            };
            assert!(sequence >= from, "it goes back to {sequence}");
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
                assert!(is_known, "{sequence} was never stored so: {record:?}");
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

    /// Asks everything, and goes on.
    fn use_all(&mut self) {
        self.store();
        let mut store = self.store.take().expect("just opened");
        let (held, bytes) = self.read_all(&mut store);
        let state = store.state();
        if !self.is_forged {
            // What was found damaged by now is given up.
            let (again, _) = self.read_all(&mut store);
            assert_eq!(again, held);
            assert_eq!(state.messages, held.len() as u64);
            // How long a record was of which nothing is left, nobody knows.
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
        store
            .sync_now(Duration::ZERO)
            .expect("a disk that is sound");
    }
}

fn sum(start: u32, bytes: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new_with_initial(start);
    hasher.update(bytes);
    hasher.finalize().to_le_bytes()
}

/// Puts right the checksum at the end of a file.
fn set_sum(bytes: &mut [u8]) {
    if let Some((content, last)) = bytes.split_last_chunk_mut::<4>() {
        *last = sum(0, content);
    }
}

/// Puts right the checksums of what was changed in a file.
fn mend(name: &str, before: &[u8], bytes: &mut [u8], changed: usize) {
    if !name.ends_with(".log") {
        return set_sum(bytes);
    }
    for head in bytes.chunks_exact_mut(SEGMENT_HEAD_BYTES).take(2) {
        set_sum(head);
    }
    let mut at = 2 * SEGMENT_HEAD_BYTES;
    while let Some(length) = record_bytes(before, at).filter(|length| *length > 0) {
        if at + length > changed {
            mend_record(bytes, at);
            return;
        }
        at += length;
    }
}

fn record_bytes(bytes: &[u8], at: usize) -> Option<usize> {
    let length = bytes.get(at + 8..at + 12)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(length)).ok()
}

/// Puts right the checksums of the record at a place; says how long it is.
fn mend_record(bytes: &mut [u8], at: usize) -> usize {
    let Some(salt) = bytes.get(20..24).and_then(|salt| salt.try_into().ok()) else {
        return 0;
    };
    let salt = u32::from_le_bytes(salt);
    let length = record_bytes(bytes, at).unwrap_or(0);
    let end = (at + length).clamp(at, bytes.len());
    let record = &mut bytes[at..end];
    let head_bytes = match record.get(15) {
        Some(flags) if flags & PACKED != 0 => PACKED_HEAD_BYTES,
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
