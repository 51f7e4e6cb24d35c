//! Extensions of the client for fanline-server, which runs clients in the server's own process. These
//! extensions are hidden from the documentation and not stable.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::Client;
use super::codec;
use super::error::ClientError;
use super::headers::Headers;
use super::info::ServerInfo;
use super::limits::WRITE_BUFFER_BYTES_MAX;
use super::message::Message;
use super::options::ConnectOptions;
use super::queue::SubscriptionQueue;
use super::shared;
use super::subscription::Subscription;

#[doc(hidden)]
impl ConnectOptions {
    /// Returns the options of the server's own client, which sends no CONNECT.
    pub fn system_client() -> Self {
        ConnectOptions {
            is_system_client: true,
            // A long timeout, because a server must also start on a busy machine.
            connect_timeout: Duration::from_secs(600),
            ..ConnectOptions::default()
        }
    }

    /// Sets whether the server reports requests without subscribers.
    #[must_use]
    pub fn no_responders(mut self, no_responders: bool) -> Self {
        self.no_responders = no_responders;
        self
    }
}

#[doc(hidden)]
impl Client {
    /// Appends [encoded](Outgoing::encode) messages to the write buffer, unless it is full. Returns whether
    /// they were appended.
    pub fn try_send(&self, encoded: &[u8]) -> Result<bool, ClientError> {
        self.send_within(WRITE_BUFFER_BYTES_MAX, encoded)
    }

    /// Does the same as [`try_send`](Client::try_send) with another limit of the write buffer. It is for
    /// calls on the thread that empties the buffer, because that thread cannot wait for room in the buffer.
    pub fn send_within(&self, bytes_max: usize, encoded: &[u8]) -> Result<bool, ClientError> {
        let append = &mut |outgoing: &mut shared::Outgoing| {
            outgoing.buffer.extend_from_slice(encoded);
        };
        self.connection.shared.try_send_within(bytes_max, append)
    }

    /// Appends encoded messages to the write buffer, and waits while it is full.
    pub async fn send(&self, encoded: &[u8]) -> Result<(), ClientError> {
        let append = |outgoing: &mut shared::Outgoing| outgoing.buffer.extend_from_slice(encoded);
        self.connection.shared.send(append).await
    }

    /// Returns how many times [`server_info`](Client::server_info) has changed.
    pub fn server_info_changes(&self) -> u64 {
        self.connection.shared.info_changes()
    }
}

#[doc(hidden)]
impl Message {
    /// Creates an in-process message. `names` contains the subject, directly followed by the reply subject.
    pub fn in_process(
        names: Arc<str>,
        subject_bytes: u32,
        headers: Option<Headers>,
        payload: Bytes,
    ) -> Self {
        // Both lengths were checked before: the names fit into a protocol line, and the server accepts the
        // payload.
        let end = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        Message {
            subject: 0..subject_bytes,
            reply: subject_bytes..end(names.len()),
            payload: 0..end(payload.len()),
            headers: headers.map(Box::new),
            status: None,
            names: Some(names),
            frame: payload,
        }
    }
}

#[doc(hidden)]
impl Subscription {
    /// Returns a sender that adds messages to the queue, next to those from the server.
    pub fn inlet(&self) -> Inlet {
        Inlet(Arc::clone(&self.queue))
    }
}

/// A sender of in-process messages to a subscription's queue.
#[doc(hidden)]
pub struct Inlet(Arc<SubscriptionQueue>);

#[doc(hidden)]
impl Inlet {
    /// Adds a message. If the queue is full, the message is dropped and counted, like a message from the
    /// server.
    pub fn push(&self, message: Message) {
        if let Some(waker) = self.0.push(message) {
            waker.wake();
        }
    }
}

/// A borrowed message to publish, whose subject and reply were checked.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    pub subject: &'a str,
    pub reply: Option<&'a str>,
    pub headers: Option<&'a Headers>,
    pub payload: &'a [u8],
}

#[doc(hidden)]
impl Outgoing<'_> {
    /// Checks whether a server with this INFO accepts the message's headers and size.
    pub fn check(&self, info: &ServerInfo) -> Result<(), ClientError> {
        if self.headers.is_some() && !info.headers {
            return Err(ClientError::HeadersUnsupported);
        }
        let bytes = self.headers.map_or(0, Headers::encoded_bytes) + self.payload.len();
        if info.max_payload > 0 && bytes > info.max_payload {
            return Err(ClientError::PayloadTooLarge {
                bytes,
                bytes_max: info.max_payload,
            });
        }
        Ok(())
    }

    /// Returns the length of the protocol line after its verb. Servers limit this length.
    pub fn line_bytes(&self) -> usize {
        let head_bytes = self.headers.map_or(0, Headers::encoded_bytes);
        let field_bytes = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 2;
        self.subject.len()
            + self.reply.map_or(0, |reply| reply.len() + 1)
            + self.headers.map_or(0, |_| field_bytes(head_bytes))
            + field_bytes(head_bytes + self.payload.len())
    }

    /// Appends the message to a buffer: its protocol line, headers, and payload.
    pub fn encode(&self, buffer: &mut BytesMut) {
        codec::encode_publish(buffer, self.subject, self.reply, self.headers, self.payload);
    }
}
