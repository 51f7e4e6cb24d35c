//! `/metrics`: the counters of `/varz` for Prometheus, in its text format 0.0.4.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt::{Display, Write};
use std::time::Duration;

use fanline_engine::gateway::GatewayStatus;
use fanline_engine::jetstream::{AccountOverview, Overview, OverviewWanted};
use fanline_engine::leaf::LeafStatus;
use fanline_engine::route::{RouteDetail, RouteStatus};
use fanline_engine::{Backlog, ConnectionStatus, ShardStatus};
use hyper::StatusCode;

use super::answer::{Answer, Refusal};
use super::{Monitor, collect, drift, process};
use crate::ipc::ConnectionQuery;
use crate::ipc::{SyncCounts, sync_bound};
use crate::version::{COMPATIBLE_VERSION, VERSION};

pub(super) async fn answer(monitor: &Monitor) -> Result<Answer, Refusal> {
    let totals = collect::totals(&monitor.shared).await?;
    let mut page = Page::default();
    page.gauge(
        "uptime_seconds",
        "Seconds since the server started",
        monitor.now().as_secs_f64(),
    );
    page.gauge(
        "memory_bytes",
        "Resident memory of the process",
        process::resident_bytes(),
    );
    let worked = process::processor_time().as_secs_f64();
    page.counter("cpu_seconds_total", "CPU time of the process", worked);
    page.gauge(
        "shards",
        "Shards, the threads that share the connections",
        monitor.shared.shards.len(),
    );
    add_totals(&mut page, &totals);
    add_behind(&mut page, monitor).await?;
    add_leafs(&mut page, &collect::leafs(&monitor.shared, false).await?);
    if monitor.shared.options().gateway.is_some() {
        add_gateways(&mut page, &collect::gateways(&monitor.shared, false).await?);
        add_interest(&mut page, "gateway", &monitor.gateway_drift.rows());
    }
    if monitor.shared.options().cluster.is_some() {
        add_routes(
            &mut page,
            &collect::routes(&monitor.shared, RouteDetail::None).await?,
        );
        add_interest(&mut page, "cluster", &monitor.route_drift.rows());
    }
    let has_mqtt = monitor.shared.addresses.mqtt.is_some();
    let wanted = OverviewWanted {
        streams: has_mqtt,
        ..OverviewWanted::default()
    };
    if let Some(accounts) = collect::jetstream(&monitor.shared, wanted).await? {
        if has_mqtt {
            add_mqtt(&mut page, &accounts);
        }
        add_jetstream(&mut page, &Overview::sum(&accounts));
        add_syncs(&mut page, &monitor.shared.common.sync_times.counts());
    }
    let about = format!("fanline_info{{version={VERSION:?},nats_version={COMPATIBLE_VERSION:?}}}");
    page.metric("fanline_info", "gauge", "Versions of the server", &about, 1);
    page.heading(
        "fanline_http_requests_total",
        "counter",
        "Monitoring requests by path",
    );
    for (path, count) in monitor.requests.borrow().iter() {
        page.line(
            &format!("fanline_http_requests_total{{path={path:?}}}"),
            count,
        );
    }
    Ok(Answer {
        status: StatusCode::OK,
        content_type: "text/plain; version=0.0.4; charset=utf-8",
        body: page.text,
    })
}

fn add_totals(page: &mut Page, totals: &ShardStatus) {
    page.gauge("connections", "Open client connections", totals.connections);
    page.counter(
        "connections_total",
        "Client connections opened since the start",
        totals.total_connections,
    );
    page.gauge("subscriptions", "Subscriptions", totals.subscriptions);
    page.counter("in_msgs_total", "Messages from clients", totals.in_msgs);
    page.counter(
        "in_bytes_total",
        "Payload bytes from clients",
        totals.in_bytes,
    );
    page.counter("out_msgs_total", "Messages to clients", totals.out_msgs);
    page.counter(
        "out_bytes_total",
        "Payload bytes to clients",
        totals.out_bytes,
    );
    page.counter(
        "slow_consumers_total",
        "Clients disconnected as slow consumers",
        totals.slow_consumers,
    );
    page.counter(
        "stale_connections_total",
        "Clients disconnected as stale connections",
        totals.stale_connections,
    );
    page.counter(
        "stalls_total",
        "Times a publisher was held back",
        totals.stalled_clients,
    );
    page.gauge(
        "mqtt_connections",
        "Open connections of MQTT clients",
        totals.mqtt_connections,
    );
    page.gauge(
        "mqtt_in_flight_messages",
        "Unacknowledged messages above QoS 0 to MQTT clients",
        totals.mqtt_in_flight,
    );
    page.gauge(
        "cached_routes",
        "Subjects with a cached route",
        totals.cached_routes,
    );
    page.counter(
        "route_cache_hits_total",
        "Routes found in the cache",
        totals.cache_hits,
    );
    page.counter(
        "route_cache_misses_total",
        "Routes computed from the filters",
        totals.cache_misses,
    );
}

