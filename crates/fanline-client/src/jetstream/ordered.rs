//! An ordered reader of a stream. It continues after failures of its consumer.

use crate::jetstream::{AckPolicy, ConsumerConfig, DeliverPolicy, Nanos, Timestamp};

use super::pull::{Pull, PullEnd};
use super::{ConsumerAction, Delivery, JetStream, JetStreamError, PullRequest};
use crate::{ClientError, random_name};

/// Maximum number of messages of one pull request.
const BATCH: u64 = 500;
/// Maximum number of bytes of one pull request: well below the limit of a subscription's queue.
const BATCH_BYTES_MAX: u64 = 24 * 1024 * 1024;
/// Time for which a pull request waits for messages.
const EXPIRES: Nanos = Nanos::from_secs(30);
/// Interval of heartbeats while the pull request waits.
const HEARTBEAT: Nanos = Nanos::from_secs(5);
/// Time after which the server removes an unused consumer.
const INACTIVE_THRESHOLD: Nanos = Nanos::from_secs(300);
/// Maximum number of consecutive restarts that bring no message.
const RESTARTS_MAX: u32 = 5;

/// Position at which reading starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The first message.
    #[default]
    All,
    /// The last message.
    Last,
    /// The first message that is stored after the reader has started.
    New,
    /// The last message of each subject.
    LastPerSubject,
    /// The message at this sequence.
    Sequence(u64),
    /// The first message at or after this time.
    Time(Timestamp),
}

/// Options of an ordered reader.
#[derive(Clone, Debug, Default)]
pub struct OrderedOptions {
    /// Filters of the subjects; empty means all.
    pub filters: Vec<String>,
    /// Position at which reading starts.
    pub start: Start,
    /// Whether to leave out payloads.
    pub headers_only: bool,
}

/// An ordered reader of a stream. It returns messages without gaps, and needs no acknowledgements.
///
/// If a delivery or the consumer is lost, the reader continues after the last message that it returned.
pub struct Ordered {
    jetstream: JetStream,
    stream: String,
    options: OrderedOptions,
    consumer: String,
    pull: Option<Pull>,
    /// Sequence of the last message that was returned.
    stream_sequence: u64,
    consumer_sequence: u64,
    /// Number of messages that were stored when the reader started.
    pending: u64,
    restarts: u32,
}

impl JetStream {
    /// Starts an ordered reader of a stream.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::Api`], for example when the stream does not exist; and the [errors of every
    /// request](crate::jetstream).
    pub async fn ordered(
        &self,
        stream: &str,
        options: OrderedOptions,
    ) -> Result<Ordered, JetStreamError> {
        let mut ordered = Ordered {
            jetstream: self.clone(),
            stream: stream.to_owned(),
            options,
            consumer: String::new(),
            pull: None,
            stream_sequence: 0,
            consumer_sequence: 0,
            pending: 0,
            restarts: 0,
        };
        ordered.start().await?;
        Ok(ordered)
    }
}

impl Ordered {
    /// Returns the number of messages that were stored when the reader started.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Waits for the next message. Cancel safe: no message is lost.
    ///
    /// # Errors
    ///
    /// When the connection is closed, the stream was deleted, or no consumer can be created.
    pub async fn next(&mut self) -> Result<Delivery, JetStreamError> {
        loop {
            let outcome = self.pull().await?.next().await;
            let ended = self.pull.as_ref().and_then(Pull::end);
            match outcome {
                Ok(Some(delivery)) if delivery.consumer_sequence == self.consumer_sequence + 1 => {
                    self.consumer_sequence = delivery.consumer_sequence;
                    self.stream_sequence = delivery.stream_sequence;
                    self.restarts = 0;
                    return Ok(delivery);
                }
                Ok(None) => {
                    self.pull = None;
                    if ended == Some(PullEnd::TooLarge) {
                        self.restarts += 1;
                        if self.restarts > RESTARTS_MAX {
                            return Err(JetStreamError::Ended("a message is too large".to_owned()));
                        }
                    }
                }
                // A delivery was lost, or the consumer no longer exists.
                Ok(Some(_))
                | Err(JetStreamError::Ended(_) | JetStreamError::Client(ClientError::TimedOut)) => {
                    self.restart().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the reader and deletes its consumer.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn close(self) -> Result<(), JetStreamError> {
        self.jetstream
            .delete_consumer(&self.stream, &self.consumer)
            .await
    }

    async fn pull(&mut self) -> Result<&mut Pull, JetStreamError> {
        let pull = match self.pull.take() {
            Some(pull) => pull,
            None => {
                let request = PullRequest {
                    batch: BATCH,
                    max_bytes: BATCH_BYTES_MAX,
                    expires: EXPIRES,
                    idle_heartbeat: HEARTBEAT,
                    ..Default::default()
                };
                self.jetstream
                    .pull(&self.stream, &self.consumer, &request)
                    .await?
            }
        };
        Ok(self.pull.insert(pull))
    }

    async fn restart(&mut self) -> Result<(), JetStreamError> {
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX {
            return Err(JetStreamError::Ended(
                "its consumers are deleted repeatedly".to_owned(),
            ));
        }
        if self.stream_sequence > 0 {
            self.options.start = Start::Sequence(self.stream_sequence + 1);
        }
        self.start().await
    }

    /// Creates the consumer from which the reader gets its messages.
    async fn start(&mut self) -> Result<(), JetStreamError> {
        let (deliver_policy, opt_start_seq, opt_start_time) = match self.options.start {
            Start::All => (DeliverPolicy::All, 0, None),
            Start::Last => (DeliverPolicy::Last, 0, None),
            Start::New => (DeliverPolicy::New, 0, None),
            Start::LastPerSubject => (DeliverPolicy::LastPerSubject, 0, None),
            Start::Sequence(sequence) => (DeliverPolicy::ByStartSequence, sequence.max(1), None),
            Start::Time(time) => (DeliverPolicy::ByStartTime, 0, Some(time)),
        };
        let (filter_subject, filter_subjects) = match self.options.filters.as_slice() {
            [] if deliver_policy == DeliverPolicy::LastPerSubject => (">".to_owned(), Vec::new()),
            [] => Default::default(),
            [one] => (one.clone(), Vec::new()),
            several => (String::new(), several.to_vec()),
        };
        let config = ConsumerConfig {
            name: random_name(),
            deliver_policy,
            opt_start_seq,
            opt_start_time,
            ack_policy: AckPolicy::None,
            filter_subject,
            filter_subjects,
            headers_only: self.options.headers_only,
            max_deliver: 1,
            inactive_threshold: INACTIVE_THRESHOLD,
            num_replicas: 1,
            mem_storage: true,
            ..Default::default()
        };
        self.pull = None;
        self.consumer_sequence = 0;
        let info = self
            .jetstream
            .create_consumer(&self.stream, &config.into(), ConsumerAction::Create)
            .await?;
        self.consumer = info.name;
        // Also count messages that were delivered between the creation of the consumer and the reply.
        self.pending = info.num_pending + info.delivered.consumer_seq;
        Ok(())
    }
}
