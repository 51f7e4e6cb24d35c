//! Writes packets directly to the pending output of a connection.
//!
//! PUBLISH and acknowledgements are written without an allocation. CONNACK, SUBACK, and DISCONNECT are rare:
//! their body is built in a buffer first, because its length precedes it.

use super::bytes::{push_variable, variable_bytes, write_variable};
use super::packet::AckKind;
use super::property::{Properties, Property};
use super::reason::Reason;
use super::{Qos, TEXT_BYTES_MAX, VARIABLE_MAX, Version};
use crate::outbox::Outbox;

/// Largest length of a reason string in bytes. It keeps packets below the size that usual clients accept.
const REASON_STRING_BYTES_MAX: usize = 256;

/// A PUBLISH packet to a client, without its payload.
#[derive(Clone, Copy, Debug)]
pub struct PublishHead<'a> {
    /// Protocol version of the client.
    pub version: Version,
    /// Topic name; empty if a topic alias in the properties replaces it.
    pub topic: &'a str,
    /// Packet identifier; 0 for QoS 0.
    pub packet_id: u16,
    /// QoS with which the message is sent.
    pub qos: Qos,
    /// Whether the message was sent before (DUP).
    pub dup: bool,
    /// Whether RETAIN is set.
    pub retain: bool,
    /// Properties that all receivers get. Written in 5.0 only.
    pub properties: Properties<'a>,
    /// Properties of this receiver only, which follow the others.
    pub own_properties: Properties<'a>,
    /// Length of the payload in bytes.
    pub payload_bytes: usize,
}

impl PublishHead<'_> {
    fn properties_bytes(&self) -> usize {
        self.properties.as_bytes().len() + self.own_properties.as_bytes().len()
    }

    fn body_bytes(&self) -> usize {
        let id_bytes = match self.qos {
            Qos::AtMostOnce => 0,
            _ => 2,
        };
        let properties_bytes = match self.version {
            Version::V4 => 0,
            Version::V5 => {
                let bytes = self.properties_bytes();
                variable_bytes(u32::try_from(bytes).unwrap_or(u32::MAX)) + bytes
            }
        };
        2 + self.topic.len() + id_bytes + properties_bytes + self.payload_bytes
    }

    /// Appends the packet; the caller then appends the payload. Returns false, without an effect, if the
    /// packet is larger than the client accepts (MQTT-3.1.2-24) or than the protocol allows.
    #[inline]
    pub fn write(&self, out: &mut Outbox, packet_bytes_max: usize) -> bool {
        let body_bytes = self.body_bytes();
        if packet_bytes(body_bytes) > packet_bytes_max || self.topic.len() > TEXT_BYTES_MAX {
            return false;
        }
        let Ok(body_bytes) = u32::try_from(body_bytes) else {
            return false;
        };
        if body_bytes > VARIABLE_MAX {
            return false;
        }
        let first =
            0x30 | (u8::from(self.dup) << 3) | (self.qos.bits() << 1) | u8::from(self.retain);
        let mut head = [0; 7];
        head[0] = first;
        let (length, length_bytes) = write_variable(body_bytes);
        head[1..=length_bytes].copy_from_slice(&length[..length_bytes]);
        let topic_bytes = u16::try_from(self.topic.len()).unwrap_or(u16::MAX);
        head[1 + length_bytes..3 + length_bytes].copy_from_slice(&topic_bytes.to_be_bytes());
        let id = self.packet_id.to_be_bytes();
        let id = match self.qos {
            Qos::AtMostOnce => &id[..0],
            _ => &id[..],
        };
        out.append3(&head[..3 + length_bytes], self.topic.as_bytes(), id);
        if self.version == Version::V5 {
            let bytes = u32::try_from(self.properties_bytes()).unwrap_or(u32::MAX);
            let (length, length_bytes) = write_variable(bytes);
            out.append3(
                &length[..length_bytes],
                self.properties.as_bytes(),
                self.own_properties.as_bytes(),
            );
        }
        true
    }
}

/// Returns the length of a packet whose body has this length, in bytes.
pub fn packet_bytes(body_bytes: usize) -> usize {
    let length_bytes = variable_bytes(u32::try_from(body_bytes).unwrap_or(u32::MAX));
    body_bytes.saturating_add(1 + length_bytes)
}

/// Writes PUBACK, PUBREC, PUBREL, or PUBCOMP. The packets of 3.1.1 contain no reason.
#[inline]
pub(super) fn ack(
    out: &mut Outbox,
    version: Version,
    kind: AckKind,
    packet_id: u16,
    reason: Reason,
) {
    let first = match kind {
        AckKind::PubAck => 0x40,
        AckKind::PubRec => 0x50,
        AckKind::PubRel => 0x62,
        AckKind::PubComp => 0x70,
    };
    let [high, low] = packet_id.to_be_bytes();
    match version == Version::V4 || reason == Reason::SUCCESS {
        true => out.append(&[first, 2, high, low]),
        false => out.append(&[first, 3, high, low, reason.byte()]),
    }
}

