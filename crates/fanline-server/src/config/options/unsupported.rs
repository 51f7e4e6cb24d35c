//! Options of nats-server that Fanline does not have, or not yet.

use crate::config::table::Kind::{
    Address, Any, Block, Blocks, Bool, Duration, Integer, Path, Port, Text, Texts,
};
use crate::config::table::{Entry, refused, warned, within};

const CLUSTER: &str = "cluster is not supported by Fanline yet: this server runs alone";
const TAGS: &str = "server_tags is not supported by Fanline yet: nobody is told of them";
const GATEWAY: &str = "gateways are not supported by Fanline";
const ALONE: &str = "it is about routes, and Fanline does not make any yet";

pub(super) const OPTIONS: &[Entry] = &[
    warned("server_tags", Texts, TAGS).help("Tags by which streams are placed."),
    warned(
        "server_metadata",
        Block,
        "server_metadata is not supported by Fanline yet: nobody is told of it",
    )
    .help("More about the server."),
    within("server_metadata.*", Text).help("One thing about it."),
    warned("cluster", Block, CLUSTER).help("Servers that work as one."),
    within("cluster.name", Text),
    within("cluster.listen", Address),
    within("cluster.host", Text).alias(&["net"]),
    within("cluster.port", Port),
    within("cluster.authorization", Block).like("leafnodes.authorization"),
    within("cluster.permissions", Block),
    within("cluster.permissions.*", Any),
    within("cluster.routes", Texts),
    within("cluster.tls", Block).like("tls"),
    within("cluster.advertise", Text).alias(&["cluster_advertise"]),
    within("cluster.no_advertise", Bool),
    within("cluster.connect_retries", Integer),
    within("cluster.connect_backoff", Bool),
    within("cluster.pool_size", Integer),
    within("cluster.accounts", Texts),
    within("cluster.compression", Any),
    within("cluster.ping_interval", Duration),
    within("cluster.ping_max", Integer),
    within("cluster.write_deadline", Duration),
    within("cluster.write_timeout", Text),
    refused("gateway", Block, GATEWAY).help("Clusters that work as one."),
    within("gateway.name", Text),
    within("gateway.listen", Address),
    within("gateway.host", Text).alias(&["net"]),
    within("gateway.port", Port),
    within("gateway.authorization", Block).like("leafnodes.authorization"),
    within("gateway.tls", Block).like("tls"),
    within("gateway.advertise", Text),
    within("gateway.connect_retries", Integer),
    within("gateway.connect_backoff", Bool),
    within("gateway.reject_unknown_cluster", Bool).alias(&["reject_unknown"]),
    within("gateway.gateways", Blocks),
    within("gateway.gateways.name", Text),
    within("gateway.gateways.url", Text),
    within("gateway.gateways.urls", Texts),
    within("gateway.gateways.tls", Block).like("tls"),
    within("gateway.write_deadline", Duration),
    within("gateway.write_timeout", Text),
    refused(
        "no_system_account",
        Bool,
        "Fanline always has its system account",
    )
    .alias(&["no_system", "no_sys_acc"])
    .help("Do without."),
    refused(
        "default_js_domain",
        Block,
        "domains by account are not supported by Fanline yet",
    )
    .help("Domains by account."),
    refused(
        "http_base_path",
        Path,
        "monitoring is served at / only so far",
    )
    .help("Where monitoring begins."),
    refused(
        "max_subscription_tokens",
        Integer,
        "Fanline takes topics of any number of tokens",
    )
    .alias(&["max_sub_tokens"])
    .help("Tokens of a filter."),
    refused(
        "max_closed_clients",
        Integer,
        "Fanline remembers a fixed number of closed clients",
    )
    .help("Closed clients that monitoring tells of."),
    refused(
        "disable_sublist_cache",
        Bool,
        "Fanline's cache has no switch",
    )
    .alias(&["no_sublist_cache"])
    .help("Match without a cache."),
    refused("trace_headers", Bool, "`trace` logs headers with the rest").help("Log headers only."),
    refused(
        "max_traced_msg_len",
        Integer,
        "a limit for traced payloads is not supported by Fanline yet",
    )
    .flags("--max_traced_msg_len")
    .help("Bytes of a payload that are traced."),
    refused(
        "prof_port",
        Port,
        "profiling over HTTP is not supported by Fanline",
    )
    .flags("--profile")
    .help("Profiling over HTTP."),
    refused(
        "prof_block_rate",
        Integer,
        "profiling over HTTP is not supported by Fanline",
    )
    .help("How much is profiled."),
    refused("connect_error_reports", Integer, ALONE).help("How often failed routes are logged."),
    refused("reconnect_error_reports", Integer, ALONE).help("The same for routes that were lost."),
    refused("ocsp", Any, "OCSP is not supported by Fanline").help("OCSP stapling."),
    refused("ocsp_cache", Any, "OCSP is not supported by Fanline").help("What it keeps."),
    refused("feature_flags", Block, "Fanline has no feature flags")
        .help("nats-server's switches for what is new."),
    within("feature_flags.*", Bool).help("One of them."),
];
