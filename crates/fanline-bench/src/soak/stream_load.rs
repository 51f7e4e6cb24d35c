//! A stream with a publisher, a reader that receives records in order, and a worker that acknowledges
//! records.
//!
//! Records are numbered from 1, and each is published once. So a record's number is its sequence in the
//! stream. After each restart the publisher reads the last record. That record must not be older than the
//! last acknowledged one, and the publisher continues after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fanline_server::client::OutgoingMessage;
use fanline_server::client::jetstream::{
    AckPolicy, ConsumerAction, ConsumerConfig, Delivery, JetStream, Nanos, OrderedOptions,
    PullRequest, Start, StreamConfig, Wanted,
};
use tokio::time::{sleep, timeout};

use super::number::{self, Seen};
use super::stage::{Load, Stage, TIMEOUT, add, violation};

const STREAM: &str = "SOAK";
const SUBJECT: &str = "soak.kept";
const WORKER: &str = "worker";
/// Maximum number of the stream's records. With it, memory soon stops growing.
const RECORDS_MAX: i64 = 50_000;
/// Number of records by which readers may be behind before the publisher waits for them. So no record is
/// removed unread.
const AHEAD_MAX: u64 = 20_000;
/// Number of records in a batch. All of them are acknowledged before the next batch.
const BATCH: u64 = 200;
const PAUSE: Duration = Duration::from_millis(20);
/// Number of records that a worker requests.
const PULL: u64 = 500;
/// Time limit of a wait for a record. After it, the load checks whether it must end.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which unacknowledged records are delivered again, in seconds.
const ACK_WAIT_SECONDS: i64 = 5;
/// The payload of an acknowledgement.
const ACK: &str = "+ACK";

/// Progress of the publisher, the reader, and the worker, as numbers of records that only grow. The publisher
/// stores its last number before it sets `is_complete`. So a thread that reads the flag first, and finds it
/// set, then reads the publisher's final number.
#[derive(Default)]
pub(super) struct Ledger {
    acknowledged: AtomicU64,
    read: AtomicU64,
    worked: AtomicU64,
    /// Whether the last record of the run was acknowledged.
    is_complete: AtomicBool,
}

impl Ledger {
    /// Returns three numbers of records: acknowledged, read in order, and processed.
    pub(super) fn state(&self) -> [u64; 3] {
        [&self.acknowledged, &self.read, &self.worked].map(|count| count.load(Ordering::Acquire))
    }

    /// Returns whether a reader at this position has received all records.
    fn is_done(&self, position: u64) -> bool {
        self.is_complete.load(Ordering::Acquire) && position >= self.state()[0]
    }

    /// Fails if a reader has made no progress for too long.
    fn ensure_moving(&self, position: u64, since: Instant) -> Result<()> {
        let acknowledged = self.state()[0];
        ensure!(
            position >= acknowledged || since.elapsed() < TIMEOUT,
            "record {} of {acknowledged} does not arrive",
            position + 1
        );
        Ok(())
    }
}

async fn jetstream(stage: &Stage, name: &str) -> Result<JetStream> {
    Ok(JetStream::new(&stage.connect(name).await?).timeout(TIMEOUT))
}

/// Returns the number of a record. It must be equal to the record's sequence.
fn number_of(payload: &[u8], sequence: u64) -> Result<u64> {
    match number::read(payload) {
        Some((0, number)) if number == sequence => Ok(number),
        other => Err(violation(format!("record {sequence} holds {other:?}"))),
    }
}

pub(super) struct Publisher(pub(super) Arc<Ledger>);

impl Load for Publisher {
    const NAME: &'static str = "stream, publisher";

    async fn play(&mut self, stage: &Stage) -> Result<()> {
        let ledger = &self.0;
        let jetstream = jetstream(stage, "soak publisher").await?;
        let mut next = 1 + check_last(&jetstream, ledger).await?;
        let in_flight = usize::try_from(BATCH)?;
        let mut publisher = jetstream.publisher(in_flight).await?;
        loop {
            let [acknowledged, read, worked] = ledger.state();
            if stage.is_ending() {
                ledger.is_complete.store(true, Ordering::Release);
                return Ok(());
            }
            if acknowledged - read.min(worked).min(acknowledged) > AHEAD_MAX {
                sleep(PAUSE).await;
                continue;
            }
            for number in next..next + BATCH {
                let message = OutgoingMessage {
                    subject: SUBJECT.into(),
                    payload: number::payload(0, number).into(),
                    ..OutgoingMessage::default()
                };
                publisher.publish(message).await?;
            }
            publisher.finish().await?;
            next += BATCH;
            ledger.acknowledged.fetch_max(next - 1, Ordering::AcqRel);
            add(&stage.counts.acknowledged, BATCH);
            sleep(PAUSE).await;
        }
    }
}

