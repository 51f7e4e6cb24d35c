//! Reading the log in the background, to find damage while other members still have the lost entries.

use fanline_engine::store::Disk;

use super::recovery::{Damage, read_file};
use super::scan::{Payload, Scanner};
use super::segment::AREA_BYTES;
use super::{Wal, WalError, to_usize};

impl<D: Disk> Wal<D> {
    /// Reads the next segment and checks every byte that was written. Call it at a low rate: a segment has
    /// [`SEGMENT_BYTES`](super::limits::SEGMENT_BYTES). Returns the damaged entries. Other damage is repaired:
    /// a wrong bit is corrected, and lost frames are not needed, because the state of all lanes is in memory.
    /// It is written again, and the segment is removed when its live entries were carried forward.
    ///
    /// # Errors
    /// [`WalError::Failed`], or [`WalError::Disk`] if the segment cannot be read.
    pub fn scrub(&mut self) -> Result<Vec<Damage>, WalError> {
        self.check()?;
        let mut numbers = self.segments.iter().map(|segment| segment.head.number);
        let first = self.segments[0].head.number;
        let number = numbers
            .find(|number| *number >= self.scrubbed)
            .unwrap_or(first);
        self.scrubbed = number + 1;
        if number <= self.condemned {
            // Its damage is known, and its head may be lost.
            return Ok(self.damaged_entries(number));
        }
        let segment = self.segment(number);
        let (Some(file), head) = (segment.file, segment.head) else {
            return Ok(Vec::new());
        };
        let (end, written) = (segment.end, segment.bytes);
        let mut bytes = read_file(&mut self.disk, file).map_err(WalError::Disk)?;
        bytes.resize(to_usize(written), 0);
        let mut corrections = Vec::new();
        if !bytes.starts_with(&head.area()) {
            corrections.push((0, head.area().to_vec()));
        }
        let (mut next, mut at) = (head.first, AREA_BYTES);
        for frame in Scanner::new(&bytes, self.origin.salt, head.first, Some(head.chain)) {
            if frame.head.position != next {
                self.condemn(number, at, frame.offset);
            }
            if frame.payload != Payload::Intact {
                self.condemn(number, frame.offset, frame.end());
            }
            (next, at) = (frame.head.position + 1, frame.end());
            corrections.extend(frame.correction);
        }
        if next != end {
            self.condemn(number, at, to_usize(written));
        }
        for (offset, bytes) in corrections {
            let result = self.disk.write_at(file, offset as u64, &bytes);
            result.map_err(|error| self.fail(error))?;
            self.unsynced.insert(number);
        }
        Ok(self.damaged_entries(number))
    }

    /// Marks the entries in a range of a segment as damaged, and the segment as one to be emptied.
    fn condemn(&mut self, number: u32, from: usize, to: usize) {
        self.lanes.mark_damaged(number, from as u64, to as u64);
        self.condemned = self.condemned.max(number);
    }

    fn damaged_entries(&self, segment: u32) -> Vec<Damage> {
        let entries = self.lanes.iter().flat_map(|(lane, state)| {
            let slots = state.entries.iter();
            let here =
                slots.filter(move |(_, slot)| slot.is_damaged && slot.place.segment == segment);
            here.map(move |(index, _)| Damage::Entry {
                lane,
                index: *index,
            })
        });
        entries.collect()
    }
}
