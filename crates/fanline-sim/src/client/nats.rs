//! What a NATS client writes, and how it reads what a server sends.

use std::collections::VecDeque;

/// Appends a line.
pub(crate) fn push_line(out: &mut VecDeque<u8>, line: &str) {
    out.extend(line.as_bytes());
    out.extend(b"\r\n");
}

/// Appends a message. `header` is a line, or empty.
pub(crate) fn push_publish(
    out: &mut VecDeque<u8>,
    subject: &str,
    reply: &str,
    header: &str,
    payload: &[u8],
) {
    let blank = if reply.is_empty() { "" } else { " " };
    let length = payload.len();
    if header.is_empty() {
        push_line(out, &format!("PUB {subject}{blank}{reply} {length}"));
    } else {
        let block = format!("NATS/1.0\r\n{header}\r\n\r\n");
        let (headers, total) = (block.len(), block.len() + length);
        push_line(
            out,
            &format!("HPUB {subject}{blank}{reply} {headers} {total}"),
        );
        out.extend(block.as_bytes());
    }
    out.extend(payload);
    out.extend(b"\r\n");
}

/// A message from the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) sid: u64,
    pub(crate) subject: String,
    pub(crate) reply: String,
    pub(crate) headers: String,
    pub(crate) payload: Vec<u8>,
}

impl Received {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .headers
            .lines()
            .filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns the status of a message without a payload, such as `404`.
    pub(crate) fn status(&self) -> Option<&str> {
        self.headers.strip_prefix("NATS/1.0 ")?.get(..3)
    }
}

/// What a server has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Info,
    Ping,
    Pong,
    Error(String),
    Message(Received),
}

/// Splits a server's output into events.
#[derive(Debug, Default)]
pub(crate) struct NatsReader {
    pending: Vec<u8>,
}

impl NatsReader {
    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Returns whether a part of an event is pending.
    pub(crate) fn is_within_event(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the next event; `Ok(None)` if it is not complete yet.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, String> {
        let Some(end) = self.pending.windows(2).position(|two| two == b"\r\n") else {
            return Ok(None);
        };
        let line = String::from_utf8_lossy(&self.pending[..end]).into_owned();
        let body = end + 2;
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let event = match verb {
            "INFO" => Event::Info,
            "PING" => Event::Ping,
            "PONG" => Event::Pong,
            "-ERR" => Event::Error(rest.to_owned()),
            "MSG" | "HMSG" => return self.message(verb == "HMSG", rest, body),
            _ => return Err(format!("the server sent {line:?}")),
        };
        self.pending.drain(..body);
        Ok(Some(event))
    }

    fn message(
        &mut self,
        has_headers: bool,
        line: &str,
        body: usize,
    ) -> Result<Option<Event>, String> {
        let wrong = || format!("the server sent a message with the line {line:?}");
        let mut words: Vec<&str> = line.split(' ').collect();
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<usize>().ok());
        let length = number(words.pop()).ok_or_else(wrong)?;
        let header_bytes = match has_headers {
            true => number(words.pop()).ok_or_else(wrong)?,
            false => 0,
        };
        let (subject, sid, reply) = match words[..] {
            [subject, sid] => (subject, sid, ""),
            [subject, sid, reply] => (subject, sid, reply),
            _ => return Err(wrong()),
        };
        if self.pending.len() < body + length + 2 {
            return Ok(None);
        }
        let content = &self.pending[body..body + length];
        let received = Received {
            sid: sid.parse().map_err(|_| wrong())?,
            subject: subject.to_owned(),
            reply: reply.to_owned(),
            headers: String::from_utf8_lossy(&content[..header_bytes]).into_owned(),
            payload: content[header_bytes..].to_vec(),
        };
        if &self.pending[body + length..body + length + 2] != b"\r\n" {
            return Err(wrong());
        }
        self.pending.drain(..body + length + 2);
        Ok(Some(Event::Message(received)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_in_any_pieces() {
        let output =
            b"INFO {}\r\nPING\r\nMSG a 1 b 2\r\nhi\r\nHMSG a.b 7 14 15\r\nNATS/1.0 404\r\nx\r\n";
        let mut reader = NatsReader::default();
        let mut events = Vec::new();
        for byte in output {
            reader.push(&[*byte]);
            while let Some(event) = reader.next().unwrap() {
                events.push(event);
            }
        }
        assert_eq!(events.len(), 4);
        let Event::Message(message) = &events[3] else {
            panic!("{events:?}");
        };
        assert_eq!((message.sid, message.status()), (7, Some("404")));
        assert_eq!(message.payload, b"x");
    }
}
