//! JetStream.

use fanline_engine::auth::DefaultDomains;
use serde_json::{Value as Json, json};

use super::{Entry, jetstream_limits, text_or_null};
use crate::config::draft::Draft;
use crate::config::read::{Given, Read};
use crate::config::table;
use crate::config::table::Kind::{Block, Bool, Integer, Path, Size, Text};
use crate::config::value::Value;
use crate::{Cipher, SyncMode};

const ALONE: &str = "without effect: this server runs alone";
const BUFFERED: &str = "without effect: Fanline holds publishers back before the messages of a stream pile up in memory";
const QUEUES: &str = "without effect: JetStream answers requests in their order and drops none";

pub(super) const OPTIONS: &[Entry] = &[
    Entry::new(
        "jetstream",
        Block,
        |draft, given| {
            draft.has_jetstream = match &given.node.value {
                Value::Map(_) => true,
                Value::Bool(is_on) => *is_on,
                Value::Text(text) if is_one_of(text, ["enabled", "enable"]) => true,
                Value::Text(text) if is_one_of(text, ["disabled", "disable"]) => false,
                Value::Text(text) => {
                    return Err(given.fault(format!(
                        "Expected 'enabled' or 'disabled' for string value, got '{text}'"
                    )));
                }
                other => {
                    return Err(given.fault(format!(
                        "Expected map, bool or string to define JetStream, got {}",
                        other.kind()
                    )));
                }
            };
            Ok(())
        },
        |draft| json!(draft.loaded.options.jetstream.is_some()),
    )
    .section(SECTION)
    .flags("-js, --jetstream")
    .default("off")
    .help("Enables JetStream: a block, `true`, `false`, `enabled`, or `disabled`."),
    Entry::new("store_dir", Path, set_store_dir, show_store_dir)
        .alias(&["storedir"])
        .flags("-sd, --store_dir")
        .help("Limits of JetStream, outside of the block; both is an error."),
    Entry::new(
        "default_js_domain",
        Block,
        |draft, given| {
            let domains = table::read(Domains::default(), given)?;
            draft.loaded.access.default_domains = domains.0;
            Ok(())
        },
        |draft| match &draft.loaded.access.default_domains {
            none if none.is_empty() => Json::Null,
            domains => json!(domains),
        },
    )
    .block::<Domains>()
    .reloads()
    .help(
        "Default JetStream domain of accounts without JetStream on this server, by account: their requests \
         to `$JS.API` go to that domain over leaf nodes. With `\"\"`, leaf connections do not separate the \
         JetStream of the two sides in this account, as old setups without domains need it.",
    ),
];

