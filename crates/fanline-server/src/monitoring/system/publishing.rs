//! Events that the server publishes without a request.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::answers::name_of;
use super::broadcast::Schedule;
use super::{Disconnected, System};
use crate::ipc::ConnectionEvent;

/// Interval at which the connection counts of all accounts are published. They are also published at changes.
const CONNECTIONS_EVERY: Duration = Duration::from_secs(30);
/// Largest number of events that are published before the connection counts of their accounts.
const EVENTS_AT_ONCE: usize = 256;

impl System {
    /// Publishes events until the server stops.
    pub(super) async fn publish_events(
        self: Rc<Self>,
        mut events: mpsc::Receiver<ConnectionEvent>,
    ) {
        let mut statsz = Schedule::new(self.is_clustered(), Instant::now());
        let mut connections = tokio::time::interval(CONNECTIONS_EVERY);
        let mut batch = Vec::new();
        loop {
            let published = tokio::select! {
                count = events.recv_many(&mut batch, EVENTS_AT_ONCE) => match count {
                    0 => return,
                    _ => self.publish_batch(&mut batch).await,
                },
                () = sleep_until(statsz.next_at) => {
                    statsz.beat(Instant::now());
                    self.publish_statsz().await
                }
                is_urgent = self.broadcast.requested() => {
                    match statsz.allows(is_urgent, Instant::now()) {
                        true => self.publish_statsz().await,
                        false => Ok(()),
                    }
                }
                _ = connections.tick() => self.publish_connections(None).await,
            };
            if published.is_err() {
                return;
            }
        }
    }

    async fn publish_batch(&self, batch: &mut Vec<ConnectionEvent>) -> Result<(), Disconnected> {
        let monitor = &self.monitor;
        let mut changed = BTreeSet::new();
        for event in batch.drain(..) {
            let account = monitor.account_name(event.status().account);
            if let ConnectionEvent::Linked(_) = event {
                self.publish_linked(&account).await?;
                changed.insert(account);
                continue;
            }
            let mut body = self.envelope.event(monitor, event.kind());
            event.describe(monitor, &mut body);
            let subject = match event {
                ConnectionEvent::Connected(_) | ConnectionEvent::Linked(_) => {
                    format!("$SYS.ACCOUNT.{account}.CONNECT")
                }
                ConnectionEvent::Closed(_) => format!("$SYS.ACCOUNT.{account}.DISCONNECT"),
                // A refused connection has no account.
                ConnectionEvent::Refused(_) => {
                    let subject = format!("$SYS.SERVER.{}.CLIENT.AUTH.ERR", monitor.server_id());
                    self.publish(&subject, &body).await?;
                    continue;
                }
            };
            self.publish(&subject, &body).await?;
            changed.insert(account);
        }
        match changed.is_empty() {
            true => Ok(()),
            false => self.publish_connections(Some(&changed)).await,
        }
    }

    /// Publishes that a leaf node has connected. nats-server publishes this event to its gateways only.
    async fn publish_linked(&self, account: &str) -> Result<(), Disconnected> {
        let subject = format!("$SYS.ACCOUNT.{account}.LEAFNODE.CONNECT");
        let server = self.envelope.server(&self.monitor);
        let body = json!({ "server": server, "acc": account });
        self.publish(&subject, &body).await
    }

    /// Publishes the connection counts of these accounts. If `None`, publishes the counts of all accounts
    /// with connections.
    async fn publish_connections(&self, of: Option<&BTreeSet<String>>) -> Result<(), Disconnected> {
        // If a shard is too busy to reply in time, nothing is published now. The next call queries the shard
        // again.
        let all = self.statistics_of_all().await.unwrap_or_default();
        for counts in all {
            let Some(account) = name_of(&counts).map(str::to_owned) else {
                continue;
            };
            let is_published = match of {
                Some(changed) => changed.contains(&account),
                None => counts["total_conns"].as_u64() > Some(0),
            };
            if is_published {
                let event = self.connections_event(counts);
                let legacy = format!("$SYS.SERVER.ACCOUNT.{account}.CONNS");
                self.publish(&legacy, &event).await?;
                let subject = format!("$SYS.ACCOUNT.{account}.SERVER.CONNS");
                self.publish(&subject, &event).await?;
            }
        }
        Ok(())
    }

    async fn publish_statsz(&self) -> Result<(), Disconnected> {
        match self.statsz().await {
            Ok(statsz) => {
                let subject = format!("$SYS.SERVER.{}.STATSZ", self.monitor.server_id());
                self.publish(&subject, &statsz).await
            }
            Err(refused) => {
                let problem = refused.map_or_else(String::new, |(_, problem)| problem);
                warn!("Server statistics could not be published: {problem}");
                Ok(())
            }
        }
    }

    /// Publishes a change of the server: `LAMEDUCK` or `SHUTDOWN`.
    pub(crate) async fn announce(&self, word: &str) {
        let subject = format!("$SYS.SERVER.{}.{word}", self.monitor.server_id());
        let body = self.envelope.server(&self.monitor);
        // A failure means that the system client is disconnected, so it is ignored.
        if self.publish(&subject, &body).await.is_ok() {
            let _ = self.client.flush().await;
        }
    }
}
