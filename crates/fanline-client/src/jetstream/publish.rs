//! Publishing to a stream, and knowing that it has it.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{JetStream, JetStreamError, read};
use crate::{ClientError, OutgoingMessage, STATUS_NO_RESPONDERS, Subscription};

/// A stream has stored a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishAck {
    /// Which stream.
    pub stream: String,
    /// Where it stands there.
    pub seq: u64,
    /// The stream had it already: its `Nats-Msg-Id` is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

impl JetStream {
    /// Publishes, and waits until a stream has stored it.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NoStream`] when none keeps the subject; the API's, for instance that the
    /// stream is full; those of a request.
    pub async fn publish(
        &self,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<PublishAck, JetStreamError> {
        let message = OutgoingMessage {
            topic: topic.to_owned(),
            payload: payload.into(),
            ..Default::default()
        };
        self.publish_message(&message).await
    }

    /// [`publish`](JetStream::publish) with headers; the message's own `reply` is not used.
    ///
    /// # Errors
    ///
    /// As [`publish`](JetStream::publish).
    pub async fn publish_message(
        &self,
        message: &OutgoingMessage,
    ) -> Result<PublishAck, JetStreamError> {
        match self.client.request_message(message, self.timeout).await {
            Err(ClientError::NoResponders) => Err(JetStreamError::NoStream),
            answer => read(answer?.payload()),
        }
    }

    /// For many messages: does not wait for each.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
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

/// Publishes in order, with a bounded number of messages that are not acknowledged yet.
pub struct Publisher {
    jetstream: JetStream,
    inbox: String,
    answers: Subscription,
    in_flight: usize,
    in_flight_max: usize,
    timeout: Duration,
}

impl Publisher {
    /// Sends a message as soon as there is room. The message's own `reply` is not used.
    ///
    /// # Errors
    ///
    /// As [`JetStream::publish`], for this message or one before it.
    pub async fn publish(&mut self, mut message: OutgoingMessage) -> Result<(), JetStreamError> {
        while self.in_flight >= self.in_flight_max {
            self.acknowledged().await?;
        }
        message.reply = Some(self.inbox.clone());
        self.jetstream.client.publish_message(&message).await?;
        self.in_flight += 1;
        Ok(())
    }

    /// Waits until everything is stored.
    ///
    /// # Errors
    ///
    /// As [`JetStream::publish`].
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
