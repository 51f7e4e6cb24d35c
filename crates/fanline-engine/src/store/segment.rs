//! A segment: a run of records that are stored together, and whose file is removed when all of them are dead.

use std::sync::Arc;

use super::files::SegmentFile;
use super::log::SEQUENCE_MAX;
use super::marks::Mark;
use super::record::HEAD_BYTES;
use super::slots::{Slot, Slots};
use super::subjects::SubjectId;

/// Maximum length of a file, because offsets have 32 bits.
const FILE_BYTES_MAX: u64 = 1 << 32;

/// A run of records in sequence order.
pub(super) struct Segment {
    /// Slots of its records; `None` for a segment on disk whose slots are not in memory.
    pub(super) slots: Option<Slots>,
    /// Lowest sequence that it may contain.
    pub(super) first: u64,
    /// Highest sequence in the segment, live or dead; one below `first` if the segment is empty.
    pub(super) last: u64,
    /// Number of its records, live or dead.
    pub(super) records: u32,
    /// Set of its dead records, by slot.
    dead: Dead,
    /// Size of the live records in bytes, on disk or in memory.
    pub(super) live_bytes: u64,
    /// The earliest time of its records, live or dead. The next field is the latest.
    pub(super) earliest: i64,
    pub(super) latest: i64,
    /// Whether the times of its records never decrease.
    pub(super) is_in_order_of_time: bool,
    /// Subjects that it may contain; `None` while records are appended to it.
    pub(super) bloom: Option<BloomFilter>,
    /// Positions of some records, from which others are found without the slots. Empty in memory, and while
    /// records are appended.
    pub(super) marks: Vec<Mark>,
    /// Position of the record that was last found by a mark.
    pub(super) last_found: Option<Mark>,
    /// Number of bytes read so far to find records by marks.
    pub(super) lookup_bytes: u64,
    /// Sequence of the newest record whose append removed a record of this segment because of a limit; 0 if
    /// there is none. Until the newer record is durable, the file with the removed one must stay.
    pub(super) limited_by: u64,
    /// Slot below which all records are dead.
    front: u32,
    /// Bytes of its records.
    pub(super) body: Body,
    /// Value of the store's `loads` counter when the slots were last requested.
    pub(super) used: u64,
}

/// The bytes of a segment.
pub(super) enum Body {
    Memory(Vec<u8>),
    File(SegmentFile),
}

impl Segment {
    pub(super) fn new(first: u64, slots: Slots, body: Body) -> Self {
        Segment {
            slots: Some(slots),
            first,
            last: first.saturating_sub(1),
            records: 0,
            dead: Dead::default(),
            live_bytes: 0,
            earliest: i64::MAX,
            latest: i64::MIN,
            is_in_order_of_time: true,
            bloom: None,
            marks: Vec::new(),
            last_found: None,
            lookup_bytes: 0,
            limited_by: 0,
            front: 0,
            body,
            used: 0,
        }
    }

    /// Creates a segment on disk, as an index describes it, without slots.
    pub(super) fn unloaded(first: u64, last: u64, records: u32, file: SegmentFile) -> Self {
        let mut segment = Segment::new(first, Slots::default(), Body::File(file));
        segment.slots = None;
        segment.last = last;
        segment.records = records;
        segment
    }

    /// Returns whether a file can contain as many records as an index claims. Without this check, a wrong
    /// count could make the store allocate too much memory.
    pub(super) fn is_plausible(&self) -> bool {
        let Body::File(file) = &self.body else {
            return false;
        };
        let records = u64::from(self.records);
        self.last <= SEQUENCE_MAX
            && self.first <= self.last + 1
            && records <= self.last + 1 - self.first
            && file.bytes <= FILE_BYTES_MAX
            && records * HEAD_BYTES as u64 <= file.bytes
            && self.dead.is_below(self.records as usize)
            && self.live_bytes <= file.bytes
    }

    /// Copies the segment without its slots, and without bytes in memory.
    pub(super) fn without_slots(&self) -> Self {
        let body = match &self.body {
            Body::File(file) => Body::File(*file),
            Body::Memory(_) => Body::Memory(Vec::new()),
        };
        Segment {
            slots: None,
            dead: self.dead.clone(),
            bloom: self.bloom.clone(),
            marks: self.marks.clone(),
            body,
            ..*self
        }
    }

    /// Updates the totals for a record that was added to `slots`.
    pub(super) fn note_added(&mut self, sequence: u64, bytes: u32, unix_nanos: i64) {
        if self.records == 0 {
            self.first = sequence;
        }
        self.last = sequence;
        self.records += 1;
        self.live_bytes += u64::from(bytes);
        self.is_in_order_of_time &= self.latest <= unix_nanos;
        self.earliest = self.earliest.min(unix_nanos);
        self.latest = self.latest.max(unix_nanos);
    }

    /// Returns the number of live records.
    pub(super) fn live(&self) -> u32 {
        self.records - self.dead.count
    }

    /// Returns whether all sequences from its first to its last are live.
    pub(super) fn is_whole(&self) -> bool {
        self.dead.count == 0
            && (self.last + 1).saturating_sub(self.first) == u64::from(self.records)
    }

