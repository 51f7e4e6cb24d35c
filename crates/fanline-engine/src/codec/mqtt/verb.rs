//! The types that a connection and its caller exchange.

use std::time::Duration;

#[cfg(doc)]
use super::Connection;
use super::Qos;
use super::packet::{Connect, ConnectWill, Publish, Subscribe, Unsubscribe};
use super::property::{Properties, Property};
use super::reason::Wrong;

/// The message to publish when a connection ends without DISCONNECT (3.1.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in section 3.1.3")]
pub struct Will {
    pub topic: Box<str>,
    pub payload: Box<[u8]>,
    pub qos: Qos,
    pub retain: bool,
    /// The message's properties, as a block.
    pub properties: Box<[u8]>,
    /// Will Delay Interval.
    pub delay: Duration,
}

impl Will {
    pub(super) fn new(will: &ConnectWill<'_>) -> Self {
        let mut delay = 0;
        let mut properties = Vec::new();
        for property in will.properties.iter() {
            match property {
                Property::WillDelay(seconds) => delay = seconds,
                _ => property.write(&mut properties),
            }
        }
        Will {
            topic: will.topic.into(),
            payload: will.payload.into(),
            qos: will.qos,
            retain: will.retain,
            properties: properties.into(),
            delay: Duration::from_secs(u64::from(delay)),
        }
    }

    /// Returns the packet that the client would have to send to publish the will now.
    pub fn publish(&self) -> Publish<'_> {
        Publish {
            topic: &self.topic,
            packet_id: 0,
            qos: self.qos,
            dup: false,
            retain: self.retain,
            properties: Properties::written(&self.properties),
            payload: &self.payload,
        }
    }
}

/// The result of handling input.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// The action that a packet requires, and the length of the packet in bytes.
    Verb(Verb<'a>, usize),
    /// The packet is incomplete.
    Partial {
        /// Length of the whole packet in bytes; 0 while it is not known.
        frame_bytes: usize,
    },
    /// The connection ends. The packet for its client, if there is one, is in the outbox.
    Ended(Ended),
}

/// The reason why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(pub Wrong);

/// The action that the caller must perform for a packet. The connection has done its own part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    /// Nothing.
    Nothing,
    /// Decide about admission, then call [`Connection::accept`] or [`Connection::refuse`]. Until then, no
    /// input is handled.
    Connect(Connect<'a>),
    /// Publish the message; its topic is [`Connection::topic_of`]. Above QoS 0, also store it for sessions,
    /// then call [`Connection::acknowledge`].
    Publish(Publish<'a>),
    /// Store the message until its PUBREL arrives, then call [`Connection::held`].
    Hold(Publish<'a>),
    /// Publish the message that was stored under this identifier, remove it, then call
    /// [`Connection::released`].
    Release {
        /// The packet identifier of the [`Verb::Hold`].
        packet_id: u16,
    },
    /// A message is complete: the client has received or refused it.
    Done {
        /// The token of the [`Delivery`].
        token: u64,
    },
    /// The client has received a message of QoS 2. Store its PUBREL, then call [`Connection::noted`].
    Note {
        /// The token of the [`Delivery`].
        token: u64,
        /// The packet identifier for the PUBREL.
        packet_id: u16,
    },
    /// PUBCOMP has arrived, so the PUBREL is complete.
    Complete {
        /// The token of the [`Delivery`].
        token: u64,
        /// The packet identifier of the PUBREL.
        packet_id: u16,
    },
    /// Subscribe, then call [`Connection::subscribed`].
    Subscribe(Subscribe<'a>),
    /// Unsubscribe, then call [`Connection::unsubscribed`].
    Unsubscribe(Unsubscribe<'a>),
    /// The client has disconnected. [`Connection::take_will`] returns its will, unless the client has
    /// discarded it.
    Disconnect,
}

/// The contents of a CONNACK that admits a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accepted<'a> {
    /// Whether a session existed (3.2.2.1.1).
    pub session_present: bool,
    /// The client id that the server has assigned, if the client sent none.
    pub assigned_client_id: Option<&'a str>,
}

/// A message for a client.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// Topic name.
    pub topic: &'a str,
    /// The lower of the message's QoS and the granted QoS.
    pub qos: Qos,
    /// Whether RETAIN is set.
    pub retain: bool,
    /// Properties that all receivers get.
    pub properties: Properties<'a>,
    /// Identifiers of the matching subscriptions (MQTT-3.3.4-3 to -5), without zeros.
    pub identifiers: &'a [u32],
    /// Length of the payload in bytes.
    pub payload_bytes: usize,
    /// Number by which the caller identifies the message.
    pub token: u64,
    /// Packet identifier of the message; `None` uses any free one.
    pub packet_id: Option<u16>,
    /// Whether the message was sent before.
    pub dup: bool,
}

/// The reason why a message was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The receive window is full. Try again when another message is complete.
    NoRoom,
    /// The message is in flight, and is sent again only on the next connection (MQTT-4.4.0-1).
    UnderWay,
    /// The client does not accept a packet of this size, so the message counts as complete (MQTT-3.1.2-25).
    TooLarge,
}
