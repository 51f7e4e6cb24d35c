//! Delivery of a run: successive records of one subject that go to the same recipient. Limits and recipient are
//! determined once for all of them.

use super::ack::SubjectRun;
use super::machine::Consumer;
use super::pending::{NO_LANE, Sent};
use super::serve::DELIVERED_BYTES_MAX;
use super::shared::{CallContext, CallWithStore, CommonState, Scratch};
use crate::jetstream::{AckPolicy, Message, PriorityPolicy};
use crate::store::Store;

/// Limits of a run.
struct Room {
    records: u64,
    /// The run ends after the record that exceeds this number of bytes.
    bytes: u64,
    /// The run ends before the record that exceeds this number of bytes.
    bytes_of_request: u64,
}

impl Consumer {
    /// Delivers the records that follow the one just delivered, as long as they have its subject and need no
    /// decision of their own, but at most `records_max`. `scratch` contains the subject of that record and the
    /// subject of its acknowledgement. Returns the number of delivered records.
    pub(super) fn deliver_run(
        &mut self,
        unix_nanos: i64,
        records_max: u64,
        call: &mut CallWithStore<'_>,
    ) -> u64 {
        let Some(room) = self.room_for_run(records_max, call.store, &call.context) else {
            return 0;
        };
        let CallWithStore { store, context } = call;
        let needs_acks = self.rules.needs_acks();
        let sent = Sent {
            unix_nanos: context.now.unix_nanos,
            deadline: self.rules.deadline(context.at, 1),
        };
        let CommonState {
            scratch: Scratch { reply, subject, .. },
            unneeded,
            reports_unneeded,
            ..
        } = &mut *context.shared;
        let (requests, push, pending) = (&self.requests, &self.push, &mut self.pending);
        let to = match (requests.get(0), push) {
            (_, Some(push)) => push.subject(),
            (Some(request), None) => &*request.reply,
            (None, None) => return 0,
        };
        let (first, first_number) = (self.next, self.delivered.consumer_sequence + 1);
        let waiting = self.backlog.count();
        let mut replies = SubjectRun::after(reply, self.ack_prefix.len(), unix_nanos);
        let (mut count, mut bytes) = (0, 0);
        store.read_successive(first, &mut |record| {
            if count == room.records || bytes > room.bytes || record.subject != subject.as_slice() {
                return false;
            }
            let number = first_number + count;
            let left = waiting.saturating_sub(count + 1);
            replies.advance(reply, (record.sequence, number), record.unix_nanos, left);
            let parts = [
                record.subject,
                reply.as_slice(),
                record.headers,
                record.payload,
            ];
            let size = parts.iter().map(|part| part.len() as u64).sum::<u64>();
            if bytes + size > room.bytes_of_request {
                return false;
            }
            let message = Message {
                subject: record.subject,
                reply: reply.as_slice(),
                headers: record.headers,
                payload: record.payload,
                ..Message::default()
            };
            match count {
                0 => context.port.deliver(to, &message),
                _ => context.port.deliver_next(to, &message),
            }
            if needs_acks {
                pending.insert(record.sequence, number, sent, 1, NO_LANE);
            } else if *reports_unneeded {
                unneeded.push(record.sequence);
            }
            count += 1;
            bytes += size;
            true
        });
        if count > 0 {
            self.sent_run(count, bytes, context);
        }
        count
    }

    /// Updates the state after a run.
    fn sent_run(&mut self, count: u64, bytes: u64, context: &mut CallContext<'_>) {
        context.shared.delivered_bytes += bytes;
        self.next += count;
        self.backlog.take(count);
        self.delivered.consumer_sequence += count;
        self.delivered.stream_sequence = self.delivered.stream_sequence.max(self.next - 1);
        if !self.rules.needs_acks() {
            self.raise_ack_floor();
        }
        match &mut self.push {
            None => self.requests.served(0, (count, bytes), context.at),
            Some(push) => {
                push.sent(bytes, context.at, &self.rules);
                self.request_flow_control(context);
            }
        }
    }

    /// Returns the limits of the records that may follow one that was just delivered; `None` if each record needs
    /// a decision of its own.
    fn room_for_run(
        &self,
        records_max: u64,
        store: &Store,
        context: &CallContext<'_>,
    ) -> Option<Room> {
        let rules = &self.rules;
        let is_plain = self.lanes.is_none()
            && self.listed.is_empty()
            && self.replay.is_none()
            && !rules.headers_only
            && rules.bits_per_second.is_none()
            && rules.priority == PriorityPolicy::None
            && rules.ack_policy != AckPolicy::FlowControl
            && self.pin.id().is_none();
        if !is_plain {
            return None;
        }
        let (mut records, mut bytes_of_request) = (records_max, u64::MAX);
        let mut bytes = DELIVERED_BYTES_MAX.checked_sub(context.shared.delivered_bytes)?;
        if let Some(push) = &self.push {
            bytes = bytes.min(push.bytes_to_decision(context.at)?);
        } else {
            let (of_records, of_bytes) = self.requests.room_of_only(context.number, context.at)?;
            records = records.min(of_records);
            bytes_of_request = of_bytes;
        }
        if rules.needs_acks() {
            let room = rules.pending_max.saturating_sub(self.pending.len());
            records = records.min(room as u64);
        }
        if rules.durable_only {
            records = records.min((store.durable() + 1).saturating_sub(self.next));
        }
        Some(Room {
            records,
            bytes,
            bytes_of_request,
        })
    }
}