/// Creates the stream if it does not exist. Returns the number of its last record.
async fn check_last(jetstream: &JetStream, ledger: &Ledger) -> Result<u64> {
    let config = StreamConfig {
        name: STREAM.into(),
        subjects: vec![SUBJECT.into()],
        max_msgs: RECORDS_MAX,
        ..StreamConfig::default()
    };
    jetstream.create_stream(&config.into()).await?;
    let last = jetstream
        .message(STREAM, &Wanted::Last(SUBJECT.into()))
        .await;
    let last = match last {
        Ok(record) => number_of(&record.payload, record.sequence)?,
        Err(error) if error.is_message_not_found() => 0,
        Err(error) => return Err(error.into()),
    };
    let acknowledged = ledger.state()[0];
    if last < acknowledged {
        let lost = format!("{acknowledged} records were acknowledged, the last is {last}");
        return Err(violation(lost));
    }
    // The last record is stored, even if its acknowledgement did not arrive.
    ledger.acknowledged.fetch_max(last, Ordering::AcqRel);
    Ok(last)
}

/// Reads all records in order.
pub(super) struct Reader(pub(super) Arc<Ledger>);

impl Load for Reader {
    const NAME: &'static str = "stream, reader in order";

    async fn play(&mut self, stage: &Stage) -> Result<()> {
        let ledger = &self.0;
        let jetstream = jetstream(stage, "soak reader").await?;
        wait_for_stream(&jetstream).await?;
        let mut read = ledger.state()[1];
        let options = OrderedOptions {
            start: Start::Sequence(read + 1),
            ..OrderedOptions::default()
        };
        let mut records = jetstream.ordered(STREAM, options).await?;
        let mut moved = Instant::now();
        while !ledger.is_done(read) {
            let Ok(record) = timeout(POLL_INTERVAL, records.next()).await else {
                ledger.ensure_moving(read, moved)?;
                continue;
            };
            let record = record?;
            let number = number_of(record.message.payload(), record.stream_sequence)?;
            if number != read + 1 {
                return Err(violation(format!("record {number} follows {read}")));
            }
            read = number;
            moved = Instant::now();
            ledger.read.store(read, Ordering::Release);
            add(&stage.counts.read, 1);
            add(&stage.counts.deliveries, 1);
        }
        Ok(())
    }
}

/// Waits until the publisher has created the stream.
async fn wait_for_stream(jetstream: &JetStream) -> Result<()> {
    let began = Instant::now();
    while let Err(error) = jetstream.stream_info(STREAM).await {
        ensure!(began.elapsed() < TIMEOUT, error);
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Receives records from a durable consumer, and acknowledges them.
pub(super) struct Worker {
    pub(super) ledger: Arc<Ledger>,
    pub(super) seen: Seen,
}

impl Load for Worker {
    const NAME: &'static str = "stream, worker that acknowledges";

    async fn play(&mut self, stage: &Stage) -> Result<()> {
        let jetstream = jetstream(stage, "soak worker").await?;
        wait_for_stream(&jetstream).await?;
        let config = ConsumerConfig {
            durable_name: WORKER.into(),
            ack_policy: AckPolicy::Explicit,
            ack_wait: Nanos::from_secs(ACK_WAIT_SECONDS),
            ..ConsumerConfig::default()
        };
        let action = ConsumerAction::CreateOrUpdate;
        jetstream
            .create_consumer(STREAM, &config.into(), action)
            .await?;
        let request = PullRequest {
            batch: PULL,
            expires: Nanos::from_secs(1),
            ..PullRequest::default()
        };
        let (mut first_time, mut moved) = (0, Instant::now());
        while !self.ledger.is_done(self.seen.whole()) {
            let mut pull = jetstream.pull(STREAM, WORKER, &request).await?;
            while let Some(record) = pull.next().await? {
                moved = Instant::now();
                self.take(stage, &record, &mut first_time)?;
                let reply = record.message.reply().context("no reply subject")?;
                jetstream.client().publish(reply, ACK).await?;
            }
            self.ledger.ensure_moving(self.seen.whole(), moved)?;
        }
        jetstream.client().flush().await?;
        Ok(())
    }
}

impl Worker {
    /// Checks that records that are delivered for the first time arrive in order on this connection.
    fn take(&mut self, stage: &Stage, record: &Delivery, first_time: &mut u64) -> Result<()> {
        let number = number_of(record.message.payload(), record.stream_sequence)?;
        if record.delivered == 1 {
            if number <= *first_time {
                let order = format!("record {number} is delivered after {first_time}");
                return Err(violation(order));
            }
            *first_time = number;
        }
        add(&stage.counts.deliveries, 1);
        let count = match self.seen.insert(number) {
            true => &stage.counts.worked,
            false => &stage.counts.redelivered,
        };
        add(count, 1);
        let whole = self.seen.whole();
        self.ledger.worked.store(whole, Ordering::Release);
        Ok(())
    }
}
