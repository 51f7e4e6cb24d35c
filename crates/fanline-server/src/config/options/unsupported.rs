//! Options of nats-server that Fanline does not have, or not yet, and those that say nothing here.

use serde_json::{Value as Json, json};

use crate::config::draft::Draft;
use crate::config::error::Fault;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{
    Address, Any, Block, Blocks, Bool, Duration, Integer, Port, Text, Texts,
};
use crate::config::table::{Entry, warned, within, works};
use crate::config::value::Value;

const CLUSTER: &str = "not supported by Fanline yet: this server runs alone";
const GATEWAY: &str = "not supported by Fanline: this server runs alone";
const PROFILE: &str = "without effect: Fanline does not serve Go profiles";

pub(super) const OPTIONS: &[Entry] = &[
    works("cluster", Block, cluster, |loaded| {
        let name = loaded.options.cluster_name.as_ref();
        name.map_or(Json::Null, |name| json!({ "name": name }))
    })
    .help(
        "Servers that work as one. A block with a name alone gives this server's cluster a name. **A warning only** \
         with anything else: cluster is not supported by Fanline yet: this server runs alone, without that name.",
    ),
    within("cluster.name", Text)
        .limit("no spaces")
        .help("The name of the cluster, in INFO and monitoring."),
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
    warned("gateway", Block, GATEWAY).help("Clusters that work as one."),
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
    warned(
        "disable_sublist_cache",
        Bool,
        "without effect: Fanline's cache cannot be turned off",
    )
    .alias(&["no_sublist_cache"])
    .help("Match without a cache."),
    warned("prof_port", Port, PROFILE)
    .flags("--profile")
    .help("Profiling over HTTP."),
    warned("prof_block_rate", Integer, PROFILE)
    .help("How much is profiled."),
    works("ocsp", Any, |_, given| ocsp(given), |_| Json::Null)
        .limit("`false`, or `{ mode: never }`")
        .help("OCSP stapling, which Fanline does not have: any other value stops the start, because a revoked certificate would go unnoticed."),
    within("ocsp.mode", Text).limit("`never`").help("When the certificate's status is stapled."),
    within("ocsp.url", Text).help("Without effect."),
    within("ocsp.urls", Texts).help("Without effect."),
    warned("ocsp_cache", Any, "without effect: Fanline checks no certificate by OCSP").help("Cache of OCSP responses."),
    works("feature_flags", Block, flags, |_| Json::Null)
        .help("nats-server's switches for new behavior. None changes anything; a warning names those that would."),
    within("feature_flags.*", Bool).help("One of them."),
];

/// Takes over the name of a cluster. A server with routes in its configuration runs alone, and as a part of
/// that cluster it would not get what other parts send over leaf nodes: it is then a cluster by itself.
fn cluster(draft: &mut Draft, given: &Given<'_>) -> Read<()> {
    let (mut name, mut has_more) = (None, false);
    for field in given.fields()? {
        if !field.key.eq_ignore_ascii_case("name") {
            has_more = true;
            continue;
        }
        name = field.some_text()?;
        if name.as_ref().is_some_and(|name| name.contains(' ')) {
            return Err(field.fault("cluster name cannot contain spaces"));
        }
    }
    if has_more {
        draft.loaded.unsupported.push(Fault {
            place: Some(given.place.clone()),
            reason: format!("cluster: {CLUSTER}"),
        });
        name = None;
    }
    draft.loaded.options.cluster_name = name;
    Ok(())
}

/// Flags of nats-server that are off there by default, and change what it does when they are on.
const FLAGS: &[&str] = &["js_ack_fc_v2", "js_api_reply_v2", "js_snapshot_sources"];

/// Warns of flags that change something in nats-server, which accepts any name.
fn flags(draft: &mut Draft, given: &Given<'_>) -> Read<()> {
    for field in given.fields()? {
        let is_on = field.boolean()?;
        let mut known = FLAGS.iter();
        if is_on && known.any(|flag| flag.eq_ignore_ascii_case(field.key)) {
            let key = field.key;
            draft.warn(
                field.place,
                format!("feature flag {key} is without effect: Fanline does not have what it switches on"),
            );
        }
    }
    Ok(())
}

/// Accepts only values that turn OCSP off.
fn ocsp(given: &Given<'_>) -> Read<()> {
    let mode = match &given.node.value {
        Value::Bool(is_on) => (!is_on).then_some("never"),
        Value::Map(_) => {
            let fields = given.fields()?;
            let mode = fields.iter().find(|field| field.key == "mode");
            mode.map(Given::text).transpose()?
        }
        _ => return Err(given.fault("ocsp: expected true, false or a block")),
    };
    match mode {
        Some(mode) if mode.eq_ignore_ascii_case("never") => Ok(()),
        _ => {
            Err(given
                .fault("ocsp: OCSP is not supported by Fanline; leave it out to start without"))
        }
    }
}
