//! `fanline kv revert`: give a key the value that it had.

use clap::Args;
use fanline_client::jetstream::JetStreamError;

use super::written;
use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs, JsonArgs};

/// Give a key the value that it had at a revision.
#[derive(Args, Debug)]
pub(crate) struct RevertArgs {
    /// The bucket
    bucket: String,
    /// The key
    key: String,
    /// The revision, as `kv history` shows it
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
            .confirm(&format!("Set {key} back to revision {revision}?"))?;
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
