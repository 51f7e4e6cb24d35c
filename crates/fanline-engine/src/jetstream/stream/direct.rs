//! Direct gets, which return records as messages instead of JSON.

use serde::Deserialize;

use super::Stream;
use super::messages::Selection;
use crate::headers::Block;
use crate::jetstream::{Message, Now, Port, Strictness, Timestamp, decode};
use crate::store::{Filters, StoreError};
use crate::subject::Filter;

/// Maximum number of records in the answer to a request for the last records of many subjects.
const LAST_MAX: usize = 1_024;
/// Maximum number of records in one batch.
const BATCH_MAX: u64 = 1_024;

/// Maximum size of a batch in bytes if the request sets no maximum.
const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request for records, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DirectGet {
    /// Sequence of the record, or of the first of a batch.
    pub seq: u64,
    /// Subject filter. The last matching record is requested.
    pub last_by_subj: String,
    /// Subject filter. The first matching record from `seq` on is requested.
    pub next_by_subj: String,
    /// Number of records in a batch.
    pub batch: i64,
    /// Maximum size of a batch in bytes.
    pub max_bytes: i64,
    /// Time of the first record.
    pub start_time: Option<Timestamp>,
    /// Subject filters. The last record of each matching subject is requested.
    pub multi_last: Vec<String>,
    /// Highest sequence for `multi_last`.
    pub up_to_seq: u64,
    /// Latest time for `multi_last`.
    pub up_to_time: Option<Timestamp>,
    /// Whether to omit headers. Answers to `multi_last` contain them anyway, because headers contain the
    /// subjects.
    pub no_hdr: bool,
}

/// Status of an answer without a record.
#[derive(Clone, Copy)]
enum NoRecord {
    EmptyRequest,
    MalformedRequest,
    BadRequest,
    NotFound,
    NoResults,
    TooMany,
}

impl NoRecord {
    fn headers(self) -> &'static [u8] {
        match self {
            NoRecord::EmptyRequest => b"NATS/1.0 408 Empty Request\r\n\r\n",
            NoRecord::MalformedRequest => b"NATS/1.0 408 Malformed Request\r\n\r\n",
            NoRecord::BadRequest => b"NATS/1.0 408 Bad Request\r\n\r\n",
            NoRecord::NotFound => b"NATS/1.0 404 Message Not Found\r\n\r\n",
            NoRecord::NoResults => b"NATS/1.0 404 No Results\r\n\r\n",
            NoRecord::TooMany => b"NATS/1.0 413 Too Many Results\r\n\r\n",
        }
    }
}

/// Position of a record in a batch of answers.
#[derive(Clone, Copy)]
struct BatchPosition {
    pending: u64,
    last_sequence: u64,
}

impl Stream {
    /// Answers a direct get. `subject` is the part of the request's subject after the stream's name.
    pub fn direct_get(
        &mut self,
        subject: &[u8],
        body: &[u8],
        reply: &[u8],
        now: Now,
        port: &mut dyn Port,
    ) {
        self.clock = now;
        let outcome = match request(subject, body) {
            Err(nothing) => Err(nothing),
            Ok(request) if !request.multi_last.is_empty() => self.send_last(&request, reply, port),
            Ok(request) if request.batch != 0 => self.send_batch(&request, reply, port),
            Ok(request) => self.send_one(&request, reply, port),
        };
        if let Err(nothing) = outcome {
            status(reply, nothing.headers(), port);
        }
    }

    fn send_one(
        &mut self,
        request: &DirectGet,
        reply: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), NoRecord> {
        let found = self.find(request.selection()).map_err(unreadable)?;
        let sequence = found.ok_or(NoRecord::NotFound)?;
        self.send(sequence, None, request.no_hdr, reply, port)?;
        Ok(())
    }

