//! Delivery: chooses the next record and the subscriber that receives it.

use super::ack;
use super::machine::Consumer;
use super::pending::{NO_LANE, Sent, Slot};
use super::shared::{CallContext, CallWithStore};
use super::status::Status;
use crate::headers::Block;
use crate::jetstream::{Message, PriorityPolicy};
use crate::store::{Record, Search, StoreError};

/// Maximum number of records that one consumer delivers before other consumers are served.
const BURST_MAX: u64 = 256;

/// Maximum number of bytes that the consumers of a stream deliver before other work continues. Delivered
/// records occupy buffers until they are written.
pub(super) const DELIVERED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Number of bytes that an unfinished search of the log adds to the count of delivered bytes.
const SEARCH_BYTES: u64 = DELIVERED_BYTES_MAX / 4;

/// Reason for which a consumer has stopped delivering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServeResult {
    /// It can deliver more records now, but other consumers are served first.
    More,
    /// It waits for the next record.
    WaitsForRecords,
    /// It waits for the next sync.
    WaitsForDisk,
    /// It waits for another event: an acknowledgement, a request, or a timer.
    Blocked,
}

/// State of a replay at the original pace. It ends when the consumer has delivered all stored records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replay {
    /// Time at which the last record was stored, and time of its delivery.
    last: Option<(i64, u64)>,
    /// Time at which the next record may be delivered.
    pub(super) due: Option<u64>,
}

/// The next record to deliver.
#[derive(Clone, Copy, Debug)]
enum Candidate {
    Redelivery(Slot),
    New { sequence: u64, from: FoundIn },
}

#[derive(Clone, Copy, Debug)]
enum FoundIn {
    List,
    Lane,
    Stream,
}

/// Result of the search for the next record that was not examined yet.
enum Next {
    At(u64, FoundIn),
    /// No record matches.
    Nowhere,
    /// The search is unfinished and continues later.
    NotYet,
    /// A crash may still remove the next record.
    NotDurable,
}

/// Recipient of a record.
#[derive(Clone, Copy, Debug)]
enum Recipient {
    Subject,
    Request(usize),
}

/// Result of one delivery step.
enum Step {
    /// This number of records was delivered.
    Delivered(u64),
    /// The record has been removed, and another step follows.
    Skipped,
    CaughtUp,
    NoRecipient,
    Blocked,
    /// The search for the next record continues later.
    Searching,
    /// The next record is not on disk yet.
    NotDurable,
}

impl Consumer {
    /// Delivers records until the consumer must stop.
    pub(super) fn serve(&mut self, call: &mut CallWithStore<'_>) -> ServeResult {
        self.catch_up(call);
        let mut left = BURST_MAX;
        while left > 0 {
            if self.is_paused(call.context.now.unix_nanos) {
                return ServeResult::Blocked;
            }
            if !self.has_recipient(&call.context) {
                return self.without_recipient();
            }
            let step = self.step(left, call);
            left -= match step {
                Ok(Step::Delivered(count)) => count,
                _ => 1,
            };
            match step {
                Ok(Step::Delivered(_) | Step::Skipped)
                    if call.context.shared.delivered_bytes > DELIVERED_BYTES_MAX =>
                {
                    return ServeResult::More;
                }
                Ok(Step::Delivered(_) | Step::Skipped) => {}
                Ok(Step::CaughtUp) => {
                    self.caught_up(&mut call.context);
                    return ServeResult::WaitsForRecords;
                }
                Ok(Step::NoRecipient) => {
                    self.end_idle_requests(&mut call.context);
                    return self.without_recipient();
                }
                Ok(Step::Blocked) => return ServeResult::Blocked,
                Ok(Step::NotDurable) => return ServeResult::WaitsForDisk,
                Ok(Step::Searching) => {
                    call.context.shared.delivered_bytes += SEARCH_BYTES;
                    return ServeResult::More;
                }
                // The store has removed a damaged record. The next step continues after it.
                Err(StoreError::Damaged(sequence)) => self.skip(sequence),
                // The disk may recover. The next request or record causes another attempt.
                Err(_) => return ServeResult::WaitsForRecords,
            }
        }
        ServeResult::More
    }

    /// Returns whether a record has a possible recipient.
    fn has_recipient(&self, context: &CallContext<'_>) -> bool {
        match &self.push {
            None => !self.requests.is_empty(),
            Some(push) => push.can_send(context.at),
        }
    }

    /// Returns the state of a consumer whose requests accept no record now. Requests may wait for a minimum
    /// number of undelivered records, so the next record may change this.
    fn without_recipient(&self) -> ServeResult {
        if self.requests.is_empty() {
            ServeResult::Blocked
        } else {
            ServeResult::WaitsForRecords
        }
    }

