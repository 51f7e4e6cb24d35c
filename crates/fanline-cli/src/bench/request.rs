//! Latency of requests, one after the other on each connection.

use std::io::Write;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use fanline_client::{Client, Subscription};
use tokio::task::JoinSet;

use super::latencies::Latencies;
use super::progress;
use crate::connection::{ConnectionArgs, interrupted};
use crate::failure::Failure;
use crate::values;

/// Longest wait for one response.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Options of `bench request`.
#[derive(Args, Debug)]
pub(super) struct RequestBenchArgs {
    /// Subject to use
    subject: String,
    /// Number of requesting connections
    #[arg(long, value_name = "N", default_value = "1")]
    clients: u32,
    /// Total number of requests
    #[arg(long, value_name = "N", default_value = "100k", value_parser = values::count)]
    msgs: u64,
    /// Payload size in bytes
    #[arg(long, value_name = "BYTES", default_value = "128", value_parser = values::bytes)]
    size: usize,
    /// Start no responder, because one is running elsewhere
    #[arg(long)]
    no_service: bool,
    /// Show no progress bar
    #[arg(long)]
    no_progress: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Options of `bench service`.
#[derive(Args, Debug)]
pub(super) struct ServiceArgs {
    /// Subject to answer on
    subject: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl ServiceArgs {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let client = self.connection.connect().await?;
        let requests = client.queue_subscribe(&self.subject, "bench").await?;
        client.flush().await?;
        eprintln!("Answering requests on \"{}\"", self.subject);
        tokio::select! {
            outcome = answer(&client, requests) => outcome,
            () = interrupted() => Ok(client.drain().await?),
        }
    }
}

/// Answers with the request's payload until the connection ends.
async fn answer(client: &Client, mut requests: Subscription) -> Result<(), Failure> {
    while let Some(request) = requests.next().await {
        if let Some(reply) = request.reply() {
            client.publish(reply, request.payload_bytes()).await?;
        }
    }
    Err(Failure::Error(client.closed().await.to_string()))
}

impl RequestBenchArgs {
    pub(super) async fn run(self) -> Result<(), Failure> {
        if self.clients == 0 {
            return Err(Failure::Usage("--clients must be at least 1, got 0".into()));
        }
        let service = if self.no_service {
            None
        } else {
            Some(self.start_service().await?)
        };
        let progress = progress(self.msgs, !self.no_progress);
        let payload = Bytes::from(vec![b'x'; self.size]);
        let mut workers = JoinSet::new();
        let clients = u64::from(self.clients);
        let start = Instant::now();
        for at in 0..clients {
            let client = self.connection.connect().await?;
            let share = self.msgs / clients + u64::from(at < self.msgs % clients);
            let (subject, payload) = (self.subject.clone(), payload.clone());
            let (mut latencies, progress) = (Latencies::new()?, progress.clone());
            workers.spawn(async move {
                for _ in 0..share {
                    let asked = Instant::now();
                    client
                        .request(&subject, payload.clone(), ANSWER_LIMIT)
                        .await?;
                    latencies.record(asked.elapsed());
                    progress.inc(1);
                }
                Ok::<_, Failure>(latencies)
            });
        }
        let mut all = Latencies::new()?;
        while let Some(outcome) = workers.join_next().await {
            all.merge(&outcome.map_err(|error| Failure::Error(error.to_string()))??);
        }
        let elapsed = start.elapsed();
        progress.finish_and_clear();
        if let Some(service) = service {
            service.abort();
        }
        self.report(&all, elapsed)
    }

    async fn start_service(&self) -> Result<tokio::task::JoinHandle<()>, Failure> {
        let client = self.connection.connect().await?;
        let requests = client.queue_subscribe(&self.subject, "bench").await?;
        client.flush().await?;
        Ok(tokio::spawn(async move {
            // If the responder ends, the requests get no response, which is reported.
            let _ = answer(&client, requests).await;
        }))
    }

    fn report(&self, all: &Latencies, elapsed: Duration) -> Result<(), Failure> {
        let mut out = std::io::stdout();
        let rate = self.msgs as f64 / elapsed.as_secs_f64().max(1e-9);
        // Each payload is sent twice: in the request and in the response.
        let megabytes = rate * self.size as f64 * 2.0 / 1e6;
        writeln!(
            out,
            "{:<10} {:>5} {:>14} {:>14} {:>12}",
            "", "conns", "requests", "req/s", "MB/s"
        )?;
        let (clients, requests) = (self.clients, self.msgs);
        writeln!(
            out,
            "{:<10} {clients:>5} {requests:>14} {rate:>14.0} {megabytes:>12.1}",
            "request"
        )?;
        write!(out, "latency   ")?;
        for percent in [50, 90, 99] {
            write!(out, " p{percent} {:.1?} ", all.percentile(percent))?;
        }
        writeln!(out, " max {:.1?}", all.max())?;
        Ok(())
    }
}