/// A connection to another server. The round-trip time of a new one is not known.
struct Link {
    labels: String,
    in_msgs: u64,
    in_bytes: u64,
    out_msgs: u64,
    out_bytes: u64,
    subscriptions: usize,
    rtt: Option<Duration>,
}

/// Adds the metrics that leaf connections, routes, and gateways have in common.
fn add_links(page: &mut Page, prefix: &str, what: &str, links: &[Link]) {
    type Value = fn(&Link) -> Option<f64>;
    #[expect(clippy::cast_precision_loss, reason = "Prometheus uses floats")]
    const METRICS: [(&str, &str, &str, Value); 6] = [
        ("in_msgs_total", "counter", "Messages from", |l| {
            Some(l.in_msgs as f64)
        }),
        ("in_bytes_total", "counter", "Payload bytes from", |l| {
            Some(l.in_bytes as f64)
        }),
        ("out_msgs_total", "counter", "Messages to", |l| {
            Some(l.out_msgs as f64)
        }),
        ("out_bytes_total", "counter", "Payload bytes to", |l| {
            Some(l.out_bytes as f64)
        }),
        ("subscriptions", "gauge", "Subscriptions of", |l| {
            Some(l.subscriptions as f64)
        }),
        ("rtt_seconds", "gauge", "Round trip time to", |l| {
            l.rtt.map(|rtt| rtt.as_secs_f64())
        }),
    ];
    for (name, kind, help, value) in METRICS {
        let values = links.iter().map(|link| (&link.labels, value(link)));
        let known = values.filter_map(|(labels, value)| Some((labels, value?)));
        page.series(
            &format!("fanline_{prefix}_{name}"),
            kind,
            &format!("{help} {what}"),
            known,
        );
    }
}

/// Adds the metrics of each leaf connection.
fn add_leafs(page: &mut Page, leafs: &[LeafStatus]) {
    page.gauge(
        "leafnodes",
        "Leaf connections to other servers",
        leafs.len(),
    );
    let links: Vec<Link> = (leafs.iter())
        .map(|leaf| {
            let (name, account) = (label_value(&leaf.name), label_value(&leaf.account));
            Link {
                labels: format!(
                    "{{id=\"{}\",name=\"{name}\",account=\"{account}\"}}",
                    leaf.id
                ),
                in_msgs: leaf.in_msgs,
                in_bytes: leaf.in_bytes,
                out_msgs: leaf.out_msgs,
                out_bytes: leaf.out_bytes,
                subscriptions: leaf.subscriptions,
                rtt: leaf.rtt,
            }
        })
        .collect();
    add_links(page, "leafnode", "a leaf node", &links);
    let reconnects = links.iter().zip(leafs);
    let reconnects = reconnects.map(|(link, leaf)| (&link.labels, leaf.reconnects));
    let (name, help) = (
        "fanline_leafnode_reconnects_total",
        "Reconnects of a leaf node",
    );
    page.series(name, "counter", help, reconnects);
}

/// Adds the metrics of each route.
fn add_routes(page: &mut Page, routes: &[RouteStatus]) {
    let servers: HashSet<&str> = (routes.iter())
        .map(|route| route.remote_id.as_str())
        .collect();
    page.gauge(
        "cluster_servers",
        "Other servers of the cluster to which there are routes",
        servers.len(),
    );
    page.gauge(
        "routes",
        "Connections to other servers of the cluster",
        routes.len(),
    );
    let links: Vec<Link> = (routes.iter())
        .map(|route| Link {
            labels: format!(
                "{{id=\"{}\",name=\"{}\"}}",
                route.rid,
                label_value(&route.remote_name)
            ),
            in_msgs: route.in_msgs,
            in_bytes: route.in_bytes,
            out_msgs: route.out_msgs,
            out_bytes: route.out_bytes,
            subscriptions: route.subscriptions,
            rtt: route.rtt,
        })
        .collect();
    add_links(page, "route", "a server of the cluster", &links);
    let pending = routes.iter().map(|route| route.pending_size);
    add_pending(page, "route", &links, pending);
}

