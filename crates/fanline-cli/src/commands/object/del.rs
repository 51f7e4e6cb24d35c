//! `fanline object del`: deletes an object, or a store.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete an object; without a name, delete the store.
#[derive(Args, Debug)]
pub(crate) struct DelArgs {
    /// Name of the store
    bucket: String,
    /// Name of the object
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
