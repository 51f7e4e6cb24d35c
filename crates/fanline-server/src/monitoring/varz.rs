//! `/varz`: the server as a whole. Keys, their order, and their types equal nats-server's. Only the key
//! `fanline` is added. Unsupported features are empty objects.

use std::collections::BTreeMap;
use std::time::Duration;

use fanline_engine::ShardStatus;
use fanline_engine::auth::{Access, AccountId};
use fanline_engine::jetstream::{Overview, OverviewWanted};
use serde::Serialize;

use super::answer::{Answer, Number, Refusal};
use super::connz::ProxyKey;
use super::listeners::{WebSocket, not_after, tls_timeout};
use super::{Monitor, collect, jetstream, now_text, process, time};
use crate::Options;
use crate::client::url::Url;
use crate::config::FEATURE_FLAGS;
use crate::version::{COMPATIBLE_VERSION, VERSION};

#[derive(Serialize)]
struct Varz<'a> {
    #[serde(flatten)]
    identity: Identity<'a>,
    #[serde(flatten)]
    settings: Settings,
    #[serde(flatten)]
    process: Process,
    #[serde(flatten)]
    traffic: Traffic,
    http_req_stats: BTreeMap<&'static str, u64>,
    config_load_time: String,
    config_digest: String,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
    feature_flags: BTreeMap<&'static str, bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    system_account: String,
    slow_consumer_stats: ByKind,
    stale_connection_stats: ByKind,
    disk_io_wait_stats: DiskWaits,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxies: Option<Proxies>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert_not_after: Option<String>,
}

/// Trusted proxies.
#[derive(Serialize)]
struct Proxies {
    trusted: Vec<ProxyKey>,
}

impl Proxies {
    fn of(access: &Access) -> Option<Self> {
        let keys = access.proxies().iter();
        let trusted: Vec<ProxyKey> = keys.copied().map(ProxyKey::from).collect();
        (!trusted.is_empty()).then_some(Proxies { trusted })
    }
}

#[derive(Serialize)]
struct Identity<'a> {
    server_id: &'a str,
    server_name: &'a str,
    version: &'static str,
    proto: u8,
    // Fanline is not a Go program, but readers expect the key.
    go: &'static str,
    fanline: &'static str,
    host: &'a str,
    port: u16,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    auth_required: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_required: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_verify: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<&'a str>,
}

#[derive(Serialize)]
struct Leaf {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_timeout: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_timeout: Option<Number>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_required: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_verify: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remotes: Vec<Remote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert_not_after: Option<String>,
}

#[derive(Serialize)]
struct Remote {
    local_account: String,
    urls: Vec<String>,
    #[serde(skip_serializing_if = "Deny::is_empty")]
    deny: Deny,
}

#[derive(Serialize)]
struct Deny {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exports: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    imports: Vec<String>,
}

impl Deny {
    fn is_empty(&self) -> bool {
        self.exports.is_empty() && self.imports.is_empty()
    }
}

/// The server's settings. Durations are in nanoseconds, except `auth_timeout` and `tls_timeout`, which are in
/// seconds.
#[derive(Serialize)]
struct Settings {
    max_connections: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_subscriptions: Option<usize>,
    ping_interval: u128,
    ping_max: u32,
    http_host: String,
    http_port: u16,
    http_base_path: String,
    https_port: u16,
    auth_timeout: Number,
    max_control_line: usize,
    max_payload: usize,
    max_pending: usize,
    cluster: Cluster,
    gateway: Gateway,
    leaf: Leaf,
    mqtt: Mqtt,
    websocket: WebSocket,
    jetstream: JetStream,
    tls_timeout: Number,
    write_deadline: u128,
}

/// Gateways. Empty if the cluster is connected to no other one.
#[derive(Default, Serialize)]
struct Gateway {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_timeout: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_timeout: Option<Number>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_required: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_verify: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    advertise: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connect_retries: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gateways: Vec<OtherCluster>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reject_unknown: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert_not_after: Option<String>,
}

#[derive(Serialize)]
struct OtherCluster {
    name: String,
    urls: Vec<String>,
}

impl Gateway {
    fn of(monitor: &Monitor, options: &Options) -> Self {
        let Some(gateway) = &options.gateway else {
            return Gateway::default();
        };
        let tls = gateway.tls.as_ref();
        let location = |url: &String| Url::split(url).location.to_owned();
        let others = gateway.gateways.iter().map(|remote| OtherCluster {
            name: remote.name.clone(),
            urls: remote.urls.iter().map(location).collect(),
        });
        Gateway {
            name: Some(gateway.name.clone()),
            host: Some(gateway.host.clone()),
            port: monitor.shared.addresses.gateway.map(|own| own.port()),
            auth_timeout: Some(Number(gateway.auth_timeout.as_secs_f64())),
            tls_timeout: Some(tls_timeout(tls)),
            tls_required: tls.is_some(),
            tls_verify: tls.is_some(),
            advertise: gateway.advertise.clone(),
            connect_retries: Some(gateway.connect_retries).filter(|retries| *retries > 0),
            gateways: others.collect(),
            reject_unknown: gateway.rejects_unknown,
            tls_cert_not_after: (monitor.shared.tls().gateways.as_ref())
                .and_then(|tls| tls.accepted.not_after()),
        }
    }
}

