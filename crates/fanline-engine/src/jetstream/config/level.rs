//! API levels: the protocol version that a stream or consumer requires, and the version of this server.

use std::collections::BTreeMap;

use super::consumer::{AckPolicy, ConsumerConfig, PriorityPolicy};
use super::stream::{PersistMode, StreamConfig};

/// Labels of a stream or consumer, sorted by key. Replies list them in this order.
pub type Metadata = BTreeMap<String, String>;

/// The API level of this server.
pub const API_LEVEL: u8 = 5;

const REQUIRED: &str = "_nats.req.level";
const LEVEL: &str = "_nats.level";
const VERSION: &str = "_nats.ver";

impl StreamConfig {
    /// Returns the lowest API level of a server that supports this configuration.
    pub fn required_level(&self) -> u8 {
        let by_consumer = |consumer: &Option<_>| consumer.is_some();
        let mut origins = self.mirror.iter().chain(&self.sources);
        let asynchronous = self.persist_mode == PersistMode::Async;
        if self.allow_batched || origins.any(|origin| by_consumer(&origin.consumer)) {
            4
        } else if self.allow_msg_counter
            || self.allow_atomic
            || self.allow_msg_schedules
            || asynchronous
        {
            2
        } else {
            u8::from(self.allow_msg_ttl || !self.subject_delete_marker_ttl.is_zero())
        }
    }
}

impl ConsumerConfig {
    /// Returns the lowest API level of a server that supports this configuration.
    pub fn required_level(&self) -> u8 {
        if self.ack_policy == AckPolicy::FlowControl {
            return 4;
        }
        let pauses = self.pause_until.is_some_and(|until| !until.is_zero());
        let grouped = self.priority_policy != PriorityPolicy::None
            || !self.priority_groups.is_empty()
            || !self.priority_timeout.is_zero();
        u8::from(pauses || grouped)
    }
}

/// Returns the size of all labels in bytes, including the label for the required level.
pub(super) fn metadata_bytes(metadata: &Metadata) -> usize {
    let given = metadata.iter().filter(|(key, _)| *key != REQUIRED);
    let given: usize = given.map(|(key, value)| key.len() + value.len()).sum();
    given + REQUIRED.len() + 1
}

/// Prepares labels for storage: sets the required level, and removes labels that describe the current server.
pub fn stored_metadata(metadata: &mut Metadata, required_level: u8) {
    metadata.remove(LEVEL);
    metadata.remove(VERSION);
    metadata.insert(REQUIRED.to_owned(), required_level.to_string());
}

/// Prepares labels for a reply: adds the server's version and API level.
pub fn shown_metadata(metadata: &mut Metadata, server_version: &str) {
    metadata.insert(LEVEL.to_owned(), API_LEVEL.to_string());
    metadata.insert(VERSION.to_owned(), server_version.to_owned());
}

/// Returns the labels that users have set, for comparing configurations.
pub fn own_metadata(metadata: &Metadata) -> Metadata {
    let own = metadata
        .iter()
        .filter(|(key, _)| ![LEVEL, VERSION, REQUIRED].contains(&key.as_str()));
    own.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
