//! The table of options: one file for each area, one entry for each option.

mod authorization;
mod jetstream;
mod jetstream_limits;
mod leafnode_remotes;
mod leafnodes;
mod limits;
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

/// An option outside of all blocks, or of a section.
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
    jetstream::OPTIONS,
    logging::OPTIONS,
    unsupported::OPTIONS,
];

/// Shows a path that may be missing.
pub(super) fn text_or_null(text: Option<&std::path::Path>) -> serde_json::Value {
    text.map(|path| path.display().to_string()).into()
}

/// Shows a duration in the notation of configurations.
pub(super) fn duration_text(duration: std::time::Duration) -> serde_json::Value {
    crate::clock::go_text(duration).into()
}

/// Shows a list of texts; an empty one is not shown.
fn text_list(texts: &[String]) -> serde_json::Value {
    match texts {
        [] => serde_json::Value::Null,
        texts => texts.into(),
    }
}