/// The cluster. Empty if the server is no member of one.
#[derive(Default, Serialize)]
struct Cluster {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    addr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_timeout: Option<Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_timeout: Option<Number>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_required: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_verify: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert_not_after: Option<String>,
}

/// The MQTT settings. Empty if MQTT is off.
#[derive(Default, Serialize)]
struct Mqtt {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_auth_user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_timeout: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_timeout: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_wait: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ack_pending: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert_not_after: Option<String>,
}

/// The JetStream settings and figures. Empty if JetStream is off.
#[derive(Default, Serialize)]
pub(super) struct JetStream {
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<jetstream::Config>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<jetstream::Stats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<jetstream::Limits>,
}

#[derive(Serialize)]
struct Process {
    start: String,
    now: String,
    uptime: String,
    mem: u64,
    cores: usize,
    gomaxprocs: usize,
    cpu: Number,
}

#[derive(Serialize)]
struct Traffic {
    connections: usize,
    total_connections: u64,
    routes: usize,
    remotes: usize,
    leafnodes: usize,
    in_msgs: u64,
    in_bytes: u64,
    in_client_msgs: u64,
    in_client_bytes: u64,
    out_msgs: u64,
    out_bytes: u64,
    out_client_msgs: u64,
    out_client_bytes: u64,
    slow_consumers: u64,
    stale_connections: u64,
    stalled_clients: u64,
    subscriptions: usize,
}

#[derive(Default, Serialize)]
struct ByKind {
    clients: u64,
    routes: u64,
    gateways: u64,
    leafs: u64,
}

#[derive(Default, Serialize)]
struct DiskWaits {
    waiters: u64,
    waits: u64,
    wait_time: u64,
    max_wait_time: u64,
}

pub(super) async fn answer(monitor: &Monitor) -> Result<Answer, Refusal> {
    let totals = collect::totals(&monitor.shared).await?;
    let accounts = collect::jetstream(&monitor.shared, OverviewWanted::default()).await?;
    let overview = accounts.as_deref().map(Overview::sum);
    let jetstream = jetstream(monitor, overview.as_ref());
    let options = monitor.shared.options();
    let by_clients = |clients| ByKind {
        clients,
        ..ByKind::default()
    };
    Ok(Answer::json(&Varz {
        identity: identity(monitor),
        settings: settings(monitor, jetstream),
        process: process(monitor),
        traffic: traffic(&totals),
        http_req_stats: monitor.requests.borrow().clone(),
        config_load_time: monitor.date(Duration::ZERO),
        config_digest: (options.origin.as_ref())
            .map_or_else(String::new, |origin| origin.digest.clone()),
        tags: &options.server_tags,
        metadata: &options.server_metadata,
        feature_flags: FEATURE_FLAGS.into(),
        system_account: match options.no_system_account {
            true => String::new(),
            false => monitor.account_name(AccountId::SYSTEM),
        },
        slow_consumer_stats: by_clients(totals.slow_consumers),
        stale_connection_stats: by_clients(totals.stale_connections),
        disk_io_wait_stats: DiskWaits::default(),
        proxies: Proxies::of(&monitor.shared.access()),
        tls_cert_not_after: not_after(monitor.shared.tls().clients.as_ref()),
    }))
}

pub(super) fn jetstream(monitor: &Monitor, overview: Option<&Overview>) -> JetStream {
    match (&monitor.shared.options().jetstream, overview) {
        (Some(options), Some(overview)) => JetStream {
            config: Some(jetstream::Config::of(options, overview)),
            stats: Some(jetstream::Stats::of(overview)),
            limits: Some(jetstream::Limits::of(options)),
        },
        _ => JetStream::default(),
    }
}

fn identity(monitor: &Monitor) -> Identity<'_> {
    let info = &monitor.shared.info;
    let options = monitor.shared.options();
    let tls = options.tls.as_ref();
    Identity {
        server_id: &info.server_id,
        server_name: &info.server_name,
        version: COMPATIBLE_VERSION,
        proto: 1,
        go: "none",
        fanline: VERSION,
        host: &info.host,
        port: info.port,
        auth_required: monitor.shared.access().is_required(),
        tls_required: tls.is_some() && !options.allow_non_tls,
        tls_verify: tls.is_some_and(|tls| tls.client_certificates.is_required()),
        ip: info.ip.as_deref(),
    }
}

