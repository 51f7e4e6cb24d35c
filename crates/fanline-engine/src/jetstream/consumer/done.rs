//! Effects of acknowledgements, and of missing ones, on a consumer.

use super::ack::{Ack, AckTopic};
use super::event::{ConsumerEvent, Delivery};
use super::machine::Consumer;
use super::pending::Slot;
use super::shared::{Round, Work};
use crate::jetstream::AckPolicy;
use crate::store::Search;

/// Maximum number of records that one acknowledgement may add to the list.
const LISTED_MAX: usize = 65_536;

impl Consumer {
    /// Handles an acknowledgement. `reply` receives the records of a request for more.
    pub(super) fn handle_ack(
        &mut self,
        subject: &AckTopic<'_>,
        ack: Ack<'_>,
        reply: &[u8],
        round: &mut Round<'_>,
    ) {
        self.last_used = round.at;
        let sequence = subject.stream_sequence;
        match ack {
            Ack::Done => self.acknowledge(subject, round),
            Ack::Next(body) => {
                self.acknowledge(subject, round);
                self.handle_pull(body, reply, round);
            }
            Ack::Nak(delay) => self.refuse(subject, delay, round),
            Ack::Progress => {
                if let Some(slot) = self.pending.get(sequence).copied() {
                    self.delivered.last_active = Some(round.now.unix_nanos);
                    let deadline = self.rules.deadline(round.at, slot.deliveries);
                    self.pending.postpone(sequence, deadline);
                }
            }
            Ack::Terminate(reason) => self.terminate(subject, reason, round),
            Ack::Unknown => {}
        }
    }

    /// Handles the acknowledgement of a record that this consumer does not know to be delivered: a power cut
    /// may have undone that. The record is not delivered again; earlier matching records are listed.
    pub(super) fn restore_delivery(&mut self, sequence: u64, work: &mut Work<'_>) {
        let is_explicit = self.rules.ack_policy == AckPolicy::Explicit;
        if !is_explicit || self.lanes.is_some() || sequence > work.store.durable() {
            return;
        }
        while self.next <= sequence && self.listed.len() < LISTED_MAX {
            match work.store.search(&mut self.filters, self.next) {
                Ok(Search::Found(found)) if found <= sequence => {
                    self.listed.push_back(found);
                    self.next = found + 1;
                }
                Ok(Search::NotBelow(next)) if next > self.next => self.next = next,
                // The subject does not match, or the disk cannot be read.
                _ => return,
            }
        }
        if let Ok(at) = self.listed.binary_search(&sequence) {
            self.listed.remove(at);
            self.backlog.take_one();
            self.delivered.consumer_sequence += 1;
            self.delivered.stream_sequence = self.delivered.stream_sequence.max(sequence);
            self.raise_floor();
            self.touch(&mut work.round);
        }
    }

    fn acknowledge(&mut self, subject: &AckTopic<'_>, round: &mut Round<'_>) {
        let sequence = subject.stream_sequence;
        match self.rules.ack_policy {
            // No acknowledgements are needed, or flow control replaces them.
            AckPolicy::None | AckPolicy::FlowControl => return,
            AckPolicy::All => self.finish_up_to(sequence, round),
            AckPolicy::Explicit => match self.finish(sequence, round) {
                Some(slot) => {
                    self.sample(subject, &slot, round);
                    round.done(sequence);
                }
                None => self.finished_late(sequence, round),
            },
        }
        self.floor.last_active = Some(round.now.unix_nanos);
    }

    /// A record whose deliveries are exhausted may still be acknowledged. Streams that store
    /// records only until then remove it.
    fn finished_late(&self, sequence: u64, round: &mut Round<'_>) {
        if !self.needs(sequence) && sequence <= self.delivered.stream_sequence {
            round.done(sequence);
        }
    }

