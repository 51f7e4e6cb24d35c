//! Lanes: queues of records that are not delivered yet, one for each subject. They enforce a limit of
//! unacknowledged records for each subject, and let subjects take turns.

use std::collections::{BTreeSet, VecDeque};

use hashbrown::HashMap;
use slab::Slab;

use super::pending::NO_LANE;
use super::rules::Rules;

/// Maximum number of records in lanes. At this limit, the consumer waits for acknowledgements.
pub(super) const AHEAD_MAX: usize = 4096;

#[derive(Debug, Default)]
struct Lane {
    subject: Box<[u8]>,
    waiting: VecDeque<u64>,
    in_flight: usize,
    /// Key of this lane in the set `ready`; `None` if the set does not contain the lane.
    turn: Option<u64>,
}

/// The lanes of one consumer.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Maximum number of delivered and unacknowledged records of one subject.
    in_flight_max: usize,
    /// Whether subjects take turns. Otherwise the oldest record is delivered first.
    is_fair: bool,
    lanes: Slab<Lane>,
    by_subject: HashMap<Box<[u8]>, usize>,
    /// Lanes whose first record may be delivered, in order of delivery.
    ready: BTreeSet<(u64, usize)>,
    turns: u64,
    waiting: usize,
}

impl Lanes {
    /// Creates lanes if the consumer's rules require them.
    pub(super) fn new(rules: &Rules) -> Option<Self> {
        let of = || Lanes::with(rules.pending_per_subject_max, rules.fair_subjects);
        rules.has_lanes().then(of)
    }

    fn with(in_flight_max: usize, is_fair: bool) -> Self {
        Lanes {
            in_flight_max,
            is_fair,
            lanes: Slab::new(),
            by_subject: HashMap::new(),
            ready: BTreeSet::new(),
            turns: 0,
            waiting: 0,
        }
    }

    /// Returns whether another record can be added to the lanes.
    pub(super) fn has_room(&self) -> bool {
        self.waiting < AHEAD_MAX
    }

    /// Appends a record to its subject's lane.
    pub(super) fn push(&mut self, sequence: u64, subject: &[u8]) {
        let id = self.lane(subject);
        self.lanes[id].waiting.push_back(sequence);
        self.waiting += 1;
        self.update(id);
    }

    /// Counts a record that was already delivered, in its subject's lane. Returns the lane.
    pub(super) fn add_in_flight(&mut self, subject: &[u8]) -> u32 {
        let id = self.lane(subject);
        self.lanes[id].in_flight += 1;
        self.update(id);
        u32::try_from(id).unwrap_or(NO_LANE)
    }

    /// Returns the record to deliver next.
    pub(super) fn next(&self) -> Option<u64> {
        let (_, id) = self.ready.first()?;
        self.lanes[*id].waiting.front().copied()
    }

    /// Removes the record that [`next`](Self::next) returned, and returns its lane. With `in_flight`, the
    /// record counts toward its subject's limit until [`release`](Self::release).
    pub(super) fn take(&mut self, in_flight: bool) -> u32 {
        let Some((_, id)) = self.ready.pop_first() else {
            return NO_LANE;
        };
        let lane = &mut self.lanes[id];
        lane.turn = None;
        lane.waiting.pop_front();
        lane.in_flight += usize::from(in_flight);
        self.waiting -= 1;
        self.update(id);
        if in_flight {
            u32::try_from(id).unwrap_or(NO_LANE)
        } else {
            NO_LANE
        }
    }

    /// Registers that a record of this lane no longer waits for its acknowledgement.
    pub(super) fn release(&mut self, lane: u32) {
        let Some(id) = usize::try_from(lane)
            .ok()
            .filter(|id| self.lanes.contains(*id))
        else {
            return;
        };
        self.lanes[id].in_flight = self.lanes[id].in_flight.saturating_sub(1);
        self.update(id);
    }

    /// Removes a record from its lane. Returns whether it was found.
    pub(super) fn remove(&mut self, sequence: u64) -> bool {
        let mut found = None;
        for (id, lane) in &mut self.lanes {
            if let Ok(at) = lane.waiting.binary_search(&sequence) {
                lane.waiting.remove(at);
                found = Some(id);
                break;
            }
        }
        let Some(id) = found else {
            return false;
        };
        self.waiting -= 1;
        self.update(id);
        true
    }

