//! Fast batches: messages of one publisher in order. Each message is stored immediately, and one
//! acknowledgement covers several messages.
//!
//! The reply subject contains the message's position in its batch:
//! `<inbox>.<id>.<flow>.<ok|fail>.<seq>.<op>.$FI`.

use std::collections::HashMap;
use std::time::Duration;

use super::{ID_BYTES_MAX, batch_members};
use crate::jetstream::stream::Stream;
use crate::jetstream::stream::acks::{Ack, AckContent, write_error};
use crate::jetstream::stream::headers::PublishHeaders;
use crate::jetstream::{ApiError, Message, Port};

/// Default maximum number of open batches of a stream.
const OPEN_MAX: usize = 1_000;
/// Maximum number of messages between two acknowledgements. All open fast batches of a stream share this
/// number.
const FLOW_MAX: u64 = 500;

/// Number of messages between two acknowledgements, if the publisher does not request a valid number.
const FLOW_DEFAULT: u64 = 10;

/// The open batches of a stream.
#[derive(Default)]
pub(in crate::jetstream::stream) struct FastBatches {
    open: HashMap<Vec<u8>, Batch>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// Highest sequence within the batch.
    last: u64,
    /// Highest acknowledged sequence within the batch.
    acknowledged: u64,
    /// Messages between two acknowledgements.
    flow: u64,
    /// Stream sequence of the last stored record.
    stored: u64,
    abandoned_at: Duration,
}

/// A parsed reply subject.
#[derive(Clone, Copy, Debug)]
pub(in crate::jetstream::stream) struct FastReply<'a> {
    id: &'a [u8],
    /// Requested number of messages between two acknowledgements; 0 if the publisher requests none.
    flow: u64,
    /// Mode, sequence, and operation; `None` if these tokens are invalid.
    step: Option<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    gaps_allowed: bool,
    sequence: u64,
    operation: Operation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Start,
    Append,
    /// Stores the message and ends the batch.
    Commit,
    /// Ends the batch without storing the message.
    End,
    /// Requests an acknowledgement without a message to store.
    Ping,
}

const FAST_SUFFIX: &[u8] = b".$FI";

impl<'a> FastReply<'a> {
    /// Returns whether a reply subject may be that of a fast batch.
    pub(in crate::jetstream::stream) fn may_be(reply: &[u8]) -> bool {
        reply.ends_with(FAST_SUFFIX)
    }

    /// Parses a reply subject; `None` if it is not that of a fast batch.
    pub(in crate::jetstream::stream) fn parse(reply: &'a [u8]) -> Option<Self> {
        let rest = reply.strip_suffix(FAST_SUFFIX)?;
        let mut tokens = rest.rsplitn(6, |b| *b == b'.');
        let (operation, sequence, mode) = (tokens.next()?, tokens.next()?, tokens.next()?);
        let (flow, id) = (tokens.next()?, tokens.next()?);
        Some(FastReply {
            id,
            flow: number(flow).unwrap_or(0),
            step: Step::parse(mode, sequence, operation),
        })
    }
}

impl Step {
    fn parse(mode: &[u8], sequence: &[u8], operation: &[u8]) -> Option<Self> {
        let gaps_allowed = match mode {
            b"ok" => true,
            b"fail" => false,
            _ => return None,
        };
        let operation = match operation {
            b"0" => Operation::Start,
            b"1" => Operation::Append,
            b"2" => Operation::Commit,
            b"3" => Operation::End,
            b"4" => Operation::Ping,
            _ => return None,
        };
        let sequence = number(sequence)?;
        let possible = match operation {
            Operation::Start => sequence == 1,
            Operation::End => sequence > 1,
            _ => sequence > 0,
        };
        possible.then_some(Step {
            gaps_allowed,
            sequence,
            operation,
        })
    }
}

impl FastBatches {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Drops the batches that have received no message for too long.
    pub(in crate::jetstream::stream) fn expire(&mut self, now: Duration) {
        self.open.retain(|_, batch| batch.abandoned_at > now);
    }

    /// Returns the time at which the next batch is abandoned if it gets no message.
    pub(in crate::jetstream::stream) fn next_timeout(&self) -> Option<Duration> {
        self.open.values().map(|batch| batch.abandoned_at).min()
    }
}

impl Stream {
    pub(in crate::jetstream::stream) fn publish_fast(
        &mut self,
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
        reply: FastReply<'_>,
        port: &mut dyn Port,
    ) {
        match self.find_batch(&reply) {
            Err(error) => self.refuse(message, &error, port),
            Ok((step, mut batch)) => {
                let goes_on = self.step(message, asked, &reply, step, &mut batch, port);
                match goes_on {
                    true => {
                        batch.abandoned_at = self.batch_abandoned_at();
                        self.fast.open.insert(reply.id.to_vec(), batch);
                    }
                    false => self.end_batch(message, reply.id, &batch, port),
                }
            }
        }
    }