    /// Marks everything up to a sequence as acknowledged.
    pub(super) fn finish_up_to(&mut self, sequence: u64, round: &mut Round<'_>) {
        while let Some(first) = self
            .pending
            .first()
            .filter(|slot| slot.stream_sequence <= sequence)
        {
            let first = first.stream_sequence;
            self.finish(first, round);
            round.done(first);
        }
    }

    fn refuse(&mut self, subject: &AckTopic<'_>, delay: Option<u64>, round: &mut Round<'_>) {
        let sequence = subject.stream_sequence;
        let Some(slot) = self.pending.get(sequence).copied() else {
            return;
        };
        round.publish_event(self.name(), &ConsumerEvent::Naked(delivery(subject, &slot)));
        match delay {
            Some(delay) => self
                .pending
                .postpone(sequence, round.at.saturating_add(delay)),
            None => self.queue_or_give_up(sequence, round),
        }
        self.touch(round);
    }

    fn terminate(&mut self, subject: &AckTopic<'_>, reason: &[u8], round: &mut Round<'_>) {
        let sequence = subject.stream_sequence;
        if self.rules.ack_policy == AckPolicy::All {
            self.finish_up_to(sequence.saturating_sub(1), round);
        }
        let deliveries = self
            .pending
            .get(sequence)
            .map(|slot| u64::from(slot.deliveries));
        if self.finish(sequence, round).is_some() {
            round.done(sequence);
        } else {
            self.finished_late(sequence, round);
        }
        self.floor.last_active = Some(round.now.unix_nanos);
        let delivery = Delivery {
            consumer_sequence: subject.consumer_sequence,
            stream_sequence: sequence,
            deliveries: deliveries.unwrap_or(subject.deliveries),
        };
        let reason = String::from_utf8_lossy(reason);
        round.publish_event(
            self.name(),
            &ConsumerEvent::Terminated {
                delivery,
                reason: &reason,
            },
        );
    }

    /// Queues records without a timely acknowledgement for redelivery.
    pub(super) fn expire_pending(&mut self, round: &mut Round<'_>) {
        let mut expired = std::mem::take(&mut round.shared.scratch.sequences);
        expired.clear();
        self.pending.expired(round.at, &mut expired);
        for sequence in &expired {
            self.queue_or_give_up(*sequence, round);
        }
        round.shared.scratch.sequences = expired;
    }

    /// Queues all unacknowledged records for redelivery.
    pub(super) fn queue_all(&mut self, round: &mut Round<'_>) {
        let all: Vec<u64> = self
            .pending
            .iter()
            .map(|slot| slot.stream_sequence)
            .collect();
        for sequence in all {
            self.queue_or_give_up(sequence, round);
        }
    }

    fn queue_or_give_up(&mut self, sequence: u64, round: &mut Round<'_>) {
        let Some(slot) = self.pending.get(sequence).copied() else {
            return;
        };
        if !self.rules.is_last_delivery(slot.deliveries) {
            self.pending.queue(sequence);
            return;
        }
        // The record stays in the stream, so that subscribers of the event can read it.
        self.finish(sequence, round);
        let deliveries = u64::from(slot.deliveries);
        round.publish_event(
            self.name(),
            &ConsumerEvent::MaxDeliver {
                stream_sequence: sequence,
                deliveries,
            },
        );
    }

    /// Reports a sample of the acknowledgements.
    fn sample(&mut self, subject: &AckTopic<'_>, slot: &Slot, round: &mut Round<'_>) {
        self.sampled += self.rules.sampled_percent;
        if self.sampled < 100 {
            return;
        }
        self.sampled -= 100;
        let ack_time = round
            .now
            .unix_nanos
            .saturating_sub(slot.delivered_unix_nanos);
        let event = ConsumerEvent::Acked {
            delivery: delivery(subject, slot),
            ack_time,
        };
        round.publish_event(self.name(), &event);
    }
}

fn delivery(subject: &AckTopic<'_>, slot: &Slot) -> Delivery {
    Delivery {
        consumer_sequence: subject.consumer_sequence,
        stream_sequence: slot.stream_sequence,
        deliveries: u64::from(slot.deliveries),
    }
}
