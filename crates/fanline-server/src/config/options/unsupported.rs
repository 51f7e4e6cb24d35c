//! Options of nats-server that Fanline does not support, or that have no effect here.

use serde_json::Value as Json;

use crate::config::draft::Draft;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Any, Block, Bool, Integer, Port, Text, Texts};
use crate::config::table::{self, Entry};
use crate::config::value::Value;

const PROFILE: &str = "without effect: Fanline does not serve Go profiles";

pub(super) const OPTIONS: &[super::Entry] = &[
    Entry::warned(
        "disable_sublist_cache",
        Bool,
        "without effect: Fanline's cache cannot be turned off",
    )
    .alias(&["no_sublist_cache"])
    .help("Match subjects without a cache."),
    Entry::warned("prof_port", Port, PROFILE)
    .flags("--profile")
    .help("Profiling over HTTP."),
    Entry::warned("prof_block_rate", Integer, PROFILE)
    .help("Rate of profiling."),
    Entry::new("ocsp", Any, |_, given| ocsp(given), |_| Json::Null)
        .block::<Ocsp>()
        .limit("`false`, or `{ mode: never }`")
        .help("OCSP stapling, which Fanline does not support. Any other value is rejected, because a revoked certificate would be accepted."),
    Entry::warned("ocsp_cache", Any, "without effect: Fanline checks no certificate by OCSP").help("Cache of OCSP responses."),
    Entry::new("feature_flags", Block, flags, |_| Json::Null)
        .block::<Flags>()
        .help("nats-server's feature flags. None has an effect here; a warning names those that change nats-server's behavior."),
];

/// nats-server's feature flags with their defaults.
pub(crate) const FEATURE_FLAGS: [(&str, bool); 4] = [
    ("js_ack_fc_v2", false),
    ("js_api_reply_v2", false),
    ("js_raft_delete_range", true),
    ("js_snapshot_sources", false),
];

/// Warns of flags that change nats-server's behavior. nats-server accepts any name.
fn flags(_: &mut Draft, given: &Given<'_>) -> Read<()> {
    table::read(Flags, given).map(drop)
}

/// The block `feature_flags`.
struct Flags;

impl table::Block for Flags {
    const OPTIONS: &'static [Entry<Self>] = &[Entry::checked("*", Bool)
        .warns(|given, _| {
            let is_on = given.boolean().unwrap_or(false);
            let key = given.key;
            // To turn on a flag that is on by default changes nothing.
            let mut off_by_default = FEATURE_FLAGS.iter().filter(|(_, default)| !default);
            let is_known = off_by_default.any(|(flag, _)| flag.eq_ignore_ascii_case(key));
            (is_on && is_known).then(|| {
                format!("feature flag {key} is without effect: Fanline does not support it")
            })
        })
        .help("An entry.")];
}

/// Accepts only values that turn OCSP off.
fn ocsp(given: &Given<'_>) -> Read<()> {
    let mode = match &given.node.value {
        Value::Bool(is_on) => (!is_on).then(|| "never".to_owned()),
        Value::Map(_) => table::read(Ocsp::default(), given)?.mode,
        _ => return Err(given.fault("ocsp: expected true, false or a block")),
    };
    match mode {
        Some(mode) if mode.eq_ignore_ascii_case("never") => Ok(()),
        _ => Err(given.fault(
            "ocsp: OCSP is not supported by Fanline; remove the option to start without it",
        )),
    }
}

/// The block `ocsp`.
#[derive(Default)]
struct Ocsp {
    mode: Option<String>,
}

impl table::Block for Ocsp {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("mode", |ocsp| &mut ocsp.mode)
            .limit("`never`")
            .help("Mode of stapling."),
        Entry::ignored("url", Text).help("Without effect."),
        Entry::ignored("urls", Texts).help("Without effect."),
    ];
}
