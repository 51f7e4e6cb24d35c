//! Core messages to subscribers of an exact subject, subscribers of a wildcard, and a queue group.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use fanline_server::client::{Client, Subscription};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::number;
use super::stage::{Load, Stage, TIMEOUT, add, violation};

/// Number of messages in a batch. All of them must arrive before the next batch is sent.
const BATCH: u64 = 256;
/// Pause between two batches.
const PAUSE: Duration = Duration::from_millis(10);
/// Number of members of the queue group.
const MEMBERS: usize = 2;

/// One publisher with its subscribers.
pub(super) struct Core {
    pub(super) index: usize,
    /// Number of the current connection. Messages of earlier connections may be lost, but must not arrive on
    /// the current one.
    pub(super) epoch: u64,
}

impl Load for Core {
    const NAME: &'static str = "core";

    async fn play(&mut self, stage: &Stage) -> Result<()> {
        self.epoch += 1;
        let publisher = stage.connect("soak core").await?;
        let subject = format!("soak.core.{}", self.index);
        let (plain, job) = (format!("{subject}.all"), format!("{subject}.job"));
        let mut exact = Listener::open(stage, &plain).await?;
        let mut wild = Listener::open(stage, &format!("soak.*.{}.all", self.index)).await?;
        let mut group = Group::open(stage, &job).await?;
        let mut first = 0;
        while !stage.is_ending() {
            let range = first..first + BATCH;
            for number in range.clone() {
                let payload = number::payload(self.epoch, number);
                publisher.publish(&plain, payload.clone()).await?;
                publisher.publish(&job, payload).await?;
            }
            for number in range.clone() {
                exact.expect(self.epoch, number).await?;
                wild.expect(self.epoch, number).await?;
            }
            group.expect(self.epoch, range).await?;
            first += BATCH;
            add(&stage.counts.core, 3 * BATCH);
            add(&stage.counts.deliveries, 3 * BATCH);
            sleep(PAUSE).await;
        }
        Ok(())
    }
}

/// A subscriber that receives every message, in order.
struct Listener {
    client: Client,
    subscription: Subscription,
}

impl Listener {
    async fn open(stage: &Stage, filter: &str) -> Result<Self> {
        let client = stage.connect("soak listener").await?;
        let subscription = client.subscribe(filter).await?;
        client.flush().await?;
        Ok(Self {
            client,
            subscription,
        })
    }

    async fn expect(&mut self, epoch: u64, number: u64) -> Result<()> {
        let message = timeout(TIMEOUT, self.subscription.next()).await;
        let message = message.with_context(|| format!("message {number} does not arrive"))?;
        let Some(message) = message else {
            bail!("a subscriber was closed: {}", self.client.closed().await);
        };
        match number::read(message.payload()) {
            Some(read) if read == (epoch, number) => Ok(()),
            read => Err(violation(format!(
                "{}: {read:?} arrived instead of {:?}",
                message.subject(),
                (epoch, number)
            ))),
        }
    }
}

/// The members of a queue group. Each message goes to one of them.
struct Group {
    clients: Vec<Client>,
    /// The messages that have arrived, with the index of the member that received each.
    arrivals: mpsc::UnboundedReceiver<(usize, Option<(u64, u64)>)>,
}

impl Group {
    async fn open(stage: &Stage, filter: &str) -> Result<Self> {
        // At most one batch is in the channel at any time.
        let (sender, arrivals) = mpsc::unbounded_channel();
        let mut clients = Vec::new();
        for member in 0..MEMBERS {
            let client = stage.connect("soak member").await?;
            let mut subscription = client.queue_subscribe(filter, "workers").await?;
            client.flush().await?;
            clients.push(client);
            let sender = sender.clone();
            tokio::spawn(async move {
                while let Some(message) = subscription.next().await {
                    let numbers = number::read(message.payload());
                    // If the receiver was dropped, the load has ended.
                    if sender.send((member, numbers)).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Self { clients, arrivals })
    }

    /// Checks that each message of a batch arrives once, and that each member receives its messages in order.
    async fn expect(&mut self, epoch: u64, range: std::ops::Range<u64>) -> Result<()> {
        let mut last = [None; MEMBERS];
        let mut missing: std::collections::BTreeSet<u64> = range.collect();
        while !missing.is_empty() {
            let arrival = timeout(TIMEOUT, self.arrivals.recv()).await;
            let arrival = arrival.with_context(|| format!("jobs {missing:?} do not arrive"))?;
            let Some((member, numbers)) = arrival else {
                bail!("a group was closed: {}", self.clients[0].closed().await);
            };
            match numbers {
                Some((in_epoch, number)) if in_epoch == epoch && missing.remove(&number) => {
                    if last[member].replace(number) > Some(number) {
                        return Err(violation(format!("job {number} is out of order")));
                    }
                }
                other => return Err(violation(format!("job {other:?} was not due"))),
            }
        }
        Ok(())
    }
}