    /// Removes and returns the batch of a message, or a new batch for a first message.
    fn find_batch(&mut self, reply: &FastReply<'_>) -> Result<(Step, Batch), ApiError> {
        if !self.config.allow_batched {
            return Err(ApiError::BATCH_PUBLISH_DISABLED);
        }
        let step = reply.step.ok_or(ApiError::BATCH_PUBLISH_INVALID_PATTERN)?;
        if reply.id.len() > ID_BYTES_MAX {
            return Err(ApiError::BATCH_PUBLISH_INVALID_BATCH_ID);
        }
        if let Some(batch) = self.fast.open.remove(reply.id) {
            return Ok((step, batch));
        }
        let begins =
            step.sequence == 1 && matches!(step.operation, Operation::Start | Operation::Commit);
        if !begins {
            return Err(ApiError::BATCH_PUBLISH_UNKNOWN_BATCH_ID);
        }
        let open_max = self.batch_limits.open_per_stream_max.unwrap_or(OPEN_MAX);
        if self.fast.len() >= open_max || !self.has_room_for_fast() {
            return Err(ApiError::BATCH_PUBLISH_TOO_MANY_INFLIGHT);
        }
        // The only open batch gets acknowledgements at the requested interval from the start. Further batches
        // begin with one acknowledgement for each message.
        let flow = match self.fast.open.is_empty() {
            true => self.flow_max(reply.flow),
            false => 1,
        };
        Ok((
            step,
            Batch {
                flow,
                ..Batch::default()
            },
        ))
    }

    fn flow_max(&self, requested: u64) -> u64 {
        let share = FLOW_MAX / (self.fast.open.len() as u64 + 1);
        let requested = if requested == 0 {
            FLOW_DEFAULT
        } else {
            requested
        };
        requested.min(share).max(1)
    }

    /// Processes one message of a batch. Returns whether the batch continues.
    fn step(
        &mut self,
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
        reply: &FastReply<'_>,
        step: Step,
        batch: &mut Batch,
        port: &mut dyn Port,
    ) -> bool {
        if step.operation == Operation::Start && batch.last == 0 {
            self.send_flow(message, batch, port);
        }
        let is_ping = step.operation == Operation::Ping;
        // A ping contains the sequence of the last message. Other messages contain their own.
        let sequence = step.sequence + u64::from(is_ping);
        let awaited = batch.last + 1;
        let has_gap = if is_ping {
            sequence > awaited
        } else {
            sequence != awaited
        };
        if has_gap {
            let gap = format!(r#"{{"type":"gap","last_seq":{awaited},"seq":{sequence}}}"#);
            self.send_payload(message, batch, gap.as_bytes(), port);
            if !step.gaps_allowed || sequence < awaited {
                return false;
            }
            batch.last = sequence - 1;
        }
        if is_ping {
            self.advance(reply, batch);
            self.send_flow(message, batch, port);
            return true;
        }
        if step.operation == Operation::End {
            return false;
        }
        let mut edits = std::mem::take(&mut self.edits);
        let accepted = self.accept(message, asked, &mut edits, port);
        self.edits = edits;
        match accepted {
            Ok(accepted) => {
                batch.stored = batch.stored.max(accepted.sequence);
                batch.last = sequence;
            }
            // The message is too large. The batch continues, and its next message has the same sequence.
            Err(error) if error.err_code == ApiError::STREAM_MESSAGE_EXCEEDS_MAXIMUM.err_code => {
                self.refuse(message, &error, port);
                return true;
            }
            Err(error) => {
                self.send_error(message, batch, sequence, &error, port);
                if !step.gaps_allowed || step.operation == Operation::Commit {
                    return false;
                }
                batch.last = sequence;
                return true;
            }
        }
        if step.operation == Operation::Commit {
            return false;
        }
        if self.advance(reply, batch) {
            self.send_flow(message, batch, port);
        }
        true
    }

    /// Returns whether an acknowledgement is due. If it is, computes when the next one is due.
    fn advance(&self, reply: &FastReply<'_>, batch: &mut Batch) -> bool {
        if batch.last < batch.acknowledged + batch.flow {
            return false;
        }
        batch.acknowledged = batch.last;
        let most = self.flow_max(reply.flow);
        batch.flow = if batch.flow > most {
            (batch.flow / 2).max(1)
        } else {
            (batch.flow * 2).min(most)
        };
        true
    }

    fn end_batch(&mut self, message: &Message<'_>, id: &[u8], batch: &Batch, port: &mut dyn Port) {
        let ack = Ack {
            reply: self.reply_of(message),
            until: batch.stored,
            content: AckContent::Stored {
                sequence: batch.stored,
                extra: &batch_members(id, batch.last),
            },
        };
        self.send_ack(ack, port);
    }

    fn send_flow(&mut self, message: &Message<'_>, batch: &Batch, port: &mut dyn Port) {
        let Batch {
            acknowledged, flow, ..
        } = batch;
        let body = format!(r#"{{"type":"ack","seq":{acknowledged},"msgs":{flow}}}"#);
        self.send_payload(message, batch, body.as_bytes(), port);
    }

    fn send_error(
        &mut self,
        message: &Message<'_>,
        batch: &Batch,
        sequence: u64,
        error: &ApiError,
        port: &mut dyn Port,
    ) {
        let mut body = format!(r#"{{"type":"err","seq":{sequence},"error":"#).into_bytes();
        write_error(error, &mut body);
        body.push(b'}');
        self.send_payload(message, batch, &body, port);
    }

    fn send_payload(
        &mut self,
        message: &Message<'_>,
        batch: &Batch,
        body: &[u8],
        port: &mut dyn Port,
    ) {
        let ack = Ack {
            reply: self.reply_of(message),
            until: batch.stored,
            content: AckContent::Payload(body),
        };
        self.send_ack(ack, port);
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
