//! `fanline stream rmm`: delete one record.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete one record; its bytes are written over.
#[derive(Args, Debug)]
pub(crate) struct RmmArgs {
    /// The stream
    stream: String,
    /// Its sequence
    id: u64,
    /// Leave its bytes on disk until their place is used again
    #[arg(long)]
    no_erase: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl RmmArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let RmmArgs { stream, id, .. } = &self;
        self.force
            .confirm(&format!("Delete message {id} of stream {stream}?"))?;
        let jetstream = self.jetstream.connect().await?;
        jetstream
            .delete_message(stream, *id, !self.no_erase)
            .await?;
        eprintln!("Deleted message {id} of stream {stream}");
        Ok(())
    }
}
