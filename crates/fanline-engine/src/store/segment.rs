//! A run of records that are kept together, and removed together when none of them lives.

use std::sync::Arc;

use super::files::SegmentFile;
use super::log::SEQUENCE_MAX;
use super::marks::Mark;
use super::record::HEAD_BYTES;
use super::slots::{Slot, Slots};
use super::subjects::SubjectId;

/// No file is longer: where a record is in it has 32 bits.
const FILE_BYTES_MAX: u64 = 1 << 32;

/// A run of records in the order of their sequences.
pub(super) struct Segment {
    /// Where its records are found; `None` for one on disk whose index is not in memory.
    pub(super) slots: Option<Slots>,
    /// The first sequence that can be in it.
    pub(super) first: u64,
    /// The highest sequence in it, dead or not; one below `first` when it holds none.
    pub(super) last: u64,
    /// How many records it holds, dead or not.
    pub(super) records: u32,
    /// The records that are dead.
    dead: Dead,
    /// Bytes on disk or in memory that live records take.
    pub(super) live_bytes: u64,
    /// The earliest and the latest time of its records, dead or not.
    pub(super) earliest: i64,
    pub(super) latest: i64,
    /// Whether the times of its records never go back.
    pub(super) is_in_order_of_time: bool,
    /// Which subjects it may hold; `None` while records are added.
    pub(super) holds: Option<Holds>,
    /// Where some of its records are, so that others are found without its slots; none while records
    /// are added, and in memory.
    pub(super) marks: Vec<Mark>,
    /// The record that was found last with their help.
    pub(super) found: Option<Mark>,
    /// So much was read to find records so.
    pub(super) looked_bytes: u64,
    /// The newest record for which a limit dropped one of this segment; 0 when there is none. Until that record is
    /// durable, the one that it made go is needed.
    pub(super) limited_by: u64,
    /// All slots below this are dead.
    front: u32,
    /// Where its bytes are.
    pub(super) body: Body,
    /// When its slots were last asked for.
    pub(super) used: u64,
}

/// Where the bytes of a segment are.
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
            holds: None,
            marks: Vec::new(),
            found: None,
            looked_bytes: 0,
            limited_by: 0,
            front: 0,
            body,
            used: 0,
        }
    }

    /// One on disk, with its numbers but without its slots.
    pub(super) fn unloaded(first: u64, last: u64, records: u32, file: SegmentFile) -> Self {
        let mut segment = Segment::new(first, Slots::default(), Body::File(file));
        segment.slots = None;
        segment.last = last;
        segment.records = records;
        segment
    }

    /// Whether a file can hold what an index says of it: nobody makes room for records that cannot be there.
    pub(super) fn is_possible(&self) -> bool {
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

    /// As it is now, without its slots; one in memory without its bytes.
    pub(super) fn without_slots(&self) -> Self {
        let body = match &self.body {
            Body::File(file) => Body::File(*file),
            Body::Memory(_) => Body::Memory(Vec::new()),
        };
        Segment {
            slots: None,
            dead: self.dead.clone(),
            holds: self.holds.clone(),
            marks: self.marks.clone(),
            body,
            ..*self
        }
    }

    /// Notes a record that was added to `slots`.
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

    /// How many records live.
    pub(super) fn live(&self) -> u32 {
        self.records - self.dead.count
    }

    /// Whether it holds all sequences from its first to its last, and all of them live.
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

    /// Marks a slot dead that lives.
    pub(super) fn kill(&mut self, slot: usize, bytes: u32) {
        self.dead.insert(slot, self.records as usize);
        self.live_bytes = self.live_bytes.saturating_sub(u64::from(bytes));
    }

    /// The first slot from here on that lives.
    pub(super) fn next_live(&self, slot: usize) -> Option<usize> {
        self.dead
            .next_absent(slot.max(self.front as usize), self.records as usize)
    }

    /// The last slot below this one that lives.
    pub(super) fn previous_live(&self, below: usize) -> Option<usize> {
        let below = below.min(self.records as usize);
        (self.front as usize..below)
            .rev()
            .find(|slot| !self.dead.contains(*slot))
    }

    /// The first slot that lives, found the faster next time.
    pub(super) fn first_live(&mut self) -> Option<usize> {
        let found = self.next_live(0);
        let front = found.unwrap_or(self.records as usize);
        self.front = u32::try_from(front).unwrap_or(self.front);
        found
    }
}

/// A set of slots. Costs nothing while it is empty.
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
            // All at once, so that dying one after the other does not grow it again and again.
            self.words.resize(slots.max(slot + 1).div_ceil(64), 0);
        }
        self.words[slot / 64] |= 1 << (slot % 64);
        self.count += 1;
    }

    /// Whether there is none of this slot or above.
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
                let found = slot + absent.trailing_zeros() as usize;
                return (found < slots).then_some(found);
            }
            slot = (slot / 64 + 1) * 64;
        }
        None
    }
}

/// Which subjects a segment may hold: never wrong when it says no (a Bloom filter, ten bits for
/// each subject). Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Holds {
    pub(super) words: Arc<Vec<u64>>,
}

const HOLDS_BITS_PER_SUBJECT: usize = 10;
const HOLDS_PROBES: u32 = 5;

impl Holds {
    pub(super) fn new(distinct: usize) -> Self {
        let words = (distinct * HOLDS_BITS_PER_SUBJECT).div_ceil(64).max(1);
        Holds::from_words(vec![0; words])
    }

    pub(super) fn from_words(words: Vec<u64>) -> Self {
        Holds {
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

    pub(super) fn may_hold(&self, hash: u64) -> bool {
        let mut bits = self.bits(hash);
        bits.all(|bit| self.words[bit / 64] >> (bit % 64) & 1 == 1)
    }

    fn bits(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let bits = self.words.len() as u64 * 64;
        let step = (hash >> 32) | 1;
        (0..u64::from(HOLDS_PROBES)).map(move |probe| {
            let bit = hash.wrapping_add(probe.wrapping_mul(step)) % bits;
            usize::try_from(bit).unwrap_or_default()
        })
    }
}

/// Spreads the name of a subject over 64 bits, the same on every machine (FNV-1a, finished as in
/// splitmix64).
pub(super) fn hash_name(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// A place in the log that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: usize,
    pub(super) slot: usize,
    pub(super) sequence: u64,
    /// Its subject may be unknown.
    pub(super) entry: Slot,
    /// How many bytes it takes where it is.
    pub(super) stored_bytes: u32,
    /// `None` when it was not asked for yet: the record tells.
    pub(super) subject: Option<SubjectId>,
}
