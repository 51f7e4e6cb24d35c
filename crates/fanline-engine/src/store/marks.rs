//! Finds a record in a segment whose slots are not in memory, by reading a small part of the segment. Marks
//! are the known positions of some records, at which reading can begin.

use super::Store;
use super::record::Head;
use super::segment::{Body, Location, Segment};
use super::segments::LOADED_BYTES_MAX;
use super::slots::{Slot, Slots};
use super::subjects::UNKNOWN;
use super::types::StoreError;

/// Approximate number of marks of a segment. A part is the range of bytes between two marks.
const MARKS_PER_SEGMENT: usize = 256;
/// Minimum length of a part in bytes.
const PART_BYTES_MIN: usize = 1024;
/// Maximum length in bytes of a part, which is read to find one record.
const PART_BYTES_MAX: usize = 64 << 10;
/// Maximum number of open files of segments whose slots are not in memory.
const OPEN_MAX: usize = 64;
/// When lookups have read this multiple of a segment's length, the slots are loaded if there is room in
/// memory.
const LOOKUPS_PER_LOAD: u64 = 2;

/// Position of a record in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Number of records that precede this one in the segment.
    pub(super) slot: u32,
    pub(super) offset: u32,
    pub(super) sequence: u64,
}

/// The key of a lookup in a segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum LookupKey {
    Sequence(u64),
    Slot(usize),
}

impl LookupKey {
    fn is_at_or_after(self, mark: &Mark) -> bool {
        match self {
            LookupKey::Sequence(sequence) => mark.sequence <= sequence,
            LookupKey::Slot(slot) => mark.slot as usize <= slot,
        }
    }
}

/// Result of a lookup in a part of a segment.
pub(super) enum Lookup {
    /// The record exists, live or dead.
    Record(Location),
    /// The record does not exist.
    Missing,
    /// The whole segment must be loaded to find out: the part is damaged, or there is no mark.
    Unknown,
}

/// The range from one mark to the next.
struct MarkedRange {
    /// Beginning: a mark, or a later record that was found earlier.
    from: Mark,
    /// The first slot after the range.
    end_slot: u32,
    bytes: usize,
}

/// Returns the distance between marks in bytes.
fn part_bytes(segment_bytes: usize) -> usize {
    (segment_bytes / MARKS_PER_SEGMENT).clamp(PART_BYTES_MIN, PART_BYTES_MAX)
}

/// Returns the marks of a sealed segment. The records between two marks fill at most one part, or are one
/// larger record.
fn marks_of(slots: &Slots, segment_bytes: usize) -> Vec<Mark> {
    let part_bytes = part_bytes(segment_bytes);
    let mut marks: Vec<Mark> = Vec::new();
    for (slot, entry) in slots.entries.iter().enumerate() {
        if entry.is_lost() {
            continue;
        }
        let end = entry.offset as usize + slots.stored_bytes(slot) as usize;
        let is_far = |mark: &Mark| end.saturating_sub(mark.offset as usize) > part_bytes;
        if marks.last().is_none_or(is_far) {
            marks.push(Mark {
                slot: u32::try_from(slot).unwrap_or(u32::MAX),
                offset: entry.offset,
                sequence: slots.sequence(slot),
            });
        }
    }
    marks
}

impl Segment {
    /// Sets the marks of a sealed segment.
    pub(super) fn note_marks(&mut self, segment_bytes: usize) {
        if let (Body::File(_), Some(slots)) = (&self.body, &self.slots) {
            self.marks = marks_of(slots, segment_bytes);
        }
    }

    fn range_of(&self, key: LookupKey) -> Option<MarkedRange> {
        let Body::File(file) = &self.body else {
            return None;
        };
        let after = self.marks.partition_point(|mark| key.is_at_or_after(mark));
        let mark = *self.marks.get(after.checked_sub(1)?)?;
        let next = self.marks.get(after);
        let slots = mark.slot..next.map_or(self.records, |next| next.slot);
        let end = next.map_or(file.bytes, |next| u64::from(next.offset));
        let end = end.min(u64::from(mark.offset) + PART_BYTES_MAX as u64);
        // A sequential reader continues at the record that was found last.
        let last_found = self.last_found.filter(|last_found| {
            slots.contains(&last_found.slot) && key.is_at_or_after(last_found)
        });
        let from = last_found.unwrap_or(mark);
        Some(MarkedRange {
            from,
            end_slot: slots.end,
            bytes: usize::try_from(end.checked_sub(u64::from(from.offset))?).ok()?,
        })
    }
}