    fn caught_up(&mut self, context: &mut CallContext<'_>) {
        self.replay = None;
        let none_held = self
            .lanes
            .as_ref()
            .is_none_or(|lanes| lanes.first().is_none());
        if none_held && self.listed.is_empty() {
            self.backlog.clear();
        }
        self.end_idle_requests(context);
    }

    /// Ends the requests that do not wait for more records.
    fn end_idle_requests(&mut self, context: &mut CallContext<'_>) {
        while let Some(request) = self.requests.next_idle() {
            context.send(&request.reply, b"", Status::NoMessages);
        }
    }

    /// Delivers the next record, and those that follow it in a run, at most `records_max`.
    fn step(&mut self, records_max: u64, call: &mut CallWithStore<'_>) -> Result<Step, StoreError> {
        let candidate = match self.candidate(call)? {
            Ok(candidate) => candidate,
            Err(why_none) => return Ok(why_none),
        };
        let Some(record) = call.store.read(candidate.sequence())? else {
            self.drop_candidate(candidate, &mut call.context);
            return Ok(Step::Skipped);
        };
        let context = &mut call.context;
        if matches!(candidate, Candidate::New { .. })
            && self.replay_waits(record.unix_nanos, context.at)
        {
            return Ok(Step::Blocked);
        }
        self.write_reply(
            candidate,
            record.unix_nanos,
            &mut context.shared.scratch.reply,
        );
        let reply = &context.shared.scratch.reply;
        let bytes =
            record.subject.len() + reply.len() + record.headers.len() + record.payload.len();
        let bytes = bytes as u64;
        let Some(recipient) = self.choose(bytes, context) else {
            return Ok(Step::NoRecipient);
        };
        let unix_nanos = record.unix_nanos;
        self.send(recipient, &record, context);
        let may_run = matches!(
            candidate,
            Candidate::New {
                from: FoundIn::Stream,
                ..
            }
        );
        if may_run {
            let subject = &mut context.shared.scratch.subject;
            subject.clear();
            subject.extend_from_slice(record.subject);
        }
        self.sent(candidate, recipient, bytes, unix_nanos, context);
        let rest = match may_run {
            true => self.deliver_run(unix_nanos, records_max - 1, call),
            false => 0,
        };
        Ok(Step::Delivered(1 + rest))
    }

    /// Returns the next record to deliver, or the reason for which there is none.
    fn candidate(
        &mut self,
        call: &mut CallWithStore<'_>,
    ) -> Result<Result<Candidate, Step>, StoreError> {
        if let Some(slot) = self.pending.next_queued() {
            return Ok(Ok(Candidate::Redelivery(slot)));
        }
        if self.pending.len() >= self.rules.pending_max {
            return Ok(Err(Step::Blocked));
        }
        if self.lanes.is_some() {
            return self.candidate_of_lanes(call);
        }
        Ok(match self.next_new(call)? {
            Next::At(sequence, from) => Ok(Candidate::New { sequence, from }),
            Next::Nowhere => Err(Step::CaughtUp),
            Next::NotYet => Err(Step::Searching),
            Next::NotDurable => Err(Step::NotDurable),
        })
    }

    /// Returns the next record that was not examined yet.
    fn next_new(&mut self, call: &mut CallWithStore<'_>) -> Result<Next, StoreError> {
        if let Some(sequence) = self.listed.front() {
            return Ok(Next::At(*sequence, FoundIn::List));
        }
        // Records before the result do not match, and are not examined again.
        let durable = match self.rules.durable_only {
            true => call.store.durable(),
            false => u64::MAX,
        };
        let (next, found) = match call.store.search(&mut self.filters, self.next)? {
            // A copy must not contain records or removals that its origin loses in a crash.
            Search::Found(sequence)
                if sequence > durable
                    || self.config.direct
                        && call.store.has_unsynced_removal(self.next..sequence) =>
            {
                (self.next, Next::NotDurable)
            }
            Search::Found(sequence) => (sequence, Next::At(sequence, FoundIn::Stream)),
            Search::Nothing => (call.store.last_sequence() + 1, Next::Nowhere),
            Search::NotBelow(sequence)
                if self.config.direct && call.store.has_unsynced_removal(self.next..sequence) =>
            {
                (self.next, Next::NotDurable)
            }
            Search::NotBelow(sequence) => (sequence, Next::NotYet),
        };
        self.next = self.next.max(next);
        Ok(found)
    }