/// Adds the pending output of connections to other servers.
fn add_pending(page: &mut Page, what: &str, links: &[Link], bytes: impl Iterator<Item = usize>) {
    let values = links.iter().map(|link| &link.labels).zip(bytes);
    page.series(
        &format!("fanline_{what}_pending_bytes"),
        "gauge",
        &format!("Output that a {what} has yet to write"),
        values,
    );
}

/// Adds the comparisons of interest with the other servers of the cluster, or with servers of other clusters.
fn add_interest(page: &mut Page, what: &str, rows: &[drift::Row]) {
    type Value = fn(&drift::Row) -> Option<i64>;
    const METRICS: [(&str, &str, Value); 3] = [
        (
            "announced",
            "Subscriptions announced to another server",
            |row| i64::try_from(row.announced?).ok(),
        ),
        (
            "counted",
            "Announced subscriptions that another server has counted",
            |row| i64::try_from(row.counted?).ok(),
        ),
        (
            "drift",
            "Announced subscriptions that another server lacks for long",
            |row| row.drift,
        ),
    ];
    let labels: Vec<String> = (rows.iter())
        .map(|row| {
            let server = label_value(&row.remote_name);
            match &row.gateway {
                None => format!("{{name=\"{server}\"}}"),
                Some(gateway) => {
                    let gateway = label_value(gateway);
                    format!("{{name=\"{gateway}\",server=\"{server}\"}}")
                }
            }
        })
        .collect();
    for (name, help, value) in METRICS {
        let name = format!("fanline_{what}_interest_{name}");
        let values = labels.iter().zip(rows);
        let known = values.filter_map(|(labels, row)| Some((labels, value(row)?)));
        page.series(&name, "gauge", help, known);
    }
}

/// Adds the metrics of each gateway connection.
fn add_gateways(page: &mut Page, gateways: &[GatewayStatus]) {
    let clusters: HashSet<&str> = (gateways.iter())
        .map(|gateway| gateway.gateway.as_str())
        .collect();
    page.gauge(
        "gateway_clusters",
        "Other clusters to which there are gateways",
        clusters.len(),
    );
    page.gauge(
        "gateways",
        "Connections to other clusters, dialed and accepted",
        gateways.len(),
    );
    let links: Vec<Link> = (gateways.iter())
        .map(|gateway| Link {
            labels: format!(
                "{{id=\"{}\",name=\"{}\",direction=\"{}\"}}",
                gateway.cid,
                label_value(&gateway.gateway),
                if gateway.is_dialed {
                    "outbound"
                } else {
                    "inbound"
                }
            ),
            in_msgs: gateway.in_msgs,
            in_bytes: gateway.in_bytes,
            out_msgs: gateway.out_msgs,
            out_bytes: gateway.out_bytes,
            subscriptions: gateway.subscriptions,
            rtt: gateway.rtt,
        })
        .collect();
    add_links(page, "gateway", "another cluster", &links);
    let pending = gateways.iter().map(|gateway| gateway.pending_size);
    add_pending(page, "gateway", &links, pending);
}

/// Adds metrics of slow connections with their names, so that slow consumers are found before they are
/// disconnected.
async fn add_behind(page: &mut Page, monitor: &Monitor) -> Result<(), Refusal> {
    /// Largest number of listed connections. Those with the most pending output are listed. There is a limit
    /// because each connection is a time series of its own.
    const NAMED_MAX: usize = 50;
    let wanted = ConnectionQuery {
        open: true,
        behind: true,
        ..ConnectionQuery::default()
    };
    let mut behind = collect::connections(&monitor.shared, &wanted).await?.open;
    page.gauge(
        "connections_behind",
        "Slow connections, which read more slowly than their output arrives",
        behind.len(),
    );
    behind.sort_by_key(|status| Reverse(status.pending_bytes));
    behind.truncate(NAMED_MAX);
    let now = monitor.now();
    let access = monitor.shared.access();
    let series: Vec<(String, usize, f64)> = (behind.iter())
        .map(|status| {
            let backlog = status.backlog.as_deref().cloned().unwrap_or_default();
            let since = backlog.since.unwrap_or(now);
            let waited = now.saturating_sub(since).as_secs_f64();
            let account = access.account(status.account);
            let account = account.map_or("", |account| &account.name);
            (
                labels(status, account, &backlog),
                status.pending_bytes,
                waited,
            )
        })
        .collect();
    let name = "fanline_connection_pending_bytes";
    page.heading(name, "gauge", "Pending bytes of a slow connection");
    for (labels, bytes, _) in &series {
        page.line(&format!("{name}{labels}"), bytes);
    }
    let name = "fanline_connection_pending_seconds";
    page.heading(
        name,
        "gauge",
        "How long a slow connection has had pending output",
    );
    for (labels, _, seconds) in &series {
        page.line(&format!("{name}{labels}"), seconds);
    }
    Ok(())
}

