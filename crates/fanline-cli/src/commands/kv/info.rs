//! `fanline kv info`: configuration and state of a bucket.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};

/// Show a bucket's configuration and state.
#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// Name of the bucket
    bucket: String,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl InfoArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let info = jetstream.bucket(&self.bucket).await?.status().await?;
        match self.json.json {
            true => print_json(&info),
            false => details::print(&info),
        }
    }
}