    fn send_batch(
        &mut self,
        request: &DirectGet,
        reply: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), NoRecord> {
        let filter = Some(request.next_by_subj.as_bytes()).filter(|filter| !filter.is_empty());
        let mut filters = Filters::new(filter).map_err(|_| NoRecord::BadRequest)?;
        let mut next = self.find(request.selection()).map_err(unreadable)?;
        let first = next.ok_or(NoRecord::NotFound)?;
        let mut pending = self
            .store
            .count_matching(&filters, first)
            .map_err(unreadable)?;
        let bytes_max = request.bytes_max();
        let (mut sent, mut bytes, mut last_sequence) = (0, 0, 0);
        while let Some(sequence) = next
            && sent < request.count_max()
            && bytes < bytes_max
        {
            // With `no_hdr`, the number of pending records is not sent, and nats-server does not update it.
            pending = pending.saturating_sub(u64::from(!request.no_hdr));
            let position = BatchPosition {
                pending,
                last_sequence,
            };
            bytes += self.send(sequence, Some(position), request.no_hdr, reply, port)?;
            sent += 1;
            last_sequence = sequence;
            next = self
                .store
                .next_matching(&mut filters, sequence + 1)
                .map_err(unreadable)?;
        }
        end_of_batch(pending, last_sequence, None, reply, port);
        Ok(())
    }

    fn send_last(
        &mut self,
        request: &DirectGet,
        reply: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), NoRecord> {
        let up_to = match request.up_to_time {
            Some(time) => {
                let after = self.store.sequence_at(time.unix_nanos().saturating_add(1));
                after.map_err(unreadable)?.saturating_sub(1)
            }
            None if request.up_to_seq > 0 => request.up_to_seq,
            None => self.store.last_sequence(),
        };
        let mut found = self.last_up_to(request, up_to)?;
        if found.len() > LAST_MAX {
            return Err(NoRecord::TooMany);
        }
        found.retain(|sequence| *sequence >= request.seq);
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            return Err(NoRecord::NoResults);
        }
        let bytes_max = request.bytes_max();
        let mut pending = found.len() as u64;
        let (mut sent, mut bytes, mut last_sequence) = (0, 0, 0);
        for sequence in found {
            if sent >= request.count_max() || bytes >= bytes_max {
                break;
            }
            pending -= 1;
            let position = BatchPosition {
                pending,
                last_sequence,
            };
            bytes += self.send(sequence, Some(position), false, reply, port)?;
            sent += 1;
            last_sequence = sequence;
        }
        end_of_batch(pending, last_sequence, Some(up_to), reply, port);
        Ok(())
    }

    /// Returns the sequence of the last record of each requested subject, ignoring records after `up_to`.
    fn last_up_to(&mut self, request: &DirectGet, up_to: u64) -> Result<Vec<u64>, NoRecord> {
        let mut found = Vec::new();
        let mut later = Vec::new();
        // An invalid filter matches nothing. Without this check, an empty list would match all subjects.
        let asked = request.multi_last.iter().map(String::as_bytes);
        let mut asked = asked
            .filter(|filter| Filter::parse(filter).is_ok())
            .peekable();
        if asked.peek().is_none() {
            return Ok(found);
        }
        let filters = Filters::new(asked).map_err(|_| NoRecord::BadRequest)?;
        self.store
            .subjects_matching(&filters, &mut |subject, known| {
                match known.last <= up_to {
                    true => found.push(known.last),
                    false => later.push(subject.to_vec()),
                }
                found.len() + later.len() <= LAST_MAX
            });
        if found.len() + later.len() > LAST_MAX {
            return Err(NoRecord::TooMany);
        }
        for subject in later {
            let mut filters = Filters::new([&subject[..]]).map_err(|_| NoRecord::BadRequest)?;
            let mut last = None;
            let mut from = 0;
            while let Some(sequence) = self
                .store
                .next_matching(&mut filters, from)
                .map_err(unreadable)?
                && sequence <= up_to
            {
                last = Some(sequence);
                from = sequence + 1;
            }
            found.extend(last);
        }
        Ok(found)
    }

    /// Sends a record, and returns its size in bytes. In a batch, a missing record is skipped.
    fn send(
        &mut self,
        sequence: u64,
        position: Option<BatchPosition>,
        bare: bool,
        reply: &[u8],
        port: &mut dyn Port,
    ) -> Result<usize, NoRecord> {
        let record = match self.store.read(sequence) {
            Ok(Some(record)) => record,
            Ok(None) | Err(_) if position.is_some() => return Ok(0),
            Ok(None) | Err(_) => return Err(NoRecord::NotFound),
        };
        let mut buffer = std::mem::take(&mut self.edits.headers);
        let headers = if bare {
            &[]
        } else {
            let time = Timestamp::from_unix_nanos(record.unix_nanos).to_string();
            let mut block = Block::from(&mut buffer, record.headers)
                .add("Nats-Stream", self.config.name.as_bytes())
                .add("Nats-Subject", record.subject)
                .add_number("Nats-Sequence", sequence)
                .add("Nats-Time-Stamp", time.as_bytes());
            if let Some(position) = position {
                block = block
                    .add_number("Nats-Num-Pending", position.pending)
                    .add_number("Nats-Last-Sequence", position.last_sequence);
            }
            block.end()
        };
        port.publish(&Message {
            subject: reply,
            reply: b"",
            headers,
            payload: record.payload,
            ..Message::default()
        });
        let bytes = record.subject.len() + record.headers.len() + record.payload.len();
        self.edits.headers = buffer;
        Ok(bytes)
    }
}

