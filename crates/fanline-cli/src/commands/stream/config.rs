//! The flags that make up a stream's configuration, for making one and for changing it.

use std::path::PathBuf;

use clap::Args;
use fanline_client::jetstream::{
    Compression, Discard, External, Kept, Nanos, PersistMode, Placement, Republish, Retention,
    Storage, StreamConfig, StreamSource, SubjectTransform, SyncMode,
};

use crate::failure::Failure;
use crate::files::read_json;
use crate::values::{self, set};

/// What a stream is asked to be. What is not named stays as it is, or is the server's default.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Configuration")]
pub(super) struct ConfigArgs {
    /// Subjects to keep; may be repeated, or separated by commas
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    subjects: Vec<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Where records are kept: file or memory
    #[arg(long, value_parser = values::word::<Storage>)]
    storage: Option<Storage>,
    /// When records go: limits, interest or work
    #[arg(long, value_parser = retention)]
    retention: Option<Retention>,
    /// Which record gives way when a limit is reached: old or new
    #[arg(long, value_parser = values::word::<Discard>)]
    discard: Option<Discard>,
    /// With discard new, the limit per subject refuses too
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    discard_per_subject: Option<bool>,
    /// Oldest record: 1h, 7d, 1y, or never
    #[arg(long, value_name = "TIME", value_parser = values::span, allow_hyphen_values = true)]
    max_age: Option<Nanos>,
    /// Most records
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    max_msgs: Option<i64>,
    /// Most records of one subject
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    max_msgs_per_subject: Option<i64>,
    /// Most bytes of all
    #[arg(long, value_name = "BYTES", value_parser = values::bytes_limit, allow_hyphen_values = true)]
    max_bytes: Option<i64>,
    /// Most bytes of one record
    #[arg(long, value_name = "BYTES", value_parser = values::bytes_limit, allow_hyphen_values = true)]
    max_msg_size: Option<i64>,
    /// Most consumers
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    max_consumers: Option<i64>,
    /// How long a Nats-Msg-Id is remembered
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    dupe_window: Option<Nanos>,
    /// Servers that keep it
    #[arg(long, value_name = "N")]
    replicas: Option<i64>,
    /// Cluster to keep it in
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Label that its servers must have; may be repeated
    #[arg(long, value_name = "LABEL")]
    tag: Vec<String>,
    /// How records are packed: none or s2
    #[arg(long, value_parser = values::word::<Compression>)]
    compression: Option<Compression>,
    /// When records are forced to disk: commit, interval or none (Fanline only)
    #[arg(long, value_name = "MODE", value_parser = values::word::<SyncMode>)]
    sync: Option<SyncMode>,
    /// Whether an acknowledgement may come before the write: default or async
    #[arg(long, value_name = "MODE", value_parser = values::word::<PersistMode>)]
    persist_mode: Option<PersistMode>,
    /// Copy this stream
    #[arg(long, value_name = "STREAM")]
    mirror: Option<String>,
    /// Take records of this stream in; may be repeated
    #[arg(long, value_name = "STREAM")]
    source: Vec<String>,
    /// They are in this JetStream domain
    #[arg(long, value_name = "DOMAIN", conflicts_with = "origin_api")]
    origin_domain: Option<String>,
    /// They are in another account, whose API is imported under this prefix
    #[arg(long, value_name = "PREFIX")]
    origin_api: Option<String>,
    /// Their records are imported under this prefix
    #[arg(long, value_name = "PREFIX", requires = "origin_api")]
    origin_deliver: Option<String>,
    /// Sequence of the first record
    #[arg(long, value_name = "SEQUENCE")]
    first_sequence: Option<u64>,
    /// Rewrite subjects that match this...
    #[arg(long, value_name = "SUBJECT", requires = "transform_destination")]
    transform_source: Option<String>,
    /// ...to this
    #[arg(long, value_name = "SUBJECT")]
    transform_destination: Option<String>,
    /// Publish records once more, of subjects that match this...
    #[arg(long, value_name = "SUBJECT", requires = "republish_destination")]
    republish_source: Option<String>,
    /// ...under this subject
    #[arg(long, value_name = "SUBJECT")]
    republish_destination: Option<String>,
    /// Publish them without payloads
    #[arg(long, requires = "republish_destination")]
    republish_headers: bool,
    /// Longest time that a consumer may be without use
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    limit_consumer_inactive: Option<Nanos>,
    /// Most records of a consumer that wait for an acknowledgement
    #[arg(long, value_name = "N", value_parser = values::limit, allow_hyphen_values = true)]
    limit_consumer_max_pending: Option<i64>,
    /// How long the mark stays that a subject's last record leaves
    #[arg(long, alias = "subject-del-markers-ttl", value_name = "TIME", value_parser = values::span)]
    subject_delete_marker_ttl: Option<Nanos>,
    /// Free label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    switches: Switches,
}

/// What is allowed and what is not: `--allow-direct`, or `--allow-direct=false`.
#[derive(Args, Clone, Debug)]
struct Switches {
    /// Acknowledge publishes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    ack: Option<bool>,
    /// Do not acknowledge publishes
    #[arg(long, conflicts_with = "ack")]
    no_ack: bool,
    /// Read records without going through the stream's leader
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_direct: Option<bool>,
    /// A mirror answers direct reads for its origin
    #[arg(long, alias = "allow-mirror-direct", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    mirror_direct: Option<bool>,
    /// A publish may replace what came before it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_rollup: Option<bool>,
    /// A record may say how long it lives
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_msg_ttl: Option<bool>,
    /// Records add up, per subject
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_counter: Option<bool>,
    /// Publishes can be stored all or none
    #[arg(long, alias = "allow-atomic", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_batch: Option<bool>,
    /// Publishes can be delayed and repeated
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    allow_schedules: Option<bool>,
    /// Single records cannot be deleted
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    deny_delete: Option<bool>,
    /// It cannot be purged
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    deny_purge: Option<bool>,
}

/// A configuration as `stream info --json` and `stream add --config` have it.
#[derive(Args, Clone, Debug)]
pub(super) struct ConfigFile {
    /// Take the configuration from a JSON file; flags change it further
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    pub(super) fn read(&self) -> Result<Option<Kept<StreamConfig>>, Failure> {
        self.config.as_deref().map(read_json).transpose()
    }
}

/// `work` is short for what JSON calls `workqueue`.
fn retention(text: &str) -> Result<Retention, String> {
    match text {
        "work" => Ok(Retention::WorkQueue),
        text => values::word(text),
    }
}

impl ConfigArgs {
    /// Changes what was named.
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
                .map_err(|_| Failure::Usage("--max-msg-size is too large".to_owned()))?;
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

    /// Where records come from and go to.
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
