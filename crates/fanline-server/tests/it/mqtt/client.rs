//! An MQTT client written by hand over a blocking socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::raw::WAIT_MAX;

/// MQTT versions, as protocol levels.
pub(crate) const V4: u8 = 4;
pub(crate) const V5: u8 = 5;

/// The fields of a CONNECT.
#[derive(Clone, Default)]
pub(crate) struct Hello {
    pub(crate) id: &'static str,
    pub(crate) persistent: bool,
    /// Properties, for version 5.0.
    pub(crate) properties: Vec<u8>,
    /// Topic, payload, QoS, RETAIN, and properties of the will.
    pub(crate) will: Option<(&'static str, &'static str, u8, bool, Vec<u8>)>,
    pub(crate) user: Option<(&'static str, &'static str)>,
    pub(crate) keep_alive: u16,
}

impl Hello {
    pub(crate) fn new(id: &'static str) -> Self {
        Hello {
            id,
            ..Hello::default()
        }
    }

    /// Returns a CONNECT with a session that outlives the connection.
    pub(crate) fn persistent(id: &'static str, version: u8) -> Self {
        Hello {
            id,
            persistent: true,
            properties: match version {
                V5 => vec![0x11, 0, 0, 0x0e, 0x10],
                _ => Vec::new(),
            },
            ..Hello::default()
        }
    }

    fn encode(&self, version: u8) -> Vec<u8> {
        let mut flags = u8::from(!self.persistent) << 1;
        if let Some((_, _, qos, retain, _)) = &self.will {
            flags |= 4 | qos << 3 | u8::from(*retain) << 5;
        }
        if self.user.is_some() {
            flags |= 0xC0;
        }
        let mut body = b"\0\x04MQTT".to_vec();
        body.extend_from_slice(&[version, flags]);
        body.extend_from_slice(&self.keep_alive.to_be_bytes());
        push_properties(&mut body, version, &self.properties);
        push_text(&mut body, self.id.as_bytes());
        if let Some((topic, payload, _, _, properties)) = &self.will {
            push_properties(&mut body, version, properties);
            push_text(&mut body, topic.as_bytes());
            push_text(&mut body, payload.as_bytes());
        }
        if let Some((user, password)) = self.user {
            push_text(&mut body, user.as_bytes());
            push_text(&mut body, password.as_bytes());
        }
        packet(0x10, &body)
    }
}

/// A received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) first: u8,
    pub(crate) body: Vec<u8>,
}

/// A parsed PUBLISH.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) qos: u8,
    pub(crate) dup: bool,
    pub(crate) retain: bool,
    pub(crate) id: u16,
    pub(crate) properties: Vec<u8>,
}

/// A connection.
pub(crate) struct MqttClient {
    stream: TcpStream,
    pub(crate) version: u8,
    next_id: u16,
}

