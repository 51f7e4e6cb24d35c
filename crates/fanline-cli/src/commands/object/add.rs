//! `fanline object add`: make an object store.

use std::time::Duration;

use clap::Args;
use fanline_server::client::jetstream::{ObjectStoreConfig, Placement, Storage};

use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};
use crate::values;

/// Make an object store.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline object add images
  fanline object add builds --ttl 30d --max-bucket-size 10G")]
pub(crate) struct AddArgs {
    /// Its name
    bucket: String,
    /// How long an object lives
    #[arg(long, value_name = "TIME", value_parser = values::finite_span, default_value = "never")]
    ttl: Duration,
    /// Most bytes of all
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    max_bucket_size: Option<usize>,
    /// What it is for
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    description: String,
    /// Where it is kept: file or memory
    #[arg(long, default_value = "file", value_parser = values::word::<Storage>)]
    storage: Storage,
    /// Whether it is compressed
    #[arg(long, alias = "compression")]
    compress: bool,
    /// Servers that keep it
    #[arg(long, value_name = "N", default_value = "1")]
    replicas: u8,
    /// Cluster to keep it in
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Label that its servers must have; may be repeated
    #[arg(long, alias = "tag", value_name = "LABEL")]
    tags: Vec<String>,
    /// Free label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl AddArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let is_placed = self.cluster.is_some() || !self.tags.is_empty();
        let config = ObjectStoreConfig {
            bucket: self.bucket,
            description: self.description,
            ttl: self.ttl,
            bytes_max: self.max_bucket_size.map(|bytes| bytes as u64),
            storage: self.storage,
            replicas: self.replicas,
            compression: self.compress,
            placement: is_placed.then(|| Placement {
                cluster: self.cluster.unwrap_or_default(),
                tags: self.tags,
                ..Default::default()
            }),
            metadata: self.metadata.into_iter().collect(),
        };
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream
            .create_object_store(&config)
            .await?
            .status()
            .await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print_store(&info),
        }
    }
}
