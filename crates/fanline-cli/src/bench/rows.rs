//! The rows of `fanline bench`: core, latency, and JetStream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanline_client::jetstream::{JetStream, OrderedOptions, Storage, StreamConfig};
use fanline_client::{Client, ConnectOptions, OutgoingMessage, Subscription};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::latencies::Latencies;
use crate::failure::Failure;

/// Payload size in bytes.
const PAYLOAD_BYTES: usize = 128;
/// Largest number of messages in flight to the slowest subscriber, so that no messages are dropped.
const WINDOW_MESSAGES: u64 = 100_000;
/// Number of messages between two checks of [`WINDOW_MESSAGES`].
const LOOK_MESSAGES: u64 = 256;
/// Pause of a publisher that has reached [`WINDOW_MESSAGES`].
const AHEAD: Duration = Duration::from_micros(200);
/// Largest number of unacknowledged publishes to a stream.
const IN_FLIGHT: usize = 256;
/// Number of stored messages to read.
const RECORDS: u64 = 200_000;
/// Longest wait for any step.
const STEP_LIMIT: Duration = Duration::from_secs(20);

const SUBJECT: &str = "bench.subject";
const STREAM: &str = "BENCH";

/// One row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    work: Work,
    /// Whether servers are configured to sync before they acknowledge. This is for servers that do not do so
    /// by default.
    pub(super) syncs_always: bool,
}

#[derive(Clone, Copy)]
enum Work {
    Publish,
    FanOut { subscribers: u32 },
    Request,
    Store(Storage),
    Read,
}

/// All rows, in order.
pub(super) const ROWS: &[Row] = &[
    Row::new("core: publish only, 128 B", Work::Publish),
    Row::new("core: 1 to 1, 128 B", Work::FanOut { subscribers: 1 }),
    Row::new("core: 1 to 8, 128 B", Work::FanOut { subscribers: 8 }),
    Row::new("request and reply, 128 B, one at a time", Work::Request),
    Row::new(
        "JetStream: publish to memory, 128 B",
        Work::Store(Storage::Memory),
    ),
    Row::new(
        "JetStream: publish to disk, 128 B",
        Work::Store(Storage::File),
    ),
    Row {
        syncs_always: true,
        ..Row::new(
            "JetStream: the same, synced before each acknowledgement",
            Work::Store(Storage::File),
        )
    },
    Row::new("JetStream: read in order from disk, 128 B", Work::Read),
];

impl Row {
    const fn new(name: &'static str, work: Work) -> Self {
        Row {
            name,
            work,
            syncs_always: false,
        }
    }

    /// Returns the unit of the result.
    pub(super) fn unit(&self) -> &'static str {
        match self.work {
            Work::Publish | Work::Store(_) | Work::Read => "messages/s",
            Work::FanOut { .. } => "deliveries/s",
            Work::Request => "requests/s",
        }
    }

    /// Measures a server for about this long.
    pub(super) async fn measure(&self, url: &str, time: Duration) -> Result<Figures, Failure> {
        match self.work {
            Work::Publish => publish(url, time).await,
            Work::FanOut { subscribers } => fan_out(url, subscribers, time).await,
            Work::Request => requests(url, time).await,
            Work::Store(storage) => store(url, storage, time).await,
            Work::Read => read(url).await,
        }
    }
}

/// Results of a measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// Messages, deliveries, or requests.
    pub(super) count: u64,
    pub(super) took: Duration,
    /// Median and 99th percentile of the round trip, for rows that measure it.
    pub(super) latency: Option<(Duration, Duration)>,
}

