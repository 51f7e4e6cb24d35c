//! What passes between a connection and those around it.

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
    /// Those of the message, as a block.
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

    /// As if its client published it now.
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

/// What became of some input.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// A packet's action, and its length.
    Verb(Verb<'a>, usize),
    /// It is not whole; how long it is, or 0 while that is not known.
    Partial {
        /// With its fixed header.
        frame_bytes: usize,
    },
    /// The connection ends. The packet for its client, if there is one, is in the outbox.
    Ended(Ended),
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(pub Wrong);

/// What others have to do because of a packet. What the connection can do itself is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    /// Nothing.
    Nothing,
    /// Decide whether it may come in, then [`Connection::accept`] or [`Connection::refuse`]. No input is taken
    /// before.
    Connect(Connect<'a>),
    /// Publish it; its topic is [`Connection::topic_of`]. Above QoS 0, store it for sessions, then
    /// [`Connection::acknowledge`].
    Publish(Publish<'a>),
    /// Store it until it is released, then [`Connection::held`].
    Hold(Publish<'a>),
    /// Publish what is held under this identifier, and hold it no longer, then [`Connection::released`].
    Release {
        /// As in [`Verb::Hold`].
        packet_id: u16,
    },
    /// A message has arrived, or was refused by its receiver: it is done with.
    Done {
        /// As in [`Delivery`].
        token: u64,
    },
    /// A message of QoS 2 has arrived: it is done with, but store its PUBREL, then [`Connection::noted`].
    Note {
        /// As in [`Delivery`].
        token: u64,
        /// What the PUBREL says.
        packet_id: u16,
    },
    /// The PUBREL is done with.
    Complete {
        /// As in [`Delivery`].
        token: u64,
        /// What the PUBREL said.
        packet_id: u16,
    },
    /// Subscribe, then [`Connection::subscribed`].
    Subscribe(Subscribe<'a>),
    /// Unsubscribe, then [`Connection::unsubscribed`].
    Unsubscribe(Unsubscribe<'a>),
    /// The client has gone; [`Connection::take_will`] says whether it leaves a will.
    Disconnect,
}

/// The contents of a CONNACK that admits a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accepted<'a> {
    /// There was a session (3.2.2.1.1).
    pub session_present: bool,
    /// The id that it has, where it gave none.
    pub assigned_client_id: Option<&'a str>,
}

/// A message for a client.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// Its topic name.
    pub topic: &'a str,
    /// The lower of its own and the granted.
    pub qos: Qos,
    /// Whether RETAIN is set.
    pub retain: bool,
    /// Those that all receivers get.
    pub properties: Properties<'a>,
    /// Of the subscriptions that it is for (MQTT-3.3.4-3 to -5); no zeros.
    pub identifiers: &'a [u32],
    /// How long its payload is.
    pub payload_bytes: usize,
    /// Identifies the message to its owner.
    pub token: u64,
    /// The identifier that it has to have; `None` is any.
    pub packet_id: Option<u16>,
    /// It was sent before.
    pub dup: bool,
}

/// Why a message was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As much is under way as may be: try again when something is done with.
    NoRoom,
    /// It was sent before and waits for its acknowledgement (MQTT-4.4.0-1: it is not sent again).
    UnderWay,
    /// The client takes no such packet: the message is done with (MQTT-3.1.2-25).
    TooLarge,
}
