//! `fanline object info`: details of a store or an object.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};

/// Show the details of a store, or of an object.
#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// Name of the store
    bucket: String,
    /// Name of the object
    name: Option<String>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl InfoArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let store = jetstream.object_store(&self.bucket).await?;
        match &self.name {
            Some(name) => {
                let info = store.info(name).await?;
                match self.json.json {
                    true => print_json(&info),
                    false => details::print_object(&info),
                }
            }
            None => {
                let info = store.status().await?;
                match self.json.json {
                    true => print_json(&info),
                    false => details::print_store(&info),
                }
            }
        }
    }
}
