//! Message headers: `NATS/1.0`, an optional status, then `Name: value` lines.

use bytes::BytesMut;

use super::error::ClientError;

/// The first line of every header block. A status may follow it.
const VERSION: &[u8] = b"NATS/1.0";

/// The headers of a message, in the order in which they were sent. Names are case-sensitive and may repeat.
///
/// ```
/// let mut headers = fanline_client::Headers::new();
/// headers.append("Content-Type", "text/plain")?;
/// assert_eq!(headers.get("Content-Type"), Some("text/plain"));
/// assert!(headers.append("X", "a\r\nb").is_err());
/// # Ok::<(), fanline_client::ClientError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    entries: Vec<(String, String)>,
}

impl Headers {
    /// Returns an empty list of headers.
    pub fn new() -> Self {
        Headers::default()
    }

    /// Appends a header.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidHeader`] when the name is empty or has a colon, a space or a control
    /// character, or when the value has a line break.
    pub fn append(&mut self, name: &str, value: &str) -> Result<(), ClientError> {
        let refuse = |reason| {
            Err(ClientError::InvalidHeader {
                name: name.to_owned(),
                reason,
            })
        };
        if name.is_empty() {
            return refuse("the name is empty");
        }
        if name
            .bytes()
            .any(|byte| byte <= b' ' || byte == b':' || byte == 0x7f)
        {
            return refuse("the name has a colon, a space or a control character");
        }
        if value.bytes().any(|byte| byte == b'\r' || byte == b'\n') {
            return refuse("the value has a line break");
        }
        self.entries
            .push((name.to_owned(), value.trim().to_owned()));
        Ok(())
    }

    /// Returns the first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }

    /// Iterates over names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of headers.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of bytes that `encode` writes.
    pub(super) fn encoded_bytes(&self) -> usize {
        let lines = self
            .iter()
            .map(|(name, value)| name.len() + value.len() + ": \r\n".len());
        VERSION.len() + "\r\n\r\n".len() + lines.sum::<usize>()
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(VERSION);
        out.extend_from_slice(b"\r\n");
        for (name, value) in self.iter() {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Decodes a header block. Servers do not check the headers of publishers. Invalid lines are ignored, so that
/// the subscriber still gets the payload.
pub(super) fn decode(block: &[u8]) -> (Headers, Option<u16>) {
    let text = String::from_utf8_lossy(block);
    let mut lines = text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line));
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("NATS/1.0"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|code| code.parse().ok());
    let entries = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    (Headers { entries }, status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_headers_decode_to_the_same() {
        let mut headers = Headers::new();
        headers.append("A", "1").expect("valid");
        headers
            .append("A", "two words: and a colon")
            .expect("valid");
        headers.append("Empty", "").expect("valid");
        let mut out = BytesMut::new();
        headers.encode(&mut out);
        assert_eq!(out.len(), headers.encoded_bytes());
        assert_eq!(decode(&out), (headers, None));
    }

    #[test]
    fn decode_ignores_invalid_lines() {
        for (block, status, expected) in [
            (
                &b"NATS/1.0 503\r\nNats-Subject: ok.none\r\n\r\n"[..],
                Some(503),
                1,
            ),
            (b"NATS/1.0 100 Idle Heartbeat\r\n\r\n", Some(100), 0),
            (b"NATS/1.0\r\n\r\n", None, 0),
            (b"NATS/1.0 99999999\r\n\r\n", None, 0),
            (b"", None, 0),
            (b"rubbish\r\nno colon\r\nA:1\r\n", None, 1),
            (b"NATS/1.0\nA: 1\n\n", None, 1),
            (b"\xff\xfe\r\n:\r\n", None, 1),
        ] {
            let (headers, code) = decode(block);
            assert_eq!((code, headers.len()), (status, expected), "{block:?}");
        }
    }

    #[test]
    fn append_rejects_line_breaks() {
        let mut headers = Headers::new();
        for (name, value) in [
            ("", "v"),
            ("a b", "v"),
            ("a:b", "v"),
            ("a\r\n", "v"),
            ("a", "v\r\nb: c"),
            ("a", "\n"),
        ] {
            assert!(headers.append(name, value).is_err(), "{name:?} {value:?}");
        }
        assert!(headers.is_empty());
    }
}
