//! Pull requests, deliveries, and acknowledgements.

use std::time::Duration;

use crate::jetstream::{Nanos, Timestamp};
use serde::Serialize;
use tokio::time::timeout;

use super::names::endpoint;
use super::{JetStream, JetStreamError, json};
use crate::{Client, ClientError, Message, OutgoingMessage, Subscription};

/// Prefix of the subject of an acknowledgement.
const ACK_PREFIX: [&str; 2] = ["$JS", "ACK"];
/// Additional time that a client waits after the server's timeout, before it reports a timeout itself.
const GRACE: Duration = Duration::from_secs(2);

/// A pull request.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PullRequest {
    /// Maximum number of messages.
    pub batch: u64,
    /// Maximum number of bytes; 0 means no limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_bytes: u64,
    /// Time for which the server waits for messages.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub expires: Nanos,
    /// Interval of heartbeats while the server waits for messages.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub idle_heartbeat: Nanos,
    /// Whether the server replies at once if there are no messages.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_wait: bool,
    /// Priority group, if the consumer has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A message of a stream that a consumer has delivered.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Subject, headers, and payload.
    pub message: Message,
    /// Name of the stream.
    pub stream: String,
    /// Name of the consumer.
    pub consumer: String,
    /// Number of deliveries of the message, including this one.
    pub delivered: u64,
    /// Sequence in the stream.
    pub stream_sequence: u64,
    /// Number of deliveries by the consumer, including this one.
    pub consumer_sequence: u64,
    /// Time at which the message was stored.
    pub time: Timestamp,
    /// Number of messages that the consumer has yet to deliver.
    pub pending: u64,
}

/// The kind of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// The message was processed.
    Ack,
    /// The message should be delivered again.
    Nak,
    /// The message should not be delivered again.
    Term,
    /// The message is still being processed. The server waits again for its acknowledgement.
    InProgress,
}

impl Acknowledgement {
    fn payload(self) -> &'static str {
        match self {
            Acknowledgement::Ack => "+ACK",
            Acknowledgement::Nak => "-NAK",
            Acknowledgement::Term => "+TERM",
            Acknowledgement::InProgress => "+WPI",
        }
    }
}

impl Delivery {
    /// Reads the position of a message from its reply subject. Returns `None` if no consumer delivered the
    /// message.
    pub fn of(message: Message) -> Option<Delivery> {
        let (stream, consumer, numbers) = parse(message.reply()?)?;
        let [
            delivered,
            stream_sequence,
            consumer_sequence,
            nanos,
            pending,
        ] = numbers;
        Some(Delivery {
            stream: stream.to_owned(),
            consumer: consumer.to_owned(),
            delivered,
            stream_sequence,
            consumer_sequence,
            time: Timestamp::from_unix_nanos(i64::try_from(nanos).ok()?),
            pending,
            message,
        })
    }

    /// Acknowledges the message, and waits until the server confirms the acknowledgement.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn acknowledge(
        &self,
        client: &Client,
        how: Acknowledgement,
        limit: Duration,
    ) -> Result<(), JetStreamError> {
        let reply = self.message.reply().unwrap_or_default();
        client.request(reply, how.payload(), limit).await?;
        Ok(())
    }
}

/// Splits the subject of an acknowledgement into stream, consumer, and five numbers.
fn parse(reply: &str) -> Option<(&str, &str, [u64; 5])> {
    let mut tokens = reply.split('.');
    let count = tokens.clone().count();
    if [tokens.next()?, tokens.next()?] != ACK_PREFIX {
        return None;
    }
    // Newer servers add domain and account before the stream, and a random token at the end.
    let prefix_tokens = match count {
        9 => 0,
        11.. => 2,
        _ => return None,
    };
    let mut tokens = tokens.skip(prefix_tokens);
    let (stream, consumer) = (tokens.next()?, tokens.next()?);
    let mut numbers = [0; 5];
    for number in &mut numbers {
        *number = tokens.next()?.parse().ok()?;
    }
    Some((stream, consumer, numbers))
}

