//! Requests about single messages of a stream: read and delete.

use crate::jetstream::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::names::endpoint;
use super::{Delivery, JetStream, JetStreamError, json as to_json};
use crate::headers::{self, Headers};
use crate::message::Message;

/// The status of a reply without a message.
const STATUS_NOT_FOUND: u16 = 404;
/// Headers that the server adds to a message that is read directly.
const SERVER_HEADERS: [&str; 6] = [
    "Nats-Stream",
    "Nats-Subject",
    "Nats-Sequence",
    "Nats-Time-Stamp",
    "Nats-Num-Pending",
    "Nats-Last-Sequence",
];

/// The choice of the message to read.
#[derive(Clone, Debug, Serialize)]
pub enum Wanted {
    /// The message at this sequence.
    #[serde(rename = "seq")]
    Sequence(u64),
    /// The last message of a subject.
    #[serde(rename = "last_by_subj")]
    Last(String),
    /// The first message whose subject matches this filter. The search starts at a sequence that is set
    /// separately.
    #[serde(rename = "next_by_subj")]
    First(String),
}

/// A message of a stream.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    /// Subject to which the message was published.
    pub subject: String,
    /// Sequence in the stream.
    pub sequence: u64,
    /// Time at which the message was stored.
    pub time: Timestamp,
    /// Headers.
    pub headers: Headers,
    /// Payload.
    pub payload: Bytes,
}

#[derive(Deserialize)]
struct GetReply {
    message: Encoded,
}

#[derive(Deserialize)]
struct Encoded {
    subject: String,
    seq: u64,
    time: Timestamp,
    #[serde(default)]
    hdrs: String,
    #[serde(default)]
    data: String,
}

impl JetStream {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// An error with [`is_message_not_found`](JetStreamError::is_message_not_found); and the [errors of every
    /// request](crate::jetstream).
    pub async fn message(
        &self,
        stream: &str,
        wanted: &Wanted,
    ) -> Result<StoredMessage, JetStreamError> {
        let endpoint = endpoint("STREAM.MSG.GET", [stream])?;
        let reply: GetReply = self.call_with(&endpoint, wanted).await?;
        let message = reply.message;
        let decode = |text: &str| STANDARD.decode(text).map_err(JetStreamError::unexpected);
        Ok(StoredMessage {
            headers: headers::decode(&decode(&message.hdrs)?).0,
            payload: decode(&message.data)?.into(),
            subject: message.subject,
            sequence: message.seq,
            time: message.time,
        })
    }

    /// Reads a message from any server that has a copy. The reply is the message itself, not JSON.
    ///
    /// The stream must have `allow_direct`.
    ///
    /// # Errors
    ///
    /// Those of [`message`](JetStream::message).
    pub async fn message_direct(
        &self,
        stream: &str,
        wanted: &Wanted,
    ) -> Result<StoredMessage, JetStreamError> {
        let reply = match wanted {
            // The message's subject is part of the request's subject, so that permissions can cover it.
            Wanted::Last(subject) => {
                let endpoint = endpoint("DIRECT.GET", [stream])?;
                self.request(&format!("{endpoint}.{subject}"), Bytes::new())
                    .await?
            }
            wanted => {
                let endpoint = endpoint("DIRECT.GET", [stream])?;
                self.request(&endpoint, to_json(wanted)?).await?
            }
        };
        StoredMessage::of_direct(&reply)
    }

    /// Deletes a message. With `erase`, the server also overwrites its bytes.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example when the message does not exist; and the [errors of every
    /// request](crate::jetstream).
    pub async fn delete_message(
        &self,
        stream: &str,
        sequence: u64,
        erase: bool,
    ) -> Result<(), JetStreamError> {
        let endpoint = endpoint("STREAM.MSG.DELETE", [stream])?;
        let body = json!({ "seq": sequence, "no_erase": !erase });
        let _: Value = self.call_with(&endpoint, &body).await?;
        Ok(())
    }
}

impl StoredMessage {
    /// Converts the reply of a direct read. The sequence and time of the message are in its headers.
    fn of_direct(reply: &Message) -> Result<Self, JetStreamError> {
        let header = |name| reply.headers().and_then(|headers| headers.get(name));
        match reply.status() {
            None => {}
            Some(STATUS_NOT_FOUND) => return Err(not_found()),
            Some(status) => return Err(JetStreamError::Ended(format!("status {status}"))),
        }
        let missing = || JetStreamError::unexpected("a record without its subject or sequence");
        let sequence = header("Nats-Sequence").and_then(|text| text.parse().ok());
        let time = header("Nats-Time-Stamp").and_then(Timestamp::parse);
        Ok(StoredMessage {
            subject: header("Nats-Subject").ok_or_else(missing)?.to_owned(),
            sequence: sequence.ok_or_else(missing)?,
            time: time.unwrap_or_default(),
            headers: without_server_headers(reply.headers())?,
            payload: reply.payload_bytes(),
        })
    }
}

impl From<&Delivery> for StoredMessage {
    fn from(delivery: &Delivery) -> Self {
        let message = &delivery.message;
        StoredMessage {
            subject: message.subject().to_owned(),
            sequence: delivery.stream_sequence,
            time: delivery.time,
            headers: message.headers().cloned().unwrap_or_default(),
            payload: message.payload_bytes(),
        }
    }
}

fn without_server_headers(headers: Option<&Headers>) -> Result<Headers, JetStreamError> {
    let mut remaining = Headers::new();
    for (name, value) in headers.into_iter().flat_map(Headers::iter) {
        if !SERVER_HEADERS.contains(&name) {
            remaining.append(name, value)?;
        }
    }
    Ok(remaining)
}

fn not_found() -> JetStreamError {
    JetStreamError::Api {
        code: STATUS_NOT_FOUND,
        err_code: 10_037,
        description: "no message found".to_owned(),
    }
}