    pub(super) fn dead(&self) -> &Dead {
        &self.dead
    }

    pub(super) fn set_dead(&mut self, dead: Dead) {
        self.dead = dead;
        self.front = 0;
    }

    pub(super) fn is_dead(&self, slot: usize) -> bool {
        self.dead.contains(slot)
    }

    /// Marks a live slot as dead.
    pub(super) fn kill(&mut self, slot: usize, bytes: u32) {
        self.dead.insert(slot, self.records as usize);
        self.live_bytes = self.live_bytes.saturating_sub(u64::from(bytes));
    }

    /// Returns the first live slot at or after `slot`.
    pub(super) fn next_live(&self, slot: usize) -> Option<usize> {
        self.dead
            .next_absent(slot.max(self.front as usize), self.records as usize)
    }

    /// Returns the last live slot whose number is less than `below`.
    pub(super) fn previous_live(&self, below: usize) -> Option<usize> {
        let below = below.min(self.records as usize);
        (self.front as usize..below)
            .rev()
            .find(|slot| !self.dead.contains(*slot))
    }

    /// Returns the first live slot, and caches it.
    pub(super) fn first_live(&mut self) -> Option<usize> {
        let last_found = self.next_live(0);
        let front = last_found.unwrap_or(self.records as usize);
        self.front = u32::try_from(front).unwrap_or(self.front);
        last_found
    }
}

/// A set of slots. An empty set allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Dead {
    pub(super) words: Vec<u64>,
    pub(super) count: u32,
}

impl Dead {
    pub(super) fn from_words(words: Vec<u64>) -> Self {
        let count = words.iter().map(|word| word.count_ones()).sum();
        Dead { words, count }
    }

    pub(super) fn contains(&self, slot: usize) -> bool {
        let word = self.words.get(slot / 64);
        word.is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    fn insert(&mut self, slot: usize, slots: usize) {
        if self.words.len() <= slot / 64 {
            // Allocates for all slots at once, so that the set does not grow step by step.
            self.words.resize(slots.max(slot + 1).div_ceil(64), 0);
        }
        self.words[slot / 64] |= 1 << (slot % 64);
        self.count += 1;
    }

    /// Returns whether the set contains only slots below `slots`.
    fn is_below(&self, slots: usize) -> bool {
        let mut words = self.words.iter().skip(slots / 64);
        let last = words.next().is_none_or(|word| word >> (slots % 64) == 0);
        last && words.all(|word| *word == 0)
    }

    fn next_absent(&self, from: usize, slots: usize) -> Option<usize> {
        let mut slot = from;
        while slot < slots {
            let Some(word) = self.words.get(slot / 64) else {
                return Some(slot);
            };
            let absent = !word >> (slot % 64);
            if absent != 0 {
                let last_found = slot + absent.trailing_zeros() as usize;
                return (last_found < slots).then_some(last_found);
            }
            slot = (slot / 64 + 1) * 64;
        }
        None
    }
}

/// A Bloom filter of the subjects in a segment, with ten bits for each subject. It may return `true` for a
/// subject that is not in the segment, but never `false` for one that is. Clones share the bits.
#[derive(Clone, Debug)]
pub(super) struct BloomFilter {
    pub(super) words: Arc<Vec<u64>>,
}

const BLOOM_BITS_PER_SUBJECT: usize = 10;
const BLOOM_PROBES: u32 = 5;

impl BloomFilter {
    pub(super) fn new(distinct: usize) -> Self {
        let words = (distinct * BLOOM_BITS_PER_SUBJECT).div_ceil(64).max(1);
        BloomFilter::from_words(vec![0; words])
    }

    pub(super) fn from_words(words: Vec<u64>) -> Self {
        BloomFilter {
            words: Arc::new(words),
        }
    }

    pub(super) fn insert(&mut self, hash: u64) {
        let bits = self.bits(hash);
        let words = Arc::make_mut(&mut self.words);
        for bit in bits {
            words[bit / 64] |= 1 << (bit % 64);
        }
    }

    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let mut bits = self.bits(hash);
        bits.all(|bit| self.words[bit / 64] >> (bit % 64) & 1 == 1)
    }

    fn bits(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let bits = self.words.len() as u64 * 64;
        let step = (hash >> 32) | 1;
        (0..u64::from(BLOOM_PROBES)).map(move |probe| {
            let bit = hash.wrapping_add(probe.wrapping_mul(step)) % bits;
            usize::try_from(bit).unwrap_or_default()
        })
    }
}

/// Hashes the name of a subject to 64 bits (FNV-1a with the finalizer of splitmix64). Checkpoints contain
/// these hashes, so they are the same on every machine.
pub(super) fn hash_name(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// The location of a record in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) segment: usize,
    pub(super) slot: usize,
    pub(super) sequence: u64,
    /// Index entry. Its own `subject` may be unknown, even if the field `subject` of this location is known.
    pub(super) entry: Slot,
    /// Length of the record in the segment in bytes.
    pub(super) stored_bytes: u32,
    /// Subject of the record; `None` until it is read from the record.
    pub(super) subject: Option<SubjectId>,
}
