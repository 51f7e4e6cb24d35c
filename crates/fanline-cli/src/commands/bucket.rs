//! Options common to key-value buckets and object stores.

use clap::Args;
use fanline_client::jetstream::{Placement, Storage};

use crate::values;

/// Storage and limits of a bucket.
#[derive(Args, Debug)]
pub(crate) struct BucketArgs {
    /// Largest size of the bucket in bytes
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    max_bucket_size: Option<usize>,
    /// Description
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) description: String,
    /// Storage type: file or memory
    #[arg(long, default_value = "file", value_parser = values::word::<Storage>)]
    pub(crate) storage: Storage,
    /// Compress stored values
    #[arg(long, alias = "compression")]
    pub(crate) compress: bool,
    /// Number of replicas
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) replicas: u8,
    /// Cluster to place it in
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Tag that its servers must have; may be repeated
    #[arg(long, alias = "tag", value_name = "LABEL")]
    tags: Vec<String>,
    /// Metadata label; may be repeated
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
