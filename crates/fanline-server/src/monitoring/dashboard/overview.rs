//! Figures that the page requests once a second. Counters are totals, from which the page calculates rates.

use fanline_engine::ShardStatus;
use fanline_engine::jetstream::{AccountOverview, Overview as JetStreamOverview, OverviewWanted};
use serde::Serialize;

use super::super::answer::Refusal;
use super::super::{Monitor, collect, process};
use super::visitor::Visitor;
use crate::ipc::SyncCounts;

#[derive(Serialize)]
pub(super) struct Overview {
    /// Seconds since the server started.
    uptime: f64,
    #[serde(flatten)]
    traffic: Traffic,
    /// Figures of the process, only for visitors with access to the whole server.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<Process>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jetstream: Option<JetStream>,
}

#[derive(Serialize)]
struct Traffic {
    connections: usize,
    total_connections: u64,
    subscriptions: usize,
    in_msgs: u64,
    in_bytes: u64,
    out_msgs: u64,
    out_bytes: u64,
    slow_consumers: u64,
    stale_connections: u64,
    stalls: u64,
}

#[derive(Serialize)]
struct Process {
    memory_bytes: u64,
    /// Processor time in seconds.
    cpu: f64,
    cores: usize,
    shards: usize,
    /// Durations of awaited syncs; `None` without JetStream.
    #[serde(skip_serializing_if = "Option::is_none")]
    syncs: Option<SyncCounts>,
}

#[derive(Serialize)]
struct JetStream {
    streams: u64,
    consumers: u64,
    messages: u64,
    lost: u64,
    memory_bytes: u64,
    storage_bytes: u64,
    api_requests: u64,
    api_errors: u64,
}

pub(super) async fn answer(monitor: &Monitor, visitor: &Visitor) -> Result<Overview, Refusal> {
    let shared = &monitor.shared;
    let status = match visitor.sees_server {
        true => collect::totals(shared).await?,
        false => {
            let all = collect::by_account(shared).await?;
            let own = all.get(visitor.grant.account.index());
            own.copied().unwrap_or_default()
        }
    };
    let jetstream = collect::jetstream(shared, OverviewWanted::default()).await?;
    let jetstream = jetstream.map(|accounts| sum(accounts, visitor));
    Ok(Overview {
        uptime: monitor.now().as_secs_f64(),
        traffic: Traffic::of(&status),
        process: visitor.sees_server.then(|| Process {
            memory_bytes: process::resident_bytes(),
            cpu: process::processor_time().as_secs_f64(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            shards: shared.shards.len(),
            syncs: (shared.jetstream.is_some()).then(|| shared.common.sync_times.counts()),
        }),
        jetstream: jetstream.as_ref().map(JetStream::of),
    })
}

/// Sums the JetStream usage of the accounts that the visitor may see.
fn sum(mut accounts: Vec<AccountOverview>, visitor: &Visitor) -> JetStreamOverview {
    accounts.retain(|account| visitor.sees_server || account.name == visitor.account);
    JetStreamOverview::sum(&accounts)
}

impl Traffic {
    fn of(status: &ShardStatus) -> Self {
        Traffic {
            connections: status.connections,
            total_connections: status.total_connections,
            subscriptions: status.subscriptions,
            in_msgs: status.in_msgs,
            in_bytes: status.in_bytes,
            out_msgs: status.out_msgs,
            out_bytes: status.out_bytes,
            slow_consumers: status.slow_consumers,
            stale_connections: status.stale_connections,
            stalls: status.stalled_clients,
        }
    }
}

impl JetStream {
    fn of(overview: &JetStreamOverview) -> Self {
        JetStream {
            streams: overview.streams,
            consumers: overview.consumers,
            messages: overview.messages,
            lost: overview.lost,
            memory_bytes: overview.memory,
            storage_bytes: overview.storage,
            api_requests: overview.api.total,
            api_errors: overview.api.errors,
        }
    }
}