/// The properties of a CONNACK of 5.0 (3.2.2.3). A property with its default value is not written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnAckTold<'a> {
    pub(super) session_expiry: Option<u32>,
    pub(super) receive_maximum: Option<u16>,
    pub(super) maximum_qos: Option<Qos>,
    pub(super) packet_bytes_max: Option<u32>,
    pub(super) assigned_client_id: Option<&'a str>,
    pub(super) alias_maximum: u16,
    pub(super) keep_alive: Option<u16>,
    pub(super) why: &'a str,
}

impl ConnAckTold<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let maximum_qos = match self.maximum_qos {
            None | Some(Qos::ExactlyOnce) => None,
            Some(qos) => Some(Property::MaximumQos(qos == Qos::AtLeastOnce)),
        };
        let alias = (self.alias_maximum > 0).then_some(self.alias_maximum);
        let told = [
            self.session_expiry.map(Property::SessionExpiry),
            self.receive_maximum.map(Property::ReceiveMaximum),
            maximum_qos,
            self.packet_bytes_max.map(Property::MaximumPacketSize),
            self.assigned_client_id.map(Property::AssignedClientId),
            alias.map(Property::TopicAliasMaximum),
            self.keep_alive.map(Property::ServerKeepAlive),
            reason_string(self.why),
        ];
        for property in told.into_iter().flatten() {
            property.write(out);
        }
    }
}

fn reason_string(why: &str) -> Option<Property<'_>> {
    (!why.is_empty() && why.len() <= REASON_STRING_BYTES_MAX).then_some(Property::ReasonString(why))
}

/// Writes CONNACK (3.2). Like the functions below, returns false without an effect if the client does not
/// accept a packet of this size.
pub(super) fn conn_ack(
    out: &mut Outbox,
    version: Version,
    session_present: bool,
    reason: Reason,
    told: &ConnAckTold<'_>,
    packet_bytes_max: usize,
) -> bool {
    let present = u8::from(session_present);
    if version == Version::V4 {
        out.append(&[0x20, 2, present, reason.connect_return_code()]);
        return true;
    }
    let mut properties = Vec::new();
    told.write(&mut properties);
    let body = with_properties(&[present, reason.byte()], &properties, &[]);
    packet(out, 0x20, &body, packet_bytes_max)
}

/// Writes SUBACK or UNSUBACK (3.9, 3.11). An UNSUBACK of 3.1.1 contains no reasons.
pub(super) fn filter_ack(
    out: &mut Outbox,
    version: Version,
    is_subscribe: bool,
    packet_id: u16,
    reasons: &[Reason],
    packet_bytes_max: usize,
) -> bool {
    let first = if is_subscribe { 0x90 } else { 0xB0 };
    let told: Vec<u8> = match (version, is_subscribe) {
        // 3.1.1 has one failure code (its 3.9.3).
        (Version::V4, true) => (reasons.iter())
            .map(|reason| {
                if reason.is_failure() {
                    0x80
                } else {
                    reason.byte()
                }
            })
            .collect(),
        (Version::V4, false) => Vec::new(),
        (Version::V5, _) => reasons.iter().map(|reason| reason.byte()).collect(),
    };
    let id = packet_id.to_be_bytes();
    let body = match version {
        Version::V4 => [id.as_slice(), &told].concat(),
        Version::V5 => with_properties(&id, &[], &told),
    };
    packet(out, first, &body, packet_bytes_max)
}

/// Writes PINGRESP (3.13).
pub(super) fn ping_response(out: &mut Outbox) {
    out.append(&[0xD0, 0]);
}

/// Writes DISCONNECT (3.14). In 3.1.1, a server must not send it.
pub(super) fn disconnect(
    out: &mut Outbox,
    reason: Reason,
    why: &str,
    packet_bytes_max: usize,
) -> bool {
    let mut properties = Vec::new();
    if let Some(property) = reason_string(why) {
        property.write(&mut properties);
    }
    let body = with_properties(&[reason.byte()], &properties, &[]);
    packet(out, 0xE0, &body, packet_bytes_max)
}

fn packet(out: &mut Outbox, first: u8, body: &[u8], packet_bytes_max: usize) -> bool {
    let fits = packet_bytes(body.len()) <= packet_bytes_max;
    if fits {
        let mut fixed = vec![first];
        push_variable(&mut fixed, u32::try_from(body.len()).unwrap_or(u32::MAX));
        out.append3(&fixed, body, &[]);
    }
    fits
}

fn with_properties(head: &[u8], properties: &[u8], tail: &[u8]) -> Vec<u8> {
    let mut body = head.to_vec();
    let bytes = u32::try_from(properties.len()).unwrap_or(u32::MAX);
    push_variable(&mut body, bytes);
    body.extend_from_slice(properties);
    body.extend_from_slice(tail);
    body
}
