//! Effects of acknowledgements, and of their absence, on a consumer.

use super::ack::{Ack, AckSubject};
use super::event::{ConsumerEvent, Delivery};
use super::machine::Consumer;
use super::pending::Slot;
use super::shared::{CallContext, CallWithStore};
use crate::jetstream::{AckPolicy, Message};
use crate::store::Search;

/// Maximum number of records that one acknowledgement may add to `listed`, the records to deliver next.
const LISTED_MAX: usize = 65_536;

impl Consumer {
    /// Handles an acknowledgement. If it is also a pull request, `reply` receives the records.
    pub(super) fn handle_ack(
        &mut self,
        subject: &AckSubject<'_>,
        ack: Ack<'_>,
        reply: &[u8],
        context: &mut CallContext<'_>,
    ) {
        self.last_used = context.at;
        let sequence = subject.stream_sequence;
        match ack {
            Ack::Done => self.acknowledge(subject, context),
            Ack::Next(body) => {
                self.acknowledge(subject, context);
                self.handle_pull(body, reply, context);
            }
            Ack::Nak(delay) => self.refuse(subject, delay, context),
            Ack::Progress => {
                if let Some(slot) = self.pending.get(sequence).copied() {
                    self.delivered.last_active = Some(context.now.unix_nanos);
                    let deadline = self.rules.deadline(context.at, slot.deliveries);
                    self.pending.postpone(sequence, deadline);
                }
            }
            Ack::Terminate(reason) => self.terminate(subject, reason, context),
            Ack::Unknown => {}
        }
    }

    /// Handles another acknowledgement after [`catch_up`](Self::catch_up), if it is for this consumer and needs
    /// no answer. Returns whether it was handled.
    pub(super) fn handle_next_ack(
        &mut self,
        message: &Message<'_>,
        call: &mut CallWithStore<'_>,
    ) -> bool {
        let numbers = message.subject.strip_prefix(&*self.ack_prefix);
        let subject = numbers.and_then(|text| AckSubject::parse_numbers(b"", b"", text));
        let is_done = message.reply.is_empty() && Ack::parse(message.payload) == Ack::Done;
        let Some(subject) = subject.filter(|_| is_done) else {
            return false;
        };
        if self.rules.durable_only {
            self.restore_delivery(subject.stream_sequence, call);
        }
        self.handle_ack(&subject, Ack::Done, b"", &mut call.context);
        true
    }

    /// Handles the acknowledgement of a record that, according to the consumer's state, was not delivered. A
    /// power cut may have lost the newer state. The record is not delivered again. Earlier matching records
    /// are added to `listed`, so that they are still delivered.
    pub(super) fn restore_delivery(&mut self, sequence: u64, call: &mut CallWithStore<'_>) {
        let is_explicit = self.rules.ack_policy == AckPolicy::Explicit;
        if !is_explicit || self.lanes.is_some() || sequence > call.store.durable() {
            return;
        }
        while self.next <= sequence && self.listed.len() < LISTED_MAX {
            match call.store.search(&mut self.filters, self.next) {
                Ok(Search::Found(found)) if found <= sequence => {
                    self.listed.push_back(found);
                    self.next = found + 1;
                }
                Ok(Search::NotBelow(next)) if next > self.next => self.next = next,
                // The record does not match, or the disk cannot be read.
                _ => return,
            }
        }
        if let Ok(at) = self.listed.binary_search(&sequence) {
            self.listed.remove(at);
            self.backlog.take_one();
            self.delivered.consumer_sequence += 1;
            self.delivered.stream_sequence = self.delivered.stream_sequence.max(sequence);
            self.raise_ack_floor();
            self.touch(&mut call.context);
        }
    }

    fn acknowledge(&mut self, subject: &AckSubject<'_>, context: &mut CallContext<'_>) {
        let sequence = subject.stream_sequence;
        match self.rules.ack_policy {
            // Records need no acknowledgement, or flow control acknowledges them.
            AckPolicy::None | AckPolicy::FlowControl => return,
            AckPolicy::All => self.acknowledge_up_to(sequence, context),
            AckPolicy::Explicit => match self.remove_pending(sequence, context) {
                Some(slot) => {
                    self.sample(subject, &slot, context);
                    context.note_unneeded(sequence);
                }
                None => self.acknowledge_late(sequence, context),
            },
        }
        self.ack_floor.last_active = Some(context.now.unix_nanos);
    }

