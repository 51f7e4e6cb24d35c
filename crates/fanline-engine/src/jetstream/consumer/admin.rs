//! Administrative operations on a consumer.

use super::groups::Groups;
use super::lanes::Lanes;
use super::machine::{Consumer, Position};
use super::pending::NO_LANE;
use super::push::Push;
use super::rules::Rules;
use super::shared::{CallContext, CallWithStore};
use crate::jetstream::{ApiError, ConsumerConfig, DeliverPolicy, Timestamp};
use crate::store::{Filters, Store, StoreError};

impl Consumer {
    /// Resets the consumer to `sequence`; 0 means the record after the last acknowledged one. Drops the
    /// state of earlier deliveries.
    ///
    /// # Errors
    /// `10204` if the deliver policy does not allow the sequence.
    pub(super) fn reset(
        &mut self,
        sequence: u64,
        call: &mut CallWithStore<'_>,
    ) -> Result<u64, ApiError> {
        let sequence = match sequence {
            0 => self.ack_floor.stream_sequence + 1,
            sequence => self.checked_reset(sequence, call.store)?,
        };
        self.next = sequence;
        self.listed.clear();
        self.pending.clear();
        self.lanes = Lanes::new(&self.rules);
        let position = Position {
            stream_sequence: sequence - 1,
            ..Position::default()
        };
        (self.delivered, self.ack_floor) = (position, position);
        let group = call.context.groups.get(self.group);
        self.count(call.store, group)
            .map_err(ApiError::consumer_invalid_reset)?;
        self.last_used = call.context.at;
        self.touch(&mut call.context);
        Ok(sequence)
    }

    fn checked_reset(&self, sequence: u64, store: &mut Store) -> Result<u64, ApiError> {
        let config = &self.config;
        let lowest = match config.deliver_policy {
            DeliverPolicy::All => 1,
            DeliverPolicy::ByStartSequence => config.opt_start_seq,
            DeliverPolicy::ByStartTime => {
                let time = config
                    .opt_start_time
                    .as_ref()
                    .map_or(0, Timestamp::unix_nanos);
                store
                    .sequence_at(time)
                    .map_err(ApiError::consumer_invalid_reset)?
            }
            DeliverPolicy::Last | DeliverPolicy::New | DeliverPolicy::LastPerSubject => {
                return Err(ApiError::consumer_invalid_reset("not allowed"));
            }
        };
        if sequence < lowest {
            return Err(ApiError::consumer_invalid_reset("below start seq"));
        }
        Ok(sequence)
    }

    /// Applies a new configuration. The caller has checked that this consumer can change to it.
    pub(super) fn update(
        &mut self,
        config: ConsumerConfig,
        groups: &mut Groups,
        store: &mut Store,
    ) -> Result<(), StoreError> {
        let had_lanes = self.rules.has_lanes();
        self.rules = Rules::new(&config);
        let is_same_push = config.deliver_subject == self.config.deliver_subject
            && config.deliver_group == self.config.deliver_group
            && config.flow_control == self.config.flow_control;
        if !is_same_push {
            self.push = config.is_push().then(|| Push::new(&config));
        }
        self.filters = Filters::new(config.filters().map(str::as_bytes)).unwrap_or_default();
        self.config = config;
        groups.leave(self.group, self.id);
        self.group = groups.join(self.filters.iter().map(|filter| filter.as_bytes()), self.id);
        if had_lanes || self.rules.has_lanes() {
            self.rebuild_lanes(store);
        }
        self.count(store, groups.get(self.group))
    }

    /// Distributes unacknowledged and waiting records to the lanes (one queue for each subject) that the new
    /// configuration requires.
    fn rebuild_lanes(&mut self, store: &mut Store) {
        if let Some(old) = self.lanes.take() {
            // All records in lanes are older than `next`, so they are delivered first.
            let mut listed = old.sequences();
            listed.extend(self.listed.drain(..));
            listed.sort_unstable();
            self.listed = listed.into();
        }
        self.lanes = Lanes::new(&self.rules);
        self.pending.each_lane(
            &mut |sequence| match (&mut self.lanes, store.read(sequence)) {
                (Some(lanes), Ok(Some(record))) => lanes.add_in_flight(record.subject),
                _ => NO_LANE,
            },
        );
    }

    /// Drops the state of records that a purge has removed.
    pub(super) fn handle_purged(
        &mut self,
        store: &mut Store,
        context: &mut CallContext<'_>,
    ) -> Result<(), StoreError> {
        let mut all = Filters::default();
        let pending: Vec<u64> = self
            .pending
            .iter()
            .map(|slot| slot.stream_sequence)
            .collect();
        for sequence in pending {
            if store.next_matching(&mut all, sequence)? != Some(sequence) {
                self.remove_pending(sequence, context);
            }
        }
        let first = store.first_sequence();
        if self.next < first {
            self.next = first;
            self.delivered.stream_sequence = self.delivered.stream_sequence.max(first - 1);
            self.raise_ack_floor();
            self.touch(context);
        }
        self.count(store, context.groups.get(self.group))
    }
}
