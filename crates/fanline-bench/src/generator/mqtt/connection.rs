//! An MQTT connection: the handshake, subscriptions, and the ping that confirms that they are active.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use anyhow::{Result, bail, ensure};

use super::incoming::Incoming;
use super::packets;
use crate::generator::connection::connect;

pub(crate) struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects and waits until the server has accepted the connection.
    pub(crate) fn open(address: SocketAddr, client_id: &str, is_clean: bool) -> Result<Self> {
        let connection = Self {
            stream: connect(address)?,
        };
        let body = connection.ask(&packets::connect(client_id, is_clean), packets::CONNACK)?;
        ensure!(body.get(1) == Some(&0), "refused with {body:?}");
        Ok(connection)
    }

    /// Subscribes and waits until the server has granted the subscription.
    pub(crate) fn subscribe(&self, filter: &str, qos: u8) -> Result<()> {
        let body = self.ask(&packets::subscribe(1, filter, qos), packets::SUBACK)?;
        ensure!(body.get(2) == Some(&qos), "granted {body:?}");
        Ok(())
    }

    /// Sends a ping and waits for the response. After that, the server has processed everything written
    /// before. Allowed only if no message is expected on the connection.
    pub(crate) fn flush(&self) -> Result<()> {
        self.ask(&packets::PINGREQ_BYTES, packets::PINGRESP)?;
        Ok(())
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a request. Returns the body of the server's response, which is a packet of type `kind`.
    fn ask(&self, bytes: &[u8], kind: u8) -> Result<Vec<u8>> {
        (&self.stream).write_all(bytes)?;
        let mut incoming = Incoming::new(&self.stream);
        loop {
            incoming.read()?;
            if let Some(packet) = incoming.next()? {
                if packet.kind() != kind {
                    bail!("the server sent {:#04x}", packet.first);
                }
                return Ok(packet.body.to_vec());
            }
        }
    }
}
