//! Appends and reads records, and removes them from the index.

use std::time::Duration;

use super::files::Located;
use super::marks::{Lookup, LookupKey};
use super::record::{self, Head, Kind, Parts, Stamp};
use super::segment::{Body, Location, Segment, hash_name};
use super::slots::Slot;
use super::subjects::{SubjectId, UNKNOWN};
use super::types::{NewRecord, Record, Removed, StoreError};
use super::{Cause, DiskError, Store};

/// The highest sequence that a record can have.
pub(crate) const SEQUENCE_MAX: u64 = 1 << 62;
/// Highest possible end offset of the subject in a record whose body is not encoded.
const SUBJECT_END_MAX: usize = record::SUBJECT_FROM_MAX + u16::MAX as usize;

impl Store {
    /// Appends a record, which can be read immediately, and returns its sequence. [`durable`](Store::durable)
    /// tells when the record is safe. [`removed`](Store::removed) reports the records that limits remove
    /// because of the new record.
    ///
    /// # Errors
    /// A limit refuses the record, with [`Discard::New`](super::Discard::New), or the disk fails. The record
    /// was not added.
    pub fn append(&mut self, record: &NewRecord<'_>) -> Result<u64, StoreError> {
        let sequence = self.last + 1;
        self.append_at(sequence, record)?;
        Ok(sequence)
    }

    /// Appends a record with a sequence above all others. The sequences that are skipped never exist.
    ///
    /// # Errors
    /// Those of [`append`](Store::append), or the sequence is not above the last one.
    pub fn append_at(&mut self, sequence: u64, record: &NewRecord<'_>) -> Result<(), StoreError> {
        let last = self.last;
        if sequence <= last {
            return Err(StoreError::SequenceTaken { sequence, last });
        }
        if sequence > SEQUENCE_MAX {
            return Err(StoreError::TooLarge);
        }
        self.check_disk()?;
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
        let (head, offset) = self.write(&stamp, record, bytes);
        self.note_record(&head, offset, record.subject);
        self.last = sequence;
        self.upkeep.is_in_batch = record.more_in_batch;
        self.last_unix_nanos = Some(record.unix_nanos);
        if let Some(expires_at) = record.expires_at {
            self.expiry.insert(expires_at, sequence);
        }
        // The record is stored. Removals that fail now are retried by the next append.
        if let Some(replaced) = replaced {
            let _ = self.drop_sequence(replaced, Some(Cause::Limit));
        }
        let _ = self.enforce(Cause::Limit);
        if let Some(files) = &mut self.files {
            files.note_appended(sequence);
        }
        Ok(())
    }

    /// Ensures that the next record has at least this sequence.
    ///
    /// # Errors
    /// The disk refuses the write.
    pub fn skip_to(&mut self, next_sequence: u64) -> Result<(), StoreError> {
        let next_sequence = next_sequence.min(SEQUENCE_MAX);
        if next_sequence > self.last + 1 {
            self.check_disk()?;
            self.log_control(Kind::Skip, next_sequence, b"");
            self.last = next_sequence - 1;
            if self.messages == 0 {
                self.first = next_sequence;
            }
        }
        Ok(())
    }

