//! The table of options: one file for each subject, one entry for each option.

mod authorization;
mod jetstream;
mod jetstream_limits;
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

pub(super) use tls::warnings as tls_warnings;

use super::table::Entry;

/// All options, in the order in which they are documented.
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
    jetstream_limits::OPTIONS,
    logging::OPTIONS,
    unsupported::OPTIONS,
];

/// What a text that may be missing shows.
fn text_or_null(text: Option<&std::path::Path>) -> serde_json::Value {
    text.map(|path| path.display().to_string()).into()
}

/// A duration as it is written in a configuration.
fn duration_text(duration: std::time::Duration) -> serde_json::Value {
    super::show::duration(duration).into()
}
