//! Limits of each stream and consumer.

use fanline_engine::jetstream::Nanos;
use serde_json::json;

use super::duration_text;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Block, Duration, Integer};
use crate::config::table::{self, Entry, set};
use crate::{AssetLimits, BatchLimits};

pub(super) const LIMITS: super::Entry = super::Entry::new(
    "limits",
    Block,
    |draft, given| {
        let limits = table::read(AssetLimits::default(), given);
        set(&mut draft.jetstream.asset_limits, limits)
    },
    |draft| table::show(draft.jetstream.asset_limits),
)
.block::<AssetLimits>()
.help("Limits of each stream and consumer, in every account.");

impl table::Block for AssetLimits {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "max_ack_pending",
            Integer,
            |limits, given| set(&mut limits.ack_pending_max, limit(given)),
            |limits| json!(limits.ack_pending_max),
        )
        .default("none")
        .help("Unacknowledged messages of a consumer."),
        Entry::checked("max_ha_assets", Integer)
            .help("Without effect: it counts replicated streams and consumers."),
        Entry::<Self>::new(
            "max_request_batch",
            Integer,
            |limits, given| set(&mut limits.request_batch_max, limit(given)),
            |limits| json!(limits.request_batch_max),
        )
        .default("none")
        .help("Messages per pull request; also the default of consumers without `max_batch`."),
        Entry::<Self>::new(
            "duplicate_window",
            Duration,
            |limits, given| {
                let window = given.text_duration()?.as_nanos();
                let window = Nanos(i64::try_from(window).unwrap_or(i64::MAX));
                limits.duplicate_window_max = Some(window).filter(|window| !window.is_zero());
                Ok(())
            },
            |limits| {
                let window = limits.duplicate_window_max;
                json!(window.map(|window| duration_text(window.duration())))
            },
        )
        .default("none")
        .help("Duplicate window of a stream; also the default of streams without one."),
        Entry::<Self>::new(
            "default_max_consumers",
            Integer,
            |limits, given| set(&mut limits.consumers_default, limit(given)),
            |limits| json!(limits.consumers_default),
        )
        .default("none; nats-server: 1000")
        .help("Consumers of a stream, if neither it nor its account has a limit."),
        Entry::<Self>::new(
            "batch",
            Block,
            |limits, given| {
                set(
                    &mut limits.batches,
                    table::read(BatchLimits::default(), given),
                )
            },
            |limits| table::show(limits.batches),
        )
        .block::<BatchLimits>()
        .help("Limits of batch publishing."),
    ];
}

impl table::Block for BatchLimits {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "max_inflight_per_stream",
            Integer,
            |limits, given| set(&mut limits.open_per_stream_max, limit(given)),
            |limits| json!(limits.open_per_stream_max),
        )
        .default("50 atomic, 1000 fast")
        .help("Concurrent batches of a stream, of each kind."),
        Entry::<Self>::new(
            "max_inflight_total",
            Integer,
            |limits, given| set(&mut limits.open_max, limit(given)),
            |limits| json!(limits.open_max),
        )
        .default("1000 atomic, 50000 fast")
        .help("Open batches per account, of each kind."),
        Entry::<Self>::new(
            "max_msgs",
            Integer,
            |limits, given| set(&mut limits.messages_max, limit(given)),
            |limits| json!(limits.messages_max),
        )
        .default("1000")
        .help("Messages per atomic batch."),
        Entry::<Self>::new(
            "timeout",
            Duration,
            |limits, given| {
                let timeout = given.text_duration()?;
                limits.idle_max = Some(timeout).filter(|timeout| !timeout.is_zero());
                Ok(())
            },
            |limits| json!(limits.idle_max.map(duration_text)),
        )
        .default("10s")
        .help("Time without a message after which a batch is abandoned."),
    ];
}

/// Reads a limit; a number that is not positive means none.
fn limit<T: TryFrom<i64>>(given: &Given<'_>) -> Read<Option<T>> {
    match given.integer()? {
        ..=0 => Ok(None),
        _ => given.count().map(Some),
    }
}
