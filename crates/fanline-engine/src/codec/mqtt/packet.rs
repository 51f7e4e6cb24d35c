//! Packets that a server reads, as references into the input.

use std::fmt;

use super::bytes::Reader;
use super::property::Properties;
use super::reason::Reason;
use super::subscription::SubscriptionOptions;
use super::{Qos, Version};

/// A packet from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in table 2-1")]
pub enum Packet<'a> {
    Connect(Connect<'a>),
    Publish(Publish<'a>),
    Ack(Ack<'a>),
    Subscribe(Subscribe<'a>),
    Unsubscribe(Unsubscribe<'a>),
    Ping,
    Disconnect(Disconnect<'a>),
    Auth(Reason),
}

/// CONNECT (3.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Connect<'a> {
    /// Protocol version of the connection.
    pub version: Version,
    /// Clean Start; Clean Session in 3.1.1.
    pub clean_start: bool,
    /// Keep alive in seconds; 0 means no keep alive (3.1.2.10).
    pub keep_alive: u16,
    /// Client id; empty if the server must assign one.
    pub client_id: &'a str,
    /// The will.
    pub will: Option<ConnectWill<'a>>,
    /// User name.
    pub user: Option<&'a str>,
    /// Password, which may also be a token.
    pub password: Option<&'a [u8]>,
    /// Properties; empty in 3.1.1.
    pub properties: Properties<'a>,
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for Connect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("version", &self.version)
            .field("clean_start", &self.clean_start)
            .field("keep_alive", &self.keep_alive)
            .field("client_id", &self.client_id)
            .field("will", &self.will)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The will in a CONNECT (3.1.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in section 3.1.3")]
pub struct ConnectWill<'a> {
    pub topic: &'a str,
    pub payload: &'a [u8],
    pub qos: Qos,
    pub retain: bool,
    /// Properties of the will message, and the Will Delay Interval.
    pub properties: Properties<'a>,
}

/// PUBLISH (3.3), in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Topic name; empty if a topic alias replaces it (3.3.2.3.4).
    pub topic: &'a str,
    /// Packet identifier; 0 for QoS 0.
    pub packet_id: u16,
    /// QoS of the message.
    pub qos: Qos,
    /// Whether the message was sent before (DUP).
    pub dup: bool,
    /// Whether RETAIN is set.
    pub retain: bool,
    /// Properties; empty in 3.1.1.
    pub properties: Properties<'a>,
    /// The payload.
    pub payload: &'a [u8],
}

/// The kind of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in table 2-1")]
pub enum AckKind {
    PubAck,
    PubRec,
    PubRel,
    PubComp,
}

/// PUBACK, PUBREC, PUBREL, or PUBCOMP (3.4 to 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in section 3.4")]
pub struct Ack<'a> {
    pub kind: AckKind,
    pub packet_id: u16,
    pub reason: Reason,
    pub properties: Properties<'a>,
}

/// SUBSCRIBE (3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in section 3.8")]
pub struct Subscribe<'a> {
    pub packet_id: u16,
    pub properties: Properties<'a>,
    pub filters: Filters<'a>,
}

/// UNSUBSCRIBE (3.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in section 3.10")]
pub struct Unsubscribe<'a> {
    pub packet_id: u16,
    pub properties: Properties<'a>,
    pub filters: Filters<'a>,
}

/// DISCONNECT (3.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in section 3.14")]
pub struct Disconnect<'a> {
    pub reason: Reason,
    pub properties: Properties<'a>,
}

/// One filter of a SUBSCRIBE or UNSUBSCRIBE. For UNSUBSCRIBE, the options have no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in section 3.8.3")]
pub struct SubscribeFilter<'a> {
    pub filter: &'a str,
    pub options: SubscriptionOptions,
}

/// The filters of a SUBSCRIBE or UNSUBSCRIBE. Their encoding was checked, but not their grammar: see
/// [`check_filter`](super::check_filter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) count: usize,
    pub(super) has_options: bool,
}

impl<'a> Filters<'a> {
    /// Returns the number of filters, which is at least one.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the filters in order.
    pub fn iter(&self) -> impl Iterator<Item = SubscribeFilter<'a>> + use<'a> {
        let mut rest = Reader::new(self.bytes);
        let has_options = self.has_options;
        std::iter::from_fn(move || {
            let filter = rest.text().ok()?;
            let options = match has_options {
                true => SubscriptionOptions::from_byte(rest.u8().ok()?)?,
                false => SubscriptionOptions::default(),
            };
            Some(SubscribeFilter { filter, options })
        })
    }
}
