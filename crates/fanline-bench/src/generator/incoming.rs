//! A reader of messages of any length from one socket.

use std::io::Write;
use std::net::TcpStream;
use std::ops::Range;

use anyhow::{Result, bail};

use super::buffer::Buffer;
use super::frames::{PING, PONG};

/// Number of bytes of one read, and size of the largest accepted message.
const READ_BYTES: usize = 1024 * 1024;

pub(crate) struct Incoming<'a>(Buffer<'a>);

/// A message for one of the socket's subscriptions.
pub(crate) struct Delivered<'a> {
    /// The arguments of the protocol line: subject, subscription ID, and optionally the reply subject.
    line: &'a [u8],
    /// The header block; empty without headers.
    pub(crate) headers: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl<'a> Delivered<'a> {
    pub(crate) fn subject(&self) -> &'a [u8] {
        let mut tokens = self.line.split(|byte| *byte == b' ');
        tokens.next().unwrap_or_default()
    }

    /// Returns the reply subject, which is empty if there is none.
    pub(crate) fn reply(&self) -> &'a [u8] {
        let mut tokens = self.line.split(|byte| *byte == b' ');
        tokens.nth(2).unwrap_or_default()
    }
}

impl<'a> Incoming<'a> {
    /// Creates a reader for a socket on which no message is expected yet.
    pub(crate) fn new(stream: &'a TcpStream) -> Self {
        Self(Buffer::new(stream, READ_BYTES))
    }

    pub(crate) fn read(&mut self) -> Result<()> {
        self.0.read()
    }

    /// Returns the next complete message, or `None` if there is none. Answers PINGs.
    pub(crate) fn next(&mut self) -> Result<Option<Delivered<'_>>> {
        let head = loop {
            let rest = self.0.unread();
            let Some(end) = memchr::memchr(b'\n', rest) else {
                return Ok(None);
            };
            let line = &rest[..=end];
            if let Some(head) = Head::parse(line) {
                break head;
            }
            match line {
                PING => {
                    let mut stream = self.0.stream;
                    stream.write_all(PONG)?;
                }
                PONG => {}
                _ => bail!("the server sent {}", String::from_utf8_lossy(line)),
            }
            self.0.take(end + 1);
        };
        let end = head.line_bytes + head.total_bytes;
        if end + 2 > self.0.unread().len() {
            return Ok(None);
        }
        let message = self.0.take(end + 2);
        let (headers, payload) = message[head.line_bytes..end].split_at(head.header_bytes);
        Ok(Some(Delivered {
            line: &message[head.args],
            headers,
            payload,
        }))
    }
}

struct Head {
    /// Range of the arguments: subject, subscription ID, and reply.
    args: Range<usize>,
    header_bytes: usize,
    total_bytes: usize,
    line_bytes: usize,
}

impl Head {
    /// Parses a line. Returns `None` if it has another verb.
    fn parse(line: &[u8]) -> Option<Self> {
        let line_bytes = line.len();
        let line = line.strip_suffix(b"\r\n")?;
        if line.starts_with(b"MSG ") {
            let (args_end, total_bytes) = last_number(line)?;
            Some(Self {
                args: 4..args_end,
                header_bytes: 0,
                total_bytes,
                line_bytes,
            })
        } else if line.starts_with(b"HMSG ") {
            let (end, total_bytes) = last_number(line)?;
            let (args_end, header_bytes) = last_number(&line[..end])?;
            Some(Self {
                args: 5..args_end,
                header_bytes,
                total_bytes,
                line_bytes,
            })
        } else {
            None
        }
    }
}

/// Returns the number after the last space, and the position of that space.
fn last_number(line: &[u8]) -> Option<(usize, usize)> {
    let (mut number, mut unit) = (0, 1);
    for (place, byte) in line.iter().enumerate().rev() {
        match byte {
            b' ' => return Some((place, number)),
            b'0'..=b'9' => number += usize::from(byte - b'0') * unit,
            _ => return None,
        }
        unit *= 10;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_lines_are_parsed() {
        let check = |line: &[u8], expected: Option<(&str, usize, usize)>| {
            let head = Head::parse(line);
            let parts = head.as_ref().map(|head| {
                let args = std::str::from_utf8(&line[head.args.clone()]).unwrap();
                (args, head.header_bytes, head.total_bytes)
            });
            assert_eq!(parts, expected);
        };
        check(b"MSG a.b 1 128\r\n", Some(("a.b 1", 0, 128)));
        check(b"MSG a.b 1 c.d 7\r\n", Some(("a.b 1 c.d", 0, 7)));
        check(b"HMSG a 12 r 30 45\r\n", Some(("a 12 r", 30, 45)));
        check(b"-ERR 'no'\r\n", None);
        check(b"PING\r\n", None);
    }
}
