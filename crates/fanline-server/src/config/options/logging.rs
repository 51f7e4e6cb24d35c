//! Logging.

use serde_json::json;

use super::Entry;
use crate::config::table::Kind::{Bool, Integer, Size, Text};

pub(super) const OPTIONS: &[Entry] = &[
    Entry::flag("debug", |d| &mut d.loaded.log.debug)
        .flags("-D, --debug, -DV, -DVV")
        .default("false")
        .reloads()
        .help("Log debug lines."),
    Entry::flag("trace", |d| &mut d.loaded.log.trace)
        .flags("-V, --trace, -VV, -DV, -DVV")
        .default("false")
        .reloads()
        .help("Log every protocol line."),
    Entry::new(
        "trace_verbose",
        Bool,
        |draft, given| {
            draft.loaded.log.trace |= given.boolean()?;
            Ok(())
        },
        |draft| json!(draft.loaded.log.trace),
    )
    .flags("-VV, -DVV")
    .default("false")
    .reloads()
    .help("Same as `trace`."),
    Entry::new(
        "trace_headers",
        Bool,
        |draft, given| {
            let is_on = given.boolean()?;
            draft.loaded.log.trace |= is_on;
            draft.loaded.options.limits.traces_headers_only = is_on;
            Ok(())
        },
        |draft| json!(draft.loaded.options.limits.traces_headers_only),
    )
    .default("false")
    .reloads()
    .help("Same as `trace`, with the headers of messages and without their payloads."),
    Entry::new(
        "max_traced_msg_len",
        Integer,
        |draft, given| {
            let most = usize::try_from(given.integer()?).ok();
            draft.loaded.options.limits.traced_bytes_max = most.filter(|most| *most > 0);
            Ok(())
        },
        |draft| json!(draft.loaded.options.limits.traced_bytes_max.unwrap_or(0)),
    )
    .flags("--max_traced_msg_len")
    .default("0")
    .limit("0 is all")
    .reloads()
    .help("Bytes of each message in traces."),
    Entry::flag("logtime", |d| &mut d.loaded.log.time)
        .flags("-T, --logtime")
        .default("true")
        .reloads()
        .help("Write timestamps."),
    Entry::flag("logtime_utc", |d| &mut d.loaded.log.utc)
        .flags("--logtime_utc")
        .default("false")
        .reloads()
        .help("Write timestamps in UTC."),
    Entry::path("log_file", |d| &mut d.loaded.log.file)
        .alias(&["logfile"])
        .flags("-l, --log")
        .default("stderr")
        .reloads()
        .help("File to log to."),
    Entry::new(
        "logfile_size_limit",
        Size,
        |draft, given| {
            draft.loaded.log.file_bytes_max = u64::try_from(given.integer()?).unwrap_or(0);
            Ok(())
        },
        |draft| json!(draft.loaded.log.file_bytes_max),
    )
    .alias(&["log_size_limit"])
    .flags("--log_size_limit")
    .default("0")
    .reloads()
    .help("Size at which the log file is rotated; 0 or less means never."),
    Entry::new(
        "logfile_max_num",
        Integer,
        |draft, given| {
            draft.loaded.log.files_max = usize::try_from(given.integer()?).unwrap_or(0);
            Ok(())
        },
        |draft| json!(draft.loaded.log.files_max),
    )
    .alias(&["log_max_num"])
    .default("0")
    .reloads()
    .help("Number of log files, including the current one; 0 or less means unlimited."),
    Entry::new(
        "log_format",
        Text,
        |draft, given| {
            draft.loaded.log.json = match given.text()? {
                "text" => false,
                "json" => true,
                _ => return Err(given.fault("log_format: expected text or json")),
            };
            Ok(())
        },
        |draft| {
            json!(if draft.loaded.log.json {
                "json"
            } else {
                "text"
            })
        },
    )
    .flags("--log_format")
    .default("text")
    .limit("`text`, `json`")
    .reloads()
    .help("Lines in nats-server's format, or JSON. nats-server does not have it."),
    Entry::flag("syslog", |d| &mut d.loaded.log.syslog)
        .flags("-s, --syslog")
        .default("false")
        .reloads()
        .help("Log to the local syslog."),
    Entry::text("remote_syslog", |d| &mut d.loaded.log.remote_syslog)
        .flags("-r, --remote_syslog")
        .reloads()
        .help("Log to a remote syslog: `udp://host:514`."),
];
