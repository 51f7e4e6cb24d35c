//! Limits of clients.

use serde_json::json;

use super::{Entry, duration_text};
use crate::config::table::Kind::{Bool, Duration, Integer, Size, Text};
use crate::{Limits, Options};

/// Longest protocol line that the parser accepts, in bytes.
const CONTROL_LINE_BYTES_MAX: usize = 64 * 1024;

pub(super) const OPTIONS: &[Entry] = &[
    Entry::new(
        "max_connections",
        Integer,
        |draft, given| {
            draft.loaded.options.limits.connections_max = match given.integer()? {
                0 => Limits::default().connections_max,
                ..=-1 => usize::MAX,
                _ => given.count()?,
            };
            Ok(())
        },
        |draft| match draft.loaded.options.limits.connections_max {
            usize::MAX => json!(-1),
            count => json!(count),
        },
    )
    .alias(&["max_conn"])
    .default("65536")
    .limit("-1 is any number")
    .reloads()
    .help("Concurrent client connections. A further one gets `maximum connections exceeded`."),
    Entry::new(
        "max_subscriptions",
        Integer,
        |draft, given| {
            draft.loaded.options.limits.subscriptions_max = match given.integer()? {
                ..=0 => None,
                _ => Some(given.count()?),
            };
            Ok(())
        },
        |draft| json!(draft.loaded.options.limits.subscriptions_max.unwrap_or(0)),
    )
    .alias(&["max_subs"])
    .default("0")
    .limit("0 is any number")
    .help("Subscriptions of one connection. A further one gets `maximum subscriptions exceeded`."),
    Entry::new(
        "max_subscription_tokens",
        Integer,
        |draft, given| {
            draft.loaded.options.limits.subscription_tokens_max = match given.count::<u8>()? {
                0 => return Err(given.fault(format!("{} value can not be zero", given.key))),
                most => Some(most),
            };
            Ok(())
        },
        |draft| json!(draft.loaded.options.limits.subscription_tokens_max),
    )
    .alias(&["max_sub_tokens"])
    .default("any number")
    .limit("1 to 255")
    .help("Tokens of a subscription's subject. More get `Permissions Violation … too many tokens`."),
    Entry::new(
        "max_closed_clients",
        Integer,
        |draft, given| {
            draft.loaded.options.closed_clients_max = match given.count::<usize>()? {
                0 => Options::default().closed_clients_max,
                most => most,
            };
            Ok(())
        },
        |draft| json!(draft.loaded.options.closed_clients_max),
    )
    .default("10000")
    .help("Closed clients stored for `/connz?state=closed`."),
    Entry::new(
        "max_control_line",
        Size,
        |draft, given| {
            let bytes = match given.integer()? {
                0 => Limits::default().control_line_bytes_max,
                _ => given.count()?,
            };
            if bytes > CONTROL_LINE_BYTES_MAX {
                draft.warn(given.place, "max_control_line: taken as 64KB, the most that Fanline reads");
            }
            let limits = &mut draft.loaded.options.limits;
            limits.control_line_bytes_max = bytes.min(CONTROL_LINE_BYTES_MAX);
            Ok(())
        },
        |draft| json!(draft.loaded.options.limits.control_line_bytes_max),
    )
    .default("4KB")
    .limit("more than 64KB is taken as 64KB")
    .reloads()
    .help("Longest protocol line without payload."),
    Entry::new(
        "max_payload",
        Size,
        |draft, given| {
            let bytes = match given.integer()? {
                0 => Limits::default().payload_bytes_max,
                -1 => usize::MAX,
                _ => given.count()?,
            };
            // If `max_payload` is unlimited, the value of `max_pending` limits the payload. `max_pending` may
            // follow later in the file, so the draft sets this limit at the end.
            draft.payload_without_limit = (bytes == usize::MAX).then(|| given.place.clone());
            if bytes != usize::MAX {
                draft.loaded.options.limits.payload_bytes_max = bytes;
            }
            Ok(())
        },
        |draft| json!(draft.loaded.options.limits.payload_bytes_max),
    )
    .flags("--max_payload")
    .default("1MB")
    .limit("at most `max_pending`, and less than 1,000,000,000; -1 is taken as the most that is possible")
    .reloads()
    .help("Largest message, including headers."),
    Entry::new(
        "max_pending",
        Size,
        |draft, given| {
            draft.loaded.options.limits.pending_bytes_max = match given.integer()? {
                0 => Limits::default().pending_bytes_max,
                _ => given.count()?,
            };
            Ok(())
        },
        |draft| json!(draft.loaded.options.limits.pending_bytes_max),
    )
    .default("64MB")
    .help("Pending bytes of one connection. Beyond that, it is dropped as a slow consumer."),
    Entry::duration("write_deadline", |d| &mut d.loaded.options.limits.write_deadline)
    .needs_unit()
    .default("10s")
    .reloads()
    .help("Time limit of a blocked write. Beyond that, the connection is dropped as a slow consumer."),
    Entry::new(
        "write_timeout",
        Text,
        |draft, given| match given.text()? {
            "default" | "close" => Ok(()),
            "retry" => {
                draft.warn(
                    given.place,
                    "write_timeout: retry is without effect: Fanline closes a client that takes nothing until the \
                     write deadline",
                );
                Ok(())
            }
            _ => Err(given.fault("write_timeout must be 'default', 'close' or 'retry'")),
        },
        |_| json!("close"),
    )
    .default("close")
    .limit("`default`, `close`, `retry`")
    .help("Effect of the write deadline on a client. It is closed with every value."),
    Entry::new(
        "ping_interval",
        Duration,
        |draft, given| {
            let interval = given.duration()?;
            draft.loaded.options.limits.ping_interval = if interval.is_zero() {
                Limits::default().ping_interval
            } else {
                interval
            };
            Ok(())
        },
        |draft| duration_text(draft.loaded.options.limits.ping_interval),
    )
    .needs_unit()
    .default("2m")
    .reloads()
    .help("Idle time after which a client is pinged."),
    Entry::new(
        "ping_max",
        Integer,
        |draft, given| {
            draft.loaded.options.limits.pings_out_max = match given.integer()? {
                0 => Limits::default().pings_out_max,
                _ => given.count()?,
            };
            Ok(())
        },
        |draft| json!(draft.loaded.options.limits.pings_out_max),
    )
    .default("2")
    .reloads()
    .help("Unanswered pings. After a further one the client gets `Stale Connection`."),
    Entry::flag("no_fast_producer_stall", |d| &mut d.loaded.options.limits.no_fast_producer_stall)
    .default("false")
    .reloads()
    .help("Do not delay publishers for slow subscribers, which are dropped sooner."),
    Entry::new(
        "no_header_support",
        Bool,
        |draft, given| {
            draft.loaded.options.limits.headers = !given.boolean()?;
            Ok(())
        },
        |draft| json!(!draft.loaded.options.limits.headers),
    )
    .default("false")
    .help("Do not support headers."),
];
