//! The envelope of all messages to the system account: server and time.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Monitor, now_text};
use crate::config::FEATURE_FLAGS;
use crate::identity;
use crate::version::COMPATIBLE_VERSION;

/// The server's capabilities as bits: JetStream and binary snapshots of streams.
const CAPABILITIES: u8 = 0b11;

/// Creates the common parts of messages, and numbers the messages.
#[derive(Default)]
pub(super) struct Envelope {
    sequence: Cell<u64>,
}

impl Envelope {
    /// Returns the server's identity.
    pub(super) fn server(&self, monitor: &Monitor) -> Value {
        let info = &monitor.shared.info;
        self.sequence.set(self.sequence.get() + 1);
        let mut server = json!({
            "name": info.server_name,
            "host": info.host,
            "id": info.server_id,
            "ver": COMPATIBLE_VERSION,
            "fanline": info.fanline,
            "feature_flags": BTreeMap::from(FEATURE_FLAGS),
            "jetstream": info.jetstream,
            "flags": if info.jetstream { CAPABILITIES } else { 0 },
            "seq": self.sequence.get(),
            "time": now_text(),
        });
        if let Some(cluster) = monitor.shared.cluster_name() {
            server["cluster"] = cluster.into();
        }
        if let Some(domain) = &info.domain {
            server["domain"] = domain.as_str().into();
        }
        let options = monitor.shared.options();
        if !options.server_tags.is_empty() {
            server["tags"] = json!(options.server_tags);
        }
        if !options.server_metadata.is_empty() {
            server["metadata"] = json!(options.server_metadata);
        }
        server
    }

    /// Wraps a response.
    pub(super) fn answer(&self, monitor: &Monitor, data: Value) -> Value {
        json!({ "server": self.server(monitor), "data": data })
    }

    /// Wraps an error.
    pub(super) fn refusal(&self, monitor: &Monitor, code: u16, problem: &str) -> Value {
        json!({
            "server": self.server(monitor),
            "error": { "code": code, "description": problem },
        })
    }

    /// Returns the common fields of an event.
    pub(super) fn event(&self, monitor: &Monitor, kind: &str) -> Value {
        json!({
            "type": format!("io.nats.server.advisory.v1.{kind}"),
            "id": identity::new_event_id(),
            "timestamp": now_text(),
            "server": self.server(monitor),
        })
    }
}