    /// Adds records to lanes until a record can be delivered. If subjects take turns, adds as many as there
    /// is room for; otherwise as few as possible.
    fn candidate_of_lanes(
        &mut self,
        call: &mut CallWithStore<'_>,
    ) -> Result<Result<Candidate, Step>, StoreError> {
        let mut is_at_end = false;
        loop {
            let Some(lanes) = &self.lanes else {
                return Ok(Err(Step::CaughtUp));
            };
            let is_enough = lanes.next().is_some() && !self.rules.fair_subjects;
            if is_enough || is_at_end || !lanes.has_room() {
                break;
            }
            let (sequence, from) = match self.next_new(call)? {
                Next::At(sequence, from) => (sequence, from),
                Next::Nowhere => {
                    is_at_end = true;
                    continue;
                }
                Next::NotYet => return Ok(Err(Step::Searching)),
                Next::NotDurable => return Ok(Err(Step::NotDurable)),
            };
            if let (Some(record), Some(lanes)) = (call.store.read(sequence)?, &mut self.lanes) {
                lanes.push(sequence, record.subject);
            } else {
                self.backlog.take_one();
            }
            self.step_over(sequence, from);
        }
        let Some(lanes) = &self.lanes else {
            return Ok(Err(Step::CaughtUp));
        };
        Ok(match lanes.next() {
            Some(sequence) => Ok(Candidate::New {
                sequence,
                from: FoundIn::Lane,
            }),
            None if is_at_end && lanes.first().is_none() => Err(Step::CaughtUp),
            // All records in lanes wait until earlier records of their subjects are acknowledged. Only a
            // record of another subject could be delivered.
            None if is_at_end => Err(Step::NoRecipient),
            None => Err(Step::Blocked),
        })
    }

    /// Removes a record from the list or lane in which it was found, or sets `next` to the following
    /// sequence.
    fn step_over(&mut self, sequence: u64, from: FoundIn) {
        match from {
            FoundIn::List => {
                self.listed.pop_front();
            }
            FoundIn::Stream => self.next = sequence + 1,
            FoundIn::Lane => {}
        }
    }

    /// Drops the state of a record that no longer exists.
    fn drop_candidate(&mut self, candidate: Candidate, context: &mut CallContext<'_>) {
        match candidate {
            Candidate::Redelivery(slot) => {
                self.remove_pending(slot.stream_sequence, context);
            }
            Candidate::New { sequence, from } => {
                if let (FoundIn::Lane, Some(lanes)) = (from, &mut self.lanes) {
                    lanes.take(false);
                }
                self.step_over(sequence, from);
                self.backlog.take_one();
            }
        }
    }

    /// Continues after a damaged record, which the store has removed.
    fn skip(&mut self, sequence: u64) {
        if self.listed.front() == Some(&sequence) {
            self.listed.pop_front();
        } else {
            self.next = self.next.max(sequence + 1);
        }
    }

    /// Returns whether a record must wait because of replay at the original pace.
    fn replay_waits(&mut self, unix_nanos: i64, at: u64) -> bool {
        let Some(replay) = &mut self.replay else {
            return false;
        };
        let Some((last, sent)) = replay.last else {
            return false;
        };
        let gap = u64::try_from(unix_nanos.saturating_sub(last)).unwrap_or(0);
        let due = sent.saturating_add(gap);
        replay.due = (due > at).then_some(due);
        due > at
    }

    /// Writes the acknowledgement subject of this delivery.
    fn write_reply(&self, candidate: Candidate, unix_nanos: i64, reply: &mut Vec<u8>) {
        let (deliveries, pending) = match candidate {
            Candidate::Redelivery(slot) => {
                (slot.deliveries.saturating_add(1), self.backlog.count())
            }
            Candidate::New { .. } => (1, self.backlog.count().saturating_sub(1)),
        };
        reply.clear();
        reply.extend_from_slice(&self.ack_prefix);
        let consumer_sequence = self.delivered.consumer_sequence + 1;
        let sequence = candidate.sequence();
        ack::write_subject(
            reply,
            deliveries,
            sequence,
            consumer_sequence,
            unix_nanos,
            pending,
        );
    }

