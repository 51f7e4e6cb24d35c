//! Adding records, reading them, and the segments that they are in.

use super::record::{self, Head, Kind, Parts, Stamp};
use super::segment::{Holds, Place, Segment, hash_name};
use super::slots::{Slot, Slots};
use super::types::{NewRecord, Record, Removed, StoreError};
use super::{Cause, Store};

/// So much room of segments that are gone is kept for those to come.
const SPARE_MAX: usize = 2;

/// Room that was used before.
#[derive(Default)]
pub(super) struct Spare {
    slots: Vec<Slots>,
    buffers: Vec<Vec<u8>>,
}

impl Store {
    /// Adds a record; it can be read at once. See [`durable`](Store::durable) for when it is safe.
    /// What the limits drop for it is told by [`removed`](Store::removed).
    ///
    /// # Errors
    /// A limit with [`Discard::New`](super::Discard::New), or a disk that does not take it: nothing
    /// was added.
    pub fn append(&mut self, record: &NewRecord<'_>) -> Result<u64, StoreError> {
        let sequence = self.last + 1;
        self.append_at(sequence, record)?;
        Ok(sequence)
    }

    /// Adds a record with a sequence above all others; those between never exist.
    ///
    /// # Errors
    /// As [`append`](Store::append), or the sequence is not above the last.
    pub fn append_at(&mut self, sequence: u64, record: &NewRecord<'_>) -> Result<(), StoreError> {
        let last = self.last;
        if sequence <= last {
            return Err(StoreError::SequenceTaken { sequence, last });
        }
        let replaced = self.make_room(record)?;
        let Some(bytes) = record::encoded_bytes(record, replaced.is_some()) else {
            return Err(StoreError::TooLarge);
        };
        self.roll_when_full(sequence, bytes)?;
        let stamp = Stamp {
            kind: Kind::Message,
            sequence,
            replaced,
            salt: None,
        };
        self.write(&stamp, record, bytes);
        self.last = sequence;
        self.last_unix_nanos = Some(record.unix_nanos);
        if let Some(expires_at) = record.expires_at {
            self.expiry.insert(expires_at, sequence);
        }
        if let Some(replaced) = replaced {
            self.drop_sequence(replaced, Some(Cause::Limit))?;
        }
        self.enforce()
    }