    pub(super) fn contains(&self, sequence: u64) -> bool {
        self.lanes
            .iter()
            .any(|(_, lane)| lane.waiting.binary_search(&sequence).is_ok())
    }

    /// Returns the lowest sequence in the lanes.
    pub(super) fn first(&self) -> Option<u64> {
        self.lanes
            .iter()
            .filter_map(|(_, lane)| lane.waiting.front().copied())
            .min()
    }

    /// Returns all sequences in the lanes, sorted.
    pub(super) fn sequences(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self
            .lanes
            .iter()
            .flat_map(|(_, lane)| lane.waiting.iter().copied())
            .collect();
        all.sort_unstable();
        all
    }

    fn lane(&mut self, subject: &[u8]) -> usize {
        if let Some(id) = self.by_subject.get(subject) {
            return *id;
        }
        let id = self.lanes.insert(Lane {
            subject: subject.into(),
            ..Lane::default()
        });
        self.by_subject.insert(subject.into(), id);
        id
    }

    /// Updates a lane's entry in `ready` after a change, or removes an empty lane.
    fn update(&mut self, id: usize) {
        let lane = &mut self.lanes[id];
        if let Some(turn) = lane.turn.take_if(|turn| {
            let stays = *turn;
            lane.in_flight >= self.in_flight_max
                || lane
                    .waiting
                    .front()
                    .is_none_or(|first| !self.is_fair && *first != stays)
        }) {
            self.ready.remove(&(turn, id));
        }
        let lane = &mut self.lanes[id];
        match lane.waiting.front() {
            Some(first) if lane.turn.is_none() && lane.in_flight < self.in_flight_max => {
                self.turns += 1;
                let turn = if self.is_fair { self.turns } else { *first };
                lane.turn = Some(turn);
                self.ready.insert((turn, id));
            }
            None if lane.in_flight == 0 => {
                let lane = self.lanes.remove(id);
                self.by_subject.remove(&lane.subject);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(in_flight_max: usize, is_fair: bool, records: &[(u64, &str)]) -> Lanes {
        let mut lanes = Lanes::with(in_flight_max, is_fair);
        for (sequence, subject) in records {
            lanes.push(*sequence, subject.as_bytes());
        }
        lanes
    }

    fn drain(lanes: &mut Lanes) -> Vec<(u64, u32)> {
        let mut out = Vec::new();
        while let Some(sequence) = lanes.next() {
            out.push((sequence, lanes.take(true)));
        }
        out
    }

    const BUSY: [(u64, &str); 6] = [(1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "c"), (6, "b")];

    #[test]
    fn oldest_record_is_next_within_subject_limit() {
        let mut lanes = lanes(1, false, &BUSY);
        let out = drain(&mut lanes);
        assert_eq!(out.iter().map(|(s, _)| *s).collect::<Vec<_>>(), [1, 4, 5]);
        lanes.release(out[1].1);
        lanes.release(out[0].1);
        assert_eq!(
            drain(&mut lanes)
                .iter()
                .map(|(s, _)| *s)
                .collect::<Vec<_>>(),
            [2, 6]
        );
    }

    #[test]
    fn fair_lanes_take_turns() {
        let mut lanes = lanes(usize::MAX, true, &BUSY);
        let order: Vec<_> = drain(&mut lanes).iter().map(|(s, _)| *s).collect();
        assert_eq!(order, [1, 4, 5, 2, 6, 3]);
    }

    #[test]
    fn empty_lanes_are_removed() {
        let mut lanes = lanes(2, false, &BUSY);
        assert!(lanes.remove(3) && !lanes.remove(3));
        assert_eq!(lanes.first(), Some(1));
        let out = drain(&mut lanes);
        out.iter().for_each(|(_, lane)| lanes.release(*lane));
        assert!(lanes.lanes.is_empty() && lanes.by_subject.is_empty() && lanes.ready.is_empty());
        assert!(lanes.has_room() && lanes.sequences().is_empty());
    }
}
