//! Records that a consumer is asked for, and what becomes of them.

use std::time::Duration;

use crate::jetstream::{Nanos, Timestamp};
use serde::Serialize;
use tokio::time::timeout;

use super::names::endpoint;
use super::{JetStream, JetStreamError, json};
use crate::{Client, ClientError, Message, OutgoingMessage, Subscription};

/// Start of the subject that a record is acknowledged on.
const ACK_PREFIX: [&str; 2] = ["$JS", "ACK"];
/// How much longer than the server a client waits, before it takes its silence for a loss.
const GRACE: Duration = Duration::from_secs(2);

/// What a consumer is asked for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PullRequest {
    /// Most records.
    pub batch: u64,
    /// Most bytes; 0 without limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_bytes: u64,
    /// How long the server waits for records.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub expires: Nanos,
    /// How often it says that it is there meanwhile.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub idle_heartbeat: Nanos,
    /// It does not wait at all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_wait: bool,
    /// The priority group, where the consumer has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A record, delivered.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its subject, headers and content.
    pub message: Message,
    /// The stream.
    pub stream: String,
    /// The consumer.
    pub consumer: String,
    /// How often it has been delivered, this time included.
    pub delivered: u64,
    /// Where it stands in the stream.
    pub stream_sequence: u64,
    /// The count of the consumer's deliveries.
    pub consumer_sequence: u64,
    /// When it was stored.
    pub time: Timestamp,
    /// How many more the consumer has to deliver.
    pub pending: u64,
}

/// What is said of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It is dealt with.
    Ack,
    /// Deliver it again.
    Nak,
    /// Never deliver it again.
    Term,
    /// It takes longer: do not deliver it again yet.
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
    /// Reads what the subject of its acknowledgement says; none when it is no record of a consumer.
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

    /// Says what becomes of it, and waits until the server has heard it.
    ///
    /// # Errors
    ///
    /// Those of a request.
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

/// The stream, the consumer and the five numbers of a subject that a record is acknowledged on.
fn parse(reply: &str) -> Option<(&str, &str, [u64; 5])> {
    let mut tokens = reply.split('.');
    let count = tokens.clone().count();
    if [tokens.next()?, tokens.next()?] != ACK_PREFIX {
        return None;
    }
    // Newer servers put domain and account in front of the stream, and a random token at the end.
    let in_front = match count {
        9 => 0,
        11.. => 2,
        _ => return None,
    };
    let mut tokens = tokens.skip(in_front);
    let (stream, consumer) = (tokens.next()?, tokens.next()?);
    let mut numbers = [0; 5];
    for number in &mut numbers {
        *number = tokens.next()?.parse().ok()?;
    }
    Some((stream, consumer, numbers))
}

/// What became of a request, when it brings no more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PullEnd {
    /// There is nothing, or nothing in time.
    Empty,
    /// The next record would have been more bytes than were asked for.
    TooLarge,
}

/// The records that one request brings.
pub struct Pull {
    client: Client,
    answers: Subscription,
    left: u64,
    silence_max: Duration,
    end: Option<PullEnd>,
}

impl JetStream {
    /// Asks a consumer for records.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    pub async fn pull(
        &self,
        stream: &str,
        consumer: &str,
        request: &PullRequest,
    ) -> Result<Pull, JetStreamError> {
        let inbox = self.client.new_inbox();
        let answers = self.client.subscribe(&inbox).await?;
        let message = OutgoingMessage {
            topic: self.endpoint(&endpoint("CONSUMER.MSG.NEXT", [stream, consumer])?),
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
    /// The next record; none when there are no more, or not in time.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Ended`] when the consumer is gone or refuses; when the connection is.
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
                    "a record that cannot be acknowledged",
                )),
            };
        }
        Ok(None)
    }

    /// Why it brings no more before it has brought all.
    pub(super) fn end(&self) -> Option<PullEnd> {
        self.end
    }
}

/// What a status in the place of a record means.
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
    fn subjects_of_acknowledgements() {
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
