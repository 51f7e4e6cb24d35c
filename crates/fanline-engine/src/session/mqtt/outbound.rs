//! The outbound queue: successive messages of QoS 0, written into one block as lines of a NATS client.

use std::ops::Range;

use crate::codec::mqtt::{
    Names, Property, Publish, topic_to_subject, write_headers, write_headers_of,
};
use crate::codec::nats::parse::Publish as NatsPublish;
use crate::outbox::Chunk;

/// Size in bytes of the block that messages are written to. A larger message gets its own block.
const BLOCK_BYTES: usize = 64 * 1024;

/// Messages that are about to be published.
#[derive(Default)]
pub(super) struct OutboundQueue {
    names: Names,
    /// The block; empty before the first message.
    chunk: Chunk,
    filled: usize,
    frames: Vec<Frame>,
    /// Buffers for the next message.
    pub(super) buffers: Translated,
}

/// Subject, reply subject and headers of a message.
#[derive(Default)]
pub(super) struct Translated {
    pub(super) subject: Vec<u8>,
    pub(super) reply: Vec<u8>,
    pub(super) headers: Vec<u8>,
}

/// The position of a message in the block.
pub(super) struct Frame {
    subject: Range<usize>,
    reply: Range<usize>,
    header_bytes: usize,
    args: Range<usize>,
    body: Range<usize>,
}

impl Translated {
    pub(super) fn clear(&mut self) {
        self.subject.clear();
        self.reply.clear();
        self.headers.clear();
    }

    /// Sets the reply subject to a response topic. Sets no reply subject if the topic cannot be a subject.
    pub(super) fn set_response_topic(&mut self, topic: &str) {
        if topic_to_subject(topic, &mut self.reply).is_err() {
            self.reply.clear();
        }
    }
}

impl Frame {
    /// Returns where the message's line begins in the block.
    pub(super) fn from(&self) -> usize {
        self.subject.start
    }

    /// Returns the message in the form that a NATS client would have published.
    pub(super) fn publish<'a>(&self, chunk: &'a Chunk) -> NatsPublish<'a> {
        let from = self.from();
        NatsPublish {
            subject: &chunk[self.subject.clone()],
            reply: &chunk[self.reply.clone()],
            header_bytes: self.header_bytes,
            args: self.args.start - from..self.args.end - from,
            body: self.body.start - from..self.body.end - from,
        }
    }
}

impl OutboundQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Appends a message. Returns false if the earlier messages must be published first.
    pub(super) fn push(&mut self, message: &Translated, payload: &[u8]) -> bool {
        /// Upper bound for the bytes of the lengths in a line.
        const SIZES_BYTES: usize = 64;
        let Translated {
            subject,
            reply,
            headers,
        } = message;
        let bytes = subject.len() + reply.len() + headers.len() + payload.len() + SIZES_BYTES;
        if self.filled + bytes > self.chunk.len() || Chunk::get_mut(&mut self.chunk).is_none() {
            if !self.frames.is_empty() {
                return false;
            }
            self.filled = 0;
            self.chunk = Chunk::new(vec![0; bytes.max(BLOCK_BYTES)].into_boxed_slice());
        }
        let Some(room) = Chunk::get_mut(&mut self.chunk) else {
            return false;
        };
        let mut at = self.filled;
        let mut put = |part: &[u8]| {
            room[at..at + part.len()].copy_from_slice(part);
            at += part.len();
            at - part.len()..at
        };
        let subject = put(subject);
        put(b" ");
        let reply_range = put(reply);
        if !reply.is_empty() {
            put(b" ");
        }
        let mut digits = itoa::Buffer::new();
        if !headers.is_empty() {
            put(digits.format(headers.len()).as_bytes());
            put(b" ");
        }
        put(digits.format(headers.len() + payload.len()).as_bytes());
        let end = put(b"\r\n").end;
        let headers_at = put(headers);
        put(payload);
        let body_end = put(b"\r\n").end;
        self.frames.push(Frame {
            subject,
            reply: reply_range.clone(),
            header_bytes: headers.len(),
            args: reply_range.start..end,
            body: headers_at.start..body_end,
        });
        self.filled = body_end;
        true
    }

    /// Takes the messages to be published; see [`restore`](Self::restore).
    pub(super) fn take(&mut self) -> (Vec<Frame>, Chunk) {
        (std::mem::take(&mut self.frames), Chunk::clone(&self.chunk))
    }

    /// Reuses the buffers of published messages, except a block that is too large or still referenced.
    pub(super) fn restore(&mut self, mut frames: Vec<Frame>) {
        frames.clear();
        self.frames = frames;
        self.filled = 0;
        if self.chunk.len() > BLOCK_BYTES || Chunk::get_mut(&mut self.chunk).is_none() {
            self.chunk = Chunk::default();
        }
    }

    /// Translates the topic, the response topic, and the properties of a message. `client` is the publisher's
    /// id hash, if subscriptions with No Local must recognize the publisher. Returns false if the topic
    /// cannot be a subject.
    pub(super) fn translate(
        &mut self,
        topic: &str,
        publish: &Publish<'_>,
        client: Option<&str>,
        message: &mut Translated,
    ) -> bool {
        message.clear();
        match self.names.subject(topic) {
            Ok(subject) => message.subject.extend_from_slice(subject),
            Err(_) => return false,
        }
        let is_plain = publish.properties.is_empty() && publish.packet_id == 0 && !publish.retain;
        if is_plain && client.is_none() {
            return true;
        }
        match client {
            Some(client) => write_headers_of(publish, client, &mut message.headers),
            None => write_headers(publish, &mut message.headers),
        }
        for property in publish.properties.iter() {
            if let Property::ResponseTopic(topic) = property {
                message.set_response_topic(topic);
            }
        }
        true
    }
}
