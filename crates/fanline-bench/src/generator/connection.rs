//! A client connection: the handshake, subscriptions, and the PING that confirms that they are active.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::frames::{PING, PONG};

/// Time without data after which a socket counts as failed. The row then reports a failure and does not hang.
pub(crate) const STALL_LIMIT: Duration = Duration::from_secs(10);

const HELLO: &[u8] = b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\n";

/// The handshake of a server that connects as a leaf node. No other leaf node has this name.
const LEAF_HELLO: &[u8] =
    b"CONNECT {\"name\":\"generator\",\"server_id\":\"GENERATOR\",\"headers\":true}\r\n";

/// Connects to a server. Reads and writes that stall fail.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, STALL_LIMIT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(STALL_LIMIT))?;
    stream.set_write_timeout(Some(STALL_LIMIT))?;
    Ok(stream)
}

/// Closes sockets, so that threads that wait for their bytes end.
pub(crate) fn hang_up<'a>(streams: impl IntoIterator<Item = &'a TcpStream>) {
    for stream in streams {
        // The connection may already be closed.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// A connected client. Only the handshake and [`flush`](Self::flush) parse the server's messages. Measured
/// code uses the socket directly and counts bytes.
pub(crate) struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects and waits until the server has responded to a PING.
    pub(crate) fn open(address: SocketAddr) -> Result<Self> {
        Self::open_with(address, HELLO)
    }

    /// Does the same as [`open`](Self::open), but connects as a leaf node to a hub that requires no
    /// credentials. Ignores the hub's interest.
    pub(crate) fn open_leaf(address: SocketAddr) -> Result<Self> {
        Self::open_with(address, LEAF_HELLO)
    }

    pub(crate) fn open_as(address: SocketAddr, user: &str, password: &str) -> Result<Self> {
        let hello = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"user\":\"{user}\",\"pass\":\"{password}\"}}\r\n"
        );
        Self::open_with(address, hello.as_bytes())
    }

    fn open_with(address: SocketAddr, hello: &[u8]) -> Result<Self> {
        let stream = connect(address)?;
        let connection = Self { stream };
        (&connection.stream).write_all(hello)?;
        connection.flush()?;
        Ok(connection)
    }

    /// Subscribes, and waits until the server has processed the subscription.
    pub(crate) fn subscribe(&self, filter: &str, queue: Option<&str>, sid: u32) -> Result<()> {
        let line = match queue {
            Some(queue) => format!("SUB {filter} {queue} {sid}\r\n"),
            None => format!("SUB {filter} {sid}\r\n"),
        };
        (&self.stream).write_all(line.as_bytes())?;
        self.flush()
    }

    /// Announces a leaf node's interest in a subject, and waits until the hub has processed it.
    pub(crate) fn want(&self, subject: &str) -> Result<()> {
        (&self.stream).write_all(format!("LS+ {subject}\r\n").as_bytes())?;
        self.flush()
    }

    /// Sends a PING and reads its PONG. After that, the server has processed everything written before.
    /// Allowed only if no message is expected on the connection.
    pub(crate) fn flush(&self) -> Result<()> {
        (&self.stream).write_all(PING)?;
        let deadline = Instant::now() + STALL_LIMIT;
        let no_pong = || format!("no PONG from the server in {} s", STALL_LIMIT.as_secs());
        let (mut input, mut line) = (BufReader::new(&self.stream), Vec::new());
        loop {
            line.clear();
            input.read_until(b'\n', &mut line).with_context(no_pong)?;
            match line.as_slice() {
                PONG => return Ok(()),
                PING => (&self.stream).write_all(PONG)?,
                b"" => bail!("the server closed the connection"),
                line if line.starts_with(b"-ERR") => {
                    bail!(
                        "the server sent {}",
                        String::from_utf8_lossy(line).trim_end()
                    )
                }
                _ => {}
            }
            ensure!(Instant::now() < deadline, no_pong());
        }
    }

    /// Returns the socket, for measured code.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }
}
