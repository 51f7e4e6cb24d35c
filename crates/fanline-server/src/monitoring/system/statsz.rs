//! Counters of the server, published every ten seconds, and of accounts.

use std::time::Duration;

use fanline_engine::gateway::GatewayStatus;
use fanline_engine::jetstream::{Overview, OverviewWanted};
use fanline_engine::route::{RouteDetail, RouteStatus};
use serde_json::{Value, json};

use super::super::answer::{Number, Refusal};
use super::super::{Monitor, collect, process, varz};

fn flow(msgs: u64, bytes: u64) -> Value {
    json!({ "msgs": msgs, "bytes": bytes })
}

/// Returns the counters of the dialed gateway connections.
fn of_gateways(gateways: &[GatewayStatus]) -> Value {
    let inbound_from = |name: &str| {
        let inbound = gateways.iter().filter(|one| !one.is_dialed);
        inbound.filter(|one| one.gateway == name).count()
    };
    let outbound = gateways.iter().filter(|one| one.is_dialed).map(|one| {
        json!({
            "gwid": one.cid,
            "name": one.gateway,
            "sent": flow(one.out_msgs, one.out_bytes),
            "received": flow(one.in_msgs, one.in_bytes),
            "inbound_connections": inbound_from(&one.gateway),
        })
    });
    outbound.collect()
}

/// Returns a summary of `/varz`. `peers` is the number of other servers.
pub(super) async fn of_server(monitor: &Monitor, peers: usize) -> Result<Value, Refusal> {
    let totals = collect::totals(&monitor.shared).await?;
    let accounts = collect::jetstream(&monitor.shared, OverviewWanted::default()).await?;
    let overview = accounts.as_deref().map(Overview::sum);
    let active_accounts = monitor.used_accounts().await?.len();
    let cpu = Number(monitor.cpu.borrow_mut().percent());
    let sent = flow(totals.out_msgs, totals.out_bytes);
    let received = flow(totals.in_msgs, totals.in_bytes);
    let mut statsz = json!({
        "start": monitor.date(Duration::ZERO),
        "mem": process::resident_bytes(),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "cpu": cpu,
        "connections": totals.connections,
        "total_connections": totals.total_connections,
        "active_accounts": active_accounts,
        "subscriptions": totals.subscriptions,
        "sent": sent,
        "sent_to_clients": sent,
        "received": received,
        "received_from_clients": received,
        "slow_consumers": totals.slow_consumers,
        "active_servers": peers + 1,
        "gomaxprocs": monitor.shared.shards.len(),
    });
    let routes = collect::routes(&monitor.shared, RouteDetail::None).await?;
    let route = |route: &RouteStatus| {
        json!({
            "rid": route.rid,
            "name": route.remote_name,
            "sent": flow(route.out_msgs, route.out_bytes),
            "received": flow(route.in_msgs, route.in_bytes),
            "pending": route.pending_size,
        })
    };
    if !routes.is_empty() {
        statsz["routes"] = routes.iter().map(route).collect();
    }
    let gateways = collect::gateways(&monitor.shared, false).await?;
    if !gateways.is_empty() {
        statsz["gateways"] = of_gateways(&gateways);
    }
    if overview.is_some() {
        let jetstream = varz::jetstream(monitor, overview.as_ref());
        statsz["jetstream"] = serde_json::to_value(jetstream).unwrap_or_default();
        // The folder is left out, because readers of counters need not know it.
        if let Some(Value::Object(config)) = statsz.pointer_mut("/jetstream/config") {
            config.remove("store_dir");
        }
    }
    Ok(statsz)
}
