//! Removal of records on request.

use super::files::SegmentFile;
use super::log::SEQUENCE_MAX;
use super::record::{self, Kind};
use super::segment::{Body, Location};
use super::{Filters, Store, StoreError};
use crate::subject::FilterError;

/// A record whose bytes must be overwritten.
pub(super) struct Erasure {
    number: u32,
    generation: u32,
    offset: u64,
    bytes: usize,
}

impl Erasure {
    fn is_in(&self, file: &SegmentFile) -> bool {
        (self.number, self.generation) == (file.number, file.generation)
    }
}

impl Store {
    /// Removes one record, and returns whether it existed. With `erase`, its bytes are also overwritten.
    ///
    /// # Errors
    /// The disk cannot be read or written.
    pub fn remove(&mut self, sequence: u64, erase: bool) -> Result<bool, StoreError> {
        let Some(location) = self.find(sequence)? else {
            return Ok(false);
        };
        self.check_disk_for_removal()?;
        self.log_control(Kind::Remove, sequence, b"");
        if erase {
            self.erase(&location)?;
        }
        self.drop_at(&location, None)?;
        Ok(true)
    }

    /// Overwrites the bytes of a record. On disk this happens after its removal is synced, because a crash
    /// must not restore an overwritten record. If the record had replaced an earlier record, the removal of
    /// the earlier record is logged again, because a start does not replay an overwritten record.
    fn erase(&mut self, location: &Location) -> Result<(), StoreError> {
        let offset = location.entry.offset as usize;
        let bytes = location.stored_bytes as usize;
        let replaced = match self.locate(location) {
            Ok(at) => self.parts(&at).and_then(|parts| parts.replaced),
            Err(StoreError::Damaged(_)) => None,
            Err(error) => return Err(error),
        };
        if let Some(replaced) = replaced {
            self.log_control(Kind::Remove, replaced, b"");
        }
        match &mut self.segments[location.segment].body {
            Body::Memory(buffer) => {
                if let Some(record) = buffer.get_mut(offset..offset + bytes) {
                    record::erase(record);
                }
            }
            Body::File(file) => {
                let (number, generation) = (file.number, file.generation);
                self.upkeep.erasures.push(Erasure {
                    number,
                    generation,
                    offset: offset as u64,
                    bytes,
                });
            }
        }
        Ok(())
    }

    /// Performs the first `count` pending erasures.
    pub(super) fn overwrite_erased(&mut self, count: usize) {
        for erasure in self.upkeep.erasures.drain(..count) {
            let file = self
                .segments
                .iter_mut()
                .find_map(|segment| match &mut segment.body {
                    Body::File(file) if erasure.is_in(file) => Some(file),
                    _ => None,
                });
            let (Some(file), Some(files)) = (file, &mut self.files) else {
                // The segment was compacted. The next checkpoint removes its old file.
                continue;
            };
            let Ok(located) = files.locate(file, erasure.offset, erasure.bytes) else {
                continue;
            };
            let mut record = files.bytes(&located).to_vec();
            if record.len() == erasure.bytes {
                record::erase(&mut record);
                // The record stays removed even if the disk fails now and its bytes remain.
                let _ = files.overwrite(file, erasure.offset, &record);
            }
        }
    }

    /// Removes the records below a sequence that a filter matches, except the newest `keep` of them. An empty
    /// filter matches all. Returns the number of removed records. [`removed`](Store::removed) does not report
    /// them.
    ///
    /// If everything below a sequence that does not exist yet is purged, that sequence becomes the next one.
    ///
    /// # Errors
    /// The disk cannot be read or written.
    pub fn purge(
        &mut self,
        filter: &[u8],
        below: Option<u64>,
        keep: u64,
    ) -> Result<u64, StoreError> {
        let given = Some(filter).filter(|f| !f.is_empty());
        // An invalid filter matches nothing.
        let Ok::<_, FilterError>(mut filters) = Filters::new(given) else {
            return Ok(0);
        };
        self.check_disk_for_removal()?;
        if filters.matches_all() && keep == 0 && below.is_none_or(|below| below > self.last) {
            return self.purge_all(below);
        }
        let below = below.unwrap_or(self.last + 1);
        let total = self.count_matching(&filters, 0)?;
        let most = total.saturating_sub(keep);
        if most == 0 {
            return Ok(0);
        }
        let (purged, end) = self.drop_matching(&mut filters, below, most)?;
        if purged > 0 {
            let filter = if filter.is_empty() { b">" } else { filter };
            self.log_control(Kind::Purge, end, filter);
        }
        Ok(purged)
    }

    /// Removes up to `most` matching records below a sequence, oldest first. Returns their number, and the
    /// sequence below which no matching record remains.
    pub(super) fn drop_matching(
        &mut self,
        filters: &mut Filters,
        below: u64,
        most: u64,
    ) -> Result<(u64, u64), StoreError> {
        let mut dropped = 0;
        let mut at = self.first;
        while dropped < most
            && let Some(sequence) = self.next_matching(filters, at)?
            && sequence < below
        {
            self.drop_sequence(sequence, None)?;
            dropped += 1;
            at = sequence + 1;
        }
        Ok((dropped, at))
    }

    fn purge_all(&mut self, below: Option<u64>) -> Result<u64, StoreError> {
        let purged = self.messages;
        let next = below.unwrap_or(0).min(SEQUENCE_MAX).max(self.last + 1);
        self.restart(next)?;
        // An unfinished checkpoint contains the removed subjects.
        self.abandon_checkpoint();
        if let Some(files) = &mut self.files {
            files.note_all_removed();
        }
        self.last = next - 1;
        self.first = next;
        self.messages = 0;
        self.bytes = 0;
        self.subjects.clear();
        self.active_hashes.clear();
        self.expiry.clear();
        Ok(purged)
    }
}
