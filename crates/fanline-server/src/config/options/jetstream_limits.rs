//! What each stream and each consumer may have.

use fanline_engine::jetstream::Nanos;
use serde_json::{Value as Json, json};

use super::duration_text;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Block, Duration, Integer};
use crate::config::table::{Entry, within, works};
use crate::{AssetLimits, BatchLimits};

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "jetstream.limits",
        Block,
        |draft, given| {
            draft.jetstream.asset_limits = read(given)?;
            Ok(())
        },
        |loaded| show(&loaded.jetstream.asset_limits),
    )
    .help("What each stream and each consumer may have, in every account."),
    within("jetstream.limits.max_ack_pending", Integer)
        .default("none")
        .help("Records of a consumer that wait for acknowledgements."),
    within("jetstream.limits.max_ha_assets", Integer)
        .help("Without effect: it counts replicated streams and consumers."),
    within("jetstream.limits.max_request_batch", Integer)
        .default("none")
        .help(
            "Records that one pull request asks for; consumers that do not say get it as theirs.",
        ),
    within("jetstream.limits.duplicate_window", Duration)
        .default("none")
        .help(
            "How long a stream remembers the ids of messages, and what it gets if it does not say.",
        ),
    within("jetstream.limits.default_max_consumers", Integer)
        .default("none; nats-server: 1000")
        .help("Consumers of a stream, where neither it nor its account says."),
    within("jetstream.limits.batch", Block).help("What batches of publishes may have."),
    within("jetstream.limits.batch.max_inflight_per_stream", Integer)
        .default("50 atomic, 1000 fast")
        .help("Batches of a stream at a time, of each kind."),
    within("jetstream.limits.batch.max_inflight_total", Integer)
        .default("1000 atomic, 50000 fast")
        .help("The same of all streams of an account."),
    within("jetstream.limits.batch.max_msgs", Integer)
        .default("1000")
        .help("Messages of an atomic batch."),
    within("jetstream.limits.batch.timeout", Duration)
        .default("10s")
        .help("After which time without a message a batch is given up."),
];

fn read(given: &Given<'_>) -> Read<AssetLimits> {
    let mut limits = AssetLimits::default();
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "max_ack_pending" => limits.ack_pending_max = limit(&field)?,
            "max_request_batch" => limits.request_batch_max = limit(&field)?,
            "default_max_consumers" => limits.consumers_default = limit(&field)?,
            "duplicate_window" => {
                let window = field.text_duration()?.as_nanos();
                let window = Nanos(i64::try_from(window).unwrap_or(i64::MAX));
                limits.duplicate_window_max = Some(window).filter(|window| !window.is_zero());
            }
            "max_ha_assets" => {
                field.integer()?;
            }
            "batch" => limits.batches = read_batches(&field)?,
            _ => {}
        }
    }
    Ok(limits)
}

fn read_batches(given: &Given<'_>) -> Read<BatchLimits> {
    let mut limits = BatchLimits::default();
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "max_inflight_per_stream" => limits.open_per_stream_max = limit(&field)?,
            "max_inflight_total" => limits.open_max = limit(&field)?,
            "max_msgs" => limits.messages_max = limit(&field)?,
            "timeout" => {
                let timeout = field.text_duration()?;
                limits.idle_max = Some(timeout).filter(|timeout| !timeout.is_zero());
            }
            _ => {}
        }
    }
    Ok(limits)
}

/// A number; what is not above 0 is no limit.
fn limit<T: TryFrom<i64>>(given: &Given<'_>) -> Read<Option<T>> {
    match given.integer()? {
        ..=0 => Ok(None),
        _ => given.count().map(Some),
    }
}

fn show(limits: &AssetLimits) -> Json {
    let AssetLimits {
        ack_pending_max,
        request_batch_max,
        duplicate_window_max,
        consumers_default,
        batches,
    } = limits;
    json!({
        "max_ack_pending": ack_pending_max,
        "max_request_batch": request_batch_max,
        "duplicate_window": duplicate_window_max.map(|window| duration_text(window.duration())),
        "default_max_consumers": consumers_default,
        "batch": {
            "max_inflight_per_stream": batches.open_per_stream_max,
            "max_inflight_total": batches.open_max,
            "max_msgs": batches.messages_max,
            "timeout": batches.idle_max.map(duration_text),
        },
    })
}
