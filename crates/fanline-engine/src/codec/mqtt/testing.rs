//! Packets of a client, for tests.

use super::bytes::{push_binary, push_variable};
use super::packet::{Connect, SubscribeFilter};
use super::property::Properties;
use super::{Qos, Version};
use crate::outbox::Outbox;

/// Returns a packet with its fixed header.
pub(super) fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    push_variable(&mut packet, u32::try_from(body.len()).unwrap());
    packet.extend_from_slice(body);
    packet
}

fn push_properties(out: &mut Vec<u8>, version: Version, properties: Properties<'_>) {
    if version == Version::V5 {
        let block = properties.as_bytes();
        push_variable(out, u32::try_from(block.len()).unwrap());
        out.extend_from_slice(block);
    }
}

pub(super) fn connect(connect: &Connect<'_>) -> Vec<u8> {
    let will_flags = connect.will.map_or(0, |will| {
        0x04 | (will.qos.bits() << 3) | (u8::from(will.retain) << 5)
    });
    let flags = (u8::from(connect.clean_start) << 1)
        | will_flags
        | (u8::from(connect.password.is_some()) << 6)
        | (u8::from(connect.user.is_some()) << 7);
    let mut body = b"\0\x04MQTT".to_vec();
    body.extend_from_slice(&[connect.version.level(), flags]);
    body.extend_from_slice(&connect.keep_alive.to_be_bytes());
    push_properties(&mut body, connect.version, connect.properties);
    push_binary(&mut body, connect.client_id.as_bytes());
    if let Some(will) = &connect.will {
        push_properties(&mut body, connect.version, will.properties);
        push_binary(&mut body, will.topic.as_bytes());
        push_binary(&mut body, will.payload);
    }
    if let Some(user) = connect.user {
        push_binary(&mut body, user.as_bytes());
    }
    if let Some(password) = connect.password {
        push_binary(&mut body, password);
    }
    packet(0x10, &body)
}

/// Returns a CONNECT with default values.
pub(super) fn plain_connect(version: Version) -> Connect<'static> {
    Connect {
        version,
        clean_start: true,
        keep_alive: 60,
        client_id: "device",
        will: None,
        user: None,
        password: None,
        properties: Properties::default(),
    }
}

pub(super) fn subscribe(
    version: Version,
    packet_id: u16,
    properties: Properties<'_>,
    filters: &[SubscribeFilter<'_>],
) -> Vec<u8> {
    let mut body = packet_id.to_be_bytes().to_vec();
    push_properties(&mut body, version, properties);
    for filter in filters {
        push_binary(&mut body, filter.filter.as_bytes());
        body.push(filter.options.byte());
    }
    packet(0x82, &body)
}

pub(super) fn publish(version: Version, qos: Qos, packet_id: u16, topic: &str) -> Vec<u8> {
    let mut body = Vec::new();
    push_binary(&mut body, topic.as_bytes());
    if qos != Qos::AtMostOnce {
        body.extend_from_slice(&packet_id.to_be_bytes());
    }
    push_properties(&mut body, version, Properties::default());
    body.extend_from_slice(b"hi");
    packet(0x30 | (qos.bits() << 1), &body)
}

/// Takes the pending output of an outbox.
pub(super) fn written(out: &mut Outbox) -> Vec<u8> {
    let bytes = out.plain().unwrap().to_vec();
    out.advance(bytes.len());
    bytes
}
