//! The lines and messages of a route, read in the plainest way.

use std::collections::BTreeMap;

/// A line of a route, with the payload of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) line: String,
    /// Headers and payload.
    pub(super) content: Vec<u8>,
    /// All bytes.
    pub(super) bytes: Vec<u8>,
}

impl Frame {
    /// Returns whether this is a message.
    pub(super) fn is_message(&self) -> bool {
        self.line.starts_with("RMSG ") || self.line.starts_with("HMSG ")
    }

    /// Returns whether only queue groups receive the message, because their members at another place had left: the first
    /// name of the groups is also the last one.
    pub(super) fn is_passed_on(&self) -> bool {
        let words: Vec<&str> = self.line.split(' ').collect();
        let Some(at) = words.iter().position(|word| matches!(*word, "|" | "+")) else {
            return false;
        };
        let first = at + if words[at] == "+" { 2 } else { 1 };
        let sizes = if words[0] == "HMSG" { 2 } else { 1 };
        let groups = words.get(first..words.len() - sizes).unwrap_or_default();
        groups.len() > 1 && groups.first() == groups.last()
    }

    /// Returns the payload of a message.
    pub(super) fn payload(&self) -> &[u8] {
        let mut words = self.line.rsplit(' ').skip(1);
        let header = match self.line.starts_with("HMSG ") {
            true => words.next().and_then(|word| word.parse().ok()),
            false => None,
        };
        self.content.get(header.unwrap_or(0)..).unwrap_or_default()
    }
}

/// Splits the bytes of one direction into frames.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    pending: Vec<u8>,
}

impl FrameReader {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Returns the next frame that is complete.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let end = self.pending.windows(2).position(|two| two == b"\r\n")?;
        let line = String::from_utf8_lossy(&self.pending[..end]).into_owned();
        let mut frame = Frame {
            line,
            ..Frame::default()
        };
        let mut length = end + 2;
        if frame.is_message() {
            let size = frame.line.rsplit(' ').next();
            let size: usize = size.and_then(|size| size.parse().ok()).unwrap_or(0);
            length += size + 2;
            if self.pending.len() < length {
                return None;
            }
            frame.content = self.pending[end + 2..length - 2].to_vec();
        }
        frame.bytes = self.pending.drain(..length).collect();
        Some(frame)
    }
}

/// A place of interest: the name of an account, a filter, and a queue group; empty without one.
pub(super) type Place = (String, String, String);

/// The interest that one server has announced to another, with weights.
pub(super) type Interest = BTreeMap<Place, u32>;

/// Applies a line to the interest that was announced on a route. `dedicated_to` is the account of a dedicated route.
/// Returns an error for a line that no server may send.
pub(super) fn apply_interest(
    interest: &mut Interest,
    line: &str,
    dedicated_to: Option<&str>,
) -> Result<(), String> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    if !matches!(verb, "RS+" | "RS-") {
        return Ok(());
    }
    let mut words = rest.split(' ').map(str::to_owned);
    let account = match dedicated_to {
        Some(account) => Some(account.to_owned()),
        None => words.next(),
    };
    let wrong = || format!("a server sent {line:?}");
    let (account, filter) = (account.ok_or_else(wrong)?, words.next().ok_or_else(wrong)?);
    let queue = words.next().unwrap_or_default();
    let place = (account, filter, queue);
    if verb == "RS-" {
        let before = interest.remove(&place);
        return before.map(drop).ok_or_else(wrong);
    }
    let weight = words
        .next()
        .map(|weight| weight.parse().map_err(|_| wrong()));
    let weight = weight.unwrap_or(Ok(1))?;
    match interest.insert(place, weight) {
        // Only changes are announced.
        Some(before) if before == weight => Err(wrong()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_in_any_pieces() {
        let output = b"INFO {}\r\nRMSG A a.b 2\r\nhi\r\nHMSG A a + r q p q 12 14\r\nNATS/1.0\r\n\r\nyo\r\nPING\r\n";
        let mut reader = FrameReader::default();
        let mut frames = Vec::new();
        for byte in output {
            reader.push(&[*byte]);
            frames.extend(reader.next());
        }
        let lines: Vec<&str> = frames.iter().map(|frame| &*frame.line).collect();
        assert_eq!(
            lines,
            [
                "INFO {}",
                "RMSG A a.b 2",
                "HMSG A a + r q p q 12 14",
                "PING"
            ]
        );
        assert_eq!(
            (frames[1].payload(), frames[2].payload()),
            (&b"hi"[..], &b"yo"[..])
        );
        assert!(!frames[1].is_passed_on() && frames[2].is_passed_on());
        let bytes: Vec<u8> = frames.into_iter().flat_map(|frame| frame.bytes).collect();
        assert_eq!(bytes, output);
    }

    #[test]
    fn interest_changes_with_each_line() {
        let mut interest = Interest::new();
        for line in ["RS+ A a", "RS+ A a q 2", "RS+ A a q 1", "RS- A a", "PING"] {
            apply_interest(&mut interest, line, None).unwrap();
        }
        apply_interest(&mut interest, "RS+ b", Some("P")).unwrap();
        let place = |account: &str, filter: &str, queue: &str| {
            (account.to_owned(), filter.to_owned(), queue.to_owned())
        };
        let expected = [(place("A", "a", "q"), 1), (place("P", "b", ""), 1)];
        assert_eq!(interest, expected.into());
        assert!(apply_interest(&mut interest, "RS- A a", None).is_err());
        assert!(apply_interest(&mut interest, "RS+ A a q 1", None).is_err());
    }
}
