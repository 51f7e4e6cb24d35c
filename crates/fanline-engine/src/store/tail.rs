//! Finds the end of the log after a crash.
//!
//! A power cut may lose any of the unsynced pages. Records after the first missing page were not
//! acknowledged, and they may depend on missing records: for example, a control record may log the removal of
//! records that a missing record has replaced. The log therefore ends at the first gap in its unsynced part.
//!
//! Damage in the synced part loses only the damaged record. The index and the sync points in the log
//! determine which part was synced.

use std::collections::{BTreeMap, HashMap};

use super::files::{SEGMENT_HEAD_BYTES, SegmentFile, SegmentHead};
use super::record::{self, Head, Kind, Position};
use super::scan::{Scanned, Scanner};

/// Number of bytes that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

/// A scan of all segments that a start reads, in order, for gaps and damage.
pub(super) struct Survey {
    salt: u32,
    /// Position before which everything was synced.
    synced: Position,
    /// Positions where bytes are missing or damaged.
    breaks: BTreeMap<Position, Break>,
    /// Positions of damaged records with an intact head, by sequence.
    damaged: HashMap<u64, Position>,
    /// Position of the first record of an atomic batch whose last record was not found yet.
    batch: Option<Position>,
    previous: Option<Previous>,
}

/// A position where bytes are missing or damaged.
struct Break {
    /// End of the log if these bytes were not synced. It is the beginning of the atomic batch that contains
    /// them, if any.
    end: Position,
    /// Position of a control record that removes the damaged record. The damage then does not matter: the
    /// record was erased on request, or is not needed.
    removed_at: Option<Position>,
}

/// The segment scanned before.
struct Previous {
    /// Highest number of the segments that were compacted into this segment. If this segment is not a
    /// compacted one, its own number.
    through: u32,
    is_compacted: bool,
    has_sync_points: bool,
    /// End of its last record.
    end: Position,
}

impl Survey {
    /// Begins with the position before which everything is known to be synced, from the index.
    pub(super) fn new(salt: u32, synced: Position) -> Self {
        Survey {
            salt,
            synced,
            breaks: BTreeMap::new(),
            damaged: HashMap::new(),
            batch: None,
            previous: None,
        }
    }

    /// Scans the next segment from an offset on.
    pub(super) fn add(
        &mut self,
        file: &SegmentFile,
        head: Option<&SegmentHead>,
        bytes: &[u8],
        from: u64,
    ) {
        let begin = (file.number, 0);
        let is_first_part = from <= SEGMENT_HEAD_BYTES as u64;
        if is_first_part && !self.follows(file, head) {
            self.note_break(begin);
        }
        let known = self
            .previous
            .as_ref()
            .map(|previous| previous.has_sync_points);
        let has_sync_points = head.map(|head| head.has_sync_points).or(known);
        let has_sync_points = has_sync_points.unwrap_or(true);
        let end = match head {
            // Without a head, the segment's records cannot be read.
            None if is_first_part => {
                self.note_break(begin);
                0
            }
            _ => self.scan(file.number, bytes, from, has_sync_points),
        };
        self.previous = Some(Previous {
            through: head.map_or(file.number, |head| head.through),
            is_compacted: file.generation > 0,
            has_sync_points,
            end: (file.number, end),
        });
    }

    /// Returns whether this segment follows directly after the end of the previous one. Otherwise a segment,
    /// or the end of one, is missing between them.
    fn follows(&self, file: &SegmentFile, head: Option<&SegmentHead>) -> bool {
        let Some(previous) = &self.previous else {
            return true;
        };
        let expected = head.map_or(0, |head| u64::from(head.previous_bytes));
        let is_next = file.number == previous.through.saturating_add(1);
        is_next && (previous.is_compacted || previous.end.1 >= expected)
    }

