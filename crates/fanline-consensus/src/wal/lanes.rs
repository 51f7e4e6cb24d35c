//! The state of each lane, as the sum of its frames.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use super::frame::{HEAD_BYTES, Head, Kind, padded};

/// The term that a node is in, and the node that it voted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// Current term.
    pub term: u64,
    /// The node that received this node's vote in the term.
    pub voted_for: Option<u64>,
}

/// The end of the entries that were removed because a snapshot contains their effects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// Index of the last removed entry; 0 if none was removed.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// Bytes that the caller stored with the compaction.
    pub note: Vec<u8>,
}

/// Whether a lane's state is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Everything that was synced is there.
    Intact,
    /// The payloads of these entries are damaged; their terms are known. The node must not vote or be
    /// counted until [`Wal::repair`](super::Wal::repair) has replaced them.
    Missing(Vec<u64>),
    /// Frames are lost that may have been votes or entries of this lane. The node must not vote or be counted
    /// under its identity again. [`Wal::reset`](super::Wal::reset) begins the lane again, for a new member.
    Suspect,
}

/// Where a frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub segment: u32,
    pub offset: u64,
}

/// An entry of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub term: u64,
    pub place: Place,
    pub payload_bytes: usize,
    pub is_damaged: bool,
}

impl Slot {
    /// Returns the length of the entry's frame.
    pub(super) fn frame_bytes(&self) -> u64 {
        (HEAD_BYTES + padded(self.payload_bytes)) as u64
    }
}

/// The state of one lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub vote: Vote,
    pub floor: Floor,
    pub entries: BTreeMap<u64, Slot>,
    /// The member that the lane belongs to since it was reset.
    pub member: Option<u64>,
    /// Position of the frame that reset the lane.
    reset_at: u64,
}

impl Lane {
    /// Returns index and term of the last entry, or of the floor.
    pub(super) fn last(&self) -> (u64, u64) {
        let last = self.entries.last_key_value();
        last.map_or((self.floor.index, self.floor.term), |(index, slot)| {
            (*index, slot.term)
        })
    }

    /// Returns the term of an entry, or of the floor.
    pub(super) fn term_of(&self, index: u64) -> Option<u64> {
        match index == self.floor.index {
            true => Some(self.floor.term),
            false => self.entries.get(&index).map(|slot| slot.term),
        }
    }

    fn condition(&self, lost_at: u64) -> Condition {
        let first = self.floor.index + 1;
        let has_holes = self
            .entries
            .keys()
            .copied()
            .ne(first..first + self.entries.len() as u64);
        if self.reset_at < lost_at || has_holes {
            return Condition::Suspect;
        }
        let damaged = self.entries.iter().filter(|(_, slot)| slot.is_damaged);
        let missing: Vec<_> = damaged.map(|(index, _)| *index).collect();
        match missing.is_empty() {
            true => Condition::Intact,
            false => Condition::Missing(missing),
        }
    }
}

/// All lanes of a log.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: BTreeMap<u16, Lane>,
    /// Position of the last lost frame.
    pub lost_at: u64,
    /// Number of live entries, and their bytes, in each segment.
    live: BTreeMap<u32, Live>,
}

/// The live entries of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Live {
    pub entries: usize,
    pub bytes: u64,
}

impl Lanes {
    /// Returns a lane, or `None` if it has no frames.
    pub(super) fn get(&self, lane: u16) -> Option<&Lane> {
        self.lanes.get(&lane)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &Lane)> {
        self.lanes.iter().map(|(number, lane)| (*number, lane))
    }

    pub(super) fn condition(&self, lane: u16) -> Condition {
        let unseen = Lane::default();
        self.get(lane).unwrap_or(&unseen).condition(self.lost_at)
    }

    pub(super) fn live(&self, segment: u32) -> Live {
        self.live.get(&segment).copied().unwrap_or_default()
    }

    /// Applies a frame. `is_damaged` means that its payload is lost. A frame sets a state instead of changing
    /// one, because later segments state the same again.
    pub(super) fn apply(&mut self, head: &Head, note: &[u8], place: Place, is_damaged: bool) {
        match head.kind {
            // Belongs to no lane.
            Kind::Seal => {}
            Kind::Vote => {
                let voted_for = (head.index != 0).then_some(head.index);
                let term = head.term;
                self.lane(head.lane).vote = Vote { term, voted_for };
            }
            Kind::Entry => {
                self.remove(head.lane, head.index..);
                self.put(head, place, is_damaged);
            }
            Kind::Carried => {
                self.remove(head.lane, head.index..=head.index);
                self.put(head, place, is_damaged);
            }
            Kind::Truncate => self.remove(head.lane, head.index + 1..),
            Kind::Compact if is_damaged => self.lost_at = head.position,
            Kind::Compact => {
                self.remove(head.lane, ..=head.index);
                self.lane(head.lane).floor = Floor {
                    index: head.index,
                    term: head.term,
                    note: note.to_vec(),
                };
            }
            Kind::Reset => {
                self.remove(head.lane, ..);
                *self.lane(head.lane) = Lane {
                    member: Some(head.index),
                    reset_at: head.position,
                    ..Lane::default()
                };
            }
            Kind::Member => self.lane(head.lane).member = Some(head.index),
        }
    }

    fn lane(&mut self, lane: u16) -> &mut Lane {
        self.lanes.entry(lane).or_default()
    }

    fn put(&mut self, head: &Head, place: Place, is_damaged: bool) {
        let lane = self.lane(head.lane);
        if head.index <= lane.floor.index {
            return;
        }
        let slot = Slot {
            term: head.term,
            place,
            payload_bytes: head.payload_bytes,
            is_damaged,
        };
        lane.entries.insert(head.index, slot);
        let live = self.live.entry(place.segment).or_default();
        live.entries += 1;
        live.bytes += slot.frame_bytes();
    }

    fn remove(&mut self, lane: u16, range: impl RangeBounds<u64>) {
        let Some(lane) = self.lanes.get_mut(&lane) else {
            return;
        };
        for (_, slot) in lane.entries.extract_if(range, |_, _| true) {
            if let Some(live) = self.live.get_mut(&slot.place.segment) {
                live.entries -= 1;
                live.bytes -= slot.frame_bytes();
            }
        }
    }

    /// Removes the count of a segment that has no live entries.
    pub(super) fn forget_segment(&mut self, segment: u32) {
        self.live.remove(&segment);
    }

    pub(super) fn mark_entry_damaged(&mut self, lane: u16, index: u64) {
        if let Some(slot) = self.lane(lane).entries.get_mut(&index) {
            slot.is_damaged = true;
        }
    }

    /// Marks the entries as damaged whose frames have bytes in a range of a segment's file.
    pub(super) fn mark_damaged(&mut self, segment: u32, from: u64, to: u64) {
        for slot in self
            .lanes
            .values_mut()
            .flat_map(|lane| lane.entries.values_mut())
        {
            let end = slot.place.offset + slot.frame_bytes();
            let is_in = slot.place.segment == segment && slot.place.offset < to && end > from;
            slot.is_damaged |= is_in;
        }
    }
}
