//! Records that were delivered and are not acknowledged yet.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The `lane` of a record of a consumer without lanes.
pub(super) const NO_LANE: u32 = u32::MAX;

/// Dead slots are removed when they outnumber the live slots by more than this number.
const DEAD_MIN: usize = 64;

/// A record that waits for its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) stream_sequence: u64,
    /// Number of the record's first delivery.
    pub(super) consumer_sequence: u64,
    /// Time of the last delivery in nanoseconds since 1970 UTC.
    pub(super) delivered_unix_nanos: i64,
    /// Time at which the record is redelivered, in nanoseconds since the server's start.
    pub(super) deadline: u64,
    /// Number of deliveries.
    pub(super) deliveries: u32,
    /// Lane of the record's subject; [`NO_LANE`] if the consumer has no lanes.
    pub(super) lane: u32,
    state: SlotState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    /// Delivered to a subscriber.
    Delivered,
    /// In the queue for redelivery.
    Queued,
    /// Acknowledged. The slot is removed later, because earlier slots remain.
    Dead,
}

/// Slots in order of stream sequences, with a queue of records to redeliver.
///
/// Records are delivered nearly in this order, so a new slot is usually appended. A slot is found by binary
/// search. Nothing is allocated after the deques have grown to the maximum number of unacknowledged records.
#[derive(Debug, Default)]
pub(super) struct Pending {
    slots: VecDeque<Slot>,
    live: usize,
    redelivered: usize,
    /// Stream sequences to redeliver, in order. May contain sequences of removed slots.
    queue: VecDeque<u64>,
    queued: usize,
    /// Deadlines and stream sequences, earliest first. May contain outdated deadlines.
    deadlines: Deadlines,
}

/// Deadlines with their stream sequences.
#[derive(Debug, Default)]
struct Deadlines {
    /// Deadlines that were added in order. Most are, because consumers wait equally long for each record.
    in_order: VecDeque<(u64, u64)>,
    others: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Deadlines {
    fn len(&self) -> usize {
        self.in_order.len() + self.others.len()
    }

    fn push(&mut self, entry: (u64, u64)) {
        match self.in_order.back() {
            Some(last) if entry < *last => self.others.push(Reverse(entry)),
            _ => self.in_order.push_back(entry),
        }
    }

    fn first(&self) -> Option<(u64, u64)> {
        match (self.in_order.front(), self.others.peek()) {
            (Some(one), Some(Reverse(other))) => Some(*one.min(other)),
            (Some(one), None) => Some(*one),
            (None, other) => other.map(|Reverse(other)| *other),
        }
    }

    fn pop(&mut self) -> Option<(u64, u64)> {
        let first = self.first()?;
        match self.in_order.front() {
            Some(front) if *front == first => self.in_order.pop_front(),
            _ => self.others.pop().map(|Reverse(other)| other),
        }
    }

    fn retain(&mut self, keep: impl Fn(u64, u64) -> bool) {
        self.in_order
            .retain(|(deadline, sequence)| keep(*deadline, *sequence));
        self.others
            .retain(|Reverse((deadline, sequence))| keep(*deadline, *sequence));
    }
}

impl Pending {
    /// Returns the number of unacknowledged records.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns how many unacknowledged records were delivered more than once.
    pub(super) fn redelivered(&self) -> usize {
        self.redelivered
    }

    /// Returns how many unacknowledged records wait for redelivery.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Returns the unacknowledged record with the lowest stream sequence.
    pub(super) fn first(&self) -> Option<&Slot> {
        // The first slot is never dead, because `tidy` removes dead slots at the front.
        self.slots.front()
    }

    pub(super) fn get(&self, stream_sequence: u64) -> Option<&Slot> {
        self.find(stream_sequence).map(|at| &self.slots[at])
    }

    /// Iterates over all unacknowledged records in sequence order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots
            .iter()
            .filter(|slot| slot.state != SlotState::Dead)
    }

    /// Adds a record at its first delivery, or from a saved state.
    pub(super) fn insert(
        &mut self,
        stream_sequence: u64,
        consumer_sequence: u64,
        sent: Sent,
        deliveries: u32,
        lane: u32,
    ) {
        let slot = Slot {
            stream_sequence,
            consumer_sequence,
            delivered_unix_nanos: sent.unix_nanos,
            deadline: sent.deadline,
            deliveries,
            lane,
            state: SlotState::Delivered,
        };
        let is_last = self
            .slots
            .back()
            .is_none_or(|last| last.stream_sequence < stream_sequence);
        if is_last {
            self.slots.push_back(slot);
        } else {
            let at = self
                .slots
                .partition_point(|s| s.stream_sequence < stream_sequence);
            if self.slots[at].stream_sequence == stream_sequence {
                self.mark_dead(at);
                self.slots[at] = slot;
            } else {
                self.slots.insert(at, slot);
            }
        }
        self.live += 1;
        self.redelivered += usize::from(deliveries > 1);
        self.watch(sent.deadline, stream_sequence);
        self.tidy();
    }