    /// Returns the recipient for a record of this size. Removes requests of disconnected clients that it
    /// finds.
    fn choose(&mut self, bytes: u64, context: &mut CallContext<'_>) -> Option<Recipient> {
        if self.push.is_some() {
            return Some(Recipient::Subject);
        }
        let mut at = 0;
        loop {
            let request = self.requests.get_mut(at)?;
            if request.is_expired(context.at) {
                let request = self.requests.remove(at)?;
                let status = Status::RequestTimeout(request.remaining());
                context.send(&request.reply, b"", status);
                continue;
            }
            if request.seen_in_round != context.number {
                if !context.port.has_interest(&request.reply) {
                    self.requests.remove(at);
                    continue;
                }
                request.seen_in_round = context.number;
            }
            let accepts = request.accepts(self.backlog.count(), self.pending.len() as u64);
            if !accepts || !self.pin.admits(&request.id, self.rules.priority) {
                at += 1;
                continue;
            }
            if !request.is_exceeded_by(bytes) {
                return Some(Recipient::Request(at));
            }
            let request = self.requests.remove(at)?;
            let status = Status::MessageSizeExceedsMaxBytes(request.remaining());
            context.send(&request.reply, b"", status);
        }
    }

    /// Delivers a record to the chosen recipient. Its acknowledgement subject was written before.
    fn send(&mut self, recipient: Recipient, record: &Record<'_>, context: &mut CallContext<'_>) {
        let to = match recipient {
            Recipient::Subject => None,
            Recipient::Request(at) => {
                if self.rules.priority == PriorityPolicy::PinnedClient {
                    self.pin_request(at, context);
                }
                self.requests.get(at).map(|request| &*request.reply)
            }
        };
        let to = match (to, &self.push) {
            (Some(to), _) => to,
            (None, Some(push)) => push.subject(),
            (None, None) => return,
        };
        let scratch = &mut context.shared.scratch;
        let mut headers = record.headers;
        let mut payload = record.payload;
        if self.rules.headers_only || self.pin.id().is_some() {
            let mut block = Block::from(&mut scratch.headers, record.headers);
            if self.rules.headers_only {
                block = block.add_number("Nats-Msg-Size", record.payload.len() as u64);
                payload = b"";
            }
            if let Some(pin) = self.pin.id() {
                block = block.add("Nats-Pin-Id", pin.as_bytes());
            }
            headers = block.end();
        }
        context.port.deliver(
            to,
            &Message {
                subject: record.subject,
                reply: &scratch.reply,
                headers,
                payload,
                ..Message::default()
            },
        );
    }

    /// Updates the state after a delivery.
    fn sent(
        &mut self,
        candidate: Candidate,
        recipient: Recipient,
        bytes: u64,
        unix_nanos: i64,
        context: &mut CallContext<'_>,
    ) {
        let at = context.at;
        context.shared.delivered_bytes += bytes;
        self.delivered.consumer_sequence += 1;
        self.delivered.last_active = Some(context.now.unix_nanos);
        match candidate {
            Candidate::Redelivery(slot) => {
                let deadline = self.rules.deadline(at, slot.deliveries.saturating_add(1));
                let sent = Sent {
                    unix_nanos: context.now.unix_nanos,
                    deadline,
                };
                self.pending.redeliver(slot.stream_sequence, sent);
            }
            Candidate::New { sequence, from } => self.sent_new(sequence, from, unix_nanos, context),
        }
        match (recipient, &mut self.push) {
            (Recipient::Request(place), _) => {
                self.requests.served(place, (1, bytes), at);
                self.pin.used(at, &self.rules);
            }
            (Recipient::Subject, Some(push)) => {
                push.sent(bytes, at, &self.rules);
                self.request_flow_control(context);
            }
            (Recipient::Subject, None) => {}
        }
        self.last_used = at;
        self.touch(context);
    }

    fn sent_new(
        &mut self,
        sequence: u64,
        from: FoundIn,
        unix_nanos: i64,
        context: &mut CallContext<'_>,
    ) {
        let needs_acks = self.rules.needs_acks();
        let lane = match (from, &mut self.lanes) {
            (FoundIn::Lane, Some(lanes)) => lanes.take(needs_acks),
            _ => NO_LANE,
        };
        self.step_over(sequence, from);
        self.backlog.take_one();
        self.delivered.stream_sequence = self.delivered.stream_sequence.max(sequence);
        if let Some(replay) = &mut self.replay {
            *replay = Replay {
                last: Some((unix_nanos, context.at)),
                due: None,
            };
        }
        if needs_acks {
            let sent = Sent {
                unix_nanos: context.now.unix_nanos,
                deadline: self.rules.deadline(context.at, 1),
            };
            self.pending
                .insert(sequence, self.delivered.consumer_sequence, sent, 1, lane);
        } else {
            self.raise_ack_floor();
            context.note_unneeded(sequence);
        }
    }
}

impl Candidate {
    fn sequence(self) -> u64 {
        match self {
            Candidate::Redelivery(slot) => slot.stream_sequence,
            Candidate::New { sequence, .. } => sequence,
        }
    }
}
