//! MQTT 3.1.1 and 5.0: packets, names, and the protocol of a connection. Like the rest of the engine, this
//! module receives bytes and the time, and never waits. `docs/formats/mqtt.md` describes the conversion to
//! subjects, headers, and records.
//!
//! The same code handles both versions. Clauses are cited as in the OASIS specifications: those of 5.0,
//! unless 3.1.1 is mentioned.

mod alias;
mod bytes;
mod connection;
mod decode;
mod encode;
mod header;
mod incoming;
mod names;
mod outgoing;
mod packet;
mod property;
mod reason;
mod subscription;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod topic;
mod verb;

pub use connection::Connection;
pub use decode::{Frame, Framed, decode, frame};
pub use encode::{PublishHead, packet_bytes};
pub use header::{
    client_of, qos_of, response_topic_of, ttl_of, was_retained, with_ttl, write_headers,
    write_headers_of, write_properties,
};
pub use names::Names;
pub use outgoing::{kept_id, shared_id};
pub use packet::{
    Ack, AckKind, Connect, ConnectWill, Disconnect, Filters, Packet, Publish, Subscribe,
    SubscribeFilter, Unsubscribe,
};
pub use property::{Properties, Property};
pub use reason::{Reason, Wrong};
pub use subscription::{RetainHandling, Subscription, SubscriptionOptions, Subscriptions};
pub use topic::{
    NameError, Shared, check_filter, filter_to_subject, is_hidden, parent_subject, split_shared,
    subject_to_topic, topic_to_subject,
};
pub use verb::{Accepted, Delivery, Ended, Received, Refused, Verb, Will};

pub use crate::limits::CONNECT_BYTES_MAX;

/// Largest length of a text or binary data in bytes, because the length is encoded in two bytes (1.5.4,
/// 1.5.6).
pub const TEXT_BYTES_MAX: usize = 65_535;
/// Largest variable byte integer (1.5.5), and so the largest length of a packet after its fixed header.
pub const VARIABLE_MAX: u32 = 268_435_455;
/// Largest length of a client id in bytes. A client with a longer id is refused with 0x85, or with return
/// code 2 in 3.1.1.
pub const CLIENT_ID_BYTES_MAX: usize = 1024;
/// Largest number of filters in one SUBSCRIBE or UNSUBSCRIBE. A client that sends more is disconnected, in
/// 5.0 with 0x97.
pub const FILTERS_MAX: usize = 1024;
/// Largest topic alias that a client may set (3.1.2.11.5). A client that sets a larger one is disconnected
/// with 0x94.
pub const ALIASES_IN_MAX: u16 = 64;
/// Largest number of topic aliases that the server sets for a client, even if the client accepts more.
pub const ALIASES_OUT_MAX: u16 = 16;

/// The protocol version of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 3.1.1, level 4.
    #[default]
    V4,
    /// 5.0, level 5.
    V5,
}

impl Version {
    /// Returns the protocol level of CONNECT (3.1.2.2).
    pub fn level(self) -> u8 {
        match self {
            Version::V4 => 4,
            Version::V5 => 5,
        }
    }
}

/// The quality of service of a message (4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qos {
    /// 0: at most once.
    #[default]
    AtMostOnce,
    /// 1: at least once.
    AtLeastOnce,
    /// 2: exactly once.
    ExactlyOnce,
}

impl Qos {
    /// Converts the two bits of a packet. Returns `None` for 3.
    pub fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Qos::AtMostOnce),
            1 => Some(Qos::AtLeastOnce),
            2 => Some(Qos::ExactlyOnce),
            _ => None,
        }
    }

    /// Returns the two bits of a packet.
    pub fn bits(self) -> u8 {
        match self {
            Qos::AtMostOnce => 0,
            Qos::AtLeastOnce => 1,
            Qos::ExactlyOnce => 2,
        }
    }
}