    /// Updates a record for another delivery.
    pub(super) fn redeliver(&mut self, stream_sequence: u64, sent: Sent) -> Option<Slot> {
        let at = self.find(stream_sequence)?;
        let slot = &mut self.slots[at];
        if slot.state == SlotState::Queued {
            slot.state = SlotState::Delivered;
            self.queued -= 1;
        }
        slot.deliveries = slot.deliveries.saturating_add(1);
        self.redelivered += usize::from(slot.deliveries == 2);
        slot.delivered_unix_nanos = sent.unix_nanos;
        slot.deadline = sent.deadline;
        let slot = *slot;
        self.watch(sent.deadline, stream_sequence);
        Some(slot)
    }

    /// Removes a record that was acknowledged or will not be redelivered.
    pub(super) fn remove(&mut self, stream_sequence: u64) -> Option<Slot> {
        let at = self.find(stream_sequence)?;
        let slot = self.slots[at];
        self.mark_dead(at);
        self.tidy();
        Some(slot)
    }

    /// Sets a new deadline. A record that is queued for redelivery is not redelivered before the new
    /// deadline.
    pub(super) fn postpone(&mut self, stream_sequence: u64, deadline: u64) {
        let Some(at) = self.find(stream_sequence) else {
            return;
        };
        let slot = &mut self.slots[at];
        if slot.state == SlotState::Queued {
            slot.state = SlotState::Delivered;
            self.queued -= 1;
        }
        slot.deadline = deadline;
        self.watch(deadline, stream_sequence);
    }

    /// Queues a record for redelivery.
    pub(super) fn queue(&mut self, stream_sequence: u64) {
        let Some(at) = self.find(stream_sequence) else {
            return;
        };
        if self.slots[at].state == SlotState::Delivered {
            self.slots[at].state = SlotState::Queued;
            self.queued += 1;
            self.queue.push_back(stream_sequence);
        }
    }

    /// Returns the next record to redeliver.
    pub(super) fn next_queued(&mut self) -> Option<Slot> {
        while let Some(sequence) = self.queue.front() {
            match self.get(*sequence) {
                Some(slot) if slot.state == SlotState::Queued => return Some(*slot),
                _ => self.queue.pop_front(),
            };
        }
        None
    }

    /// Returns the earliest deadline.
    pub(super) fn next_deadline(&mut self) -> Option<u64> {
        while let Some((deadline, sequence)) = self.deadlines.first() {
            if self.is_current(deadline, sequence) {
                return Some(deadline);
            }
            self.deadlines.pop();
        }
        None
    }

    /// Appends the records that have reached their deadline to `expired`, in sequence order.
    pub(super) fn expired(&mut self, now: u64, expired: &mut Vec<u64>) {
        let before = expired.len();
        while let Some(deadline) = self.next_deadline() {
            if deadline > now {
                break;
            }
            if let Some((_, sequence)) = self.deadlines.pop() {
                expired.push(sequence);
            }
        }
        expired[before..].sort_unstable();
        expired.dedup();
    }

    /// Sets the lane of each record to the result of the function `lane`.
    pub(super) fn each_lane(&mut self, lane: &mut dyn FnMut(u64) -> u32) {
        for slot in self
            .slots
            .iter_mut()
            .filter(|slot| slot.state != SlotState::Dead)
        {
            slot.lane = lane(slot.stream_sequence);
        }
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        *self = Pending::default();
    }

    fn is_current(&self, deadline: u64, stream_sequence: u64) -> bool {
        self.get(stream_sequence)
            .is_some_and(|slot| slot.state == SlotState::Delivered && slot.deadline == deadline)
    }

    fn watch(&mut self, deadline: u64, stream_sequence: u64) {
        if deadline == u64::MAX {
            return;
        }
        // Removes outdated deadlines when there are too many. Otherwise a fast subscriber with a long
        // `ack_wait` would accumulate the deadlines of acknowledged records.
        if self.deadlines.len() > 2 * self.live + DEAD_MIN {
            let mut deadlines = std::mem::take(&mut self.deadlines);
            deadlines.retain(|deadline, sequence| self.is_current(deadline, sequence));
            self.deadlines = deadlines;
        }
        self.deadlines.push((deadline, stream_sequence));
    }

    fn find(&self, stream_sequence: u64) -> Option<usize> {
        let at = match self.slots.front() {
            // Subscribers usually acknowledge in the order of delivery.
            Some(first) if first.stream_sequence == stream_sequence => 0,
            _ => self
                .slots
                .partition_point(|s| s.stream_sequence < stream_sequence),
        };
        let slot = self.slots.get(at)?;
        (slot.stream_sequence == stream_sequence && slot.state != SlotState::Dead).then_some(at)
    }

