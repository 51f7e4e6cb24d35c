//! What a key was at some time.

use crate::jetstream::Timestamp;
use bytes::Bytes;

use super::KeyValue;
use crate::Headers;
use crate::jetstream::{Delivery, StoredMessage};

/// Says that a record is no value.
pub(super) const OPERATION_HEADER: &str = "KV-Operation";
/// Says that the server took a value away, and why.
const MARKER_HEADER: &str = "Nats-Marker-Reason";

/// What was done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It was given a value.
    Put,
    /// It was deleted; its history is kept.
    Delete,
    /// It was deleted, and its history too.
    Purge,
}

impl Operation {
    /// The word for it in JSON, headers and tables.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Put => "PUT",
            Operation::Delete => "DEL",
            Operation::Purge => "PURGE",
        }
    }

    fn of(headers: &Headers) -> Operation {
        match (headers.get(OPERATION_HEADER), headers.get(MARKER_HEADER)) {
            (Some("DEL"), _) | (None, Some("Remove")) => Operation::Delete,
            (Some("PURGE"), _) | (None, Some("MaxAge" | "Purge")) => Operation::Purge,
            _ => Operation::Put,
        }
    }
}

/// What a key was at some time.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its value; empty when it was deleted.
    pub value: Bytes,
    /// The sequence in the bucket's stream.
    pub revision: u64,
    /// When it was written.
    pub created: Timestamp,
    /// What was done.
    pub operation: Operation,
    /// How many more there were when this one was read.
    pub delta: u64,
}

impl KeyValue {
    pub(super) fn entry_of_stored(&self, message: StoredMessage) -> Entry {
        Entry {
            key: self.key_of(&message.subject),
            revision: message.sequence,
            created: message.time,
            operation: Operation::of(&message.headers),
            value: message.payload,
            delta: 0,
        }
    }

    pub(super) fn entry_of(&self, delivery: &Delivery) -> Entry {
        let headers = delivery.message.headers();
        Entry {
            key: self.key_of(delivery.message.topic()),
            value: delivery.message.payload_bytes(),
            revision: delivery.stream_sequence,
            created: delivery.time,
            operation: headers.map_or(Operation::Put, Operation::of),
            delta: delivery.pending,
        }
    }

    fn key_of(&self, subject: &str) -> String {
        subject
            .strip_prefix(&self.prefix)
            .unwrap_or(subject)
            .to_owned()
    }
}
