//! The messages that servers of a cluster exchange about their streams, in JSON. Servers of different versions may
//! be in one cluster: a server that does not know a question does not answer it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::placement::Mismatch;
use crate::jetstream::Placement;

/// A question of one server to another.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Question {
    /// Id of the server that asks.
    pub(super) from: String,
    /// Name of the account.
    pub(super) account: String,
    pub(super) subject: Subject,
}

/// What a question is about.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Subject {
    /// Whether a stream may have this name and these subjects.
    Claim(Claim),
    /// Whether the server satisfies a placement.
    Placement(Wanted),
    /// The names of the streams with subjects that this filter matches; of all streams if it is empty.
    Names(String),
    /// The descriptions of streams.
    Infos(Vec<String>),
    /// The totals of the account.
    Account,
    /// Requests the server to create a stream, and to answer the client. It gets no other answer.
    Create(Forwarded),
}

/// The placement of a stream, and the number of its replicas.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Wanted {
    #[serde(flatten)]
    pub(super) placement: Placement,
    /// 0 counts as 1.
    pub(super) replicas: i64,
}

/// A name and subjects that a server reserves for a stream.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) name: String,
    pub(super) subjects: Vec<String>,
    /// Whether the stream exists already, and changes its subjects.
    pub(super) is_update: bool,
}

/// The request of a client that another server answers.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Forwarded {
    pub(super) subject: String,
    pub(super) reply: String,
    pub(super) payload: String,
}

/// The answer to a question.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Answer {
    /// The name and the subjects are not used.
    Free,
    /// A stream of another name has such subjects.
    Overlap,
    /// Another server creates such a stream, or has created it.
    Later,
    /// How the server fails to satisfy the placement.
    Placement(Mismatch),
    Names(Vec<String>),
    Infos(Vec<Value>),
    Account(AccountSums),
}

/// Totals of an account.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(in crate::jetstream) struct AccountSums {
    pub(in crate::jetstream) memory: u64,
    pub(in crate::jetstream) storage: u64,
    pub(in crate::jetstream) reserved_memory: i64,
    pub(in crate::jetstream) reserved_storage: i64,
    pub(in crate::jetstream) streams: u64,
    pub(in crate::jetstream) consumers: u64,
    pub(in crate::jetstream) requests: u64,
    pub(in crate::jetstream) errors: u64,
}

impl AccountSums {
    /// Adds the totals of another server.
    pub(super) fn add(&mut self, other: AccountSums) {
        self.memory = self.memory.saturating_add(other.memory);
        self.storage = self.storage.saturating_add(other.storage);
        self.reserved_memory = self.reserved_memory.saturating_add(other.reserved_memory);
        self.reserved_storage = self.reserved_storage.saturating_add(other.reserved_storage);
        self.streams = self.streams.saturating_add(other.streams);
        self.consumers = self.consumers.saturating_add(other.consumers);
        self.requests = self.requests.saturating_add(other.requests);
        self.errors = self.errors.saturating_add(other.errors);
    }
}
