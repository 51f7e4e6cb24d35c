//! State of one consumer: delivered records, unacknowledged records, and the next record to deliver.

use std::collections::VecDeque;

use super::ConsumerId;
use super::groups::{Group, GroupId, Groups, Missed};
use super::lanes::Lanes;
use super::pending::{NO_LANE, Pending, Slot};
use super::pin::Pin;
use super::push::Push;
use super::requests::Requests;
use super::rules::Rules;
use super::serve::Replay;
use super::shared::{CallContext, CallWithStore, nanos};
use crate::jetstream::{ConsumerConfig, DeliverPolicy, Now, Timestamp};
use crate::store::{Filters, Store, StoreError};

/// A position of a consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Number of deliveries so far.
    pub consumer_sequence: u64,
    /// Stream sequence of the last delivered record.
    pub stream_sequence: u64,
    /// Time of the last change in nanoseconds since 1970 UTC; `None` if there was none.
    pub last_active: Option<i64>,
}

/// A consumer.
///
/// [`Consumers`](super::Consumers) owns all consumers, and only it calls their methods.
pub struct Consumer {
    pub(super) id: ConsumerId,
    pub(super) created: i64,
    pub(super) config: ConsumerConfig,
    pub(super) rules: Rules,
    pub(super) filters: Filters,
    pub(super) group: GroupId,
    /// `$JS.ACK.<stream>.<consumer>.`
    pub(super) ack_prefix: Box<[u8]>,

    /// Lowest stream sequence whose record was not compared with the filters yet.
    pub(super) next: u64,
    /// Sequences to deliver before the record at `next`, such as the last record of each subject.
    pub(super) listed: VecDeque<u64>,
    /// Examined records that wait in lanes, one queue for each subject; `None` if the consumer needs no
    /// lanes.
    pub(super) lanes: Option<Lanes>,
    pub(super) backlog: Backlog,

    pub(super) delivered: Position,
    pub(super) ack_floor: Position,
    pub(super) pending: Pending,

    pub(super) requests: Requests,
    pub(super) pin: Pin,
    pub(super) push: Option<Push>,
    pub(super) replay: Option<Replay>,
    /// End of the last requested pause in nanoseconds since 1970 UTC. It may be in the past.
    pub(super) paused_until: Option<i64>,
    /// Whether the consumer must still publish an event when the pause ends.
    pub(super) resumes: bool,
    /// Time of the last use, in nanoseconds since the server's start.
    pub(super) last_used: u64,
    /// Sum of sampling percentages. At 100, an acknowledgement is reported and 100 is subtracted.
    pub(super) sampled: u32,
    /// Whether the state differs from the saved one.
    pub(super) is_unsaved: bool,
}

/// Number of records that are not delivered yet.
///
/// Updated from the counts of the consumer's group, so that records need not be counted in the store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backlog {
    count: u64,
    appended_seen: u64,
    removed_seen: u64,
}

impl Backlog {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn take_one(&mut self) {
        self.take(1);
    }

    pub(super) fn take(&mut self, count: u64) {
        self.count = self.count.saturating_sub(count);
    }

