//! JetStream limits of an account: `enabled`, or a block of limits.

use fanline_engine::AccountLimits;
use serde_json::json;

use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Integer, Size, Text};
use crate::config::table::{self, Entry, set};
use crate::config::value::Value;

impl table::Block for AccountLimits {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "max_memory",
            Size,
            |limits, given| set(&mut limits.max_memory, bytes(given)),
            |limits| json!(limits.max_memory),
        )
        .alias(&["max_mem", "mem", "memory"])
        .help("Bytes of all memory streams."),
        Entry::<Self>::new(
            "max_file",
            Size,
            |limits, given| set(&mut limits.max_storage, bytes(given)),
            |limits| json!(limits.max_storage),
        )
        .alias(&["max_store", "max_disk", "store", "disk"])
        .help("Bytes of all file streams."),
        Entry::<Self>::new(
            "max_streams",
            Integer,
            |limits, given| set(&mut limits.max_streams, given.integer()),
            |limits| json!(limits.max_streams),
        )
        .alias(&["streams"])
        .help("Number of streams."),
        Entry::<Self>::new(
            "max_consumers",
            Integer,
            |limits, given| set(&mut limits.max_consumers, given.integer()),
            |limits| json!(limits.max_consumers),
        )
        .alias(&["consumers"])
        .help("Consumers per stream."),
        Entry::<Self>::flag("max_bytes_required", |limits| {
            &mut limits.max_bytes_required
        })
        .alias(&["max_stream_bytes", "max_bytes"])
        .help("Streams need a byte limit."),
        Entry::<Self>::new(
            "mem_max_stream_bytes",
            Size,
            |limits, given| set(&mut limits.memory_max_stream_bytes, bytes(given)),
            |limits| json!(limits.memory_max_stream_bytes),
        )
        .alias(&["memory_max_stream_bytes"])
        .help("Bytes per memory stream."),
        Entry::<Self>::new(
            "disk_max_stream_bytes",
            Size,
            |limits, given| set(&mut limits.storage_max_stream_bytes, bytes(given)),
            |limits| json!(limits.storage_max_stream_bytes),
        )
        .alias(&["store_max_stream_bytes"])
        .help("Bytes per file stream."),
        Entry::<Self>::new(
            "max_ack_pending",
            Integer,
            |limits, given| set(&mut limits.max_ack_pending, given.integer()),
            |limits| json!(limits.max_ack_pending),
        )
        .help("Unacknowledged messages of a consumer."),
        Entry::ignored("cluster_traffic", Text).help("For clusters."),
    ];
}

/// Reads whether an account has JetStream, and its limits.
pub(super) fn jetstream(given: &Given<'_>) -> Read<Option<AccountLimits>> {
    let limits = AccountLimits::default();
    match &given.node.value {
        Value::Bool(is_on) => Ok(is_on.then_some(limits)),
        Value::Text(text) => match text.to_ascii_lowercase().as_str() {
            "enabled" | "enable" => Ok(Some(limits)),
            "disabled" | "disable" => Ok(None),
            _ => Err(given.fault(format!(
                "Expected 'enabled' or 'disabled' for string value, got '{text}'"
            ))),
        },
        _ => table::read(limits, given).map(Some),
    }
}

/// Reads a size in bytes. Returns -1 for no limit.
fn bytes(given: &Given<'_>) -> Read<i64> {
    let bytes = given.storage()?;
    Ok(bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)))
}
