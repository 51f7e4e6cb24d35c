//! The segments of a store: begins, seals, loads, evicts, and removes them.

use std::collections::HashMap;

use super::Store;
use super::disk::DiskError;
use super::files::{SEGMENT_HEAD_BYTES, SegmentHead};
use super::record::{self, HEAD_BYTES, Kind};
use super::scan::{Scanned, Scanner};
use super::segment::{BloomFilter, Body, Segment};
use super::slots::{Slot, Slots};
use super::subjects::{SubjectId, UNKNOWN};
use super::types::StoreError;

/// Maximum number of removed segments whose buffers are retained for reuse.
const SPARE_MAX: usize = 2;
/// Maximum size in bytes of slots in memory for a store on disk, not counting the newest segment.
pub(super) const LOADED_BYTES_MAX: usize = 32 << 20;

/// Buffers to reuse.
#[derive(Default)]
pub(super) struct Spare {
    slots: Vec<Slots>,
    buffers: Vec<Vec<u8>>,
}

impl Spare {
    fn recycle_slots(&mut self, slots: Option<Slots>) {
        if self.slots.len() < SPARE_MAX {
            self.slots.extend(slots);
        }
    }

    fn recycle_buffer(&mut self, mut buffer: Vec<u8>) {
        if self.buffers.len() < SPARE_MAX {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    fn slots(&mut self, base: u64) -> Slots {
        let mut slots = self.slots.pop().unwrap_or_default();
        slots.reset(base);
        slots
    }
}

impl Store {
    /// Begins a new segment if the last one has no room for the record.
    pub(super) fn roll_when_full(&mut self, sequence: u64, bytes: u32) -> Result<(), StoreError> {
        let active = self.segments.back().expect("never empty");
        let (used, is_empty) = match &active.body {
            Body::Memory(buffer) => (buffer.len(), buffer.is_empty()),
            Body::File(file) => {
                let used = usize::try_from(file.bytes).unwrap_or(usize::MAX);
                (used, used <= SEGMENT_HEAD_BYTES)
            }
        };
        let fits = used.saturating_add(bytes as usize) <= self.segment_bytes;
        let slots = active.slots.as_ref();
        let can_hold = active.records == 0 || slots.is_some_and(|s| s.can_hold(sequence));
        if is_empty || fits && can_hold {
            return Ok(());
        }
        self.roll(sequence)
    }

    /// Begins a new segment.
    pub(super) fn roll(&mut self, first: u64) -> Result<(), StoreError> {
        self.log_floor();
        let body = match (&mut self.files, self.segments.back().map(|s| &s.body)) {
            (Some(files), Some(Body::File(active))) => {
                let number = active.number + 1;
                let previous_bytes = u32::try_from(files.end()).unwrap_or(0);
                let (salt, key_check) = (files.salt, files.encoding.key_check());
                Body::File(files.roll(&SegmentHead {
                    number,
                    generation: 0,
                    through: number,
                    salt,
                    first,
                    key_check,
                    previous_bytes,
                    has_sync_points: true,
                })?)
            }
            _ => Body::Memory(self.spare.buffers.pop().unwrap_or_default()),
        };
        self.upkeep.written += SEGMENT_HEAD_BYTES as u64;
        self.seal();
        let slots = self.spare.slots(first);
        self.segments.push_back(Segment::new(first, slots, body));
        self.retire_dead(self.segments.len() - 2);
        self.evict(usize::MAX);
        Ok(())
    }

    /// Seals the last segment, so that nothing more is appended to it.
    pub(super) fn seal(&mut self) {
        let mut bloom = BloomFilter::new(self.active_hashes.len());
        for hash in self.active_hashes.drain(..) {
            bloom.insert(hash);
        }
        if let Some(sealed) = self.segments.back_mut() {
            sealed.bloom = Some(bloom);
            sealed.note_marks(self.segment_bytes);
        }
    }

    /// Removes a segment without live records. On disk only the first segment can be removed, because later
    /// segments may contain control records (logged removals) for records of earlier ones.
    pub(super) fn retire_dead(&mut self, at: usize) {
        let is_dead = |store: &Store, at: usize| {
            at + 1 < store.segments.len() && store.segments[at].live() == 0
        };
        if self.files.is_none() {
            if is_dead(self, at) {
                self.retire(at);
            }
            return;
        }
        while at == 0 && is_dead(self, 0) {
            self.retire(0);
        }
        self.free_full_disk();
    }

    fn retire(&mut self, at: usize) {
        let Some(gone) = self.segments.remove(at) else {
            return;
        };
        self.spare.recycle_slots(gone.slots);
        match gone.body {
            Body::Memory(buffer) => self.spare.recycle_buffer(buffer),
            Body::File(file) => self.upkeep.retire(file, gone.limited_by),
        }
    }

    /// Removes all segments and continues with a new one at a sequence.
    pub(super) fn restart(&mut self, next_sequence: u64) -> Result<(), StoreError> {
        if self.failure() == Some(DiskError::Full) {
            // First removes all segments except the newest, to make room for the next writes.
            let newest = self.segments.back().map_or(0, |segment| segment.first);
            self.drop_below(newest)?;
        }
        self.roll(next_sequence)?;
        self.log_control(Kind::Floor, next_sequence, b"");
        if let Some(files) = &mut self.files {
            files.take_floor();
        }
        while self.segments.len() > 1 {
            // A purge removes the segment's file even if it contains records that limits removed.
            self.segments[0].limited_by = 0;
            self.retire(0);
        }
        Ok(())
    }

    /// Returns the index of the first segment whose last sequence is `sequence` or higher.
    pub(super) fn segment_at_or_after(&self, sequence: u64) -> usize {
        let newest = self.segments.len().saturating_sub(1);
        match self.segments.back() {
            Some(last) if sequence >= last.first => newest + usize::from(sequence > last.last),
            _ => match self.segments.get(self.loaded) {
                Some(s) if s.first <= sequence && sequence <= s.last => self.loaded,
                _ => self.segments.partition_point(|s| s.last < sequence),
            },
        }
    }

    /// Returns the slots of a segment, and loads them if they are not in memory.
    pub(super) fn load(&mut self, at: usize) -> Result<&Slots, StoreError> {
        self.loads += 1;
        self.loaded = at;
        self.segments[at].used = self.loads;
        if self.segments[at].slots.is_none() {
            let slots = self.read_slots(at)?;
            let segment = &mut self.segments[at];
            segment.slots = Some(slots);
            if segment.marks.is_empty() && segment.bloom.is_some() {
                segment.note_marks(self.segment_bytes);
            }
            self.evict(at);
        }
        Ok(self.segments[at].slots.as_ref().expect("just loaded"))
    }

    /// Returns the size in bytes of all slots in memory, without those of the newest segment and of segment
    /// `except`.
    pub(super) fn loaded_bytes(&self, except: usize) -> usize {
        let slots = self
            .loaded(except)
            .filter_map(|(_, segment)| segment.slots.as_ref());
        slots.map(Slots::room_bytes).sum()
    }

    fn loaded(&self, except: usize) -> impl Iterator<Item = (usize, &Segment)> {
        let sealed = self.segments.len().saturating_sub(1);
        let segments = self.segments.iter().take(sealed).enumerate();
        segments.filter(move |(at, segment)| *at != except && segment.slots.is_some())
    }

    fn read_slots(&mut self, at: usize) -> Result<Slots, StoreError> {
        let segment = &mut self.segments[at];
        let mut slots = self.spare.slots(segment.first);
        let (Body::File(file), Some(files)) = (&mut segment.body, &mut self.files) else {
            return Ok(slots);
        };
        let mut bytes = Vec::new();
        files.read_all(file, &mut bytes)?;
        bytes.truncate(usize::try_from(file.bytes).unwrap_or(usize::MAX));
        let mut scanner = Scanner::new(&bytes, SEGMENT_HEAD_BYTES, files.salt, false);
        let records_max = (segment.records as usize).min(bytes.len() / HEAD_BYTES);
        let mut found: Vec<FoundSlot> = Vec::with_capacity(records_max);
        let mut holes = Vec::new();
        let mut least = segment.first;
        while let Some((offset, what)) = scanner.next() {
            let head = match what {
                Scanned::Hole { bytes: len } => {
                    holes.push(Hole::new(found.len(), len, &bytes[offset..], files.salt));
                    continue;
                }
                Scanned::Intact(head) | Scanned::Damaged(head) if head.kind.is_message() => head,
                Scanned::Intact(_) | Scanned::Damaged(_) => continue,
            };
            // Replay also ignores records whose sequence is not above that of the record before.
            if head.sequence < least || head.sequence > segment.last {
                continue;
            }
            least = head.sequence + 1;
            if found.len() >= segment.records as usize {
                break;
            }
            let plain = files.plain(&bytes[offset..offset + head.len()]);
            let subject = plain
                .and_then(record::decode)
                .and_then(|parts| self.subjects.find(parts.record.subject));
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            let slot = Slot::new(offset, &head, subject.unwrap_or(UNKNOWN));
            found.push((head.sequence, slot, head.bytes));
        }
        if scanner.end() < bytes.len() {
            let rest = &bytes[scanner.end()..];
            holes.push(Hole::new(found.len(), rest.len(), rest, files.salt));
        }
        fill_holes(&mut found, &holes, segment);
        for (number, (sequence, slot, stored)) in found.into_iter().enumerate() {
            self.must_recount |= slot.subject == UNKNOWN && !segment.is_dead(number);
            slots.push(sequence, slot, stored);
        }
        Ok(slots)
    }

    /// Recounts the records of each subject, if some count is known to be wrong.
    pub(super) fn recount(&mut self) -> Result<(), StoreError> {
        if !std::mem::take(&mut self.must_recount) {
            return Ok(());
        }
        let mut counted: HashMap<SubjectId, (u64, u64, u64)> = HashMap::new();
        for at in 0..self.segments.len() {
            self.load(at)?;
            let segment = &self.segments[at];
            let Some(slots) = &segment.slots else {
                continue;
            };
            let mut slot = 0;
            while let Some(live) = segment.next_live(slot) {
                let sequence = slots.sequence(live);
                let entry = counted.entry(slots.entries[live].subject);
                let (messages, _, last) = entry.or_insert((0, sequence, sequence));
                *messages += 1;
                *last = sequence;
                slot = live + 1;
            }
        }
        let all: Vec<SubjectId> = self.subjects.iter().map(|(id, _)| id).collect();
        for id in all {
            let (messages, first, last) = counted.get(&id).copied().unwrap_or_default();
            let subject = self.subjects.get_mut(id);
            subject.messages = messages;
            subject.first_at_least = first;
            subject.last = last;
            if messages == 0 {
                self.subjects.remove(id);
            }
        }
        // Loading slots may have set the flag again for damage that is counted now.
        self.must_recount = false;
        Ok(())
    }

    /// Evicts the slots that were not used for the longest time, except those of one segment.
    pub(super) fn evict(&mut self, except: usize) {
        if self.files.is_none() {
            return;
        }
        while self.loaded_bytes(except) > LOADED_BYTES_MAX {
            let oldest = self.loaded(except).min_by_key(|(_, segment)| segment.used);
            let Some((at, _)) = oldest else {
                return;
            };
            let segment = &mut self.segments[at];
            let (Body::File(file), Some(files)) = (&mut segment.body, &mut self.files) else {
                return;
            };
            // If the file waits for a sync, its slots stay: after a failed sync, the file may return wrong
            // bytes.
            if !files.close(file) {
                return;
            }
            segment.lookup_bytes = 0;
            self.spare.recycle_slots(segment.slots.take());
        }
    }
}

/// A sequence, the record's slot, and the record's length in the segment in bytes.
type FoundSlot = (u64, Slot, u32);

/// Returns a substitute for a record that was not found.
fn lost(sequence: u64) -> FoundSlot {
    (sequence, Slot::lost(), Slot::LOST_BYTES)
}

/// Bytes that are not a record, between records.
struct Hole {
    /// Number of records before it.
    behind: usize,
    bytes: usize,
    /// Sequence of the first record in the hole, if known.
    sequence: Option<u64>,
}

impl Hole {
    fn new(behind: usize, bytes: usize, from: &[u8], salt: u32) -> Self {
        Hole {
            behind,
            bytes,
            sequence: record::repaired_head(from, salt).map(|head| head.sequence),
        }
    }
}

/// Adds slots for lost records, so that later records have the same slot numbers as before the damage. The
/// sequence of a lost record is determined by the adjacent records or by the repaired head. If neither
/// determines the sequence, the lost record gets the highest possible one. Removing all records below a
/// sequence then does not remove the lost record by mistake.
fn fill_holes(found: &mut Vec<FoundSlot>, holes: &[Hole], segment: &Segment) {
    let records = segment.records as usize;
    let mut missing = records.saturating_sub(found.len());
    if missing == 0 {
        return;
    }
    let known = std::mem::replace(found, Vec::with_capacity(records));
    if segment.last + 1 - segment.first == u64::from(segment.records) {
        let mut known = known.into_iter().peekable();
        for sequence in segment.first..=segment.last {
            let slot = known.next_if(|(known, ..)| *known == sequence);
            found.push(slot.unwrap_or_else(|| lost(sequence)));
        }
        return;
    }
    let largest = holes.iter().map(|hole| hole.bytes).max();
    let mut taken = 0;
    for (number, hole) in holes.iter().enumerate() {
        let wanted = match Some(hole.bytes) == largest {
            true => missing.saturating_sub(holes.len() - number - 1).max(1),
            false => 1,
        };
        found.extend_from_slice(&known[taken..hole.behind]);
        taken = hole.behind;
        let least = found.last().map_or(segment.first, |(last, ..)| last + 1);
        let end = known
            .get(taken)
            .map_or(segment.last + 1, |(next, ..)| *next);
        let room = usize::try_from(end.saturating_sub(least)).unwrap_or(usize::MAX);
        let count = wanted.min(missing).min(room);
        match hole.sequence.filter(|s| (least..end).contains(s)) {
            Some(sequence) if count == 1 => found.push(lost(sequence)),
            _ => found.extend((end - count as u64..end).map(lost)),
        }
        missing -= count;
    }
    found.extend_from_slice(&known[taken..]);
    // Adds slots for the records that are missing because the file is too short.
    while found.len() < records {
        let least = found.last().map_or(segment.first, |(last, ..)| last + 1);
        let left = (records - found.len() - 1) as u64;
        found.push(lost(least.max(segment.last.saturating_sub(left))));
    }
}
