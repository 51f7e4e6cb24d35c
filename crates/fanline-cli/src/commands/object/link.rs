//! `fanline object link`: creates a link to an object or a store.

use clap::Args;

use super::details;
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, JsonArgs, print_json};

/// Create a link to another object, or to a whole store.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fanline object link images cover.png cup.png             in the same store
  fanline object link images cover.png cup.png --to photos
  fanline object link images old --to archive              a whole store

Getting a link returns the object that it refers to.")]
pub(crate) struct LinkArgs {
    /// Name of the store
    bucket: String,
    /// Name of the link
    name: String,
    /// Name of the target object
    #[arg(required_unless_present = "to")]
    target: Option<String>,
    /// Store of the target; this one by default
    #[arg(long, value_name = "BUCKET")]
    to: Option<String>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl LinkArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        let store = jetstream.object_store(&self.bucket).await?;
        let to = self.to.as_deref().unwrap_or(&self.bucket);
        let target = jetstream.object_store(to).await?;
        let info = match &self.target {
            Some(object) => store.link(&self.name, &target, object).await?,
            None => store.link_store(&self.name, &target).await?,
        };
        match self.json.json {
            true => print_json(&info),
            false => details::print_object(&info),
        }
    }
}
