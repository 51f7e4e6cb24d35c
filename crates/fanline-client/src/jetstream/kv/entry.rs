//! Entries: the values of a key over time.

use crate::jetstream::Timestamp;
use bytes::Bytes;

use super::KeyValue;
use crate::Headers;
use crate::jetstream::{Delivery, StoredMessage};

/// Header that marks a deletion.
pub(super) const OPERATION_HEADER: &str = "KV-Operation";
/// Header that contains the server's reason for removing a value.
const MARKER_HEADER: &str = "Nats-Marker-Reason";

/// An operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The key was set.
    Put,
    /// The key was deleted; its history remains.
    Delete,
    /// The key and its history were deleted.
    Purge,
}

impl Operation {
    /// Returns the operation's name in JSON, headers, and tables.
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

/// A revision of a key.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Key.
    pub key: String,
    /// Value; empty for a deletion.
    pub value: Bytes,
    /// Revision: the sequence in the bucket's stream.
    pub revision: u64,
    /// Time at which the entry was written.
    pub created: Timestamp,
    /// Operation.
    pub operation: Operation,
    /// Number of newer entries at the time at which this entry was read.
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
            key: self.key_of(delivery.message.subject()),
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
