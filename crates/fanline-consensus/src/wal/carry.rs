//! Removing old segments: their live entries are carried forward first.

use fanline_engine::store::Disk;

use super::frame::Kind;
use super::limits::{CARRIED_BYTES_MAX, PENDING_BYTES_MAX};
use super::{Wal, WalError, segment};

impl<D: Disk> Wal<D> {
    /// Returns the lane that has the most bytes in the oldest segment, if the log cannot remove the segment by
    /// itself because more than half of it is live. The caller should take a snapshot of that lane's state and
    /// [`compact`](Self::compact) the lane.
    pub fn lane_to_compact(&self) -> Option<u16> {
        let oldest = self.oldest_needed();
        if !self.is_wanted(oldest) || self.is_light(oldest) {
            return None;
        }
        let bytes_of = |lane: &super::lanes::Lane| -> u64 {
            let slots = lane
                .entries
                .values()
                .filter(|slot| slot.place.segment == oldest);
            slots.map(super::lanes::Slot::frame_bytes).sum()
        };
        let heaviest = self.lanes.iter().max_by_key(|(_, lane)| bytes_of(lane));
        heaviest.map(|(number, _)| number)
    }

    /// Returns the number of the oldest segment that is needed once the pending frames are durable.
    pub(super) fn oldest_needed(&self) -> u32 {
        let is_needed =
            |number: &u32| self.lanes.live(*number).entries > 0 || self.is_evidence(*number);
        let mut numbers = self.segments.iter().map(|segment| segment.head.number);
        let last = self.last_number();
        numbers.find(is_needed).unwrap_or(last)
    }

    fn last_number(&self) -> u32 {
        self.segments
            .back()
            .map_or(0, |segment| segment.head.number)
    }

    /// Whether a segment, or one before it, shows a loss that the caller has not accepted. Without it, a start
    /// would not know that lanes are suspect.
    fn is_evidence(&self, number: u32) -> bool {
        self.losses_accepted < self.lanes.lost_at && self.lanes.lost_at < self.segment(number).end
    }

    /// Whether the segment should be removed soon.
    fn is_wanted(&self, number: u32) -> bool {
        let later = (self.last_number() - number) as usize;
        later > 0
            && (later >= self.segments_wanted || number <= self.condemned)
            && !self.is_evidence(number)
    }

    /// Whether at most half of a segment is live. To copy more would cost more than it frees.
    fn is_light(&self, number: u32) -> bool {
        number <= self.condemned || self.lanes.live(number).bytes * 2 <= self.segment(number).bytes
    }

    /// Adds live entries of the oldest segment to the batch, if it should be removed.
    pub(super) fn carry_forward(&mut self) -> Result<(), WalError> {
        let oldest = self.oldest_needed();
        if !self.is_wanted(oldest)
            || !self.is_light(oldest)
            || self.batch.len() > PENDING_BYTES_MAX / 2
        {
            return Ok(());
        }
        let mut bytes = 0;
        let lanes = self.lanes.iter();
        let slots =
            lanes.flat_map(|(number, lane)| lane.entries.iter().map(move |slot| (number, slot)));
        let here = slots.filter(|(_, (_, slot))| slot.place.segment == oldest && !slot.is_damaged);
        let carried: Vec<_> = here
            .take_while(|(_, (_, slot))| {
                let is_more = bytes == 0 || bytes + slot.payload_bytes <= CARRIED_BYTES_MAX;
                bytes += slot.payload_bytes;
                is_more
            })
            .map(|(lane, (index, slot))| (lane, *index, slot.term))
            .collect();
        for (lane, index, term) in carried {
            match self.read(lane, index) {
                Ok(payload) => {
                    self.push(lane, Kind::Carried, index, term, &payload)?;
                }
                // It stays where it is until another member's copy replaces it.
                Err(_) => self.lanes.mark_entry_damaged(lane, index),
            }
        }
        Ok(())
    }

    /// Removes the files of the segments below `oldest`, which a durable seal has named as not needed.
    pub(super) fn remove_segments(&mut self, oldest: u32) -> Result<(), WalError> {
        while self.segments[0].head.number < oldest {
            let number = self.segments[0].head.number;
            if let Some(file) = self.segments[0].file {
                self.disk.close(file);
            }
            if let Err(error) = self.disk.remove(&segment::file_name(number)) {
                return Err(self.fail(error));
            }
            self.lanes.forget_segment(number);
            self.segments.pop_front();
            self.is_folder_unsynced = true;
        }
        Ok(())
    }
}
