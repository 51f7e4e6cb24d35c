//! What a subscriber that is behind has waiting, for those who look for why it is.

use std::collections::HashMap;
use std::time::Duration;

use super::SessionId;
use super::Shard;
use crate::outbox::Outbox;

/// So many frames of what waits are looked at to tell which subscription most of it is for. The rest is
/// taken to be like them.
const FRAMES_MAX: usize = 1024;

/// What waits for a subscriber that is behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes that wait.
    pub bytes: usize,
    /// Since when it has taken less than there is; `None` when it was not waited for yet.
    pub since: Option<Duration>,
    /// The `sid` of the subscription that most of it is for, if that can be told.
    pub sid: Option<String>,
    /// What that subscription is to.
    pub subject: Option<String>,
}

impl Shard {
    /// Whether a connection takes less than there is.
    pub fn is_behind(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| session.out.blocked_since().is_some())
    }

    /// What waits for a connection that takes less than there is; `None` when it takes everything.
    pub fn backlog(&self, id: SessionId) -> Option<Backlog> {
        let session = self.broker.exchange.sessions.get(id.index())?;
        self.is_behind(id)
            .then(|| self.backlog_of(id, &session.out))
    }

    /// The same of one that is about to be dropped for it.
    pub(super) fn backlog_of(&self, id: SessionId, out: &Outbox) -> Backlog {
        let sid = heaviest_sid(out.segments());
        let subject = sid.as_ref().and_then(|sid| {
            let mut all = self.subscriptions(id).into_iter();
            all.find(|sub| sub.sid == *sid).map(|sub| sub.subject)
        });
        Backlog {
            bytes: out.pending_bytes(),
            since: out.blocked_since(),
            sid,
            subject,
        }
    }
}

/// A message as it goes out: for whom, and how long it is.
struct Frame<'a> {
    sid: &'a [u8],
    /// With what comes before the payload and after it.
    bytes: usize,
}

/// The `sid` of the subscription that has the most bytes among the first frames.
fn heaviest_sid<'a>(segments: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut bytes_of: HashMap<&[u8], usize> = HashMap::new();
    let mut frames = 0;
    // What of the last frame lies in the segments to come.
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
                // The middle of a frame, part of which was written, or an answer such as PONG.
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

/// Reads the line that a message begins with.
fn frame(bytes: &[u8]) -> Option<Frame<'_>> {
    /// A line is not looked for beyond this.
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

/// How far it is to the next line.
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
    fn the_subscription_with_the_most_bytes_is_found() {
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
        // Cut off in front, with an answer between, and with its payload in a segment of its own.
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
