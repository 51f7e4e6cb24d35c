//! `fanline kv revert`: restores an earlier value of a key.

use clap::Args;
use fanline_client::jetstream::JetStreamError;

use super::written;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs, JsonArgs};

/// Restore the value of a key at a revision.
#[derive(Args, Debug)]
pub(crate) struct RevertArgs {
    /// Name of the bucket
    bucket: String,
    /// The key
    key: String,
    /// The revision, as shown by `kv history`
    revision: u64,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl RevertArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let RevertArgs { key, revision, .. } = &self;
        self.force
            .confirm(&format!("Restore {key} to revision {revision}?"))?;
        let bucket = self.jetstream.connect().await?.bucket(&self.bucket).await?;
        let entry = bucket.get_revision(key, *revision).await?;
        let entry = entry.ok_or_else(|| JetStreamError::NotFound {
            what: "revision",
            name: revision.to_string(),
        })?;
        let revision = bucket.put(key, entry.value).await?;
        written(key, revision, self.json)
    }
}
