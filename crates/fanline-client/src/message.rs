//! Messages, as received and as sent.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::headers::Headers;

/// A message that arrived. Cloning it copies no bytes; keeping it keeps the memory of the read that
/// brought it.
#[derive(Clone)]
pub struct Message {
    /// The protocol line and what follows it, as one piece: one reference count for all parts.
    pub(super) frame: Bytes,
    /// Topic and reply of a message that never was a frame: then that is its payload alone, as its
    /// publisher had it.
    pub(super) names: Option<Arc<str>>,
    pub(super) topic: Range<u32>,
    /// Empty when there is none: a reply topic is never empty.
    pub(super) reply: Range<u32>,
    pub(super) payload: Range<u32>,
    pub(super) headers: Option<Box<Headers>>,
    pub(super) status: Option<u16>,
}

impl Message {
    /// A message that stays in the process: `names` is its topic, with its reply behind it.
    #[doc(hidden)]
    pub fn in_process(
        names: Arc<str>,
        topic_bytes: u32,
        headers: Option<Headers>,
        payload: Bytes,
    ) -> Self {
        // Both are within limits that were checked: names that fit a line, a payload that the server takes.
        let end = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        Message {
            topic: 0..topic_bytes,
            reply: topic_bytes..end(names.len()),
            payload: 0..end(payload.len()),
            headers: headers.map(Box::new),
            status: None,
            names: Some(names),
            frame: payload,
        }
    }

    /// The topic that it was published to. Bytes that are not UTF-8 were replaced.
    pub fn topic(&self) -> &str {
        self.text(&self.topic)
    }

    /// Where an answer is expected.
    pub fn reply(&self) -> Option<&str> {
        (!self.reply.is_empty()).then(|| self.text(&self.reply))
    }

    /// The headers, when it has a header block.
    pub fn headers(&self) -> Option<&Headers> {
        self.headers.as_deref()
    }

    /// The status that a server puts in place of a message, such as 503 for *no responders*.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// The words after the status, such as `Idle Heartbeat`; empty when there are none.
    pub fn status_text(&self) -> &str {
        if self.status.is_none() {
            return "";
        }
        // The header block follows the protocol line, and its own first line says the status.
        let line = self.frame.split(|byte| *byte == b'\n').nth(1);
        let line = line.and_then(|line| std::str::from_utf8(line).ok());
        let words = line.and_then(|line| line.trim().splitn(3, ' ').nth(2));
        words.unwrap_or_default()
    }

    /// The payload, borrowed.
    pub fn payload(&self) -> &[u8] {
        &self.frame[at(&self.payload)]
    }

    /// The payload, shared: no byte is copied.
    pub fn payload_bytes(&self) -> Bytes {
        self.frame.slice(at(&self.payload))
    }

    /// What the message counts for in a queue.
    pub(super) fn queued_bytes(&self) -> usize {
        self.frame.len() + self.names.as_ref().map_or(0, |names| names.len())
    }

    fn text(&self, range: &Range<u32>) -> &str {
        if let Some(names) = &self.names {
            return names.get(at(range)).unwrap_or_default();
        }
        // The decoder made sure that it is UTF-8; looking again costs less than keeping a String.
        std::str::from_utf8(&self.frame[at(range)]).unwrap_or_default()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("topic", &self.topic())
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

/// A message to publish, with more than a topic and a payload.
#[derive(Clone, Debug, Default)]
pub struct OutgoingMessage {
    /// Where it goes.
    pub topic: String,
    /// Where answers should go.
    pub reply: Option<String>,
    /// Sent when there is at least one.
    pub headers: Headers,
    /// The content.
    pub payload: Bytes,
}
