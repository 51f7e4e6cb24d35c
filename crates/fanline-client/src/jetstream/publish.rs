//! Publishing to streams, with acknowledgements.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{JetStream, JetStreamError, read};
use crate::{ClientError, OutgoingMessage, STATUS_NO_RESPONDERS, Subscription};

/// The acknowledgement that a stream has stored a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishAck {
    /// Name of the stream.
    pub stream: String,
    /// Sequence of the message.
    pub seq: u64,
    /// Whether the stream already had a message with the same `Nats-Msg-Id`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

impl JetStream {
    /// Publishes a message and waits until a stream has stored it.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NoStream`] when no stream stores the subject; [`JetStreamError::Api`], for example
    /// when the stream is full; and the [errors of every request](crate::jetstream).
    pub async fn publish(
        &self,
        subject: &str,
        payload: impl Into<Bytes>,
    ) -> Result<PublishAck, JetStreamError> {
        let message = OutgoingMessage {
            subject: subject.to_owned(),
            payload: payload.into(),
            ..Default::default()
        };
        self.publish_message(&message).await
    }

    /// Publishes a message with headers. The field `reply` of the message is ignored.
    ///
    /// # Errors
    ///
    /// Those of [`publish`](JetStream::publish).
    pub async fn publish_message(
        &self,
        message: &OutgoingMessage,
    ) -> Result<PublishAck, JetStreamError> {
        match self.client.request_message(message, self.timeout).await {
            Err(ClientError::NoResponders) => Err(JetStreamError::NoStream),
            answer => read(answer?.payload()),
        }
    }

    /// Returns a publisher for many messages. It does not wait for each acknowledgement.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn publisher(&self, in_flight_max: usize) -> Result<Publisher, JetStreamError> {
        let inbox = self.client.new_inbox();
        let answers = self.client.subscribe(&inbox).await?;
        Ok(Publisher {
            jetstream: self.clone(),
            inbox,
            answers,
            in_flight: 0,
            in_flight_max: in_flight_max.max(1),
            timeout: self.timeout,
        })
    }
}

/// A publisher that preserves the order of its messages, and bounds the number of unacknowledged ones.
pub struct Publisher {
    jetstream: JetStream,
    inbox: String,
    answers: Subscription,
    in_flight: usize,
    in_flight_max: usize,
    timeout: Duration,
}

impl Publisher {
    /// Publishes a message, and waits while too many messages are unacknowledged. The field `reply` of the
    /// message is ignored.
    ///
    /// # Errors
    ///
    /// Those of [`JetStream::publish`], for this message or an earlier one.
    pub async fn publish(&mut self, mut message: OutgoingMessage) -> Result<(), JetStreamError> {
        while self.in_flight >= self.in_flight_max {
            self.acknowledged().await?;
        }
        message.reply = Some(self.inbox.clone());
        self.jetstream.client.publish_message(&message).await?;
        self.in_flight += 1;
        Ok(())
    }

    /// Waits until every message is stored.
    ///
    /// # Errors
    ///
    /// Those of [`JetStream::publish`].
    pub async fn finish(&mut self) -> Result<(), JetStreamError> {
        while self.in_flight > 0 {
            self.acknowledged().await?;
        }
        Ok(())
    }

    async fn acknowledged(&mut self) -> Result<(), JetStreamError> {
        let answer = timeout(self.timeout, self.answers.next()).await;
        let Some(answer) = answer.map_err(|_| ClientError::TimedOut)? else {
            let reason = self.jetstream.client.closed().await;
            return Err(ClientError::Disconnected(reason).into());
        };
        if answer.status() == Some(STATUS_NO_RESPONDERS) {
            return Err(JetStreamError::NoStream);
        }
        let _: PublishAck = read(answer.payload())?;
        self.in_flight -= 1;
        Ok(())
    }
}
