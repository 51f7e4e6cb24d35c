//! `fanline object del`: delete an object, or a store.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete an object; without one, remove the store.
#[derive(Args, Debug)]
pub(crate) struct DelArgs {
    /// The store
    bucket: String,
    /// The object
    name: Option<String>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl DelArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let DelArgs { bucket, .. } = &self;
        let Some(name) = &self.name else {
            return super::rm::remove(bucket, self.force, &self.jetstream).await;
        };
        self.force
            .confirm(&format!("Delete object {name} of store {bucket}?"))?;
        let jetstream = self.jetstream.connect().await?;
        jetstream.object_store(bucket).await?.delete(name).await?;
        eprintln!("Deleted {name}");
        Ok(())
    }
}
