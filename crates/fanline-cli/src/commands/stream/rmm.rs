//! `fanline stream rmm`: deletes one message.

use clap::Args;

use crate::failure::Failure;
use crate::jetstream::{ForceArgs, JetStreamArgs};

/// Delete one message; its bytes are overwritten.
#[derive(Args, Debug)]
pub(crate) struct RmmArgs {
    /// Name of the stream
    stream: String,
    /// Sequence of the message
    id: u64,
    /// Do not overwrite its bytes on disk
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
