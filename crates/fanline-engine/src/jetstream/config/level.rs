//! The API level: which release of the protocol a stream or consumer needs, and which we speak.

use std::collections::BTreeMap;

use super::consumer::{AckPolicy, ConsumerConfig, PriorityPolicy};
use super::stream::{PersistMode, StreamConfig};

/// Free labels of a stream or consumer, in the order in which they are printed.
pub type Metadata = BTreeMap<String, String>;

/// The level that we speak.
pub const API_LEVEL: u8 = 5;

const REQUIRED: &str = "_nats.req.level";
const LEVEL: &str = "_nats.level";
const VERSION: &str = "_nats.ver";

impl StreamConfig {
    /// The lowest level of a server that can run it.
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
    /// The lowest level of a server that can run it.
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

/// How many bytes labels take, the one for the required level included.
pub(super) fn metadata_bytes(metadata: &Metadata) -> usize {
    let given = metadata.iter().filter(|(key, _)| *key != REQUIRED);
    let given: usize = given.map(|(key, value)| key.len() + value.len()).sum();
    given + REQUIRED.len() + 1
}

/// Labels for keeping: the required level is noted, what is only true of the server of the day is not.
pub fn stored_metadata(metadata: &mut Metadata, required_level: u8) {
    metadata.remove(LEVEL);
    metadata.remove(VERSION);
    metadata.insert(REQUIRED.to_owned(), required_level.to_string());
}

/// Labels for showing: the server's version and level beside the required one.
pub fn shown_metadata(metadata: &mut Metadata, server_version: &str) {
    metadata.insert(LEVEL.to_owned(), API_LEVEL.to_string());
    metadata.insert(VERSION.to_owned(), server_version.to_owned());
}

/// The labels that users wrote: what a comparison of two configurations looks at.
pub fn own_metadata(metadata: &Metadata) -> Metadata {
    let own = metadata
        .iter()
        .filter(|(key, _)| ![LEVEL, VERSION, REQUIRED].contains(&key.as_str()));
    own.map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
