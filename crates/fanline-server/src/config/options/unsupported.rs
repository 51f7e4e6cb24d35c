//! Options of nats-server that Fanline does not have, or not yet, and those that say nothing here.

use serde_json::Value as Json;

use crate::config::read::{Given, Read};
use crate::config::table::Kind::{
    Address, Any, Block, Blocks, Bool, Duration, Integer, Port, Text, Texts,
};
use crate::config::table::{Entry, refused, warned, within, works};

const CLUSTER: &str = "cluster is not supported by Fanline yet: this server runs alone";
const GATEWAY: &str = "gateways are not supported by Fanline";

pub(super) const OPTIONS: &[Entry] = &[
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
        "disable_sublist_cache",
        Bool,
        "Fanline's cache has no switch",
    )
    .alias(&["no_sublist_cache"])
    .help("Match without a cache."),
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
    refused("ocsp", Any, "OCSP is not supported by Fanline").help("OCSP stapling."),
    refused("ocsp_cache", Any, "OCSP is not supported by Fanline").help("What it keeps."),
    works("feature_flags", Block, |_, given| flags(given), |_| Json::Null)
        .help("nats-server's switches for what is new. None changes anything: those that would are refused."),
    within("feature_flags.*", Bool).help("One of them."),
];

/// Flags of nats-server that are off there by default, and change what it does when they are on.
const FLAGS: &[&str] = &["js_ack_fc_v2", "js_api_reply_v2", "js_snapshot_sources"];

/// Takes those that ask for what Fanline does anyway: nats-server takes any name.
fn flags(given: &Given<'_>) -> Read<()> {
    for field in given.fields()? {
        let is_on = field.boolean()?;
        let mut known = FLAGS.iter();
        if is_on && known.any(|flag| flag.eq_ignore_ascii_case(field.key)) {
            let key = field.key;
            return Err(field.fault(format!("{key}: Fanline does not have what it switches on")));
        }
    }
    Ok(())
}
