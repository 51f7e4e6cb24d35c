//! Parses packets in place, without state: the caller passes an incomplete packet again with more input.

use super::bytes::{Reader, Variable, read_variable};
use super::packet::{
    Ack, AckKind, Connect, ConnectWill, Disconnect, Filters, Packet, Publish, Subscribe,
    Unsubscribe,
};
use super::property::{Allowed, Properties};
use super::reason::{Reason, Wrong};
use super::subscription::SubscriptionOptions;
use super::{FILTERS_MAX, Qos, Version};

/// A whole packet, split into fixed header and the rest (2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The first byte: packet type and flags.
    pub first: u8,
    /// All bytes after the fixed header.
    pub body: &'a [u8],
    /// Length of the whole packet in bytes.
    pub bytes: usize,
}

/// The packet at the front of some input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed<'a> {
    /// The packet is complete.
    Whole(Frame<'a>),
    /// The packet is incomplete.
    Partial {
        /// Length of the whole packet in bytes; 0 while it is not known.
        frame_bytes: usize,
    },
    /// The input is not a valid packet.
    Wrong(Wrong),
}

/// Finds the packet at the front of `input`. A packet above `packet_bytes_max` is refused as soon as its
/// length is known (3.1.2.11.4: 0x95).
#[inline]
pub fn frame(input: &[u8], packet_bytes_max: usize) -> Framed<'_> {
    let Some((first, rest)) = input.split_first() else {
        return Framed::Partial { frame_bytes: 0 };
    };
    let (value, length_bytes) = match read_variable(rest) {
        // Many clients of 3.1.1 do not use the shortest form of the length, so the form is not checked.
        Variable::Whole { value, bytes } => (value, bytes),
        Variable::Partial => return Framed::Partial { frame_bytes: 0 },
        Variable::TooLong => {
            return Framed::Wrong(Wrong::malformed("a length has more than four bytes"));
        }
    };
    let body_bytes = usize::try_from(value).unwrap_or(usize::MAX);
    let head_bytes = 1 + length_bytes;
    let frame_bytes = head_bytes.saturating_add(body_bytes);
    if frame_bytes > packet_bytes_max {
        let why = "a packet is too large";
        return Framed::Wrong(Wrong::because(Reason::PACKET_TOO_LARGE, why));
    }
    match input.get(head_bytes..frame_bytes) {
        Some(body) => Framed::Whole(Frame {
            first: *first,
            body,
            bytes: frame_bytes,
        }),
        None => Framed::Partial { frame_bytes },
    }
}

/// Decodes a packet. The version has no effect on CONNECT, which contains its own.
///
/// # Errors
///
/// Returns the first violation, with its reason code.
#[inline]
pub fn decode<'a>(frame: &Frame<'a>, version: Version) -> Result<Packet<'a>, Wrong> {
    let flags = frame.first & 0x0F;
    let mut body = Reader::new(frame.body);
    let kind = frame.first >> 4;
    if kind == 3 {
        return publish(flags, body, version).map(Packet::Publish);
    }
    // Table 2-2.
    let wanted = if matches!(kind, 6 | 8 | 10) { 2 } else { 0 };
    if flags != wanted {
        return Err(Wrong::malformed(
            "the flags of a packet are not as they must be",
        ));
    }
    let packet = match kind {
        1 => Packet::Connect(connect(&mut body)?),
        4 => Packet::Ack(ack(AckKind::PubAck, &mut body, version)?),
        5 => Packet::Ack(ack(AckKind::PubRec, &mut body, version)?),
        6 => Packet::Ack(ack(AckKind::PubRel, &mut body, version)?),
        7 => Packet::Ack(ack(AckKind::PubComp, &mut body, version)?),
        8 => {
            let (packet_id, properties) = request(&mut body, version, Allowed::SUBSCRIBE)?;
            Packet::Subscribe(Subscribe {
                packet_id,
                properties,
                filters: filters(&mut body, Some(version))?,
            })
        }
        10 => {
            let (packet_id, properties) = request(&mut body, version, Allowed::UNSUBSCRIBE)?;
            Packet::Unsubscribe(Unsubscribe {
                packet_id,
                properties,
                filters: filters(&mut body, None)?,
            })
        }
        12 => Packet::Ping,
        14 => Packet::Disconnect(disconnect(&mut body, version)?),
        15 if version == Version::V5 => Packet::Auth(auth(&mut body)?),
        2 | 9 | 11 | 13 => return Err(Wrong::protocol("only a server sends such a packet")),
        _ => return Err(Wrong::malformed("there is no such packet")),
    };
    match body.is_empty() {
        true => Ok(packet),
        false => Err(Wrong::malformed("a packet is longer than what it says")),
    }
}