    /// The next record gets at least this sequence.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn skip_to(&mut self, next_sequence: u64) -> Result<(), StoreError> {
        if next_sequence > self.last + 1 {
            self.last = next_sequence - 1;
            if self.messages == 0 {
                self.first = next_sequence;
            }
        }
        Ok(())
    }

    /// The record of a sequence; `None` when it never was or is gone. It is borrowed from the store,
    /// which may have read it from disk.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] once, when its checksum is wrong: from then on it is gone. Or the disk
    /// cannot be read, and may be asked again.
    pub fn read(&mut self, sequence: u64) -> Result<Option<Record<'_>>, StoreError> {
        match self.place(sequence)? {
            None => Ok(None),
            Some(place) => Ok(Some(self.parts(&place)?.record)),
        }
    }

    /// Writes the record at the end and notes it in the index.
    fn write(&mut self, stamp: &Stamp, record: &NewRecord<'_>, bytes: u32) {
        let subject = self.subjects.find_or_add(record.subject);
        let counted = self.record_bytes(record);
        let active = self.segments.back_mut().expect("never empty");
        let offset = u32::try_from(active.body.len()).unwrap_or(u32::MAX);
        let head = record::encode(&mut active.body, stamp, record, bytes);
        if let Some(slots) = &mut active.slots {
            slots.push(stamp.sequence, Slot::new(offset, &head, subject));
        }
        let known = self.subjects.get_mut(subject);
        if known.last < active.first || known.messages == 0 {
            self.held.push(hash_name(record.subject));
        }
        active.note_added(stamp.sequence, bytes, record.unix_nanos);
        match known.messages {
            0 => known.first_at_least = stamp.sequence,
            1 => known.first_at_least = known.last,
            _ => {}
        }
        known.messages += 1;
        known.last = stamp.sequence;
        if self.messages == 0 {
            self.first = stamp.sequence;
        }
        self.messages += 1;
        self.bytes += counted;
    }

    /// Begins a new segment when the last cannot take the record.
    fn roll_when_full(&mut self, sequence: u64, bytes: u32) -> Result<(), StoreError> {
        let active = self.segments.back_mut().expect("never empty");
        let slots = active.slots.as_mut().expect("the last is loaded");
        if slots.len() == 0 {
            slots.reset(sequence);
            return Ok(());
        }
        let fits = active.body.len() + bytes as usize <= self.segment_bytes;
        if fits && slots.can_hold(sequence) {
            return Ok(());
        }
        self.roll(sequence)
    }

    fn roll(&mut self, sequence: u64) -> Result<(), StoreError> {
        let mut holds = Holds::new(self.held.len());
        for hash in self.held.drain(..) {
            holds.insert(hash);
        }
        let mut slots = self.spare.slots.pop().unwrap_or_default();
        slots.reset(sequence);
        let body = self.spare.buffers.pop().unwrap_or_default();
        let sealed = self.segments.len() - 1;
        self.segments[sealed].holds = Some(holds);
        self.segments.push_back(Segment::new(sequence, slots, body));
        if self.segments[sealed].live() == 0 {
            self.retire(sealed);
        }
        Ok(())
    }

    /// Takes a segment away in which nothing lives, and which is not the last.
    pub(super) fn retire(&mut self, at: usize) {
        if let Some(gone) = self.segments.remove(at)
            && self.spare.buffers.len() < SPARE_MAX
        {
            let mut body = gone.body;
            body.clear();
            self.spare.buffers.push(body);
            self.spare.slots.extend(gone.slots);
        }
    }

    /// Takes all segments away and begins anew.
    pub(super) fn restart(&mut self, next_sequence: u64) {
        while self.segments.len() > 1 {
            self.retire(0);
        }
        self.held.clear();
        let mut slots = self.spare.slots.pop().unwrap_or_default();
        slots.reset(next_sequence);
        let body = self.spare.buffers.pop().unwrap_or_default();
        self.segments
            .push_back(Segment::new(next_sequence, slots, body));
        self.retire(0);
    }

    /// Where a live record is.
    pub(super) fn place(&mut self, sequence: u64) -> Result<Option<Place>, StoreError> {
        if sequence < self.first || sequence > self.last {
            return Ok(None);
        }
        let at = self.segment_at_or_after(sequence);
        if at == self.segments.len() || sequence < self.segments[at].first {
            return Ok(None);
        }
        let slots = self.load(at)?;
        let Some(slot) = slots.find(sequence) else {
            return Ok(None);
        };
        let subject = slots.entries[slot].subject;
        if self.segments[at].is_dead(slot) {
            return Ok(None);
        }
        Ok(Some(Place {
            segment: at,
            slot,
            sequence,
            subject,
        }))
    }

    /// The first segment that ends at this sequence or later.
    pub(super) fn segment_at_or_after(&self, sequence: u64) -> usize {
        let last = self.segments.len() - 1;
        if sequence >= self.segments[last].first {
            return if sequence <= self.segments[last].last {
                last
            } else {
                last + 1
            };
        }
        self.segments.partition_point(|s| s.last < sequence)
    }

    /// The slots of a segment, read in when they are not in memory.
    pub(super) fn load(&mut self, at: usize) -> Result<&Slots, StoreError> {
        Ok(self.segments[at].slots.as_ref().expect("in memory"))
    }

    /// The record at a place, taken apart.
    pub(super) fn parts(&mut self, place: &Place) -> Result<Parts<'_>, StoreError> {
        let segment = &self.segments[place.segment];
        let slots = segment.slots.as_ref().expect("a place is in memory");
        let slot = slots.entries[place.slot];
        let from = slot.offset as usize;
        record::decode(&segment.body[from..]).ok_or(StoreError::Damaged(place.sequence))
    }

    /// When the record in a slot was stored, dead or not.
    pub(super) fn time_of(&mut self, at: usize, slot: usize) -> Result<i64, StoreError> {
        self.load(at)?;
        let segment = &self.segments[at];
        let slots = segment.slots.as_ref().expect("loaded");
        let from = slots.entries[slot].offset as usize;
        let head = Head::peek(&segment.body[from..]);
        let sequence = slots.sequence(slot);
        head.map(|head| head.unix_nanos)
            .ok_or(StoreError::Damaged(sequence))
    }

    /// Overwrites the bytes of a record.
    pub(super) fn erase(&mut self, place: &Place) -> Result<(), StoreError> {
        let segment = &mut self.segments[place.segment];
        let slots = segment.slots.as_ref().expect("a place is in memory");
        let slot = slots.entries[place.slot];
        let from = slot.offset as usize;
        record::erase(&mut segment.body[from..from + slot.bytes() as usize], None);
        Ok(())
    }

    /// Drops a live record by its sequence; says whether there was one.
    pub(super) fn drop_sequence(
        &mut self,
        sequence: u64,
        cause: Option<Cause>,
    ) -> Result<bool, StoreError> {
        let Some(place) = self.place(sequence)? else {
            return Ok(false);
        };
        self.drop_at(&place, cause)?;
        Ok(true)
    }

    /// Drops a live record. With a cause it is told by [`removed`](Store::removed).
    pub(super) fn drop_at(
        &mut self,
        place: &Place,
        cause: Option<Cause>,
    ) -> Result<(), StoreError> {
        let segment = &mut self.segments[place.segment];
        let slots = segment.slots.as_ref().expect("a place is in memory");
        let slot = slots.entries[place.slot];
        segment.kill(place.slot, slot.bytes());
        self.messages -= 1;
        self.bytes -= self.counted_bytes(slot.content_bytes(), slot.has_headers());
        let subject = self.subjects.get_mut(place.subject);
        subject.messages -= 1;
        let was_last_of_subject = subject.messages == 0;
        if let Some(cause) = cause {
            self.removals.push(&Removed {
                sequence: place.sequence,
                subject: subject.name(),
                was_last_of_subject,
                cause,
            });
        }
        let is_first = subject.first_at_least == place.sequence;
        let is_newest = subject.last == place.sequence;
        if is_first {
            subject.first_at_least = place.sequence + 1;
        }
        if was_last_of_subject {
            self.subjects.remove(place.subject);
        } else if is_newest {
            let last = self.last_before(place.subject, place.sequence)?;
            self.subjects.get_mut(place.subject).last = last.unwrap_or(0);
        }
        if slot.has_expiry() && self.expiry.note_gone() {
            self.forget_expired();
        }
        self.tidy(place)
    }

    /// Goes on to the next first record, and takes the segment away when nothing in it lives.
    fn tidy(&mut self, place: &Place) -> Result<(), StoreError> {
        let last = self.segments.len() - 1;
        if self.segments[place.segment].live() == 0 && place.segment != last {
            self.retire(place.segment);
        }
        if self.messages == 0 {
            self.first = self.last + 1;
        } else if place.sequence == self.first {
            self.first = self.first_live()?;
        }
        Ok(())
    }

    fn first_live(&mut self) -> Result<u64, StoreError> {
        for at in 0..self.segments.len() {
            if let Some(slot) = self.segments[at].first_live() {
                return Ok(match slot {
                    0 => self.segments[at].first,
                    _ => self.load(at)?.sequence(slot),
                });
            }
        }
        Ok(self.last + 1)
    }
}
