//! The packets that a client sends, as bytes (OASIS MQTT 3.1.1, chapter 3).

pub(crate) const CONNACK: u8 = 0x20;
pub(crate) const PUBLISH: u8 = 0x30;
pub(crate) const PUBACK: u8 = 0x40;
pub(crate) const PUBREC: u8 = 0x50;
pub(crate) const PUBREL: u8 = 0x60;
pub(crate) const PUBCOMP: u8 = 0x70;
pub(crate) const SUBACK: u8 = 0x90;
pub(crate) const PINGRESP: u8 = 0xD0;
pub(crate) const PINGREQ_BYTES: [u8; 2] = [0xC0, 0];

/// The reserved bits that PUBREL, SUBSCRIBE, and UNSUBSCRIBE must set.
const RESERVED: u8 = 0x02;

/// Returns a CONNECT without keep-alive, so that the client need not send pings.
pub(crate) fn connect(client_id: &str, is_clean: bool) -> Vec<u8> {
    let flags = if is_clean { 0x02 } else { 0 };
    let mut body = b"\0\x04MQTT\x04".to_vec();
    body.extend_from_slice(&[flags, 0, 0]);
    push_text(&mut body, client_id);
    packet(0x10, &body)
}

pub(crate) fn subscribe(packet_id: u16, filter: &str, qos: u8) -> Vec<u8> {
    let mut body = packet_id.to_be_bytes().to_vec();
    push_text(&mut body, filter);
    body.push(qos);
    packet(0x80 | RESERVED, &body)
}

/// Returns a PUBLISH of QoS 0, valid in both directions.
pub(crate) fn publish(topic: &str, payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    push_text(&mut body, topic);
    body.extend_from_slice(payload);
    packet(PUBLISH, &body)
}

/// Returns a PUBLISH with space for a packet identifier, and the position of that space.
pub(crate) fn numbered_publish(topic: &str, payload: &[u8], qos: u8) -> (Vec<u8>, usize) {
    let mut body = Vec::new();
    push_text(&mut body, topic);
    body.extend_from_slice(&[0, 0]);
    body.extend_from_slice(payload);
    let packet = packet(PUBLISH | (qos << 1), &body);
    let place = packet.len() - payload.len() - 2;
    (packet, place)
}

/// Appends a PUBACK, PUBREC, PUBREL, or PUBCOMP.
pub(crate) fn push_answer(out: &mut Vec<u8>, kind: u8, packet_id: u16) {
    let flags = if kind == PUBREL { RESERVED } else { 0 };
    let [high, low] = packet_id.to_be_bytes();
    out.extend_from_slice(&[kind | flags, 2, high, low]);
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    let mut rest = body.len();
    loop {
        let low = u8::try_from(rest % 128).unwrap_or(0);
        rest /= 128;
        if rest == 0 {
            packet.push(low);
            break;
        }
        packet.push(low | 0x80);
    }
    packet.extend_from_slice(body);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_match_specification() {
        assert_eq!(
            connect("ab", true),
            b"\x10\x0e\0\x04MQTT\x04\x02\0\0\0\x02ab"
        );
        assert_eq!(subscribe(258, "a/b", 1), b"\x82\x08\x01\x02\0\x03a/b\x01");
        assert_eq!(publish("a", b"hi"), b"\x30\x05\0\x01ahi");
        let (bytes, place) = numbered_publish("a", b"hi", 2);
        assert_eq!(
            (bytes.as_slice(), place),
            (&b"\x34\x07\0\x01a\0\0hi"[..], 5)
        );
        let long = publish("a", &[b'x'; 200]);
        assert_eq!(&long[..3], b"\x30\xcb\x01");
        let mut out = Vec::new();
        push_answer(&mut out, PUBREL, 3);
        assert_eq!(out, [0x62, 2, 0, 3]);
    }
}
