//! `fanline kv edit`: changes a bucket.

use clap::Args;
use fanline_client::jetstream::{Nanos, Republish, StreamConfig};

use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::values::{self, set};

/// Change a bucket; values without an option stay unchanged.
#[derive(Args, Debug)]
pub(crate) struct EditArgs {
    /// Name of the bucket
    bucket: String,
    /// Number of values stored per key
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=64))]
    history: Option<i64>,
    /// Time to live of values
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    ttl: Option<Nanos>,
    /// Largest size of a value in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes_limit, allow_hyphen_values = true)]
    max_value_size: Option<i64>,
    /// Largest size of the bucket in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes_limit, allow_hyphen_values = true)]
    max_bucket_size: Option<i64>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Number of replicas
    #[arg(long, value_name = "N")]
    replicas: Option<i64>,
    /// Republish values of subjects that match this filter...
    #[arg(long, value_name = "SUBJECT", requires = "republish_destination")]
    republish_source: Option<String>,
    /// ...to this subject
    #[arg(long, value_name = "SUBJECT")]
    republish_destination: Option<String>,
    /// Metadata label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl EditArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let value_bytes_max = self.max_value_size.map(i32::try_from).transpose();
        let value_bytes_max = value_bytes_max
            .map_err(|_| Failure::Usage("--max-value-size must be less than 2 GiB".into()))?;
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream
            .update_bucket(&self.bucket, |config| self.apply(config, value_bytes_max))
            .await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info),
        }
    }

    fn apply(&self, config: &mut StreamConfig, value_bytes_max: Option<i32>) {
        set(&mut config.max_msgs_per_subject, &self.history);
        set(&mut config.max_bytes, &self.max_bucket_size);
        set(&mut config.max_msg_size, &value_bytes_max);
        set(&mut config.description, &self.description);
        set(&mut config.num_replicas, &self.replicas);
        if let Some(ttl) = self.ttl {
            config.max_age = ttl;
            if !ttl.is_zero() {
                config.duplicate_window = config.duplicate_window.min(ttl);
            }
        }
        if let Some(dest) = &self.republish_destination {
            config.republish = Some(Republish {
                src: self.republish_source.clone().unwrap_or_default(),
                dest: dest.clone(),
                headers_only: false,
            });
        }
        config.metadata.extend(self.metadata.iter().cloned());
    }
}
