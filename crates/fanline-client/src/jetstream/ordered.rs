//! Reading a stream in order, for one reader, whatever happens to the server's side of it.

use crate::jetstream::{AckPolicy, ConsumerConfig, DeliverPolicy, Nanos, Timestamp};

use super::pull::{Pull, PullEnd};
use super::{ConsumerAction, Delivery, JetStream, JetStreamError, PullRequest};
use crate::{ClientError, random_name};

/// Records asked for at once.
const BATCH: u64 = 500;
/// Bytes asked for at once: what a subscription's queue holds with room to spare.
const BATCH_BYTES_MAX: u64 = 24 * 1024 * 1024;
/// How long the server waits for records before it is asked again.
const EXPIRES: Nanos = Nanos::from_secs(30);
/// How often it says that it is there meanwhile.
const HEARTBEAT: Nanos = Nanos::from_secs(5);
/// After which time the server forgets a reader that is gone.
const INACTIVE_THRESHOLD: Nanos = Nanos::from_secs(300);
/// Restarts in a row that bring no record.
const RESTARTS_MAX: u32 = 5;

/// Where reading begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At the first record.
    #[default]
    All,
    /// At the last record.
    Last,
    /// After the last record.
    New,
    /// At the last record of each subject.
    LastPerSubject,
    /// At this sequence.
    Sequence(u64),
    /// At the first record that is not older.
    Time(Timestamp),
}

/// What is read.
#[derive(Clone, Debug, Default)]
pub struct OrderedOptions {
    /// Which subjects; empty: all.
    pub filters: Vec<String>,
    /// From where.
    pub start: Start,
    /// Without payloads.
    pub headers_only: bool,
}

/// Reads a stream without gaps and without acknowledgements. When deliveries are lost, or the
/// consumer that serves them, it goes on after the last record that it gave.
pub struct Ordered {
    jetstream: JetStream,
    stream: String,
    options: OrderedOptions,
    consumer: String,
    pull: Option<Pull>,
    /// Of the last record given.
    stream_sequence: u64,
    consumer_sequence: u64,
    /// How many records there are to be given, as of the start.
    pending: u64,
    restarts: u32,
}

impl JetStream {
    /// Reads a stream from the beginning, or from where the options say.
    ///
    /// # Errors
    ///
    /// The API's, for instance that there is no such stream; those of a request.
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
    /// How many records there were to be given when it started.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// The next record; waits for as long as it takes. Cancel safe: no record is lost.
    ///
    /// # Errors
    ///
    /// When the connection or the stream is gone, or the server serves no consumer any more.
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
                            return Err(JetStreamError::Ended("a record is too large".to_owned()));
                        }
                    }
                }
                // A delivery is missing, or the consumer is.
                Ok(Some(_))
                | Err(JetStreamError::Ended(_) | JetStreamError::Client(ClientError::TimedOut)) => {
                    self.restart().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets the server forget the consumer at once.
    ///
    /// # Errors
    ///
    /// Those of a request.
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
                "its consumers keep going away".to_owned(),
            ));
        }
        if self.stream_sequence > 0 {
            self.options.start = Start::Sequence(self.stream_sequence + 1);
        }
        self.start().await
    }

    /// Makes the consumer that serves it.
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
        // What was delivered between its making and its telling counts too.
        self.pending = info.num_pending + info.delivered.consumer_seq;
        Ok(())
    }
}
