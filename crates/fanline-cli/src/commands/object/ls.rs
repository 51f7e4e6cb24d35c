//! `fanline object ls`: lists stores, or the objects of a store.

use clap::Args;
use fanline_client::jetstream::{JetStream, StreamInfo};

use super::details::{bucket_of, print_objects};
use crate::failure::Failure;
use crate::jetstream::{JetStreamArgs, ListArgs, print_json, print_lines};
use crate::show;
use crate::table::Table;

/// List object stores, or the objects of a store.
#[derive(Args, Debug)]
pub(crate) struct LsArgs {
    /// Name of the store
    bucket: Option<String>,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    jetstream: JetStreamArgs,
}

impl LsArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let jetstream = self.jetstream.connect().await?;
        match &self.bucket {
            Some(bucket) => self.list_objects(&jetstream, bucket).await,
            None => self.list_stores(&jetstream).await,
        }
    }

    async fn list_objects(&self, jetstream: &JetStream, bucket: &str) -> Result<(), Failure> {
        let mut objects = jetstream.object_store(bucket).await?.list().await?;
        objects.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        match (self.list.json.json, self.list.names) {
            (true, _) => print_json(&objects),
            (false, true) => print_lines(objects.into_iter().map(|info| info.meta.name)),
            (false, false) if objects.is_empty() => {
                eprintln!("No objects");
                Ok(())
            }
            (false, false) => print_objects(&objects),
        }
    }

    async fn list_stores(&self, jetstream: &JetStream) -> Result<(), Failure> {
        let mut stores = jetstream.object_stores().await?;
        stores.sort_by(|a, b| a.config.name.cmp(&b.config.name));
        let name = |info: &StreamInfo| bucket_of(info).to_owned();
        let nothing = "No object stores";
        self.list.print(&stores, name, nothing, print_stores)
    }
}

fn print_stores(stores: &[StreamInfo]) -> Result<(), Failure> {
    let mut table = Table::new(["Store", "Description", ">Size", "Created", "Last change"]);
    for info in stores {
        table.row([
            bucket_of(info).to_owned(),
            info.config.description.clone(),
            show::bytes(info.state.bytes),
            show::time(info.created),
            show::ago(info.state.last_ts),
        ]);
    }
    table.print()
}
