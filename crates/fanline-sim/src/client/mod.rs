//! Clients: what they write, and how they read. They know the protocols only.

mod mqtt;
mod nats;

pub(crate) use mqtt::{MqttReader, Publish, number_at, packet, push_text};
pub(crate) use nats::{Event, NatsReader, Received, push_line, push_publish};

/// The number of a client, which no other has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClientKey(pub(crate) u64);
