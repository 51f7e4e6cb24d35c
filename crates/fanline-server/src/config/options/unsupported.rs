//! Options of nats-server that Fanline does not have, or not yet.

use crate::config::table::Kind::{
    Address, Any, Block, Blocks, Bool, Duration, Integer, Path, Port, Text, Texts,
};
use crate::config::table::{Entry, refused, warned, within};

const CLUSTER: &str = "cluster is not supported by Fanline yet: this server runs alone";
const LEAFNODES: &str =
    "leafnodes is not supported by Fanline yet: nobody can connect, and it connects to nobody";
const TAGS: &str = "server_tags is not supported by Fanline yet: nobody is told of them";
const GATEWAY: &str = "gateways are not supported by Fanline";
const MQTT: &str = "MQTT is not supported by Fanline yet";
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
    warned("leafnodes", Block, LEAFNODES)
        .alias(&["leaf"])
        .help("Servers at the edge."),
    within("leafnodes.listen", Address),
    within("leafnodes.host", Text).alias(&["net"]),
    within("leafnodes.port", Port),
    within("leafnodes.authorization", Block),
    within("leafnodes.authorization.user", Text).alias(&["username"]),
    within("leafnodes.authorization.password", Text)
        .alias(&["pass"])
        .secret(),
    within("leafnodes.authorization.nkey", Text),
    within("leafnodes.authorization.users", Blocks),
    within("leafnodes.authorization.users.*", Any),
    within("leafnodes.authorization.account", Text),
    within("leafnodes.authorization.timeout", Any),
    within("leafnodes.authorization.proxy_required", Bool),
    within("leafnodes.tls", Block).like("tls"),
    within("leafnodes.advertise", Text),
    within("leafnodes.no_advertise", Bool),
    within("leafnodes.min_version", Text),
    within("leafnodes.compression", Any),
    within("leafnodes.reconnect", Any).alias(&["reconnect_delay", "reconnect_interval"]),
    within("leafnodes.dial_timeout", Duration),
    within("leafnodes.isolate_leafnode_interest", Bool).alias(&["isolate"]),
    within("leafnodes.write_deadline", Duration),
    within("leafnodes.write_timeout", Text),
    within("leafnodes.remotes", Blocks),
    within("leafnodes.remotes.url", Text),
    within("leafnodes.remotes.urls", Texts),
    within("leafnodes.remotes.account", Text).alias(&["local"]),
    within("leafnodes.remotes.credentials", Path).alias(&["creds"]),
    within("leafnodes.remotes.nkey", Text)
        .alias(&["seed"])
        .secret(),
    within("leafnodes.remotes.tls", Block).like("tls"),
    within("leafnodes.remotes.hub", Bool),
    within("leafnodes.remotes.deny_imports", Texts).alias(&["deny_import"]),
    within("leafnodes.remotes.deny_exports", Texts).alias(&["deny_export"]),
    within("leafnodes.remotes.no_randomize", Bool),
    within("leafnodes.remotes.ws_compression", Bool).alias(&["websocket_compression"]),
    within("leafnodes.remotes.ws_no_masking", Bool).alias(&["websocket_no_masking"]),
    within("leafnodes.remotes.compression", Any),
    within("leafnodes.remotes.first_info_timeout", Duration),
    within("leafnodes.remotes.dial_timeout", Duration),
    within("leafnodes.remotes.jetstream_cluster_migrate", Any).alias(&["js_cluster_migrate"]),
    within("leafnodes.remotes.isolate_leafnode_interest", Bool).alias(&["isolate"]),
    within("leafnodes.remotes.request_isolation", Bool),
    within("leafnodes.remotes.disabled", Bool),
    within("leafnodes.remotes.ignore_discovered_servers", Bool),
    within("leafnodes.remotes.proxy", Block),
    within("leafnodes.remotes.proxy.*", Any),
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
    refused("mqtt", Block, MQTT).help("Clients over MQTT."),
    within("mqtt.listen", Address),
    within("mqtt.host", Text).alias(&["net"]),
    within("mqtt.port", Port),
    within("mqtt.tls", Block).like("tls"),
    within("mqtt.authorization", Block)
        .alias(&["authentication"])
        .like("leafnodes.authorization"),
    within("mqtt.no_auth_user", Text),
    within("mqtt.ack_wait", Duration).alias(&["ackwait"]),
    within("mqtt.max_ack_pending", Integer).alias(&["max_pending"]),
    within("mqtt.stream_replicas", Integer),
    within("mqtt.consumer_replicas", Integer),
    within("mqtt.consumer_memory_storage", Bool),
    within("mqtt.consumer_inactive_threshold", Duration),
    within("mqtt.js_domain", Text),
    within("mqtt.js_api_timeout", Duration),
    within("mqtt.reject_qos2_publish", Bool),
    within("mqtt.downgrade_qos2_subscribe", Bool),
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
    refused(
        "proxies",
        Block,
        "proxies that sign are not supported by Fanline yet",
    )
    .help("Proxies that are trusted."),
    within("proxies.trusted", Blocks).help("Their keys."),
    within("proxies.trusted.key", Text).help("One of them."),
    refused("feature_flags", Block, "Fanline has no feature flags")
        .help("nats-server's switches for what is new."),
    within("feature_flags.*", Bool).help("One of them."),
];
