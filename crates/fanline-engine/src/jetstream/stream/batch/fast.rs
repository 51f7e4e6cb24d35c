//! Fast ingest: messages of one publisher in order, each stored as it comes, acknowledged many at a time.
//!
//! What a message is to its batch stands in its reply topic: `<inbox>.<id>.<flow>.<ok|fail>.<seq>.<op>.$FI`.

use std::collections::HashMap;
use std::time::Duration;

use super::{ID_BYTES_MAX, batch_members};
use crate::jetstream::stream::Stream;
use crate::jetstream::stream::acks::{Ack, Says, write_error};
use crate::jetstream::stream::headers::PublishHeaders;
use crate::jetstream::{ApiError, Message, Port};

/// Most batches of a stream at a time, if the server does not say.
const OPEN_MAX: usize = 1_000;
/// Most messages between two acknowledgements, shared by the batches of a stream.
const FLOW_MAX: u64 = 500;

/// As many when the publisher does not say, or not in a number.
const FLOW_DEFAULT: u64 = 10;

/// The batches of a stream that have begun and not ended.
#[derive(Default)]
pub(in crate::jetstream::stream) struct FastBatches {
    open: HashMap<Vec<u8>, Batch>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// The last sequence within the batch.
    last: u64,
    /// The last one that was acknowledged.
    acknowledged: u64,
    /// How many are acknowledged at a time.
    flow: u64,
    /// The sequence of the last record.
    stored: u64,
    given_up_at: Duration,
}

/// What a reply topic says.
#[derive(Clone, Copy, Debug)]
pub(in crate::jetstream::stream) struct FastReply<'a> {
    id: &'a [u8],
    /// As many messages between acknowledgements as the publisher likes; 0 when it does not say.
    flow: u64,
    /// `None` when what follows is none of the known forms.
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
    /// The last one.
    Commit,
    /// The one before was the last.
    End,
    /// Nothing but a question.
    Ping,
}

impl<'a> FastReply<'a> {
    /// What a reply topic says; `None` when it is an ordinary one.
    pub(in crate::jetstream::stream) fn parse(reply: &'a [u8]) -> Option<Self> {
        let rest = reply.strip_suffix(b".$FI")?;
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

    /// Forgets the batches that have been silent for too long.
    pub(in crate::jetstream::stream) fn expire(&mut self, now: Duration) {
        self.open.retain(|_, batch| batch.given_up_at > now);
    }

    /// When the next one is given up.
    pub(in crate::jetstream::stream) fn next_timeout(&self) -> Option<Duration> {
        self.open.values().map(|batch| batch.given_up_at).min()
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
                        batch.given_up_at = self.batch_given_up_at();
                        self.fast.open.insert(reply.id.to_vec(), batch);
                    }
                    false => self.end_batch(message, reply.id, &batch, port),
                }
            }
        }
    }

    /// The batch of a message, taken out; a new one when this is its first.
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
        // Alone it may have what it wishes; beside others it begins slowly.
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

    fn flow_max(&self, wished: u64) -> u64 {
        let share = FLOW_MAX / (self.fast.open.len() as u64 + 1);
        let wished = if wished == 0 { FLOW_DEFAULT } else { wished };
        wished.min(share).max(1)
    }

    /// Takes one message of a batch; says whether the batch goes on.
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
            self.tell_flow(message, batch, port);
        }
        let is_ping = step.operation == Operation::Ping;
        // A ping names the last message, all others themselves.
        let sequence = step.sequence + u64::from(is_ping);
        let awaited = batch.last + 1;
        let has_gap = if is_ping {
            sequence > awaited
        } else {
            sequence != awaited
        };
        if has_gap {
            let gap = format!(r#"{{"type":"gap","last_seq":{awaited},"seq":{sequence}}}"#);
            self.tell(message, batch, gap.as_bytes(), port);
            if !step.gaps_allowed || sequence < awaited {
                return false;
            }
            batch.last = sequence - 1;
        }
        if is_ping {
            self.advance(reply, batch);
            self.tell_flow(message, batch, port);
            return true;
        }
        if step.operation == Operation::End {
            return false;
        }
        let mut edits = std::mem::take(&mut self.edits);
        let taken = self.take_in(message, asked, &mut edits, port);
        self.edits = edits;
        match taken {
            Ok(taken) => {
                batch.stored = batch.stored.max(taken.sequence);
                batch.last = sequence;
            }
            // Too large to be part of anything: its place stays open.
            Err(error) if error.err_code == ApiError::STREAM_MESSAGE_EXCEEDS_MAXIMUM.err_code => {
                self.refuse(message, &error, port);
                return true;
            }
            Err(error) => {
                self.tell_error(message, batch, sequence, &error, port);
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
            self.tell_flow(message, batch, port);
        }
        true
    }

    /// Notes that enough has come for an acknowledgement, if so, and how many make the next one.
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
            says: Says::Stored {
                sequence: batch.stored,
                extra: &batch_members(id, batch.last),
            },
        };
        self.acks.give(&ack, self.store.durable(), port);
    }

    fn tell_flow(&mut self, message: &Message<'_>, batch: &Batch, port: &mut dyn Port) {
        let Batch {
            acknowledged, flow, ..
        } = batch;
        let body = format!(r#"{{"type":"ack","seq":{acknowledged},"msgs":{flow}}}"#);
        self.tell(message, batch, body.as_bytes(), port);
    }

    fn tell_error(
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
        self.tell(message, batch, &body, port);
    }

    fn tell(&mut self, message: &Message<'_>, batch: &Batch, body: &[u8], port: &mut dyn Port) {
        let ack = Ack {
            reply: self.reply_of(message),
            until: batch.stored,
            says: Says::Whole(body),
        };
        self.acks.give(&ack, self.store.durable(), port);
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
