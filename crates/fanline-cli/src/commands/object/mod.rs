//! `fanline object`: one command, one file.

mod add;
mod del;
mod details;
mod get;
mod info;
mod link;
mod ls;
mod put;
mod rm;
mod seal;
mod watch;

use clap::Subcommand;

use crate::failure::Failure;

/// Commands for object stores.
#[derive(Subcommand, Debug)]
pub(crate) enum ObjectCommand {
    #[command(visible_alias = "new")]
    Add(Box<add::AddArgs>),
    Ls(ls::LsArgs),
    #[command(visible_alias = "status")]
    Info(info::InfoArgs),
    Put(put::PutArgs),
    Get(get::GetArgs),
    Link(link::LinkArgs),
    Watch(watch::WatchArgs),
    #[command(visible_alias = "delete")]
    Del(del::DelArgs),
    Seal(seal::SealArgs),
    Rm(rm::RmArgs),
}

impl ObjectCommand {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            ObjectCommand::Add(args) => args.run().await,
            ObjectCommand::Ls(args) => args.run().await,
            ObjectCommand::Info(args) => args.run().await,
            ObjectCommand::Put(args) => args.run().await,
            ObjectCommand::Get(args) => args.run().await,
            ObjectCommand::Link(args) => args.run().await,
            ObjectCommand::Watch(args) => args.run().await,
            ObjectCommand::Del(args) => args.run().await,
            ObjectCommand::Seal(args) => args.run().await,
            ObjectCommand::Rm(args) => args.run().await,
        }
    }
}