    /// Scans a segment, and returns the end of its last record.
    fn scan(&mut self, number: u32, bytes: &[u8], from: u64, has_sync_points: bool) -> u64 {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let mut scanner = Scanner::new(bytes, from, self.salt, true);
        while let Some((offset, found)) = scanner.next() {
            let at = (number, offset as u64);
            match found {
                Scanned::Intact(head) => self.note_record(at, &head),
                Scanned::Damaged(_) | Scanned::Hole { .. } if !has_sync_points => {}
                Scanned::Damaged(head) => match self.flipped(bytes, offset) {
                    Some(intact) => self.note_record(at, &intact),
                    None => {
                        self.note_break(at);
                        if head.kind.is_message() {
                            self.damaged.insert(head.sequence, at);
                            self.note_message(at, head.has_more_in_batch());
                        }
                    }
                },
                Scanned::Hole { bytes: hole } => {
                    let until = bytes.get(..offset + hole).unwrap_or_default();
                    match self.flipped(until, offset) {
                        Some(intact) if intact.len() == hole => self.note_record(at, &intact),
                        _ => self.note_break(at),
                    }
                }
            }
        }
        let end = scanner.end();
        let rest = bytes.get(end..).unwrap_or_default();
        // Zeros at the end were written in advance for later records, and are no damage.
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        let intact = self.flipped(bytes, end);
        let len = intact.map_or(0, |intact| intact.len());
        if has_sync_points && !is_zero(rest.get(len..).unwrap_or(rest)) {
            self.note_break((number, end as u64));
        } else if let Some(intact) = intact {
            self.note_record((number, end as u64), &intact);
        }
        (end + len) as u64
    }

    /// Processes an intact record, or one whose only damage is a flipped bit.
    fn note_record(&mut self, at: Position, head: &Head) {
        if let Some(position) = head.sync_point() {
            self.synced = self.synced.max(position);
        }
        if head.kind == Kind::Remove
            && let Some(damaged) = self.damaged.remove(&head.sequence)
            && let Some(known) = self.breaks.get_mut(&damaged)
        {
            known.removed_at = Some(at);
        }
        if head.kind.is_message() {
            self.note_message(at, head.has_more_in_batch());
        }
    }

    /// Returns the original head of the record at an offset, if the record's only damage is a flipped bit. A
    /// sector that the disk did not write does not count as a flipped bit. It looks like one if the record
    /// has only one bit in that sector that is not zero.
    fn flipped(&self, bytes: &[u8], offset: usize) -> Option<Head> {
        let rest = bytes.get(offset..)?;
        let damaged = record::find_flipped_bit(rest, self.salt)?;
        let sector = (offset + damaged.at) / SECTOR_BYTES * SECTOR_BYTES;
        let len = damaged.head.len();
        let end = (sector + SECTOR_BYTES - offset).min(len);
        let part = rest.get(sector.saturating_sub(offset)..end)?;
        let is_torn = part.len() < len && part.iter().all(|byte| *byte == 0);
        (!is_torn).then_some(damaged.head)
    }

    fn note_message(&mut self, at: Position, has_more: bool) {
        self.batch = match has_more {
            true => Some(self.batch.unwrap_or(at)),
            false => None,
        };
    }

    fn note_break(&mut self, at: Position) {
        let end = self.batch.unwrap_or(at);
        let removed_at = None;
        self.breaks.entry(at).or_insert(Break { end, removed_at });
    }

    /// Returns the position before which everything was synced.
    pub(super) fn synced(&self) -> Position {
        self.synced
    }

    /// Returns the end of the log, if it is before the end of the files. If the last atomic batch is
    /// incomplete, the log ends before it.
    pub(super) fn end(&self) -> Option<Position> {
        let is_unsynced = |at: &Position| *at >= self.synced;
        let mut end = self.batch.filter(is_unsynced);
        loop {
            // A control record that removes a damaged record counts only if it is itself before the end.
            let is_break = |(_, known): &(&Position, &Break)| {
                let is_before = |at: Position| end.is_none_or(|end| at < end);
                !known.removed_at.is_some_and(is_before)
            };
            let first = self.breaks.range(self.synced..).find(is_break);
            let first = first.map(|(at, known)| Some(known.end).filter(is_unsynced).unwrap_or(*at));
            let next = first.into_iter().chain(end).min();
            if next == end {
                return end;
            }
            end = next;
        }
    }
}
