//! What buckets and object stores have in common when they are made.

use clap::Args;
use fanline_client::jetstream::{Placement, Storage};

use crate::values;

/// Where a bucket is kept, and how much of it.
#[derive(Args, Debug)]
pub(crate) struct BucketArgs {
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
    pub(crate) description: String,
    /// Where it is kept: file or memory
    #[arg(long, default_value = "file", value_parser = values::word::<Storage>)]
    pub(crate) storage: Storage,
    /// Whether it is compressed
    #[arg(long, alias = "compression")]
    pub(crate) compress: bool,
    /// Servers that keep it
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) replicas: u8,
    /// Cluster to keep it in
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Label that its servers must have; may be repeated
    #[arg(long, alias = "tag", value_name = "LABEL")]
    tags: Vec<String>,
    /// Free label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::label)]
    pub(crate) metadata: Vec<(String, String)>,
}

impl BucketArgs {
    pub(crate) fn bytes_max(&self) -> Option<u64> {
        self.max_bucket_size.map(|bytes| bytes as u64)
    }

    pub(crate) fn placement(&self) -> Option<Placement> {
        let is_placed = self.cluster.is_some() || !self.tags.is_empty();
        is_placed.then(|| Placement {
            cluster: self.cluster.clone().unwrap_or_default(),
            tags: self.tags.clone(),
            ..Default::default()
        })
    }
}
