//! A reader of a server's packets from one socket.

use std::net::TcpStream;

use anyhow::{Context, Result, bail};

use crate::generator::buffer::Buffer;

/// Number of bytes of one read, and size of the largest accepted packet.
const READ_BYTES: usize = 256 * 1024;

pub(crate) struct Incoming<'a>(Buffer<'a>);

pub(crate) struct Packet<'a> {
    /// First byte of the packet: its type and flags.
    pub(crate) first: u8,
    pub(crate) body: &'a [u8],
}

impl<'a> Packet<'a> {
    pub(crate) fn kind(&self) -> u8 {
        self.first & 0xF0
    }

    /// Returns the packet identifier, if the packet begins with one.
    pub(crate) fn packet_id(&self) -> Result<u16> {
        let bytes = self.body.first_chunk().context("a packet is truncated")?;
        Ok(u16::from_be_bytes(*bytes))
    }

    /// Returns the packet identifier and payload of a PUBLISH with QoS 1 or 2.
    pub(crate) fn numbered(&self) -> Result<(u16, &'a [u8])> {
        let topic = usize::from(self.packet_id()?);
        let rest = self.body.get(2 + topic..).context("a topic is truncated")?;
        let (bytes, payload) = rest.split_first_chunk().context("no identifier")?;
        Ok((u16::from_be_bytes(*bytes), payload))
    }
}

impl<'a> Incoming<'a> {
    /// Creates a reader for a socket on which no packet is expected yet.
    pub(crate) fn new(stream: &'a TcpStream) -> Self {
        Self(Buffer::new(stream, READ_BYTES))
    }

    pub(crate) fn read(&mut self) -> Result<()> {
        self.0.read()
    }

    /// Returns the next complete packet, or `None` if there is none.
    pub(crate) fn next(&mut self) -> Result<Option<Packet<'_>>> {
        let rest = self.0.unread();
        let Some((head_bytes, body_bytes)) = lengths(rest)? else {
            return Ok(None);
        };
        let total = head_bytes + body_bytes;
        if rest.len() < total {
            return Ok(None);
        }
        let packet = self.0.take(total);
        Ok(Some(Packet {
            first: packet[0],
            body: &packet[head_bytes..],
        }))
    }
}

/// Returns the lengths of the fixed header and of the rest of the packet. Returns `None` if the header is
/// incomplete.
fn lengths(bytes: &[u8]) -> Result<Option<(usize, usize)>> {
    let (mut length, mut shift) = (0, 0);
    for (index, byte) in bytes.iter().enumerate().skip(1) {
        length |= usize::from(byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Ok(Some((index + 1, length)));
        }
        if index == 4 {
            bail!("a length of more than four bytes");
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_round_trip() {
        let check = |bytes: &[u8], expected| assert_eq!(lengths(bytes).unwrap(), expected);
        check(b"", None);
        check(b"\x30", None);
        check(b"\x30\x05", Some((2, 5)));
        check(b"\x30\xcb", None);
        check(b"\x30\xcb\x01", Some((3, 203)));
        check(b"\x30\xff\xff\xff\x7f", Some((5, 268_435_455)));
        assert!(lengths(b"\x30\xff\xff\xff\xff\x01").is_err());
    }
}
