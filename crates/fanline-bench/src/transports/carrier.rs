//! Connections over TLS and WebSocket, which cost the generator as little as possible.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::{Result, ensure};
use fanline_engine::codec::websocket::{Event, Opcode, Unframer, frame_head};
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, version};

use crate::generator::connection::connect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tls,
    WebSocket,
}

/// Size of the largest accepted WebSocket message.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
const READ_BYTES: usize = 256 * 1024;

/// Returns the generator's TLS configuration, which accepts only the server's certificate.
pub(crate) fn client_config(certificate: &CertificateDer<'static>) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let mut provider = default_provider();
    provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&version::TLS13])?
        .with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

pub(crate) enum Carrier {
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    WebSocket(TcpStream, Box<Unframer>),
}

impl Carrier {
    /// Connects and waits until the server has responded to a PING.
    pub(crate) fn open(
        kind: Kind,
        address: SocketAddr,
        config: &Arc<ClientConfig>,
    ) -> Result<Self> {
        let mut stream = connect(address)?;
        let mut carrier = match kind {
            Kind::Tls => {
                read_to(&mut stream, b"\r\n")?;
                let name = ServerName::try_from("localhost")?;
                let session = ClientConnection::new(Arc::clone(config), name)?;
                Carrier::Tls(Box::new(StreamOwned::new(session, stream)))
            }
            Kind::WebSocket => {
                let request = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
                    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                    Sec-WebSocket-Version: 13\r\n\r\n";
                stream.write_all(request.as_bytes())?;
                read_to(&mut stream, b"\r\n\r\n")?;
                // Frames from servers are not masked.
                let unframer = Unframer::new(false, false, MESSAGE_BYTES_MAX);
                Carrier::WebSocket(stream, Box::new(unframer))
            }
        };
        carrier.send(b"CONNECT {\"verbose\":false,\"pedantic\":false,\"protocol\":0}\r\n")?;
        carrier.flush()?;
        Ok(carrier)
    }

    /// Returns the bytes in the form in which they are written. For WebSocket this is one frame.
    pub(crate) fn framed(&self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Carrier::Tls(_) => bytes.to_vec(),
            Carrier::WebSocket(..) => {
                let mut framed = frame_head(Opcode::Binary, false, bytes.len())
                    .as_bytes()
                    .to_vec();
                framed[1] |= 0x80;
                // A mask of zeros changes no byte, but the server's cost of unmasking is the same.
                framed.extend([0; 4]);
                framed.extend_from_slice(bytes);
                framed
            }
        }
    }

    /// Writes bytes that [`framed`](Carrier::framed) has returned.
    pub(crate) fn write(&mut self, framed: &[u8]) -> Result<()> {
        match self {
            Carrier::Tls(stream) => stream.write_all(framed)?,
            Carrier::WebSocket(stream, _) => stream.write_all(framed)?,
        }
        Ok(())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let framed = self.framed(bytes);
        self.write(&framed)
    }

    /// Reads, and passes the received bytes to `take`. The end of the connection is an error.
    pub(crate) fn read(&mut self, room: &mut Vec<u8>, mut take: impl FnMut(&[u8])) -> Result<()> {
        room.resize(READ_BYTES, 0);
        match self {
            Carrier::Tls(stream) => {
                let read = stream.read(room)?;
                ensure!(read > 0, "the server closed a connection");
                take(&room[..read]);
            }
            Carrier::WebSocket(stream, unframer) => {
                let read = stream.read(room)?;
                ensure!(read > 0, "the server closed a connection");
                let mut rest = &mut room[..read];
                while !rest.is_empty() {
                    let (taken, event) = unframer.next(rest)?;
                    let (piece, after) = std::mem::take(&mut rest).split_at_mut(taken);
                    if let Event::Data { range, .. } = event {
                        take(&piece[range]);
                    }
                    rest = after;
                }
            }
        }
        Ok(())
    }

    /// Sends a PING and reads until its PONG. Allowed only if no message is expected on the connection.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.send(b"PING\r\n")?;
        let (mut room, mut seen) = (Vec::new(), Vec::new());
        loop {
            self.read(&mut room, |bytes| seen.extend_from_slice(bytes))?;
            if seen.windows(6).any(|window| window == b"PONG\r\n") {
                return Ok(());
            }
        }
    }
}

/// Reads until `end`, one byte at a time, because the bytes after it belong to later reads.
fn read_to(stream: &mut TcpStream, end: &[u8]) -> Result<()> {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(end) {
        stream.read_exact(&mut byte)?;
        seen.push(byte[0]);
    }
    Ok(())
}
