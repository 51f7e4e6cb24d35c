//! Options of a stream's configuration, for `add`, `copy`, and `edit`.

use std::path::PathBuf;

use clap::Args;
use fanline_client::jetstream::{
    Compression, Discard, External, Kept, Nanos, PersistMode, Placement, Republish, Retention,
    Storage, StreamConfig, StreamSource, SubjectTransform, SyncMode,
};

use crate::failure::Failure;
use crate::files::read_json;
use crate::values::{self, set};

/// Configuration of a stream. Without an option, a new stream gets the server's default, and an existing one
/// keeps its value.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Configuration")]
pub(super) struct ConfigArgs {
    /// Subjects to store; may be repeated, or separated by commas
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    subjects: Vec<String>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Storage type: file or memory
    #[arg(long, value_parser = values::word::<Storage>)]
    storage: Option<Storage>,
    /// Retention policy: limits, interest, or work
    #[arg(long, value_parser = retention)]
    retention: Option<Retention>,
    /// Messages to discard at a limit: old or new
    #[arg(long, value_parser = values::word::<Discard>)]
    discard: Option<Discard>,
    /// With discard new, apply the limit per subject as well
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    discard_per_subject: Option<bool>,
    /// Largest age of a message: 1h, 7d, 1y, or never
    #[arg(long, value_name = "TIME", value_parser = values::span, allow_hyphen_values = true)]
    max_age: Option<Nanos>,
    /// Largest number of messages
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    max_msgs: Option<i64>,
    /// Largest number of messages per subject
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    max_msgs_per_subject: Option<i64>,
    /// Largest size of the stream in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes_limit, allow_hyphen_values = true)]
    max_bytes: Option<i64>,
    /// Largest size of a message in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes_limit, allow_hyphen_values = true)]
    max_msg_size: Option<i64>,
    /// Largest number of consumers
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    max_consumers: Option<i64>,
    /// Duplicate window: how long a Nats-Msg-Id is remembered
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    dupe_window: Option<Nanos>,
    /// Number of replicas
    #[arg(long, value_name = "N")]
    replicas: Option<i64>,
    /// Cluster to place it in
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Tag that its servers must have; may be repeated
    #[arg(long, value_name = "LABEL")]
    tag: Vec<String>,
    /// Compression: none or s2
    #[arg(long, value_parser = values::word::<Compression>)]
    compression: Option<Compression>,
    /// When messages are synced to disk: commit, interval, or none (Fanline only)
    #[arg(long, value_name = "MODE", value_parser = values::word::<SyncMode>)]
    sync: Option<SyncMode>,
    /// Whether acknowledgements may precede the write: default or async
    #[arg(long, value_name = "MODE", value_parser = values::word::<PersistMode>)]
    persist_mode: Option<PersistMode>,
    /// Stream to mirror
    #[arg(long, value_name = "STREAM")]
    mirror: Option<String>,
    /// Stream to copy messages from; may be repeated
    #[arg(long, value_name = "STREAM")]
    source: Vec<String>,
    /// JetStream domain of the mirrored or source streams
    #[arg(long, value_name = "DOMAIN", conflicts_with = "origin_api")]
    origin_domain: Option<String>,
    /// API prefix of the mirrored or source streams in another account
    #[arg(long, value_name = "PREFIX")]
    origin_api: Option<String>,
    /// Delivery prefix of the mirrored or source streams in another account
    #[arg(long, value_name = "PREFIX", requires = "origin_api")]
    origin_deliver: Option<String>,
    /// Sequence of the first message
    #[arg(long, value_name = "SEQUENCE")]
    first_sequence: Option<u64>,
    /// Transform subjects that match this filter...
    #[arg(long, value_name = "SUBJECT", requires = "transform_destination")]
    transform_source: Option<String>,
    /// ...to this subject
    #[arg(long, value_name = "SUBJECT")]
    transform_destination: Option<String>,
    /// Republish messages of subjects that match this filter...
    #[arg(long, value_name = "SUBJECT", requires = "republish_destination")]
    republish_source: Option<String>,
    /// ...to this subject
    #[arg(long, value_name = "SUBJECT")]
    republish_destination: Option<String>,
    /// Republish headers without payloads
    #[arg(long, requires = "republish_destination")]
    republish_headers: bool,
    /// Longest inactive threshold of a consumer
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    limit_consumer_inactive: Option<Nanos>,
    /// Largest number of unacknowledged messages of a consumer
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    limit_consumer_max_pending: Option<i64>,
    /// Time to live of the delete marker that the last message of a subject leaves
    #[arg(long, alias = "subject-del-markers-ttl", value_name = "TIME", value_parser = values::span)]
    subject_delete_marker_ttl: Option<Nanos>,
    /// Metadata label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    switches: Switches,
}

/// Boolean options: `--allow-direct`, or `--allow-direct=false`.
#[derive(Args, Clone, Debug)]
struct Switches {
    /// Acknowledge publishes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    ack: Option<bool>,
    /// Do not acknowledge publishes
    #[arg(long, conflicts_with = "ack")]
    no_ack: bool,
    /// Allow direct reads, which bypass the stream's leader
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_direct: Option<bool>,
    /// Let a mirror answer direct reads for its origin
    #[arg(long, alias = "allow-mirror-direct", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    mirror_direct: Option<bool>,
    /// Allow messages that replace all earlier ones
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_rollup: Option<bool>,
    /// Allow a TTL per message
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_msg_ttl: Option<bool>,
    /// Use messages as counters per subject
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_counter: Option<bool>,
    /// Allow atomic batches of publishes
    #[arg(long, alias = "allow-atomic", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_batch: Option<bool>,
    /// Allow delayed and repeated publishes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_schedules: Option<bool>,
    /// Deny deletion of single messages
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    deny_delete: Option<bool>,
    /// Deny purges
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    deny_purge: Option<bool>,
}

