//! The protocol and the address of the publishers or the subscribers of a topology.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Result, bail, ensure};

use super::connection::Connection;
use super::{frames, mqtt};

pub(crate) enum Client {
    Nats(Connection),
    Mqtt(mqtt::Connection),
}

impl Client {
    pub(crate) fn stream(&self) -> &TcpStream {
        match self {
            Client::Nats(connection) => connection.stream(),
            Client::Mqtt(connection) => connection.stream(),
        }
    }

    /// Waits until the server has processed everything written before. Allowed only if no message is expected
    /// on the connection.
    pub(crate) fn flush(&self) -> Result<()> {
        match self {
            Client::Nats(connection) => connection.flush(),
            Client::Mqtt(connection) => connection.flush(),
        }
    }
}

/// A protocol, and the address of a server that supports it.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Nats(SocketAddr),
    Mqtt(SocketAddr),
    /// NATS as a leaf node of the hub at this address.
    Leaf(SocketAddr),
}

impl Side {
    pub(crate) fn publisher(self, index: usize) -> Result<Client> {
        self.open(&format!("publisher{index}"))
    }

    pub(crate) fn subscriber(self, subject: &str, index: usize) -> Result<Client> {
        let client = self.open(&format!("subscriber{index}"))?;
        match (&client, self) {
            (Client::Mqtt(connection), _) => connection.subscribe(&topic(subject), 0)?,
            (Client::Nats(connection), Side::Leaf(_)) => connection.want(subject)?,
            (Client::Nats(connection), _) => connection.subscribe(subject, None, 1)?,
        }
        Ok(client)
    }

    /// Connects. Only MQTT clients have a name.
    fn open(self, name: &str) -> Result<Client> {
        Ok(match self {
            Side::Nats(address) => Client::Nats(Connection::open(address)?),
            Side::Leaf(address) => Client::Nats(Connection::open_leaf(address)?),
            Side::Mqtt(address) => Client::Mqtt(mqtt::Connection::open(address, name, true)?),
        })
    }

    /// Returns the bytes that a publisher writes for one message. MQTT messages have QoS 0.
    pub(crate) fn publication(self, subject: &str, payload: &[u8]) -> Vec<u8> {
        match self {
            Side::Nats(_) => frames::publish(subject, payload),
            Side::Mqtt(_) => mqtt::packets::publish(&topic(subject), payload),
            Side::Leaf(_) => frames::across_link(subject, payload),
        }
    }

    /// Returns the bytes that a subscriber reads for one message from a publisher on the side `from`.
    pub(crate) fn delivery_from(
        self,
        from: Side,
        subscriber: &Client,
        subject: &str,
        payload: &[u8],
    ) -> Result<Vec<u8>> {
        match (self, from) {
            (Side::Mqtt(_), _) => Ok(mqtt::packets::publish(&topic(subject), payload)),
            (Side::Leaf(_), _) => Ok(frames::across_link(subject, payload)),
            (Side::Nats(_), Side::Nats(_) | Side::Leaf(_)) => {
                Ok(frames::delivery(subject, 1, payload))
            }
            // The server decides which headers such a message has, so find out by sending one.
            (Side::Nats(_), Side::Mqtt(_)) => learn(from, subscriber, subject, payload),
        }
    }
}

fn topic(subject: &str) -> String {
    subject.replace('.', "/")
}

/// Sends one message. Returns the received bytes, which are the expected frame of later messages.
fn learn(from: Side, subscriber: &Client, subject: &str, payload: &[u8]) -> Result<Vec<u8>> {
    let publisher = from.publisher(usize::MAX)?;
    publisher
        .stream()
        .write_all(&from.publication(subject, payload))?;
    let end = [payload, b"\r\n"].concat();
    let (mut frame, mut buffer) = (Vec::new(), [0; 4096]);
    while !frame.ends_with(&end) {
        let count = subscriber.stream().read(&mut buffer)?;
        ensure!(count > 0, "the server closed a subscriber");
        frame.extend_from_slice(&buffer[..count]);
    }
    if !frame.starts_with(b"MSG ") && !frame.starts_with(b"HMSG ") {
        bail!("not a message: {}", String::from_utf8_lossy(&frame));
    }
    Ok(frame)
}