impl DirectGet {
    fn selection(&self) -> Selection<'_> {
        if !self.last_by_subj.is_empty() {
            return Selection::Last(self.last_by_subj.as_bytes());
        }
        let filter = self.next_by_subj.as_bytes();
        match self.start_time {
            Some(time) => Selection::NextAt(filter, time.unix_nanos()),
            None if filter.is_empty() && self.batch == 0 => Selection::Sequence(self.seq),
            None => Selection::Next(filter, self.seq),
        }
    }

    fn count_max(&self) -> u64 {
        match self.batch {
            0 => BATCH_MAX,
            batch => u64::try_from(batch).unwrap_or(0),
        }
    }

    fn bytes_max(&self) -> usize {
        let asked = usize::try_from(self.max_bytes)
            .ok()
            .filter(|bytes| *bytes > 0);
        asked.unwrap_or(BATCH_BYTES_MAX)
    }

    /// Checks that the request selects records in exactly one way.
    fn check(&self) -> Result<(), NoRecord> {
        let has_last = !self.last_by_subj.is_empty();
        let has_next = !self.next_by_subj.is_empty();
        let has_many = !self.multi_last.is_empty();
        let names_nothing =
            self.seq == 0 && self.start_time.is_none() && !has_last && !has_next && !has_many;
        if names_nothing {
            return Err(NoRecord::EmptyRequest);
        }
        let contradicts = (has_last && (self.seq > 0 || has_next || has_many || self.batch > 0))
            || (self.seq > 0 && self.start_time.is_some())
            || (has_last && self.start_time.is_some())
            || (has_many && has_next)
            || (self.up_to_seq > 0 && self.up_to_time.is_some());
        if contradicts {
            Err(NoRecord::BadRequest)
        } else {
            Ok(())
        }
    }
}

fn request(subject: &[u8], body: &[u8]) -> Result<DirectGet, NoRecord> {
    let mut request = match body {
        [] if subject.is_empty() => return Err(NoRecord::EmptyRequest),
        [] => DirectGet::default(),
        body => decode(body, Strictness::Lenient).map_err(|_| NoRecord::MalformedRequest)?,
    };
    if !subject.is_empty() {
        if !request.last_by_subj.is_empty() {
            return Err(NoRecord::BadRequest);
        }
        let subject = std::str::from_utf8(subject).map_err(|_| NoRecord::BadRequest)?;
        request.last_by_subj = subject.to_owned();
    }
    request.check()?;
    Ok(request)
}

fn unreadable(_: StoreError) -> NoRecord {
    NoRecord::NotFound
}

fn status(reply: &[u8], headers: &[u8], port: &mut dyn Port) {
    port.publish(&Message {
        subject: reply,
        headers,
        ..Message::default()
    });
}

fn end_of_batch(
    pending: u64,
    last_sequence: u64,
    up_to: Option<u64>,
    reply: &[u8],
    port: &mut dyn Port,
) {
    let mut headers = Vec::new();
    let mut block = Block::with_status(&mut headers, "204 EOB")
        .add_number("Nats-Num-Pending", pending)
        .add_number("Nats-Last-Sequence", last_sequence);
    if let Some(up_to) = up_to {
        block = block.add_number("Nats-UpTo-Sequence", up_to);
    }
    status(reply, block.end(), port);
}
