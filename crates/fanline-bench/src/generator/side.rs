//! The protocol and the address of the publishers or the subscribers of a topology.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};

use anyhow::{Result, bail, ensure};

use super::connection::Connection;
use super::{frames, mqtt};

/// A connection of a publisher or subscriber.
pub(crate) trait Client: Send + Sync {
    /// Returns the socket, for measured code.
    fn stream(&self) -> &TcpStream;

    /// Waits until the server has processed everything written before. Allowed only if no message is expected
    /// on the connection.
    fn flush(&self) -> Result<()>;
}

impl Client for Connection {
    fn stream(&self) -> &TcpStream {
        self.stream()
    }

    fn flush(&self) -> Result<()> {
        self.flush()
    }
}

impl Client for mqtt::Connection {
    fn stream(&self) -> &TcpStream {
        self.stream()
    }

    fn flush(&self) -> Result<()> {
        self.flush()
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
    pub(crate) fn publisher(self, index: usize) -> Result<Box<dyn Client>> {
        Ok(match self {
            Side::Nats(address) => Box::new(Connection::open(address)?),
            Side::Mqtt(address) => {
                let id = format!("publisher{index}");
                Box::new(mqtt::Connection::open(address, &id, true)?)
            }
            Side::Leaf(address) => Box::new(Connection::open_leaf(address)?),
        })
    }

    pub(crate) fn subscriber(self, subject: &str, index: usize) -> Result<Box<dyn Client>> {
        Ok(match self {
            Side::Nats(address) => {
                let connection = Connection::open(address)?;
                connection.subscribe(subject, None, 1)?;
                Box::new(connection)
            }
            Side::Mqtt(address) => {
                let id = format!("subscriber{index}");
                let connection = mqtt::Connection::open(address, &id, true)?;
                connection.subscribe(&topic(subject), 0)?;
                Box::new(connection)
            }
            Side::Leaf(address) => {
                let connection = Connection::open_leaf(address)?;
                connection.want(subject)?;
                Box::new(connection)
            }
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
        subscriber: &dyn Client,
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
fn learn(from: Side, subscriber: &dyn Client, subject: &str, payload: &[u8]) -> Result<Vec<u8>> {
    let publisher = from.publisher(usize::MAX)?;
    let mut stream = publisher.stream();
    std::io::Write::write_all(&mut stream, &from.publication(subject, payload))?;
    let end = [payload, b"\r\n"].concat();
    let (mut frame, mut buffer) = (Vec::new(), [0; 4096]);
    while !frame.ends_with(&end) {
        let mut stream = subscriber.stream();
        let count = stream.read(&mut buffer)?;
        ensure!(count > 0, "the server closed a subscriber");
        frame.extend_from_slice(&buffer[..count]);
    }
    if !frame.starts_with(b"MSG ") && !frame.starts_with(b"HMSG ") {
        bail!("not a message: {}", String::from_utf8_lossy(&frame));
    }
    Ok(frame)
}
