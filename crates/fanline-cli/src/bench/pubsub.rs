//! Publishers and subscribers, each with a connection of its own.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanline_client::{Client, Subscription};
use indicatif::ProgressBar;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{Common, progress};
use crate::failure::Failure;

/// Messages per update of the progress bar.
const BATCH_MESSAGES: u64 = 1024;
/// How long a subscriber waits for the next message.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The result of one connection.
struct Row {
    name: &'static str,
    messages: u64,
    bytes: u64,
    start: Instant,
    end: Instant,
    /// Messages that this program dropped because it was too slow.
    dropped: u64,
}

pub(super) async fn run(args: &Common, publishers: u32, subscribers: u32) -> Result<(), Failure> {
    if publishers == 0 && subscribers == 0 {
        return Err(Failure::Usage(
            "expected at least one publisher or subscriber".into(),
        ));
    }
    let deliveries = args.msgs * u64::from(subscribers);
    let published = if publishers > 0 { args.msgs } else { 0 };
    let progress = progress(deliveries + published, !args.no_progress);
    let barrier = Arc::new(Barrier::new((publishers + subscribers) as usize));
    let mut workers = JoinSet::new();
    for _ in 0..subscribers {
        let client = args.connection.connect().await?;
        let subscription = client.subscribe(&args.subject).await?;
        // The server must know all subscriptions before the first message is sent.
        client.flush().await?;
        let (barrier, progress) = (Arc::clone(&barrier), progress.clone());
        let (messages, alone) = (args.msgs, publishers == 0);
        workers.spawn(async move {
            barrier.wait().await;
            receive(client, subscription, messages, alone, &progress).await
        });
    }
    let payload = Bytes::from(vec![b'x'; args.size]);
    let publishers = u64::from(publishers);
    for at in 0..publishers {
        let client = args.connection.connect().await?;
        let share = args.msgs / publishers + u64::from(at < args.msgs % publishers);
        let (barrier, progress) = (Arc::clone(&barrier), progress.clone());
        let (subject, payload) = (args.subject.clone(), payload.clone());
        workers.spawn(async move {
            barrier.wait().await;
            publish(&client, &subject, &payload, share, &progress).await
        });
    }
    let mut rows = Vec::new();
    while let Some(outcome) = workers.join_next().await {
        rows.push(outcome.map_err(|error| Failure::Error(error.to_string()))??);
    }
    progress.finish_and_clear();
    report(&rows, args.msgs)
}

async fn publish(
    client: &Client,
    subject: &str,
    payload: &Bytes,
    messages: u64,
    progress: &ProgressBar,
) -> Result<Row, Failure> {
    let start = Instant::now();
    let mut sent = 0;
    while sent < messages {
        let batch = BATCH_MESSAGES.min(messages - sent);
        for _ in 0..batch {
            client.publish(subject, payload.clone()).await?;
        }
        sent += batch;
        progress.inc(batch);
    }
    // Messages count as sent once the server has received them.
    client.flush().await?;
    let bytes = messages * payload.len() as u64;
    Ok(Row {
        name: "publish",
        messages,
        bytes,
        start,
        end: Instant::now(),
        dropped: 0,
    })
}

async fn receive(
    client: Client,
    mut subscription: Subscription,
    messages: u64,
    alone: bool,
    progress: &ProgressBar,
) -> Result<Row, Failure> {
    let mut row = Row {
        name: "subscribe",
        messages: 0,
        bytes: 0,
        start: Instant::now(),
        end: Instant::now(),
        dropped: 0,
    };
    while row.messages + row.dropped < messages {
        // Without local publishers, wait for the first message without a limit.
        let first_of_others = alone && row.messages == 0;
        let limit = if first_of_others {
            Duration::MAX
        } else {
            SILENCE_MAX
        };
        let batch = BATCH_MESSAGES.min(messages - row.messages - row.dropped);
        for _ in 0..batch {
            match tokio::time::timeout(limit, subscription.next()).await {
                Ok(Some(message)) => {
                    if row.messages == 0 {
                        row.start = Instant::now();
                    }
                    row.messages += 1;
                    row.bytes += message.payload().len() as u64;
                }
                Ok(None) => return Err(Failure::Error(client.closed().await.to_string())),
                Err(_) => {
                    row.end = Instant::now().checked_sub(SILENCE_MAX).unwrap_or(row.start);
                    row.dropped = subscription.dropped();
                    return Ok(row);
                }
            }
        }
        progress.inc(batch);
        row.dropped = subscription.dropped();
    }
    row.end = Instant::now();
    Ok(row)
}

fn report(rows: &[Row], messages: u64) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{:<10} {:>5} {:>14} {:>14} {:>12}",
        "", "conns", "messages", "msg/s", "MB/s"
    )?;
    for name in ["publish", "subscribe"] {
        let of_name: Vec<_> = rows.iter().filter(|row| row.name == name).collect();
        let start = of_name.iter().map(|row| row.start).min();
        let end = of_name.iter().map(|row| row.end).max();
        let (Some(start), Some(end)) = (start, end) else {
            continue;
        };
        let seconds = (end - start).as_secs_f64().max(1e-9);
        let done: u64 = of_name.iter().map(|row| row.messages).sum();
        let bytes: u64 = of_name.iter().map(|row| row.bytes).sum();
        let (rate, megabytes) = (done as f64 / seconds, bytes as f64 / seconds / 1e6);
        let connections = of_name.len();
        writeln!(
            out,
            "{name:<10} {connections:>5} {done:>14} {rate:>14.0} {megabytes:>12.1}"
        )?;
    }
    let missed: u64 = rows
        .iter()
        .filter(|row| row.name == "subscribe")
        .map(|row| messages.saturating_sub(row.messages))
        .sum();
    let dropped: u64 = rows.iter().map(|row| row.dropped).sum();
    if missed > 0 {
        return Err(Failure::Error(format!(
            "{missed} messages did not arrive; this program was too slow and dropped {dropped} of \
             them"
        )));
    }
    Ok(())
}
