//! Where some of a segment's records are, so that one can be read without reading all before it.

use super::Store;
use super::files::Located;
use super::record::{self, Head};
use super::segment::Body;
use super::types::StoreError;

/// There is a mark behind each so many bytes.
const MARK_BYTES: u32 = 1 << 16;

/// A record of which the place is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its sequence, less the first of its segment.
    pub(super) distance: u32,
    pub(super) offset: u32,
    pub(super) slot: u32,
}

/// The marks of a segment, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    pub(super) marks: Vec<Mark>,
}

impl Marks {
    /// Takes note of a record behind all others.
    pub(super) fn note(&mut self, mark: Mark) {
        let last = self.marks.last();
        if last.is_none_or(|last| mark.offset - last.offset >= MARK_BYTES) {
            self.marks.push(mark);
        }
    }

    /// Where a record is, if it is there: from one mark to the next.
    fn around(&self, distance: u64) -> Option<(Mark, Option<u32>)> {
        let next = self
            .marks
            .partition_point(|m| u64::from(m.distance) <= distance);
        let mark = self.marks.get(next.checked_sub(1)?)?;
        Some((*mark, self.marks.get(next).map(|next| next.offset)))
    }
}

/// A record of a segment whose slots are not in memory.
pub(super) enum Sought {
    /// It never was, or is gone.
    Gone,
    There(Located),
}

impl Store {
    /// Reads a record without the slots of its segment; `None` when that takes more than its marks: they
    /// are in memory, or something is damaged.
    pub(super) fn seek(&mut self, sequence: u64) -> Result<Option<Sought>, StoreError> {
        if sequence < self.first || sequence > self.last {
            return Ok(None);
        }
        let at = self.segment_at_or_after(sequence);
        let (Some(segment), Some(files)) = (self.segments.get_mut(at), &mut self.files) else {
            return Ok(None);
        };
        let around = sequence.checked_sub(segment.first);
        let around = around.and_then(|distance| segment.marks.around(distance));
        let (None, Some((mark, end)), Body::File(file)) =
            (&segment.slots, around, &mut segment.body)
        else {
            return Ok(None);
        };
        let from = u64::from(mark.offset);
        let bytes = end.map_or(file.bytes, u64::from).saturating_sub(from);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let run = files.locate(file, from, bytes)?;
        let (mut slot, mut place) = (mark.slot as usize, 0);
        let rest = files.bytes(&run);
        while place < rest.len() {
            let Some(head) = Head::parse(&rest[place..], files.salt) else {
                return Ok(None);
            };
            if head.kind.is_message() && head.sequence >= sequence {
                if head.sequence > sequence || segment.dead().contains(slot) {
                    return Ok(Some(Sought::Gone));
                }
                if !record::is_sound(&rest[place..], files.salt) {
                    return Ok(None);
                }
                let found = files.unpack(&run.part(place, head.len()));
                return Ok(found.map(Sought::There));
            }
            slot += usize::from(head.kind.is_message());
            place += head.len();
        }
        Ok(end.map(|_| Sought::Gone))
    }
}