impl Store {
    /// Looks up a record in a segment on disk whose slots are not in memory.
    pub(super) fn look_up(&mut self, at: usize, key: LookupKey) -> Result<Lookup, StoreError> {
        if self.should_load(at) {
            return Ok(Lookup::Unknown);
        }
        let segment = &mut self.segments[at];
        let Some(range) = segment.range_of(key) else {
            return Ok(Lookup::Unknown);
        };
        let (Body::File(file), Some(files)) = (&mut segment.body, &mut self.files) else {
            return Ok(Lookup::Unknown);
        };
        if segment.last_found != Some(range.from) {
            segment.lookup_bytes += range.bytes as u64;
        }
        let was_open = file.file.is_some();
        let number = file.number;
        let located = files.locate(file, u64::from(range.from.offset), range.bytes);
        let walked = located.map(|located| range.walk(files.bytes(&located), files.salt, at, key));
        if let Ok((_, Some(last_found))) = walked {
            segment.last_found = Some(last_found);
        }
        if !was_open {
            self.note_opened(number);
        }
        Ok(walked?.0)
    }

    /// Registers an opened file. If too many are open, closes the one that was opened first.
    fn note_opened(&mut self, number: u32) {
        self.opened.push_back(number);
        if self.opened.len() <= OPEN_MAX {
            return;
        }
        let oldest = self.opened.pop_front();
        let same = |segment: &&mut Segment| match &segment.body {
            Body::File(file) => segment.slots.is_none() && Some(file.number) == oldest,
            Body::Memory(_) => false,
        };
        if let Some(Segment {
            body: Body::File(file),
            ..
        }) = self.segments.iter_mut().find(same)
            && let Some(files) = &mut self.files
        {
            files.close(file);
        }
    }

    /// Returns the sequence of a record by its slot in a segment.
    pub(super) fn sequence_of(&mut self, at: usize, slot: usize) -> Result<u64, StoreError> {
        if self.segments[at].slots.is_none()
            && let Lookup::Record(location) = self.look_up(at, LookupKey::Slot(slot))?
        {
            return Ok(location.sequence);
        }
        Ok(self.load(at)?.sequence(slot))
    }

    /// Returns whether lookups have read so much that loading the slots is cheaper.
    fn should_load(&mut self, at: usize) -> bool {
        let segment = &self.segments[at];
        let Body::File(file) = &segment.body else {
            return true;
        };
        if segment.lookup_bytes < LOOKUPS_PER_LOAD * file.bytes {
            return false;
        }
        let room_bytes = segment.records as usize * size_of::<Slot>();
        let fits = self.loaded_bytes(at) + room_bytes <= LOADED_BYTES_MAX;
        self.segments[at].lookup_bytes = 0;
        fits
    }
}

impl MarkedRange {
    /// Searches the records of the range. Also returns the position of the record, if it was found.
    fn walk(&self, bytes: &[u8], salt: u32, at: usize, key: LookupKey) -> (Lookup, Option<Mark>) {
        let mut offset = 0;
        let mut slot = self.from.slot;
        while slot < self.end_slot {
            let rest = bytes.get(offset..);
            let Some(head) = rest.and_then(|rest| Head::parse(rest, salt)) else {
                return (Lookup::Unknown, None);
            };
            if head.kind.is_message() {
                let is_first = slot == self.from.slot;
                if is_first && head.sequence != self.from.sequence {
                    return (Lookup::Unknown, None);
                }
                let mark = Mark {
                    slot,
                    offset: self
                        .from
                        .offset
                        .saturating_add(u32::try_from(offset).unwrap_or(u32::MAX)),
                    sequence: head.sequence,
                };
                let is_it = match key {
                    LookupKey::Sequence(sequence) if head.sequence > sequence => {
                        return (Lookup::Missing, None);
                    }
                    LookupKey::Sequence(sequence) => head.sequence == sequence,
                    LookupKey::Slot(key) => slot as usize == key,
                };
                if is_it {
                    return (Lookup::Record(location(at, &mark, &head)), Some(mark));
                }
                slot += 1;
            }
            offset += head.len();
        }
        (Lookup::Missing, None)
    }
}

fn location(segment: usize, mark: &Mark, head: &Head) -> Location {
    Location {
        segment,
        slot: mark.slot as usize,
        sequence: mark.sequence,
        entry: Slot::new(mark.offset, head, UNKNOWN),
        stored_bytes: head.bytes,
        subject: None,
    }
}