    /// Resets the count, because a search found no record although some were counted.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}

impl Consumer {
    /// Creates a consumer. The caller has checked the configuration, which contains a name.
    pub(super) fn new(
        id: ConsumerId,
        config: ConsumerConfig,
        created: i64,
        groups: &mut Groups,
        stream: &str,
        now: Now,
    ) -> Self {
        let rules = Rules::new(&config);
        // The filters were checked with the configuration, so they are valid.
        let filters = Filters::new(config.filters().map(str::as_bytes)).unwrap_or_default();
        let group = groups.join(filters.iter().map(|filter| filter.as_bytes()), id);
        let lanes = Lanes::new(&rules);
        Consumer {
            id,
            created,
            ack_prefix: format!("$JS.ACK.{stream}.{}.", config.name)
                .into_bytes()
                .into(),
            push: config.is_push().then(|| Push::new(&config)),
            replay: rules.replay_original.then(Replay::default),
            resumes: config
                .pause_until
                .is_some_and(|until| until.unix_nanos() > now.unix_nanos),
            paused_until: config.pause_until.map(|until| until.unix_nanos()),
            rules,
            config,
            filters,
            group,
            next: 1,
            listed: VecDeque::new(),
            lanes,
            backlog: Backlog::default(),
            delivered: Position::default(),
            ack_floor: Position::default(),
            pending: Pending::default(),
            requests: Requests::default(),
            pin: Pin::default(),
            last_used: nanos(now),
            sampled: 0,
            is_unsaved: true,
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Returns its configuration.
    pub fn config(&self) -> &ConsumerConfig {
        &self.config
    }

    /// Returns whether the deliver subject has a subscriber.
    pub fn is_bound(&self) -> bool {
        self.push.as_ref().is_some_and(|push| push.is_active())
    }

    /// Returns the time of its creation in nanoseconds since 1970 UTC.
    pub fn created(&self) -> i64 {
        self.created
    }

    /// Returns the position of the last delivery.
    pub fn delivered(&self) -> Position {
        self.delivered
    }

    /// Returns the position up to which all records are acknowledged.
    pub fn ack_floor(&self) -> Position {
        self.ack_floor
    }

    /// Sets the position at which the deliver policy begins.
    pub(super) fn start(&mut self, store: &mut Store, groups: &Groups) -> Result<(), StoreError> {
        let first = store.first_sequence();
        let next = match self.config.deliver_policy {
            DeliverPolicy::All => first,
            DeliverPolicy::New => store.last_sequence() + 1,
            DeliverPolicy::ByStartSequence => self.config.opt_start_seq.max(first),
            DeliverPolicy::ByStartTime => {
                let time = self
                    .config
                    .opt_start_time
                    .as_ref()
                    .map_or(0, Timestamp::unix_nanos);
                store.sequence_at(time)?
            }
            DeliverPolicy::Last => self
                .last_sequence(store)?
                .unwrap_or_else(|| store.last_sequence() + 1),
            DeliverPolicy::LastPerSubject => {
                self.list_last(store);
                store.last_sequence() + 1
            }
        };
        self.next = next.max(1);
        let before = self
            .listed
            .front()
            .copied()
            .unwrap_or(self.next)
            .saturating_sub(1);
        let position = Position {
            stream_sequence: before,
            ..Position::default()
        };
        (self.delivered, self.ack_floor) = (position, position);
        self.count(store, groups.get(self.group))
    }

    fn last_sequence(&self, store: &mut Store) -> Result<Option<u64>, StoreError> {
        if self.filters.matches_all() {
            return store.last_matching(b">");
        }
        let mut filters = self.filters.iter();
        if let (Some(only), None) = (filters.next(), filters.next()) {
            return store.last_matching(only.as_bytes());
        }
        let mut last = None;
        store.subjects_matching(&self.filters, &mut |_, subject| {
            last = last.max(Some(subject.last));
            true
        });
        Ok(last)
    }

    fn list_last(&mut self, store: &mut Store) {
        let mut found = Vec::new();
        store.subjects_matching(&self.filters, &mut |_, subject| {
            found.push(subject.last);
            true
        });
        found.sort_unstable();
        found.dedup();
        self.listed = found.into();
    }

    /// Counts the undelivered records by searching the store.
    pub(super) fn count(&mut self, store: &mut Store, group: &Group) -> Result<(), StoreError> {
        let mut all = Filters::default();
        let mut is_live =
            |sequence: u64| store.next_matching(&mut all, sequence) == Ok(Some(sequence));
        self.listed.retain(|sequence| is_live(*sequence));
        let mut held = 0;
        if let Some(lanes) = &mut self.lanes {
            for sequence in lanes.sequences() {
                if is_live(sequence) {
                    held += 1;
                } else {
                    lanes.remove(sequence);
                }
            }
        }
        let ahead = store.count_matching(&self.filters, self.next)?;
        self.backlog = Backlog {
            count: ahead + self.listed.len() as u64 + held,
            appended_seen: group.appended,
            removed_seen: group.removed(),
        };
        Ok(())
    }

    /// Updates the count of undelivered records from the group's counts.
    pub(super) fn catch_up(&mut self, call: &mut CallWithStore<'_>) {
        let groups = call.context.groups;
        let group = groups.get(self.group);
        self.backlog.count += group.appended - self.backlog.appended_seen;
        self.backlog.appended_seen = group.appended;
        let mut is_lost = false;
        group.missed(self.backlog.removed_seen, &mut |missed| match missed {
            Missed::All(sequences) => {
                sequences.for_each(|sequence| self.handle_removed(sequence, &mut call.context))
            }
            Missed::Unknown => is_lost = true,
        });
        self.backlog.removed_seen = group.removed();
        // If the disk fails, the next call counts again.
        if is_lost && self.count(call.store, group).is_err() {
            self.backlog.removed_seen = self
                .backlog
                .removed_seen
                .saturating_sub(u64::from(u32::MAX));
        }
    }

    /// Drops the state of a record that was removed from the stream.
    fn handle_removed(&mut self, sequence: u64, context: &mut CallContext<'_>) {
        if sequence >= self.next {
            self.backlog.take_one();
        } else if self.pending.get(sequence).is_some() {
            self.remove_pending(sequence, context);
        } else if let Ok(at) = self.listed.binary_search(&sequence) {
            self.listed.remove(at);
            self.backlog.take_one();
        } else if self
            .lanes
            .as_mut()
            .is_some_and(|lanes| lanes.remove(sequence))
        {
            self.backlog.take_one();
        }
    }

    /// Returns whether the consumer will deliver a matching record, or waits for its acknowledgement.
    pub(super) fn needs(&self, sequence: u64) -> bool {
        sequence >= self.next
            || self.pending.get(sequence).is_some()
            || self.listed.binary_search(&sequence).is_ok()
            || self
                .lanes
                .as_ref()
                .is_some_and(|lanes| lanes.contains(sequence))
    }

    /// Returns the highest stream sequence that was examined, even if that record does not match.
    pub(super) fn last_examined(&self) -> u64 {
        let delivered = self.delivered.stream_sequence;
        match self.listed.is_empty() {
            true => delivered.max(self.next.saturating_sub(1)),
            // The records in `listed` are delivered next, and may precede `next`.
            false => delivered,
        }
    }

    /// Removes a record from the unacknowledged ones, and returns its entry.
    pub(super) fn remove_pending(
        &mut self,
        sequence: u64,
        context: &mut CallContext<'_>,
    ) -> Option<Slot> {
        let slot = self.pending.remove(sequence)?;
        if let Some(lanes) = &mut self.lanes
            && slot.lane != NO_LANE
        {
            lanes.release(slot.lane);
        }
        self.raise_ack_floor();
        self.touch(context);
        Some(slot)
    }

    /// Raises the acknowledgement floor to just below the lowest unacknowledged record.
    pub(super) fn raise_ack_floor(&mut self) {
        let (consumer_sequence, stream_sequence) = match self.pending.first() {
            None => (
                self.delivered.consumer_sequence,
                self.delivered.stream_sequence,
            ),
            Some(slot) => (
                slot.consumer_sequence.saturating_sub(1),
                slot.stream_sequence.saturating_sub(1),
            ),
        };
        // Records that wait in lanes or in `listed` may be older than the unacknowledged ones.
        let in_lanes = self.lanes.as_ref().and_then(Lanes::first);
        let oldest_waiting = in_lanes
            .into_iter()
            .chain(self.listed.front().copied())
            .min();
        let below_waiting = oldest_waiting.map_or(u64::MAX, |first| first.saturating_sub(1));
        self.ack_floor.consumer_sequence = self.ack_floor.consumer_sequence.max(consumer_sequence);
        self.ack_floor.stream_sequence = self
            .ack_floor
            .stream_sequence
            .max(stream_sequence.min(below_waiting));
    }

    /// Marks the state as changed, so that it will be saved.
    pub(super) fn touch(&mut self, context: &mut CallContext<'_>) {
        if !self.is_unsaved {
            self.is_unsaved = true;
            context.shared.unsaved.push(self.id);
        }
    }

    pub(super) fn is_paused(&self, unix_nanos: i64) -> bool {
        self.paused_until.is_some_and(|until| until > unix_nanos)
    }
}