#[inline]
fn publish<'a>(flags: u8, mut body: Reader<'a>, version: Version) -> Result<Publish<'a>, Wrong> {
    let dup = flags & 0x08 != 0;
    // MQTT-3.3.1-4.
    let Some(qos) = Qos::from_bits((flags >> 1) & 0x03) else {
        return Err(Wrong::malformed("a QoS is 3"));
    };
    // MQTT-3.3.1-2.
    if dup && qos == Qos::AtMostOnce {
        return Err(Wrong::malformed("DUP is set with QoS 0"));
    }
    let topic = body.text()?;
    // MQTT-3.3.2-2.
    if topic.bytes().any(|b| matches!(b, b'+' | b'#')) {
        let why = "a topic name has a wildcard";
        return Err(Wrong::because(Reason::TOPIC_NAME_INVALID, why));
    }
    let packet_id = match qos {
        Qos::AtMostOnce => 0,
        _ => packet_id(&mut body)?,
    };
    let properties = properties(&mut body, version, Allowed::PUBLISH)?;
    if topic.is_empty() {
        // Without a topic alias, an empty topic name is a protocol error (4.7.3-1 of 3.1.1, 3.3.2.1 of 5.0).
        let has_alias = properties
            .iter()
            .any(|p| matches!(p, super::Property::TopicAlias(_)));
        if !has_alias {
            return Err(Wrong::protocol("a topic name is empty"));
        }
    }
    Ok(Publish {
        topic,
        packet_id,
        qos,
        dup,
        retain: flags & 0x01 != 0,
        properties,
        payload: body.rest(),
    })
}

/// Reads a packet identifier, which must not be 0 (MQTT-2.2.1-3).
fn packet_id(body: &mut Reader<'_>) -> Result<u16, Wrong> {
    match body.u16()? {
        0 => Err(Wrong::protocol("a packet identifier is 0")),
        id => Ok(id),
    }
}

fn properties<'a>(
    body: &mut Reader<'a>,
    version: Version,
    allowed: Allowed,
) -> Result<Properties<'a>, Wrong> {
    match version {
        Version::V4 => Ok(Properties::default()),
        Version::V5 => Properties::read(body, allowed),
    }
}

fn connect<'a>(body: &mut Reader<'a>) -> Result<Connect<'a>, Wrong> {
    // MQTT-3.1.2-1.
    if body.binary()? != b"MQTT" {
        return Err(Wrong::malformed("the protocol is not called MQTT"));
    }
    let version = match body.u8()? {
        4 => Version::V4,
        5 => Version::V5,
        // MQTT-3.1.2-2.
        _ => {
            let why = "a protocol level is not supported";
            return Err(Wrong::because(Reason::UNSUPPORTED_PROTOCOL_VERSION, why));
        }
    };
    let flags = body.u8()?;
    check_connect_flags(flags, version)?;
    let keep_alive = body.u16()?;
    let properties = properties(body, version, Allowed::CONNECT)?;
    let client_id = body.text()?;
    let will = match flags & 0x04 != 0 {
        true => Some(will(body, flags, version)?),
        false => None,
    };
    let user = match flags & 0x80 != 0 {
        true => Some(body.text()?),
        false => None,
    };
    let password = match flags & 0x40 != 0 {
        true => Some(body.binary()?),
        false => None,
    };
    Ok(Connect {
        version,
        clean_start: flags & 0x02 != 0,
        keep_alive,
        client_id,
        will,
        user,
        password,
        properties,
    })
}

fn check_connect_flags(flags: u8, version: Version) -> Result<(), Wrong> {
    // MQTT-3.1.2-3.
    if flags & 0x01 != 0 {
        return Err(Wrong::malformed("the reserved flag of CONNECT is set"));
    }
    let has_will = flags & 0x04 != 0;
    // MQTT-3.1.2-11, -12 and -13.
    if !has_will && flags & 0x38 != 0 {
        return Err(Wrong::malformed("CONNECT has flags of a will and no will"));
    }
    if Qos::from_bits((flags >> 3) & 0x03).is_none() {
        return Err(Wrong::malformed("the QoS of a will is 3"));
    }
    // 3.1.1 MQTT-3.1.2-22; 5.0 allows it.
    if version == Version::V4 && flags & 0xC0 == 0x40 {
        return Err(Wrong::malformed("CONNECT has a password and no user name"));
    }
    Ok(())
}