fn labels(status: &ConnectionStatus, account: &str, backlog: &Backlog) -> String {
    let cid = status.cid.to_string();
    let labels = [
        ("cid", cid.as_str()),
        ("name", &status.name),
        ("account", account),
        ("user", &status.user),
        ("subject", backlog.subject.as_deref().unwrap_or_default()),
    ];
    let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", label_value(value)));
    format!("{{{}}}", labels.join(","))
}

/// Returns a label value. Clients choose their names, so every character that could end the value is escaped.
fn label_value(text: &str) -> String {
    /// Largest number of characters of a value.
    const CHARACTERS_MAX: usize = 128;
    let mut value = String::new();
    for character in text.chars().take(CHARACTERS_MAX) {
        match character {
            '\\' => value += "\\\\",
            '"' => value += "\\\"",
            '\n' => value += "\\n",
            other => value.push(other),
        }
    }
    value
}

/// Adds the state of MQTT clients in the streams of their accounts.
fn add_mqtt(page: &mut Page, accounts: &[AccountOverview]) {
    let streams = || {
        accounts
            .iter()
            .flat_map(|account| &account.overview.stream_detail)
    };
    for (stream, name, help) in [
        (
            "$MQTT_sess",
            "mqtt_kept_sessions",
            "Stored MQTT sessions: persistent ones, and those with a will",
        ),
        (
            "$MQTT_rmsgs",
            "mqtt_retained_messages",
            "Retained MQTT messages",
        ),
        (
            "$MQTT_msgs",
            "mqtt_kept_messages",
            "Stored messages above QoS 0 that some MQTT session has not received",
        ),
    ] {
        let found = streams().filter(|found| found.name == stream);
        let messages: u64 = found.map(|found| found.state.messages).sum();
        page.gauge(name, help, messages);
    }
}

fn add_jetstream(page: &mut Page, overview: &Overview) {
    page.gauge("jetstream_streams", "Streams", overview.streams);
    page.gauge(
        "jetstream_consumers",
        "Consumers of all streams",
        overview.consumers,
    );
    page.gauge(
        "jetstream_messages",
        "Messages of all streams",
        overview.messages,
    );
    page.gauge(
        "jetstream_memory_bytes",
        "Bytes of all memory streams",
        overview.memory,
    );
    page.gauge(
        "jetstream_storage_bytes",
        "Bytes of all file streams",
        overview.storage,
    );
    page.gauge(
        "jetstream_lost_messages",
        "Messages lost on disk",
        overview.lost,
    );
    page.counter(
        "jetstream_api_requests_total",
        "Requests of the JetStream API",
        overview.api.total,
    );
    page.counter(
        "jetstream_api_errors_total",
        "Failed requests of the JetStream API",
        overview.api.errors,
    );
}

/// Adds a histogram of the time that acknowledgements wait for the disk.
fn add_syncs(page: &mut Page, syncs: &SyncCounts) {
    let name = "fanline_jetstream_sync_seconds";
    page.heading(name, "histogram", "Duration of disk syncs");
    let mut count = 0;
    for (bucket, new) in syncs.buckets.iter().enumerate() {
        count += new;
        let bound = sync_bound(bucket).map(|bound| bound.as_secs_f64().to_string());
        let bound = bound.as_deref().unwrap_or("+Inf");
        page.line(&format!("{name}_bucket{{le=\"{bound}\"}}"), count);
    }
    let seconds = Duration::from_micros(syncs.micros).as_secs_f64();
    page.line(&format!("{name}_sum"), seconds);
    page.line(&format!("{name}_count"), count);
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// Adds a metric with several series, each with its labels.
    fn series<'a>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl Iterator<Item = (&'a String, impl Display)>,
    ) {
        self.heading(name, kind, help);
        for (labels, value) in values {
            self.line(&format!("{name}{labels}"), value);
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        let name = format!("fanline_{name}");
        self.metric(&name, "gauge", help, &name, value);
    }

    /// Adds a counter, whose name ends in `_total`.
    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        let name = format!("fanline_{name}");
        self.metric(&name, "counter", help, &name, value);
    }

    fn metric(&mut self, name: &str, kind: &str, help: &str, series: &str, value: impl Display) {
        self.heading(name, kind, help);
        self.line(series, value);
    }

    fn heading(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    fn line(&mut self, series: &str, value: impl Display) {
        let _ = writeln!(self.text, "{series} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_label() {
        assert_eq!(label_value("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
        assert_eq!(label_value(&"é".repeat(200)).chars().count(), 128);
    }
}