/// A configuration file in the format of `stream info --json`.
#[derive(Args, Clone, Debug)]
pub(super) struct ConfigFile {
    /// Read the configuration from a JSON file; options override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    pub(super) fn read(&self) -> Result<Option<Kept<StreamConfig>>, Failure> {
        self.config.as_deref().map(read_json).transpose()
    }
}

/// Accepts `work` for `workqueue`, its name in JSON.
fn retention(text: &str) -> Result<Retention, String> {
    match text {
        "work" => Ok(Retention::WorkQueue),
        text => values::word(text),
    }
}

impl ConfigArgs {
    /// Applies the options that are set.
    pub(super) fn apply(&self, config: &mut StreamConfig) -> Result<(), Failure> {
        if !self.subjects.is_empty() {
            config.subjects.clone_from(&self.subjects);
        }
        set(&mut config.description, &self.description);
        set(&mut config.storage, &self.storage);
        set(&mut config.retention, &self.retention);
        set(&mut config.compression, &self.compression);
        set(&mut config.persist_mode, &self.persist_mode);
        set(&mut config.num_replicas, &self.replicas);
        set(&mut config.first_seq, &self.first_sequence);
        if self.sync.is_some() {
            config.sync = self.sync;
        }
        self.apply_limits(config)?;
        self.apply_flow(config);
        self.switches.apply(config);
        config.metadata.extend(self.metadata.iter().cloned());
        Ok(())
    }

    fn apply_limits(&self, config: &mut StreamConfig) -> Result<(), Failure> {
        set(&mut config.discard, &self.discard);
        set(
            &mut config.discard_new_per_subject,
            &self.discard_per_subject,
        );
        set(&mut config.max_age, &self.max_age);
        set(&mut config.max_msgs, &self.max_msgs);
        set(&mut config.max_msgs_per_subject, &self.max_msgs_per_subject);
        set(&mut config.max_bytes, &self.max_bytes);
        set(&mut config.max_consumers, &self.max_consumers);
        set(&mut config.duplicate_window, &self.dupe_window);
        if let Some(bytes) = self.max_msg_size {
            config.max_msg_size = i32::try_from(bytes)
                .map_err(|_| Failure::Usage("--max-msg-size must be less than 2 GiB".to_owned()))?;
        }
        let limits = &mut config.consumer_limits;
        set(
            &mut limits.inactive_threshold,
            &self.limit_consumer_inactive,
        );
        set(
            &mut limits.max_ack_pending,
            &self.limit_consumer_max_pending,
        );
        Ok(())
    }

    /// Applies the options for origins and destinations of messages.
    fn apply_flow(&self, config: &mut StreamConfig) {
        if self.cluster.is_some() || !self.tag.is_empty() {
            config.placement = Some(Placement {
                cluster: self.cluster.clone().unwrap_or_default(),
                tags: self.tag.clone(),
                ..Default::default()
            });
        }
        let domain = self.origin_domain.as_ref();
        let api = domain.map(|domain| format!("$JS.{domain}.API"));
        let external = api.or_else(|| self.origin_api.clone()).map(|api| External {
            api,
            deliver: self.origin_deliver.clone().unwrap_or_default(),
        });
        let origin = |name: &String| StreamSource {
            name: name.clone(),
            external: external.clone(),
            ..Default::default()
        };
        if let Some(mirror) = &self.mirror {
            config.mirror = Some(origin(mirror));
        }
        if !self.source.is_empty() {
            config.sources = self.source.iter().map(origin).collect();
        }
        if let Some(dest) = &self.transform_destination {
            config.subject_transform = Some(SubjectTransform {
                src: self.transform_source.clone().unwrap_or_default(),
                dest: dest.clone(),
            });
        }
        if let Some(dest) = &self.republish_destination {
            config.republish = Some(Republish {
                src: self.republish_source.clone().unwrap_or_default(),
                dest: dest.clone(),
                headers_only: self.republish_headers,
            });
        }
        if let Some(ttl) = self.subject_delete_marker_ttl {
            config.subject_delete_marker_ttl = ttl;
            config.allow_msg_ttl = true;
        }
    }
}

impl Switches {
    fn apply(&self, config: &mut StreamConfig) {
        if self.no_ack {
            config.no_ack = true;
        }
        if let Some(ack) = self.ack {
            config.no_ack = !ack;
        }
        set(&mut config.allow_direct, &self.allow_direct);
        set(&mut config.mirror_direct, &self.mirror_direct);
        set(&mut config.allow_rollup_hdrs, &self.allow_rollup);
        set(&mut config.allow_msg_ttl, &self.allow_msg_ttl);
        set(&mut config.allow_msg_counter, &self.allow_counter);
        set(&mut config.allow_atomic, &self.allow_batch);
        set(&mut config.allow_msg_schedules, &self.allow_schedules);
        set(&mut config.deny_delete, &self.deny_delete);
        set(&mut config.deny_purge, &self.deny_purge);
    }
}