fn will<'a>(body: &mut Reader<'a>, flags: u8, version: Version) -> Result<ConnectWill<'a>, Wrong> {
    let properties = properties(body, version, Allowed::WILL)?;
    let topic = body.text()?;
    if topic.is_empty() || topic.bytes().any(|b| matches!(b, b'+' | b'#')) {
        let why = "the topic of a will is not a topic name";
        return Err(Wrong::because(Reason::TOPIC_NAME_INVALID, why));
    }
    Ok(ConnectWill {
        topic,
        payload: body.binary()?,
        qos: Qos::from_bits((flags >> 3) & 0x03).unwrap_or_default(),
        retain: flags & 0x20 != 0,
        properties,
    })
}

fn ack<'a>(kind: AckKind, body: &mut Reader<'a>, version: Version) -> Result<Ack<'a>, Wrong> {
    let packet_id = packet_id(body)?;
    let (reason, properties) = match version {
        Version::V4 => (Reason::SUCCESS, Properties::default()),
        Version::V5 => ending(body, Allowed::ACK)?,
    };
    if !may_say(kind, reason) {
        return Err(Wrong::protocol(
            "an acknowledgement has a reason that it cannot have",
        ));
    }
    Ok(Ack {
        kind,
        packet_id,
        reason,
        properties,
    })
}

/// Returns whether an acknowledgement may have this reason code (tables 3-4 to 3-7).
fn may_say(kind: AckKind, reason: Reason) -> bool {
    match kind {
        AckKind::PubAck | AckKind::PubRec => matches!(
            reason.byte(),
            0x00 | 0x10 | 0x80 | 0x83 | 0x87 | 0x90 | 0x91 | 0x97 | 0x99
        ),
        AckKind::PubRel | AckKind::PubComp => matches!(reason.byte(), 0x00 | 0x92),
    }
}

/// Reads a reason and properties. The packet may end before either of them (3.4.2.1, 3.4.2.2.1, 3.14.2.1).
fn ending<'a>(body: &mut Reader<'a>, allowed: Allowed) -> Result<(Reason, Properties<'a>), Wrong> {
    if body.is_empty() {
        return Ok((Reason::SUCCESS, Properties::default()));
    }
    let reason = Reason::from_byte(body.u8()?);
    match body.is_empty() {
        true => Ok((reason, Properties::default())),
        false => Ok((reason, Properties::read(body, allowed)?)),
    }
}

fn request<'a>(
    body: &mut Reader<'a>,
    version: Version,
    allowed: Allowed,
) -> Result<(u16, Properties<'a>), Wrong> {
    let id = packet_id(body)?;
    Ok((id, properties(body, version, allowed)?))
}

/// Checks a list of filters. If `version` is `Some`, each filter is followed by its options.
fn filters<'a>(body: &mut Reader<'a>, version: Option<Version>) -> Result<Filters<'a>, Wrong> {
    let bytes = body.rest();
    let mut count = 0;
    while !body.is_empty() {
        let filter = body.text()?;
        if let Some(version) = version {
            check_options(filter, body.u8()?, version)?;
        }
        count += 1;
        if count > FILTERS_MAX {
            let why = "a packet has too many filters";
            return Err(Wrong::because(Reason::QUOTA_EXCEEDED, why));
        }
    }
    // MQTT-3.8.3-2 and MQTT-3.10.3-2.
    if count == 0 {
        return Err(Wrong::protocol("a packet has no filters"));
    }
    Ok(Filters {
        bytes,
        count,
        has_options: version.is_some(),
    })
}

fn check_options(filter: &str, byte: u8, version: Version) -> Result<(), Wrong> {
    // MQTT-3.8.3-5. In 3.1.1, only the bits of the QoS may be set (MQTT-3.8.3-4 of 3.1.1).
    let reserved = match version {
        Version::V4 => 0xFC,
        Version::V5 => 0xC0,
    };
    if byte & reserved != 0 {
        return Err(Wrong::malformed("reserved bits of a subscription are set"));
    }
    let Some(options) = SubscriptionOptions::from_byte(byte) else {
        return Err(Wrong::protocol("an option of a subscription is 3"));
    };
    // MQTT-3.8.3-4.
    if version == Version::V5 && options.no_local && filter.starts_with("$share/") {
        return Err(Wrong::protocol("a shared subscription asks for No Local"));
    }
    Ok(())
}

fn disconnect<'a>(body: &mut Reader<'a>, version: Version) -> Result<Disconnect<'a>, Wrong> {
    let (reason, properties) = match version {
        Version::V4 => (Reason::SUCCESS, Properties::default()),
        Version::V5 => ending(body, Allowed::DISCONNECT)?,
    };
    Ok(Disconnect { reason, properties })
}

fn auth(body: &mut Reader<'_>) -> Result<Reason, Wrong> {
    ending(body, Allowed::AUTH).map(|(reason, _)| reason)
}