fn settings(monitor: &Monitor, jetstream: JetStream) -> Settings {
    let shared = &monitor.shared;
    let options = shared.options();
    let limits = &options.limits;
    let port = shared
        .addresses
        .monitoring
        .map_or(0, |address| address.port());
    Settings {
        max_connections: limits.connections_max,
        max_subscriptions: limits.subscriptions_max,
        ping_interval: limits.ping_interval.as_nanos(),
        ping_max: limits.pings_out_max,
        http_host: options
            .monitoring
            .as_ref()
            .map_or_else(String::new, |(host, _)| host.clone()),
        http_port: if options.monitoring_tls { 0 } else { port },
        http_base_path: options.monitoring_base_path.clone(),
        https_port: if options.monitoring_tls { port } else { 0 },
        auth_timeout: Number(limits.auth_timeout.as_secs_f64()),
        max_control_line: limits.control_line_bytes_max,
        max_payload: limits.payload_bytes_max,
        max_pending: limits.pending_bytes_max,
        cluster: cluster(monitor, &options),
        gateway: Gateway::of(monitor, &options),
        leaf: leaf(monitor, &options),
        mqtt: mqtt(monitor, &options),
        websocket: WebSocket::of(monitor, &options),
        jetstream,
        tls_timeout: tls_timeout(options.tls.as_ref()),
        write_deadline: limits.write_deadline.as_nanos(),
    }
}

fn cluster(monitor: &Monitor, options: &Options) -> Cluster {
    let name = options.cluster_name.clone();
    let Some(cluster) = &options.cluster else {
        return Cluster {
            name,
            ..Cluster::default()
        };
    };
    let tls = cluster.tls.as_ref();
    Cluster {
        name,
        addr: Some(cluster.host.clone()),
        cluster_port: monitor
            .shared
            .addresses
            .cluster
            .map(|address| address.port()),
        auth_timeout: Some(Number(cluster.auth_timeout.as_secs_f64())),
        urls: (cluster.routes.iter())
            .map(|url| Url::split(url).location.to_owned())
            .collect(),
        tls_timeout: Some(tls_timeout(tls)),
        tls_required: tls.is_some(),
        tls_verify: tls.is_some(),
        tls_cert_not_after: (monitor.shared.tls().routes.as_ref())
            .and_then(|tls| tls.accepted.not_after()),
    }
}

fn leaf(monitor: &Monitor, options: &Options) -> Leaf {
    let listener = options.leafnodes.listener.as_ref();
    let tls = listener.and_then(|listener| listener.tls.as_ref());
    let remotes = options.leafnodes.remotes.iter().map(|remote| Remote {
        local_account: remote.account.clone(),
        urls: (remote.urls.iter())
            .map(|url| Url::split(url).location.to_owned())
            .collect(),
        deny: Deny {
            exports: remote.deny_exports.clone(),
            imports: remote.deny_imports.clone(),
        },
    });
    Leaf {
        host: listener.map(|listener| listener.host.clone()),
        port: monitor
            .shared
            .addresses
            .leafnodes
            .map(|address| address.port()),
        auth_timeout: listener.map(|listener| {
            let usual = options.limits.auth_timeout;
            Number(listener.auth_timeout.unwrap_or(usual).as_secs_f64())
        }),
        tls_timeout: listener.map(|_| tls_timeout(tls)),
        tls_required: tls.is_some(),
        tls_verify: tls.is_some_and(|tls| tls.client_certificates.is_required()),
        remotes: remotes.collect(),
        tls_cert_not_after: not_after(monitor.shared.tls().leafs.as_ref()),
    }
}

fn mqtt(monitor: &Monitor, options: &Options) -> Mqtt {
    let Some(mqtt) = &options.mqtt else {
        return Mqtt::default();
    };
    let address = monitor.shared.addresses.mqtt;
    Mqtt {
        host: Some(mqtt.host.clone()),
        port: address.map(|address| address.port()),
        no_auth_user: mqtt.no_auth_user.clone(),
        auth_timeout: mqtt.auth_timeout.map(|time| Number(time.as_secs_f64())),
        tls_timeout: Some(tls_timeout(mqtt.tls.as_ref())),
        ack_wait: Some(mqtt.ack_wait.as_nanos()),
        max_ack_pending: Some(mqtt.max_ack_pending),
        tls_cert_not_after: not_after(monitor.shared.tls().mqtt.as_ref()),
    }
}

fn process(monitor: &Monitor) -> Process {
    Process {
        start: monitor.date(Duration::ZERO),
        now: now_text(),
        uptime: time::uptime(monitor.now()),
        mem: process::resident_bytes(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        // The number of shards is the closest equivalent of Go's setting.
        gomaxprocs: monitor.shared.shards.len(),
        cpu: Number(monitor.cpu.borrow_mut().percent()),
    }
}

fn traffic(totals: &ShardStatus) -> Traffic {
    Traffic {
        connections: totals.connections,
        total_connections: totals.total_connections,
        routes: totals.routes,
        remotes: totals.remotes,
        leafnodes: totals.leafnodes,
        in_msgs: totals.in_msgs,
        in_bytes: totals.in_bytes,
        in_client_msgs: totals.in_msgs - totals.leafs.in_msgs,
        in_client_bytes: totals.in_bytes - totals.leafs.in_bytes,
        out_msgs: totals.out_msgs,
        out_bytes: totals.out_bytes,
        out_client_msgs: totals.out_msgs - totals.leafs.out_msgs,
        out_client_bytes: totals.out_bytes - totals.leafs.out_bytes,
        slow_consumers: totals.slow_consumers,
        stale_connections: totals.stale_connections,
        stalled_clients: totals.stalled_clients,
        subscriptions: totals.subscriptions,
    }
}