    /// Returns the record of a sequence, borrowed from the store; `None` if there is no live record. May read
    /// from the disk.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the checksum is wrong; the record is then removed. After a disk error, the
    /// call can be repeated.
    pub fn read(&mut self, sequence: u64) -> Result<Option<Record<'_>>, StoreError> {
        if self.files.is_none() {
            return Ok(self.read_in_memory(sequence));
        }
        let Some(location) = self.find(sequence)? else {
            return Ok(None);
        };
        match self.locate(&location) {
            Ok(at) => {
                let parts = self.parts(&at).ok_or(StoreError::Damaged(sequence))?;
                Ok(Some(parts.record))
            }
            Err(StoreError::Damaged(_)) => {
                self.remove_damaged(&location)?;
                Err(StoreError::Damaged(sequence))
            }
            Err(error) => Err(error),
        }
    }

    /// Calls `each` with the records of successive sequences from `from` on, until it returns `false`. Stops
    /// early, possibly before the first record, at a sequence without a live record, at the end of a segment,
    /// or if the disk cannot be read. [`read`](Store::read) of the next sequence then returns the reason.
    pub fn read_successive(&mut self, from: u64, each: &mut dyn FnMut(&Record<'_>) -> bool) {
        if self.files.is_none() {
            return self.read_successive_in_memory(from, each);
        }
        let found = self.find(from).ok().flatten();
        // The sequence of a damaged slot may be another one.
        let mut next = found.filter(|location| location.sequence == from);
        while let Some(location) = next {
            let Ok((at, _)) = self.locate_intact(&location) else {
                return;
            };
            match self.parts(&at) {
                Some(parts) if each(&parts.record) => next = self.successor(&location),
                _ => return,
            }
        }
    }

    fn read_successive_in_memory(&mut self, from: u64, each: &mut dyn FnMut(&Record<'_>) -> bool) {
        self.loaded = self.segment_at_or_after(from);
        let Some(segment) = self.segments.get(self.loaded) else {
            return;
        };
        let (Some(slots), Body::Memory(bytes)) = (&segment.slots, &segment.body) else {
            return;
        };
        let first = slots.find(from).unwrap_or(slots.len());
        for (slot, sequence) in (first..slots.len()).zip(from..) {
            if segment.is_dead(slot) || slots.sequence(slot) != sequence {
                return;
            }
            let record = bytes.get(slots.entries[slot].offset as usize..);
            match record.and_then(record::decode) {
                Some(parts) if each(&parts.record) => {}
                _ => return,
            }
        }
    }

    /// Returns the record of a sequence, in a store in memory.
    fn read_in_memory(&mut self, sequence: u64) -> Option<Record<'_>> {
        self.loaded = self.segment_at_or_after(sequence);
        let segment = self.segments.get(self.loaded)?;
        let (Some(slots), Body::Memory(bytes)) = (&segment.slots, &segment.body) else {
            return None;
        };
        let slot = slots.find(sequence)?;
        if segment.is_dead(slot) {
            return None;
        }
        let offset = slots.entries[slot].offset as usize;
        let parts = record::decode(bytes.get(offset..)?)?;
        Some(parts.record)
    }

    /// Returns an error if the disk refuses appends.
    pub(super) fn check_disk(&self) -> Result<(), StoreError> {
        self.files.as_ref().map_or(Ok(()), |files| files.check())
    }

    /// Returns an error if the disk refuses removals. A full disk accepts them, because they free space.
    pub(super) fn check_disk_for_removal(&self) -> Result<(), StoreError> {
        match self.check_disk() {
            Err(StoreError::Disk(DiskError::Full)) => Ok(()),
            result => result,
        }
    }

    /// Writes a record at the end, and returns its head and offset.
    pub(super) fn write(
        &mut self,
        stamp: &Stamp,
        record: &NewRecord<'_>,
        bytes: u32,
    ) -> (Head, usize) {
        let active = self.segments.back_mut().expect("never empty");
        match (&mut active.body, &mut self.files) {
            (Body::File(file), Some(files)) => {
                let offset = usize::try_from(files.end()).unwrap_or(usize::MAX);
                let head = files.push(stamp, record, bytes);
                file.bytes = files.end();
                self.upkeep.written += u64::from(bytes);
                (head, offset)
            }
            (Body::Memory(buffer), _) => {
                let offset = buffer.len();
                (record::encode(buffer, stamp, record, bytes), offset)
            }
            (Body::File(_), None) => unreachable!("a store on disk has its files"),
        }
    }

    /// Logs a control record, such as a removal, which the next start replays. Does nothing for a store in
    /// memory.
    pub(super) fn log_control(&mut self, kind: Kind, sequence: u64, filter: &[u8]) {
        if self.files.is_some() {
            // Also writes if no new segment can begin: a removal that frees a full disk must be logged.
            let _ = self.roll_when_full(self.last + 1, 0);
            self.write_control(kind, sequence, filter);
        }
    }

    fn write_control(&mut self, kind: Kind, sequence: u64, filter: &[u8]) {
        let control = NewRecord {
            subject: filter,
            ..NewRecord::default()
        };
        let stamp = Stamp {
            kind,
            sequence,
            replaced: None,
            salt: None,
        };
        if let Some(bytes) = record::encoded_bytes(&control, false) {
            self.write(&stamp, &control, bytes);
        }
    }

    /// Logs the first live sequence, if it has changed.
    pub(super) fn log_floor(&mut self) {
        if let Some(floor) = self.files.as_mut().and_then(|files| files.take_floor()) {
            // Rolling to a new segment calls this function, so the control record that is written here must
            // not begin another segment.
            self.write_control(Kind::Floor, floor, b"");
        }
    }

    /// Appends a sync point if more of the log is on disk than the last sync point states. No client waits
    /// for a sync point, so it is written and synced together with other records if they arrive soon.
    pub(super) fn log_sync_point(&mut self, now: Duration) {
        let Some(Segment {
            body: Body::File(active),
            ..
        }) = self.segments.back_mut()
        else {
            return;
        };
        if let Some(files) = &mut self.files
            && files.push_sync_point(active.number, now)
        {
            active.bytes = files.end();
            self.upkeep.written += u64::from(record::SYNC_POINT_BYTES);
        }
    }

    /// Adds a record of the last segment to the index.
    pub(super) fn note_record(&mut self, head: &Head, offset: usize, subject: &[u8]) {
        let id = self.subjects.find_or_add(subject);
        let active = self.segments.back_mut().expect("never empty");
        let slot = Slot::new(u32::try_from(offset).unwrap_or(u32::MAX), head, id);
        if let Some(slots) = &mut active.slots {
            if active.records == 0 {
                slots.reset(head.sequence);
            }
            slots.push(head.sequence, slot, head.bytes);
        }
        let known = self.subjects.get_mut(id);
        if known.last < active.first || known.messages == 0 {
            self.active_hashes.push(hash_name(subject));
        }
        active.note_added(head.sequence, head.bytes, head.unix_nanos);
        match known.messages {
            0 => known.first_at_least = head.sequence,
            1 => known.first_at_least = known.last,
            _ => {}
        }
        known.messages += 1;
        known.last = head.sequence;
        if self.messages == 0 {
            self.first = head.sequence;
        }
        self.messages += 1;
        self.bytes += self.counted_bytes(slot.content_bytes(), slot.has_headers());
    }

    /// Finds a live record.
    pub(super) fn find(&mut self, sequence: u64) -> Result<Option<Location>, StoreError> {
        if sequence < self.first || sequence > self.last {
            return Ok(None);
        }
        let at = self.segment_at_or_after(sequence);
        if at >= self.segments.len() || sequence < self.segments[at].first {
            return Ok(None);
        }
        if self.segments[at].slots.is_none() {
            match self.look_up(at, LookupKey::Sequence(sequence))? {
                Lookup::Record(location) => return Ok(Some(location).filter(|p| self.is_live(p))),
                // The record must exist, because no sequence is missing. The lookup must have passed it
                // because of a damaged head.
                Lookup::Missing if self.segments[at].is_whole() => {}
                Lookup::Missing => return Ok(None),
                Lookup::Unknown => {}
            }
        }
        self.load(at)?;
        let segment = &self.segments[at];
        let Some(slots) = &segment.slots else {
            return Ok(None);
        };
        let found = slots.find(sequence);
        // A slot whose head is damaged may have any sequence between those of the adjacent slots.
        let found = found.or_else(|| slots.adjacent_lost(sequence, |slot| segment.is_dead(slot)));
        let Some(slot) = found.filter(|slot| !segment.is_dead(*slot)) else {
            return Ok(None);
        };
        Ok(Some(Location {
            segment: at,
            slot,
            sequence: slots.sequence(slot),
            entry: slots.entries[slot],
            stored_bytes: slots.stored_bytes(slot),
            subject: Some(slots.entries[slot].subject),
        }))
    }

    /// Returns the location of the live record of the next sequence, if its slot is in memory, in the same
    /// segment.
    fn successor(&self, location: &Location) -> Option<Location> {
        let segment = &self.segments[location.segment];
        let slots = segment.slots.as_ref()?;
        let slot = location.slot + 1;
        let entry = *slots.entries.get(slot)?;
        let sequence = location.sequence + 1;
        let is_next = slots.sequence(slot) == sequence && !segment.is_dead(slot);
        is_next.then(|| Location {
            segment: location.segment,
            slot,
            sequence,
            entry,
            stored_bytes: slots.stored_bytes(slot),
            subject: Some(entry.subject),
        })
    }

    fn is_live(&self, location: &Location) -> bool {
        !self.segments[location.segment].is_dead(location.slot)
    }

    /// Returns the subject of a live record.
    fn subject_of(&mut self, location: &Location) -> Result<SubjectId, StoreError> {
        if let Some(subject) = location.subject {
            return Ok(subject);
        }
        let (Body::File(file), Some(files)) =
            (&mut self.segments[location.segment].body, &mut self.files)
        else {
            return Ok(UNKNOWN);
        };
        let offset = u64::from(location.entry.offset);
        let bytes = location.stored_bytes as usize;
        // An unencoded record has its subject near the beginning. Damage after the subject does not matter.
        let mut located = files.locate(file, offset, bytes.min(SUBJECT_END_MAX))?;
        if Head::peek(files.bytes(&located)).is_some_and(|head| head.has_encoded_body()) {
            located = files.locate(file, offset, bytes)?;
        }
        let located = files.decode(&located);
        let name = located.and_then(|at| record::subject(files.bytes(&at)));
        let subject = name.and_then(|name| self.subjects.find(name));
        self.must_recount |= subject.is_none();
        Ok(subject.unwrap_or(UNKNOWN))
    }

    /// Makes a record's bytes available in memory. Verifies them if they were read from the disk.
    pub(super) fn locate(&mut self, location: &Location) -> Result<At, StoreError> {
        let (at, is_from_disk) = self.locate_intact(location)?;
        // A record with correct checksums may still have inconsistent lengths.
        match is_from_disk && self.parts(&at).is_none() {
            true => Err(StoreError::Damaged(location.sequence)),
            false => Ok(at),
        }
    }

    /// Does the same as [`locate`](Self::locate) without checking lengths. Also returns whether the record comes
    /// from the disk.
    fn locate_intact(&mut self, location: &Location) -> Result<(At, bool), StoreError> {
        let offset = location.entry.offset as usize;
        let bytes = location.stored_bytes as usize;
        let (Body::File(file), Some(files)) =
            (&mut self.segments[location.segment].body, &mut self.files)
        else {
            return Ok((At::Memory(location.segment, offset), false));
        };
        let located = files.locate(file, offset as u64, bytes)?;
        if located.is_from_disk() && !record::has_valid_checksums(files.bytes(&located), files.salt)
        {
            return Err(match files.distrust() {
                Some(failure) => failure.into(),
                None => StoreError::Damaged(location.sequence),
            });
        }
        let is_from_disk = located.is_from_disk();
        let located = files.decode(&located).ok_or(StoreError::WrongKey)?;
        Ok((At::Files(located), is_from_disk))
    }

    /// Decodes a located record.
    pub(super) fn parts(&self, at: &At) -> Option<Parts<'_>> {
        match at {
            At::Files(located) => record::decode(self.files.as_ref()?.bytes(located)),
            At::Memory(segment, offset) => match &self.segments[*segment].body {
                Body::Memory(buffer) => record::decode(buffer.get(*offset..)?),
                Body::File(_) => None,
            },
        }
    }

    /// Returns the time at which the record in a slot was stored, live or dead. If its head is damaged,
    /// returns the earliest time of the segment.
    pub(super) fn time_of(&mut self, at: usize, slot: usize) -> Result<i64, StoreError> {
        let offset = self.load(at)?.entries[slot].offset as usize;
        let segment = &mut self.segments[at];
        let head = match (&mut segment.body, &mut self.files) {
            (Body::Memory(buffer), _) => buffer.get(offset..).and_then(Head::peek),
            (Body::File(file), Some(files)) => {
                let located = files.locate(file, offset as u64, record::ENCODED_HEAD_BYTES)?;
                Head::parse(files.bytes(&located), files.salt)
            }
            (Body::File(_), None) => None,
        };
        Ok(head.map_or(segment.earliest, |head| head.unix_nanos))
    }

    /// Removes a damaged record and counts it as lost.
    fn remove_damaged(&mut self, location: &Location) -> Result<(), StoreError> {
        self.lost.messages += 1;
        self.lost.bytes += u64::from(location.stored_bytes);
        self.log_control(Kind::Remove, location.sequence, b"");
        self.drop_at(location, Some(Cause::Damage))
    }

    /// Removes a live record by its sequence. Returns whether there was such a record.
    pub(super) fn drop_sequence(
        &mut self,
        sequence: u64,
        cause: Option<Cause>,
    ) -> Result<bool, StoreError> {
        let Some(location) = self.find(sequence)? else {
            return Ok(false);
        };
        self.drop_at(&location, cause)?;
        Ok(true)
    }

    /// Removes the first live record. Returns whether there was such a record, because the index of a damaged
    /// segment may be wrong.
    pub(super) fn drop_first(&mut self, cause: Option<Cause>) -> Result<bool, StoreError> {
        if self.drop_sequence(self.first, cause)? {
            return Ok(true);
        }
        let first = self.first_live()?;
        let has_moved = first != self.first;
        self.first = first;
        Ok(has_moved)
    }

    /// Removes a live record. If there is a cause, [`removed`](Store::removed) reports the removal.
    pub(super) fn drop_at(
        &mut self,
        location: &Location,
        cause: Option<Cause>,
    ) -> Result<(), StoreError> {
        let (entry, subject) = (location.entry, self.subject_of(location)?);
        let last = self.last;
        let segment = &mut self.segments[location.segment];
        segment.kill(location.slot, location.stored_bytes);
        if cause == Some(Cause::Limit) {
            segment.limited_by = last;
        }
        self.messages -= 1;
        // `bytes` comes from the index, which may be wrong for a damaged segment, so the difference may be
        // negative.
        let counted_bytes = self.counted_bytes(entry.content_bytes(), entry.has_headers());
        self.bytes = self.bytes.saturating_sub(counted_bytes);
        let newest = self.drop_from_subject(location.sequence, subject, cause);
        if entry.has_expiry() && self.expiry.note_gone() {
            self.prune_expiry();
        }
        if self.messages == 0 {
            self.first = self.last + 1;
        } else if location.sequence == self.first {
            self.first = self.first_live()?;
        }
        if let Some(files) = &mut self.files {
            files.note_removed(location.sequence);
            if self.first > location.sequence {
                files.note_floor(self.first);
            }
        }
        if newest && let Some(last) = self.last_before(subject, location.sequence)? {
            self.subjects.get_mut(subject).last = last;
        }
        self.retire_dead(location.segment);
        Ok(())
    }

    /// Updates the totals of a removed record's subject. Returns whether `last` of the subject must be
    /// updated.
    fn drop_from_subject(&mut self, sequence: u64, id: SubjectId, cause: Option<Cause>) -> bool {
        let has_subject = id != UNKNOWN && self.subjects.get(id).is_some();
        let mut left = 0;
        if has_subject {
            let subject = self.subjects.get_mut(id);
            subject.messages = subject.messages.saturating_sub(1);
            left = subject.messages;
            if subject.first_at_least == sequence {
                subject.first_at_least = sequence + 1;
            }
        }
        if let Some(cause) = cause {
            self.unreported.push(&Removed {
                sequence,
                subject: self.subjects.name(id),
                was_last_of_subject: has_subject && left == 0,
                cause,
            });
        }
        if has_subject && left == 0 {
            self.subjects.remove(id);
        }
        let newest = self.subjects.get(id).map(|s| s.last);
        left > 0 && newest == Some(sequence)
    }

    fn first_live(&mut self) -> Result<u64, StoreError> {
        for at in 0..self.segments.len() {
            if let Some(slot) = self.segments[at].first_live() {
                return Ok(match slot {
                    0 => self.segments[at].first,
                    _ => self.sequence_of(at, slot)?,
                });
            }
        }
        Ok(self.last + 1)
    }
}

/// Location of a record's bytes in memory, valid until the next read.
pub(super) enum At {
    /// Index of the segment, and offset in the segment's buffer.
    Memory(usize, usize),
    Files(Located),
}
