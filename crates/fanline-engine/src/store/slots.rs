//! Slots: the index entries of a segment's records. Only recently used segments have theirs in memory.

use super::record::{HEAD_BYTES, Head};
use super::subjects::{SubjectId, UNKNOWN};

const HEAD_BYTES_32: u32 = 32;
const _: () = assert!(HEAD_BYTES_32 as usize == HEAD_BYTES);

/// Index entry of one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// Offset in the segment.
    pub(super) offset: u32,
    /// Length before the body was encoded. The three highest bits, which no length reaches, are flags.
    bytes_and_flags: u32,
    /// Subject; not meaningful if the record is dead.
    pub(super) subject: SubjectId,
}

const HAS_HEADERS: u32 = 1 << 31;
const HAS_EXPIRY: u32 = 1 << 30;
const HAS_REPLACED: u32 = 1 << 29;
const FLAGS: u32 = HAS_HEADERS | HAS_EXPIRY | HAS_REPLACED;

impl Slot {
    /// Creates the slot of a record, which is shorter than 2^29 bytes.
    pub(super) fn new(offset: u32, head: &Head, subject: SubjectId) -> Self {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(head.has_headers(), HAS_HEADERS)
            | flag(head.has_expiry(), HAS_EXPIRY)
            | flag(head.has_replaced(), HAS_REPLACED);
        Slot {
            offset,
            bytes_and_flags: head.plain_bytes & !FLAGS | flags,
            subject,
        }
    }

    pub(super) const LOST_BYTES: u32 = HEAD_BYTES_32;

    /// Returns the slot of a record whose position is unknown because of damage.
    pub(super) fn lost() -> Self {
        Slot {
            offset: 0,
            bytes_and_flags: Self::LOST_BYTES,
            subject: UNKNOWN,
        }
    }

    pub(super) fn is_lost(self) -> bool {
        self.offset == 0 && self.subject == UNKNOWN
    }

    /// Returns the size of subject, headers, and payload together in bytes.
    pub(super) fn content_bytes(self) -> u64 {
        let bit = |flag| u64::from(self.bytes_and_flags & flag != 0);
        let extra = bit(HAS_HEADERS) * 4 + bit(HAS_EXPIRY) * 8 + bit(HAS_REPLACED) * 8;
        u64::from(self.bytes()) - HEAD_BYTES as u64 - extra
    }

    fn bytes(self) -> u32 {
        self.bytes_and_flags & !FLAGS
    }

    pub(super) fn has_headers(self) -> bool {
        self.bytes_and_flags & HAS_HEADERS != 0
    }

    pub(super) fn has_expiry(self) -> bool {
        self.bytes_and_flags & HAS_EXPIRY != 0
    }
}

/// The slots of a segment, in sequence order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slots {
    /// Sequence of the first slot, to which `gaps` is relative.
    base: u64,
    pub(super) entries: Vec<Slot>,
    /// Sequences minus `base`; empty if all sequences are consecutive.
    gaps: Vec<u32>,
    /// Lengths on disk; empty if no record has an encoded body.
    stored: Vec<u32>,
}

impl Slots {
    /// Empties the list, and reuses its buffers.
    pub(super) fn reset(&mut self, base: u64) {
        self.base = base;
        self.entries.clear();
        self.gaps.clear();
        self.stored.clear();
    }

    pub(super) fn with_base(base: u64) -> Self {
        Slots {
            base,
            ..Slots::default()
        }
    }

    /// Returns whether this sequence can be added: it must be less than 2^32 above the first.
    pub(super) fn can_hold(&self, sequence: u64) -> bool {
        u32::try_from(sequence.saturating_sub(self.base)).is_ok()
    }

    /// Appends a record whose sequence is above all others. It takes `stored` bytes in the segment.
    pub(super) fn push(&mut self, sequence: u64, slot: Slot, stored: u32) {
        let number = self.entries.len() as u64;
        if !self.stored.is_empty() || stored != slot.bytes() {
            let before = &self.entries[self.stored.len()..];
            self.stored.extend(before.iter().map(|slot| slot.bytes()));
            self.stored.push(stored);
        }
        if self.gaps.is_empty() && sequence != self.base + number {
            let before = u32::try_from(number).unwrap_or(u32::MAX);
            self.gaps.extend(0..before);
            self.gaps.push(self.distance(sequence));
        } else if !self.gaps.is_empty() {
            self.gaps.push(self.distance(sequence));
        }
        self.entries.push(slot);
    }

    fn distance(&self, sequence: u64) -> u32 {
        u32::try_from(sequence - self.base).unwrap_or(u32::MAX)
    }

    /// Returns the length of a record in the segment in bytes.
    pub(super) fn stored_bytes(&self, slot: usize) -> u32 {
        let stored = self.stored.get(slot).copied();
        stored.unwrap_or_else(|| self.entries[slot].bytes())
    }

    pub(super) fn sequence(&self, slot: usize) -> u64 {
        match self.gaps.get(slot) {
            Some(distance) => self.base + u64::from(*distance),
            None => self.base + slot as u64,
        }
    }

    /// Returns the first slot at or above a sequence; the number of slots if there is none.
    pub(super) fn at_or_after(&self, sequence: u64) -> usize {
        let distance = sequence.saturating_sub(self.base);
        if self.gaps.is_empty() {
            return usize::try_from(distance).map_or(self.len(), |slot| slot.min(self.len()));
        }
        self.gaps.partition_point(|d| u64::from(*d) < distance)
    }

    pub(super) fn find(&self, sequence: u64) -> Option<usize> {
        let slot = self.at_or_after(sequence);
        (slot < self.len() && self.sequence(slot) == sequence).then_some(slot)
    }

    /// For a sequence that no slot has: returns an adjacent slot of a live record whose own sequence is lost,
    /// because that record may have the sequence.
    pub(super) fn adjacent_lost(
        &self,
        sequence: u64,
        is_dead: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let above = self.at_or_after(sequence);
        let mut adjacent = [Some(above), above.checked_sub(1)].into_iter().flatten();
        adjacent
            .find(|slot| self.entries.get(*slot).is_some_and(|s| s.is_lost()) && !is_dead(*slot))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of allocated bytes.
    pub(super) fn room_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Slot>()
            + (self.gaps.capacity() + self.stored.capacity()) * size_of::<u32>()
    }
}