    fn mark_dead(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        match slot.state {
            SlotState::Dead => return,
            SlotState::Queued => self.queued -= 1,
            SlotState::Delivered => {}
        }
        self.live -= 1;
        self.redelivered -= usize::from(slot.deliveries > 1);
        slot.state = SlotState::Dead;
    }

    fn tidy(&mut self) {
        while self
            .slots
            .front()
            .is_some_and(|s| s.state == SlotState::Dead)
        {
            self.slots.pop_front();
        }
        if self.slots.len() > 2 * self.live + DEAD_MIN {
            self.slots.retain(|slot| slot.state != SlotState::Dead);
        }
    }
}

/// Time of a delivery, and the time at which the record is redelivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) unix_nanos: i64,
    pub(super) deadline: u64,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn sent(deadline: u64) -> Sent {
        Sent {
            unix_nanos: 0,
            deadline,
        }
    }

    #[test]
    fn acknowledged_records_leave_no_memory_behind() {
        let mut pending = Pending::default();
        for sequence in 1..100_000 {
            pending.insert(sequence, sequence, sent(sequence + 1_000_000), 1, NO_LANE);
            if sequence > 10 {
                // The first ten records are not acknowledged.
                pending.remove(sequence);
            }
        }
        assert_eq!(pending.len(), 10);
        assert!(pending.slots.len() < 100 && pending.deadlines.len() < 100);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64),
        Remove(u64),
        RemoveUpTo(u64),
        Queue(u64),
        Redeliver(u64, u64),
        Postpone(u64, u64),
        Expire(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let (sequence, time) = (0..30_u64, 0..50_u64);
        prop_oneof![
            (sequence.clone(), time.clone()).prop_map(|(s, t)| Step::Insert(s, t)),
            sequence.clone().prop_map(Step::Remove),
            sequence.clone().prop_map(Step::RemoveUpTo),
            sequence.clone().prop_map(Step::Queue),
            (sequence.clone(), time.clone()).prop_map(|(s, t)| Step::Redeliver(s, t)),
            (sequence, time.clone()).prop_map(|(s, t)| Step::Postpone(s, t)),
            time.prop_map(Step::Expire),
        ]
    }

    /// For each record: number of deliveries, deadline, and whether it is queued.
    type Model = BTreeMap<u64, (u32, u64, bool)>;

    fn apply(step: &Step, pending: &mut Pending, model: &mut Model) {
        match *step {
            Step::Insert(s, t) => {
                pending.insert(s, s, sent(t), 1, NO_LANE);
                model.insert(s, (1, t, false));
            }
            Step::Remove(s) => assert_eq!(pending.remove(s).is_some(), model.remove(&s).is_some()),
            Step::RemoveUpTo(s) => {
                while let Some(first) = pending
                    .first()
                    .map(|f| f.stream_sequence)
                    .filter(|f| *f <= s)
                {
                    pending.remove(first);
                }
                model.retain(|sequence, _| *sequence > s);
            }
            Step::Queue(s) => {
                pending.queue(s);
                model.entry(s).and_modify(|m| m.2 = true);
            }
            Step::Redeliver(s, t) => {
                pending.redeliver(s, sent(t));
                model.entry(s).and_modify(|m| *m = (m.0 + 1, t, false));
            }
            Step::Postpone(s, t) => {
                pending.postpone(s, t);
                model.entry(s).and_modify(|m| *m = (m.0, t, false));
            }
            Step::Expire(now) => {
                let mut expired = Vec::new();
                pending.expired(now, &mut expired);
                let due = |m: &(u32, u64, bool)| !m.2 && m.1 <= now;
                let expected: Vec<_> = model
                    .iter()
                    .filter(|(_, m)| due(m))
                    .map(|(s, _)| *s)
                    .collect();
                assert_eq!(expired, expected);
                for sequence in expired {
                    pending.queue(sequence);
                    model.entry(sequence).and_modify(|m| m.2 = true);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_model(steps in prop::collection::vec(step(), 0..200)) {
            let (mut pending, mut model) = (Pending::default(), Model::new());
            for step in &steps {
                apply(step, &mut pending, &mut model);
                prop_assert_eq!(pending.len(), model.len());
                prop_assert_eq!(pending.queued(), model.values().filter(|m| m.2).count());
                prop_assert_eq!(pending.redelivered(), model.values().filter(|m| m.0 > 1).count());
                prop_assert_eq!(pending.first().map(|s| s.stream_sequence), model.keys().next().copied());
                let earliest = model.values().filter(|m| !m.2).map(|m| m.1).min();
                prop_assert_eq!(pending.next_deadline(), earliest);
                prop_assert_eq!(pending.next_queued().is_some(), pending.queued() > 0);
                let found: Vec<_> = pending.iter().map(|s| (s.stream_sequence, s.deliveries)).collect();
                let expected: Vec<_> = model.iter().map(|(s, m)| (*s, m.0)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