    /// Handles an acknowledgement that arrives after the record's last allowed delivery has expired. The
    /// consumer no longer waits for the acknowledgement, but a stream with interest or work queue retention
    /// then removes the record.
    fn acknowledge_late(&self, sequence: u64, context: &mut CallContext<'_>) {
        if !self.needs(sequence) && sequence <= self.delivered.stream_sequence {
            context.note_unneeded(sequence);
        }
    }

    /// Acknowledges all records up to a sequence.
    pub(super) fn acknowledge_up_to(&mut self, sequence: u64, context: &mut CallContext<'_>) {
        while let Some(first) = self
            .pending
            .first()
            .filter(|slot| slot.stream_sequence <= sequence)
        {
            let first = first.stream_sequence;
            self.remove_pending(first, context);
            context.note_unneeded(first);
        }
    }

    fn refuse(
        &mut self,
        subject: &AckSubject<'_>,
        delay: Option<u64>,
        context: &mut CallContext<'_>,
    ) {
        let sequence = subject.stream_sequence;
        let Some(slot) = self.pending.get(sequence).copied() else {
            return;
        };
        context.publish_event(self.name(), &ConsumerEvent::Naked(delivery(subject, &slot)));
        match delay {
            Some(delay) => self
                .pending
                .postpone(sequence, context.at.saturating_add(delay)),
            None => self.queue_or_give_up(sequence, context),
        }
        self.touch(context);
    }

    fn terminate(
        &mut self,
        subject: &AckSubject<'_>,
        reason: &[u8],
        context: &mut CallContext<'_>,
    ) {
        let sequence = subject.stream_sequence;
        if self.rules.ack_policy == AckPolicy::All {
            self.acknowledge_up_to(sequence.saturating_sub(1), context);
        }
        let deliveries = self
            .pending
            .get(sequence)
            .map(|slot| u64::from(slot.deliveries));
        if self.remove_pending(sequence, context).is_some() {
            context.note_unneeded(sequence);
        } else {
            self.acknowledge_late(sequence, context);
        }
        self.ack_floor.last_active = Some(context.now.unix_nanos);
        let delivery = Delivery {
            consumer_sequence: subject.consumer_sequence,
            stream_sequence: sequence,
            deliveries: deliveries.unwrap_or(subject.deliveries),
        };
        let reason = String::from_utf8_lossy(reason);
        context.publish_event(
            self.name(),
            &ConsumerEvent::Terminated {
                delivery,
                reason: &reason,
            },
        );
    }

    /// Queues the records whose acknowledgements are overdue, for redelivery.
    pub(super) fn expire_pending(&mut self, context: &mut CallContext<'_>) {
        let mut expired = std::mem::take(&mut context.shared.scratch.sequences);
        expired.clear();
        self.pending.expired(context.at, &mut expired);
        for sequence in &expired {
            self.queue_or_give_up(*sequence, context);
        }
        context.shared.scratch.sequences = expired;
    }

    /// Queues all unacknowledged records for redelivery.
    pub(super) fn queue_all(&mut self, context: &mut CallContext<'_>) {
        let all: Vec<u64> = self
            .pending
            .iter()
            .map(|slot| slot.stream_sequence)
            .collect();
        for sequence in all {
            self.queue_or_give_up(sequence, context);
        }
    }

    fn queue_or_give_up(&mut self, sequence: u64, context: &mut CallContext<'_>) {
        let Some(slot) = self.pending.get(sequence).copied() else {
            return;
        };
        if !self.rules.is_last_delivery(slot.deliveries) {
            self.pending.queue(sequence);
            return;
        }
        // The record is not removed from the stream, so that subscribers of the event can read it.
        self.remove_pending(sequence, context);
        let deliveries = u64::from(slot.deliveries);
        context.publish_event(
            self.name(),
            &ConsumerEvent::MaxDeliver {
                stream_sequence: sequence,
                deliveries,
            },
        );
    }

    /// Publishes an event for a sample of the acknowledgements.
    fn sample(&mut self, subject: &AckSubject<'_>, slot: &Slot, context: &mut CallContext<'_>) {
        self.sampled += self.rules.sampled_percent;
        if self.sampled < 100 {
            return;
        }
        self.sampled -= 100;
        let ack_time = context
            .now
            .unix_nanos
            .saturating_sub(slot.delivered_unix_nanos);
        let event = ConsumerEvent::Acked {
            delivery: delivery(subject, slot),
            ack_time,
        };
        context.publish_event(self.name(), &event);
    }
}

fn delivery(subject: &AckSubject<'_>, slot: &Slot) -> Delivery {
    Delivery {
        consumer_sequence: subject.consumer_sequence,
        stream_sequence: slot.stream_sequence,
        deliveries: u64::from(slot.deliveries),
    }
}