const SECTION: &[Entry] = &[
    Entry::flag("enabled", |d| &mut d.has_jetstream)
    .alias(&["enable"])
    .default("true")
    .help("Whether the block is enabled."),
    Entry::new("store_dir", Path, set_store_dir, show_store_dir)
        .alias(&["store", "storedir"])
        .flags("-sd, --store_dir")
        .help(
            "Folder of streams: they are stored in `jetstream/fanline` there, or in `fanline` if the folder is \
             called `jetstream` itself.",
        ),
    Entry::new(
        "max_memory_store",
        Size,
        |draft, given| {
            draft.jetstream.memory_bytes_max = given.storage()?;
            Ok(())
        },
        |draft| json!(draft.loaded.jetstream.memory_bytes_max),
    )
    .alias(&["max_mem_store", "max_mem"])
    .default("three quarters of the machine's memory")
    .limit("-1 is the default")
    .help("Bytes of all memory streams."),
    Entry::new(
        "max_file_store",
        Size,
        |draft, given| {
            draft.jetstream.file_bytes_max = given.storage()?;
            Ok(())
        },
        |draft| json!(draft.loaded.jetstream.file_bytes_max),
    )
    .alias(&["max_file"])
    .default("three quarters of what is free on the disk")
    .limit("-1 is the default")
    .help("Bytes of all file streams."),
    Entry::new(
        "sync_interval",
        Text,
        |draft, given| {
            draft.jetstream.sync = match &given.node.value {
                Value::Text(text) if text == "always" => SyncMode::Commit,
                _ => SyncMode::Interval(given.duration()?),
            };
            Ok(())
        },
        |draft| match draft.loaded.jetstream.sync {
            SyncMode::Interval(every) => super::duration_text(every),
            SyncMode::None => json!("none"),
            _ => json!("always"),
        },
    )
    .alias(&["sync"])
    .needs_unit()
    .default("always")
    .limit("`always` or a duration")
    .help("When acknowledgements are sent: once the message is on disk, or at once, with periodic syncs."),
    Entry::text("domain", |d| &mut d.jetstream.domain)
    .limit("no `.`, `*`, `>` or space")
    .help("The domain. `$JS.<domain>.API.>` is served in addition."),
    Entry::flag("strict", |d| &mut d.jetstream.strict)
    .default("true")
    .help("Reject requests with unknown fields."),
    Entry::new(
        "key",
        Text,
        |draft, given| {
            // An empty key, as from an unset environment variable, means no encryption.
            draft.store_key = given.some_text()?.filter(|key| !key.is_empty());
            Ok(())
        },
        |draft| {
            let encryption = draft.loaded.jetstream.encryption.as_ref();
            encryption.map_or(Json::Null, |_| json!(true))
        },
    )
    .alias(&["ek", "encryption_key"])
    .secret()
    .help("The secret that encrypts stored streams."),
    Entry::new(
        "prev_key",
        Text,
        |draft, given| {
            draft.previous_store_key = given.some_text()?.filter(|key| !key.is_empty());
            Ok(())
        },
        |draft| {
            let encryption = draft.loaded.jetstream.encryption.as_ref();
            let previous = encryption.and_then(|known| known.previous_secret.as_ref());
            previous.map_or(Json::Null, |_| json!(true))
        },
    )
    .alias(&["prev_ek", "prev_encryption_key"])
    .secret()
    .help("The previous secret, which is replaced at the start."),
    Entry::new(
        "cipher",
        Text,
        |draft, given| {
            draft.cipher = match given.text()?.to_ascii_lowercase().as_str() {
                "aes" => Cipher::Aes,
                "chacha" | "chachapoly" => Cipher::ChaCha,
                other => return Err(given.fault(format!("Unknown cipher type: \"{other}\""))),
            };
            Ok(())
        },
        |draft| match &draft.loaded.jetstream.encryption {
            None => Json::Null,
            Some(known) => match known.cipher {
                Cipher::ChaCha => json!("chacha"),
                _ => json!("aes"),
            },
        },
    )
    .default("aes")
    .limit("`aes` or `chacha`")
    .help("Cipher of new records."),
    Entry::refused(
        "tpm",
        Block,
        "keys in a TPM are not supported by Fanline",
    )
    .help("A key in a TPM."),
    Entry::warned(
        "extension_hint",
        Text,
        "without effect: it is about clusters, and this server runs alone",
    )
    .help("Whether a leaf node extends the domain."),
    Entry::warned("unique_tag", Text, ALONE)
    .help("The tag that separates replicas."),
    Entry::warned("max_outstanding_catchup", Size, ALONE)
    .help("Bytes in flight to a replica that catches up."),
    Entry::warned("max_buffered_msgs", Integer, BUFFERED)
    .help("Pending messages of one stream."),
    Entry::warned("max_buffered_size", Size, BUFFERED)
    .help("Pending bytes of one stream."),
    Entry::warned("request_queue_limit", Integer, QUEUES)
    .help("Pending requests."),
    Entry::warned("info_queue_limit", Integer, QUEUES)
    .help("Pending requests for information."),
    Entry::new(
        "meta_compact",
        Integer,
        |draft, given| {
            let is_set = given.count::<u64>()? > 0;
            ignore(draft, given, is_set, ALONE)
        },
        |_| Json::Null,
    )
    .help("Compaction of the cluster's metadata."),
    Entry::new(
        "meta_compact_size",
        Size,
        |draft, given| {
            let expected = || given.fault("meta_compact_size: expected a size that is not negative");
            let is_set = given.storage()?.ok_or_else(expected)? > 0;
            ignore(draft, given, is_set, ALONE)
        },
        |_| Json::Null,
    )
    .help("Threshold in bytes."),
    Entry::warned("meta_compact_sync", Bool, ALONE)
    .help("Whether compaction waits for the disk."),
    Entry::new(
        "max_concurrent_io",
        Integer,
        |draft, given| match given.integer()? {
            4..=8192 => ignore(draft, given, true, "without effect: the JetStream service has its own number of threads"),
            other => Err(given.fault(format!("max_concurrent_io must be between 4 and 8192, got {other}"))),
        },
        |_| Json::Null,
    )
    .limit("4 to 8192")
    .help("Concurrent disk operations."),
    jetstream_limits::LIMITS,
];

/// The block `default_js_domain`.
#[derive(Default)]
struct Domains(DefaultDomains);

impl table::Block for Domains {
    const OPTIONS: &'static [table::Entry<Self>] =
        &[table::Entry::<Self>::unshown("*", Text, |domains, given| {
            domains
                .0
                .insert(given.key.to_owned(), given.text()?.to_owned());
            Ok(())
        })
        .help("The default domain of an account.")];
}

/// Warns of an option that has no effect.
fn ignore(draft: &mut Draft, given: &Given<'_>, is_set: bool, why: &str) -> Read<()> {
    if is_set {
        draft.warn(given.place, format!("{}: {why}", given.key));
    }
    Ok(())
}

fn is_one_of(text: &str, words: [&str; 2]) -> bool {
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn set_store_dir(draft: &mut Draft, given: &Given<'_>) -> Read<()> {
    if draft.store_dir.is_some() {
        return Err(given.fault("Duplicate 'store_dir' configuration"));
    }
    draft.store_dir = given.path()?;
    Ok(())
}

fn show_store_dir(draft: &Draft) -> Json {
    text_or_null(draft.loaded.jetstream.store_dir.as_deref())
}
