//! Received messages and messages to publish.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::headers::Headers;

/// A received message. A clone copies no bytes. As long as a message or clone exists, all bytes that arrived
/// in the same read stay in memory.
#[derive(Clone)]
pub struct Message {
    /// The protocol line, headers, and payload in one buffer, with one reference count.
    pub(super) frame: Bytes,
    /// Subject and reply of an in-process message, whose `frame` contains the payload only.
    pub(super) names: Option<Arc<str>>,
    pub(super) subject: Range<u32>,
    /// Range of the reply subject. It is empty if there is none, because a reply subject is never empty.
    pub(super) reply: Range<u32>,
    pub(super) payload: Range<u32>,
    pub(super) headers: Option<Box<Headers>>,
    pub(super) status: Option<u16>,
}

impl Message {
    /// Returns the subject. Bytes that are not UTF-8 are replaced.
    pub fn subject(&self) -> &str {
        self.text(&self.subject)
    }

    /// Returns the subject for a reply.
    pub fn reply(&self) -> Option<&str> {
        (!self.reply.is_empty()).then(|| self.text(&self.reply))
    }

    /// Returns the headers, if the message has a header block.
    pub fn headers(&self) -> Option<&Headers> {
        self.headers.as_deref()
    }

    /// Returns the status, such as 503 for *no responders*. A server sends messages with a status in place of
    /// ordinary messages.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns the text after the status, such as `Idle Heartbeat`; empty if there is none.
    pub fn status_text(&self) -> &str {
        if self.status.is_none() {
            return "";
        }
        // The header block follows the protocol line, and its own first line contains the status.
        let line = self.frame.split(|byte| *byte == b'\n').nth(1);
        let line = line.and_then(|line| std::str::from_utf8(line).ok());
        let words = line.and_then(|line| line.trim().splitn(3, ' ').nth(2));
        words.unwrap_or_default()
    }

    /// Returns the payload.
    pub fn payload(&self) -> &[u8] {
        &self.frame[at(&self.payload)]
    }

    /// Returns the payload as shared bytes, without a copy.
    pub fn payload_bytes(&self) -> Bytes {
        self.frame.slice(at(&self.payload))
    }

    /// Returns the number of bytes by which the message counts toward the limit of a queue.
    pub(super) fn queued_bytes(&self) -> usize {
        self.frame.len() + self.names.as_ref().map_or(0, |names| names.len())
    }

    fn text(&self, range: &Range<u32>) -> &str {
        if let Some(names) = &self.names {
            return names.get(at(range)).unwrap_or_default();
        }
        // The decoder has checked that the bytes are UTF-8. Checking again costs less than storing a
        // `String`.
        std::str::from_utf8(&self.frame[at(range)]).unwrap_or_default()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("subject", &self.subject())
            .field("reply", &self.reply())
            .field("headers", &self.headers())
            .field("status", &self.status)
            .field("payload", &self.payload_bytes())
            .finish()
    }
}

fn at(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// A message to publish, with headers and a reply subject.
#[derive(Clone, Debug, Default)]
pub struct OutgoingMessage {
    /// Subject.
    pub subject: String,
    /// Subject for replies.
    pub reply: Option<String>,
    /// Headers; the header block is left out if there are none.
    pub headers: Headers,
    /// Payload.
    pub payload: Bytes,
}
