//! The table of options: one file for each area, one entry for each option.

mod authorization;
mod cluster;
mod gateway;
mod jetstream;
mod jetstream_limits;
mod leafnode_remotes;
mod leafnodes;
mod limits;
mod link;
mod listener;
mod logging;
mod mqtt;
mod network;
mod operator;
mod tls;
mod unsupported;
mod websocket;

use super::draft::Draft;
use super::table;
pub(crate) use unsupported::FEATURE_FLAGS;

/// An option at the top level, or in a block whose options are separate settings (a section).
type Entry = table::Entry<Draft>;

/// All options, in the order of the documentation.
pub(super) const ALL: &[&[Entry]] = &[
    network::OPTIONS,
    limits::OPTIONS,
    authorization::OPTIONS,
    operator::OPTIONS,
    tls::OPTIONS,
    websocket::OPTIONS,
    mqtt::OPTIONS,
    leafnodes::OPTIONS,
    cluster::OPTIONS,
    gateway::OPTIONS,
    jetstream::OPTIONS,
    logging::OPTIONS,
    unsupported::OPTIONS,
];

/// Returns a path as JSON, or null if there is none.
pub(super) fn text_or_null(text: Option<&std::path::Path>) -> serde_json::Value {
    text.map(|path| path.display().to_string()).into()
}

/// Returns a duration as JSON, in the notation of configurations.
pub(super) fn duration_text(duration: std::time::Duration) -> serde_json::Value {
    crate::clock::go_text(duration).into()
}

/// Returns a list of texts as JSON, or null if it is empty.
fn text_list(texts: &[String]) -> serde_json::Value {
    match texts {
        [] => serde_json::Value::Null,
        texts => texts.into(),
    }
}