impl Figures {
    pub(super) fn rate(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

async fn connect(url: &str) -> Result<Client, Failure> {
    Ok(Client::connect(&ConnectOptions::new(url)?).await?)
}

fn payload() -> Bytes {
    Bytes::from(vec![b'x'; PAYLOAD_BYTES])
}

async fn publish(url: &str, time: Duration) -> Result<Figures, Failure> {
    let (client, payload) = (connect(url).await?, payload());
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < time {
        for _ in 0..LOOK_MESSAGES {
            client.publish(SUBJECT, payload.clone()).await?;
        }
        count += LOOK_MESSAGES;
    }
    // Messages count as published once the server has received them.
    client.flush().await?;
    let took = start.elapsed();
    Ok(Figures {
        count,
        took,
        ..Figures::default()
    })
}

async fn fan_out(url: &str, subscribers: u32, time: Duration) -> Result<Figures, Failure> {
    let mut workers = JoinSet::new();
    let mut counters = Vec::new();
    for _ in 0..subscribers {
        let client = connect(url).await?;
        let subscription = client.subscribe(SUBJECT).await?;
        client.flush().await?;
        let counter = Arc::new(AtomicU64::new(0));
        counters.push(Arc::clone(&counter));
        workers.spawn(receive(client, subscription, counter));
    }
    let (client, payload) = (connect(url).await?, payload());
    let start = Instant::now();
    let mut sent = 0;
    while start.elapsed() < time {
        for _ in 0..LOOK_MESSAGES {
            client.publish(SUBJECT, payload.clone()).await?;
        }
        sent += LOOK_MESSAGES;
        let is_ahead = || {
            // An approximate position: no other memory access depends on it.
            let least = counters
                .iter()
                .map(|counter| counter.load(Ordering::Relaxed))
                .min();
            sent > least.unwrap_or(sent) + WINDOW_MESSAGES
        };
        while is_ahead() && start.elapsed() < time + STEP_LIMIT {
            sleep(AHEAD).await;
        }
    }
    // An empty message marks the end.
    client.publish(SUBJECT, Bytes::new()).await?;
    let mut count = 0;
    while let Some(outcome) = workers.join_next().await {
        count += outcome.map_err(|error| Failure::Error(error.to_string()))??;
    }
    let took = start.elapsed();
    if count != sent * u64::from(subscribers) {
        return Err(Failure::Error(format!(
            "{count} of {} messages arrived",
            sent * u64::from(subscribers)
        )));
    }
    Ok(Figures {
        count,
        took,
        ..Figures::default()
    })
}

/// Counts messages up to the empty one.
async fn receive(
    client: Client,
    mut subscription: Subscription,
    counter: Arc<AtomicU64>,
) -> Result<u64, Failure> {
    let mut count = 0;
    loop {
        match timeout(STEP_LIMIT, subscription.next()).await {
            Ok(Some(message)) if message.payload().is_empty() => return Ok(count),
            Ok(Some(_)) => {
                count += 1;
                counter.store(count, Ordering::Relaxed);
            }
            Ok(None) => return Err(Failure::Error(client.closed().await.to_string())),
            Err(_) => {
                return Err(Failure::NoAnswer(
                    "a subscriber received no more messages".into(),
                ));
            }
        }
    }
}

async fn requests(url: &str, time: Duration) -> Result<Figures, Failure> {
    let (service, client, payload) = (connect(url).await?, connect(url).await?, payload());
    let mut requests = service.subscribe(SUBJECT).await?;
    service.flush().await?;
    let answers = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            if let Some(reply) = request.reply() {
                // If the responder ends, the requests get no response, which is reported.
                let _ = service.publish(reply, request.payload_bytes()).await;
            }
        }
    });
    let mut latencies = Latencies::new()?;
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < time {
        let asked = Instant::now();
        client.request(SUBJECT, payload.clone(), STEP_LIMIT).await?;
        latencies.record(asked.elapsed());
        count += 1;
    }
    let took = start.elapsed();
    answers.abort();
    Ok(Figures {
        count,
        took,
        latency: Some((latencies.percentile(50), latencies.percentile(99))),
    })
}

async fn store(url: &str, storage: Storage, time: Duration) -> Result<Figures, Failure> {
    let client = connect(url).await?;
    let jetstream = with_stream(&client, storage).await?;
    let start = Instant::now();
    let count = fill(&jetstream, |_| start.elapsed() < time).await?;
    let took = start.elapsed();
    Ok(Figures {
        count,
        took,
        ..Figures::default()
    })
}

async fn read(url: &str) -> Result<Figures, Failure> {
    let client = connect(url).await?;
    let jetstream = with_stream(&client, Storage::File).await?;
    let count = fill(&jetstream, |sent| sent < RECORDS).await?;
    let start = Instant::now();
    let mut records = jetstream.ordered(STREAM, OrderedOptions::default()).await?;
    for _ in 0..count {
        let record = timeout(STEP_LIMIT, records.next()).await;
        record.map_err(|_| Failure::NoAnswer("a reader received no more messages".into()))??;
    }
    let took = start.elapsed();
    Ok(Figures {
        count,
        took,
        ..Figures::default()
    })
}

async fn with_stream(client: &Client, storage: Storage) -> Result<JetStream, Failure> {
    let jetstream = JetStream::new(client).timeout(STEP_LIMIT);
    let config = StreamConfig {
        name: STREAM.into(),
        subjects: vec![SUBJECT.into()],
        storage,
        ..StreamConfig::default()
    };
    jetstream.create_stream(&config.into()).await?;
    Ok(jetstream)
}

/// Publishes to the stream while `goes_on` returns true, and waits until all messages are acknowledged.
async fn fill(jetstream: &JetStream, goes_on: impl Fn(u64) -> bool) -> Result<u64, Failure> {
    let mut publisher = jetstream.publisher(IN_FLIGHT).await?;
    let message = OutgoingMessage {
        subject: SUBJECT.into(),
        payload: payload(),
        ..OutgoingMessage::default()
    };
    let mut count = 0;
    while goes_on(count) {
        publisher.publish(message.clone()).await?;
        count += 1;
    }
    publisher.finish().await?;
    Ok(count)
}
