//! Stores copied records. In a mirror they have the origin's sequence. Otherwise they have a new sequence,
//! and a header that names the origin.

use std::collections::BTreeMap;

use super::super::append::{Admitted, Rollup};
use super::super::decimal::Decimal;
use super::super::ttl::{Ttl, parse_ttl};
use super::super::{Stream, counter};
use super::{SOURCE_HEADER, Source};
use crate::headers::{Block, find};
use crate::jetstream::{ApiError, Port};
use crate::store::{NEVER, NewRecord, StoreError};

const COUNTER_SOURCES_HEADER: &str = "Nats-Counter-Sources";

/// A record being copied.
pub(super) struct CopiedRecord {
    pub(super) sequence: u64,
    pub(super) unix_nanos: i64,
    pub(super) expires_at: Option<i64>,
    pub(super) subject: Vec<u8>,
    pub(super) headers: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Stream {
    /// Stores a copy, and returns its sequence in this stream.
    pub(super) fn store_copy(
        &mut self,
        source: &Source,
        copy: CopiedRecord,
        origin_subject: &[u8],
        port: &mut dyn Port,
    ) -> Result<u64, ApiError> {
        match source.is_mirror {
            true => self.store_mirrored(&copy, port),
            false => self.store_sourced(source, copy, origin_subject, port),
        }
    }

    fn store_mirrored(
        &mut self,
        copy: &CopiedRecord,
        port: &mut dyn Port,
    ) -> Result<u64, ApiError> {
        let previous = self.previous_of(&copy.subject);
        let admitted = Admitted {
            record: NewRecord {
                unix_nanos: copy.unix_nanos,
                subject: &copy.subject,
                headers: &copy.headers,
                payload: &copy.payload,
                expires_at: copy.expires_at,
                more_in_batch: false,
            },
            ..Admitted::default()
        };
        match self.store.append_at(copy.sequence, &admitted.record) {
            // The record was copied before.
            Err(StoreError::SequenceTaken { .. }) => return Ok(copy.sequence),
            result => result.map_err(ApiError::stream_store_failed)?,
        }
        self.consumers.handle_append(copy.sequence, &copy.subject);
        self.follow_up(&admitted, copy.sequence, previous, port);
        Ok(copy.sequence)
    }

    fn store_sourced(
        &mut self,
        source: &Source,
        mut copy: CopiedRecord,
        origin_subject: &[u8],
        port: &mut dyn Port,
    ) -> Result<u64, ApiError> {
        if self.config.allow_msg_counter {
            self.add_counter(source, &mut copy, origin_subject)?;
        }
        let (filters, destinations) = source.named();
        let origin = format!(
            "{} {} {filters} {destinations} ",
            source.label, copy.sequence
        );
        let identity = source.identity.as_bytes();
        let origin = [origin.as_bytes(), origin_subject, b" ", identity].concat();
        let mut headers = Vec::new();
        let headers = Block::filtered(&mut headers, &copy.headers, |n| {
            n != SOURCE_HEADER.as_bytes()
        })
        .add(SOURCE_HEADER, &origin)
        .end();
        let rollup = find(&copy.headers, b"Nats-Rollup").filter(|_| self.config.allow_rollup_hdrs);
        let admitted = Admitted {
            record: NewRecord {
                subject: &copy.subject,
                headers,
                payload: &copy.payload,
                expires_at: copy.expires_at.filter(|_| self.config.allow_msg_ttl),
                ..NewRecord::default()
            },
            rollup: rollup.map(|text| match text.eq_ignore_ascii_case(b"all") {
                true => Rollup::All,
                false => Rollup::Subject,
            }),
            ..Admitted::default()
        };
        Ok(self.append(&admitted, port)?.0)
    }

    /// Adds the growth of the origin's counter since the last copy, if the record is a counter.
    fn add_counter(
        &mut self,
        source: &Source,
        copy: &mut CopiedRecord,
        origin_subject: &[u8],
    ) -> Result<(), ApiError> {
        type Counted = BTreeMap<String, BTreeMap<String, String>>;
        let value = counter::value(&copy.payload)?;
        let known = self.store.subject(&copy.subject).map(|known| known.last);
        let record = match known {
            Some(last) => self
                .store
                .read(last)
                .map_err(ApiError::stream_store_failed)?,
            None => None,
        };
        let mut sum = Decimal::default();
        let mut counted = Counted::new();
        if let Some(record) = record {
            sum = counter::value(record.payload)?;
            if let Some(header) = find(record.headers, COUNTER_SOURCES_HEADER.as_bytes()) {
                counted =
                    serde_json::from_slice(header).map_err(|_| ApiError::MESSAGE_COUNTER_BROKEN)?;
            }
        }
        let subject = String::from_utf8_lossy(origin_subject).into_owned();
        let before = counted.entry(source.label.clone()).or_default();
        let before = before.insert(subject, value.to_string());
        let before = before
            .and_then(|text| counter::parse(text.as_bytes()))
            .unwrap_or_default();
        let grown_by = value - before;
        sum += &grown_by;
        copy.payload = counter::payload(&sum)?.into_bytes();
        let all = serde_json::to_vec(&counted).map_err(|_| ApiError::MESSAGE_COUNTER_BROKEN)?;
        let mut headers = Vec::new();
        let own = [COUNTER_SOURCES_HEADER.as_bytes(), b"Nats-Incr"];
        Block::filtered(&mut headers, &copy.headers, |name| !own.contains(&name))
            .add("Nats-Incr", grown_by.to_string().as_bytes())
            .add(COUNTER_SOURCES_HEADER, &all)
            .end();
        copy.headers = headers;
        Ok(())
    }
}

/// Returns the headers without the publisher's conditions, which only apply to the origin.
pub(super) fn without_conditions(headers: &[u8]) -> Vec<u8> {
    if headers.is_empty() {
        return Vec::new();
    }
    let mut kept = Vec::new();
    let block = Block::filtered(&mut kept, headers, |name| {
        !name.starts_with(b"Nats-Expected-")
    });
    block.end_or_empty().to_vec()
}

/// Returns the time at which a record stored at `unix_nanos` expires because of its own time to live.
pub(super) fn expiry(headers: &[u8], unix_nanos: i64) -> Option<i64> {
    match parse_ttl(find(headers, b"Nats-TTL")?)? {
        Ttl::Never => Some(NEVER),
        Ttl::After(nanos) => Some(unix_nanos.saturating_add(nanos)),
    }
}