/// The reason why a pull request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PullEnd {
    /// There are no more messages, or none arrived in time.
    Empty,
    /// The next message would exceed the maximum number of bytes.
    TooLarge,
}

/// The messages of one pull request.
pub struct Pull {
    client: Client,
    answers: Subscription,
    left: u64,
    silence_max: Duration,
    end: Option<PullEnd>,
}

impl JetStream {
    /// Sends a pull request to a consumer.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn pull(
        &self,
        stream: &str,
        consumer: &str,
        request: &PullRequest,
    ) -> Result<Pull, JetStreamError> {
        let inbox = self.client.new_inbox();
        let answers = self.client.subscribe(&inbox).await?;
        let message = OutgoingMessage {
            subject: self.endpoint(&endpoint("CONSUMER.MSG.NEXT", [stream, consumer])?),
            reply: Some(inbox),
            payload: json(request)?,
            ..Default::default()
        };
        self.client.publish_message(&message).await?;
        let silence_max = match (request.idle_heartbeat, request.expires) {
            (Nanos::ZERO, expires) => expires.duration() + self.timeout,
            (heartbeat, _) => heartbeat.duration() * 2 + GRACE,
        };
        Ok(Pull {
            client: self.client.clone(),
            answers,
            left: request.batch.max(1),
            silence_max,
            end: None,
        })
    }
}

impl Pull {
    /// Returns the next message, or `None` when there are no more messages or no message arrived in time.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Ended`] when the consumer was deleted or the server rejects the request; when the
    /// connection is closed.
    pub async fn next(&mut self) -> Result<Option<Delivery>, JetStreamError> {
        while self.left > 0 && self.end.is_none() {
            let message = timeout(self.silence_max, self.answers.next()).await;
            let Some(message) = message.map_err(|_| ClientError::TimedOut)? else {
                let reason = self.client.closed().await;
                return Err(ClientError::Disconnected(reason).into());
            };
            if let Some(status) = message.status() {
                self.end = ended(status, &message)?;
                continue;
            }
            self.left -= 1;
            return match Delivery::of(message) {
                Some(delivery) => Ok(Some(delivery)),
                None => Err(JetStreamError::unexpected(
                    "a message that cannot be acknowledged",
                )),
            };
        }
        Ok(None)
    }

    /// Returns the reason why the request ended before all messages arrived.
    pub(super) fn end(&self) -> Option<PullEnd> {
        self.end
    }
}

/// Returns the meaning of a status that arrives in place of a message.
fn ended(status: u16, message: &Message) -> Result<Option<PullEnd>, JetStreamError> {
    let text = message.status_text();
    match status {
        // A heartbeat.
        100 => Ok(None),
        404 | 408 => Ok(Some(PullEnd::Empty)),
        409 if text.contains("MaxBytes") || text == "Batch Completed" => {
            Ok(Some(PullEnd::TooLarge))
        }
        503 => Err(JetStreamError::Ended("the consumer is gone".to_owned())),
        status => Err(JetStreamError::Ended(format!("{text} ({status})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_acknowledgement_subjects() {
        let expected = Some(("S", "C", [2, 7, 9, 1_795_300_481_173_765_211, 4]));
        for (reply, expected) in [
            ("$JS.ACK.S.C.2.7.9.1795300481173765211.4", expected),
            ("$JS.ACK._.hash.S.C.2.7.9.1795300481173765211.4", expected),
            (
                "$JS.ACK.hub.hash.S.C.2.7.9.1795300481173765211.4.random",
                expected,
            ),
            ("$JS.ACK.S.C.2.7.9.1795300481173765211", None),
            ("$JS.ACK.S.C.2.7.x.1795300481173765211.4", None),
            ("_INBOX.a.b", None),
            ("", None),
        ] {
            assert_eq!(parse(reply), expected, "{reply}");
        }
    }
}
