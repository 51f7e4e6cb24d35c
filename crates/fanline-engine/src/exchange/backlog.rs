//! The backlog of a slow subscriber, for monitoring and the log.

use std::collections::HashMap;
use std::time::Duration;

/// Largest number of frames of a backlog that are counted by subscription. Later frames are not examined.
const FRAMES_MAX: usize = 1024;

/// The pending bytes of a slow subscriber, and the subscription with the most of these bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Pending bytes.
    pub bytes: usize,
    /// Time since which the peer has not accepted all pending output; `None` before the first write.
    pub since: Option<Duration>,
    /// The `sid` of the subscription with the most pending bytes, if it can be determined.
    pub sid: Option<String>,
    /// The subject filter of that subscription.
    pub subject: Option<String>,
}

/// A message in the form that clients receive.
struct Frame<'a> {
    sid: &'a [u8],
    /// Length in bytes, including the line before the payload and the line end after it.
    bytes: usize,
}

/// Returns the `sid` of the subscription with the most bytes in the first `FRAMES_MAX` frames.
pub(crate) fn heaviest_sid<'a>(segments: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut bytes_of: HashMap<&[u8], usize> = HashMap::new();
    let mut frames = 0;
    // Bytes of the last frame that lie in later segments.
    let mut beyond = 0;
    for segment in segments {
        let mut at = beyond;
        while at < segment.len() && frames < FRAMES_MAX {
            match frame(&segment[at..]) {
                Some(frame) => {
                    *bytes_of.entry(frame.sid).or_default() += frame.bytes;
                    frames += 1;
                    at = at.saturating_add(frame.bytes);
                }
                // The rest of a frame whose start was already written to the peer, or a response such as
                // PONG.
                None => match next_line(&segment[at..]) {
                    Some(skipped) => at += skipped,
                    None => at = segment.len(),
                },
            }
        }
        beyond = at.saturating_sub(segment.len());
        if frames == FRAMES_MAX {
            break;
        }
    }
    let heaviest = bytes_of.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    Some(String::from_utf8_lossy(heaviest.0).into_owned())
}

/// Parses the first line of a message.
fn frame(bytes: &[u8]) -> Option<Frame<'_>> {
    /// Largest length of a line that is parsed, in bytes.
    const LINE_BYTES_MAX: usize = 8 * 1024;
    if !bytes.starts_with(b"MSG ") && !bytes.starts_with(b"HMSG ") {
        return None;
    }
    let line = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let line = &line[..line_end(line)?];
    let mut words = line.split(|byte| *byte == b' ');
    let sid = words.nth(2)?;
    let payload: usize = std::str::from_utf8(words.next_back()?).ok()?.parse().ok()?;
    let bytes = line.len().checked_add(payload)?.checked_add(4)?;
    Some(Frame { sid, bytes })
}

/// Returns the distance to the next line.
fn next_line(bytes: &[u8]) -> Option<usize> {
    line_end(bytes).map(|at| at + 2)
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|two| two == b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(segments: &[&str], expected: Option<&str>) {
        let found = heaviest_sid(segments.iter().map(|segment| segment.as_bytes()));
        assert_eq!(found.as_deref(), expected, "{segments:?}");
    }

    #[test]
    fn subscription_with_the_most_bytes_is_found() {
        check(&[], None);
        check(&["PONG\r\n"], None);
        check(
            &["MSG a 1 2\r\nxx\r\nMSG b 22 9\r\n123456789\r\n"],
            Some("22"),
        );
        check(
            &["MSG a 1 2\r\nxx\r\nMSG b 2 1\r\nx\r\nMSG a 1 2\r\nxx\r\n"],
            Some("1"),
        );
        check(
            &["HMSG a 7 reply.to 12 13\r\nNATS/1.0\r\n\r\nx\r\n"],
            Some("7"),
        );
        // Input that begins inside a frame, contains a response, and has a payload in its own segment.
        check(&["xyz\r\nPONG\r\nMSG a 3 4\r\n1234\r\n"], Some("3"));
        check(
            &[
                "MSG a 1 9\r\n",
                "MSG b 2 3",
                "\r\nMSG c 4 0\r\n\r\nMSG c 4 0\r\n\r\n",
            ],
            Some("4"),
        );
        check(&["MSG a 1 99999999999999999999\r\n"], None);
        check(&["MSG a 1 18446744073709551615\r\nx"], None);
        check(&["MSG a 1 18446744073709551000\r\nx", "y"], Some("1"));
    }
}