impl MqttClient {
    pub(crate) fn open(address: SocketAddr, version: u8) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
        MqttClient {
            stream,
            version,
            next_id: 0,
        }
    }

    /// Connects, and returns the CONNACK's body.
    pub(crate) fn greet(&mut self, hello: &Hello) -> Vec<u8> {
        self.send(&hello.encode(self.version));
        let ack = self.packet().expect("a CONNACK");
        assert_eq!(ack.first, 0x20);
        ack.body
    }

    /// Returns a connected client, and whether its session was present.
    pub(crate) fn connect(address: SocketAddr, version: u8, hello: &Hello) -> (Self, bool) {
        let mut client = MqttClient::open(address, version);
        let ack = client.greet(hello);
        assert_eq!(ack[1], 0, "{ack:?}");
        (client, ack[0] == 1)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    pub(crate) fn send_packet(&mut self, first: u8, body: &[u8]) {
        self.send(&packet(first, body));
    }

    /// Returns the next packet; `None` at the end of the connection.
    pub(crate) fn packet(&mut self) -> Option<Packet> {
        let first = self.byte()?;
        let (mut length, mut shift) = (0_usize, 0);
        loop {
            let byte = self.byte()?;
            length |= usize::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        Some(Packet { first, body })
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }

    fn id(&mut self) -> u16 {
        self.next_id += 1;
        self.next_id
    }

    /// Subscribes, and returns the reason codes.
    pub(crate) fn subscribe(&mut self, filters: &[(&str, u8)]) -> Vec<u8> {
        self.subscribe_with(filters, &[])
    }

    pub(crate) fn subscribe_with(&mut self, filters: &[(&str, u8)], properties: &[u8]) -> Vec<u8> {
        let id = self.id();
        let mut body = id.to_be_bytes().to_vec();
        push_properties(&mut body, self.version, properties);
        for (filter, options) in filters {
            push_text(&mut body, filter.as_bytes());
            body.push(*options);
        }
        self.send_packet(0x82, &body);
        let ack = self.until(0x90);
        assert_eq!(ack.body[..2], id.to_be_bytes());
        ack.body[if self.version == V5 { 3 } else { 2 }..].to_vec()
    }

    pub(crate) fn unsubscribe(&mut self, filter: &str) {
        let mut body = self.id().to_be_bytes().to_vec();
        push_properties(&mut body, self.version, &[]);
        push_text(&mut body, filter.as_bytes());
        self.send_packet(0xA2, &body);
        self.until(0xB0);
    }

    /// Returns the next packet, whose first byte must be `first`.
    pub(crate) fn until(&mut self, first: u8) -> Packet {
        let packet = self.packet().expect("a packet");
        assert_eq!(packet.first, first, "{packet:?}");
        packet
    }

    /// Publishes without waiting, and returns the packet identifier.
    pub(crate) fn send_publish(&mut self, topic: &str, payload: &[u8], flags: u8) -> u16 {
        self.send_publish_with(topic, payload, flags, &[])
    }

    pub(crate) fn send_publish_with(
        &mut self,
        topic: &str,
        payload: &[u8],
        flags: u8,
        properties: &[u8],
    ) -> u16 {
        let mut body = Vec::new();
        push_text(&mut body, topic.as_bytes());
        let mut id = 0;
        if flags & 6 != 0 {
            id = self.id();
            body.extend_from_slice(&id.to_be_bytes());
        }
        push_properties(&mut body, self.version, properties);
        body.extend_from_slice(payload);
        self.send_packet(0x30 | flags, &body);
        id
    }

    /// Publishes, and waits until the message is completely acknowledged.
    pub(crate) fn publish(&mut self, topic: &str, payload: &str, flags: u8) {
        let id = self
            .send_publish(topic, payload.as_bytes(), flags)
            .to_be_bytes();
        match flags & 6 {
            0 => self.settle(),
            2 => assert_eq!(self.until(0x40).body[..2], id),
            _ => {
                assert_eq!(self.until(0x50).body[..2], id);
                self.send_packet(0x62, &id);
                assert_eq!(self.until(0x70).body[..2], id);
            }
        }
    }

    /// Pings, and waits for the response.
    pub(crate) fn settle(&mut self) {
        self.send(&[0xC0, 0]);
        self.until(0xD0);
    }

    /// Returns the next message without acknowledging it.
    pub(crate) fn message(&mut self) -> Published {
        let Packet { first, body } = self.packet().expect("a message");
        assert_eq!(first & 0xF0, 0x30, "{first:#x} {body:?}");
        let topic_end = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
        let mut at = topic_end;
        let qos = (first >> 1) & 3;
        let mut id = 0;
        if qos > 0 {
            id = u16::from_be_bytes([body[at], body[at + 1]]);
            at += 2;
        }
        let mut properties = Vec::new();
        if self.version == V5 {
            // The length is one byte, because the properties in tests are short.
            let end = at + 1 + usize::from(body[at]);
            properties = body[at + 1..end].to_vec();
            at = end;
        }
        Published {
            topic: String::from_utf8(body[2..topic_end].to_vec()).expect("text"),
            payload: body[at..].to_vec(),
            qos,
            dup: first & 8 != 0,
            retain: first & 1 != 0,
            id,
            properties,
        }
    }

    /// Returns the next message after acknowledging it: topic, payload, QoS.
    pub(crate) fn take(&mut self) -> (String, String, u8) {
        let message = self.message();
        let id = message.id.to_be_bytes();
        match message.qos {
            0 => {}
            1 => self.send_packet(0x40, &id),
            _ => {
                self.send_packet(0x50, &id);
                assert_eq!(self.until(0x62).body[..2], id);
                self.send_packet(0x70, &id);
            }
        }
        let payload = String::from_utf8(message.payload).expect("text");
        (message.topic, payload, message.qos)
    }

    /// Sends DISCONNECT.
    pub(crate) fn disconnect(mut self) {
        self.send(&[0xE0, 0]);
        assert_eq!(self.packet(), None);
    }
}

pub(crate) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&u16::try_from(text.len()).expect("short").to_be_bytes());
    out.extend_from_slice(text);
}

fn push_properties(out: &mut Vec<u8>, version: u8, properties: &[u8]) {
    if version == V5 {
        out.push(u8::try_from(properties.len()).expect("few"));
        out.extend_from_slice(properties);
    }
}

/// Returns a user property.
pub(crate) fn user(name: &str, value: &str) -> Vec<u8> {
    let mut property = vec![0x26];
    push_text(&mut property, name.as_bytes());
    push_text(&mut property, value.as_bytes());
    property
}

pub(crate) fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    let mut left = body.len();
    loop {
        let low = u8::try_from(left & 0x7F).expect("seven bits");
        left >>= 7;
        bytes.push(if left > 0 { low | 0x80 } else { low });
        if left == 0 {
            break;
        }
    }
    bytes.extend_from_slice(body);
    bytes
}
