//! `fanline kv`: one command, one file.

mod add;
mod compact;
mod create;
mod del;
mod details;
mod edit;
mod get;
mod history;
mod info;
mod ls;
mod purge;
mod put;
mod revert;
mod rm;
mod table;
mod update;
mod watch;

use clap::Subcommand;

use serde_json::json;

use crate::failure::Failure;
use crate::jetstream::{JsonArgs, print_json};

/// Commands for key-value buckets.
#[derive(Subcommand, Debug)]
pub(crate) enum KvCommand {
    #[command(visible_alias = "new")]
    Add(Box<add::AddArgs>),
    Ls(ls::LsArgs),
    #[command(visible_alias = "status")]
    Info(info::InfoArgs),
    Get(get::GetArgs),
    Put(put::PutArgs),
    Create(create::CreateArgs),
    Update(update::UpdateArgs),
    Revert(revert::RevertArgs),
    History(history::HistoryArgs),
    Watch(watch::WatchArgs),
    #[command(visible_alias = "delete")]
    Del(del::DelArgs),
    Purge(purge::PurgeArgs),
    Compact(compact::CompactArgs),
    Edit(edit::EditArgs),
    Rm(rm::RmArgs),
}

impl KvCommand {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            KvCommand::Add(args) => args.run().await,
            KvCommand::Ls(args) => args.run().await,
            KvCommand::Info(args) => args.run().await,
            KvCommand::Get(args) => args.run().await,
            KvCommand::Put(args) => args.run().await,
            KvCommand::Create(args) => args.run().await,
            KvCommand::Update(args) => args.run().await,
            KvCommand::Revert(args) => args.run().await,
            KvCommand::History(args) => args.run().await,
            KvCommand::Watch(args) => args.run().await,
            KvCommand::Del(args) => args.run().await,
            KvCommand::Purge(args) => args.run().await,
            KvCommand::Compact(args) => args.run().await,
            KvCommand::Edit(args) => args.run().await,
            KvCommand::Rm(args) => args.run().await,
        }
    }
}

/// Prints the new revision of a key.
fn written(key: &str, revision: u64, json: JsonArgs) -> Result<(), Failure> {
    if json.json {
        return print_json(&json!({ "key": key, "revision": revision }));
    }
    eprintln!("Wrote {key}, revision {revision}");
    Ok(())
}
