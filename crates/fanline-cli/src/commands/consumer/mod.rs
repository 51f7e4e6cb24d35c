//! `fanline consumer`: one command, one file.

mod add;
mod config;
mod copy;
mod details;
mod edit;
mod find;
mod info;
mod ls;
mod next;
mod pause;
mod receive;
mod report;
mod reset;
mod resume;
mod rm;
mod sub;
mod unpin;

use clap::Subcommand;

use crate::failure::Failure;

/// Commands for consumers.
#[derive(Subcommand, Debug)]
pub(crate) enum ConsumerCommand {
    #[command(visible_aliases = ["create", "new"])]
    Add(Box<add::AddArgs>),
    #[command(visible_alias = "list")]
    Ls(ls::LsArgs),
    #[command(visible_alias = "query")]
    Find(find::FindArgs),
    Info(info::InfoArgs),
    Report(report::ReportArgs),
    Next(next::NextArgs),
    Sub(sub::SubArgs),
    #[command(visible_alias = "cp")]
    Copy(Box<copy::CopyArgs>),
    #[command(visible_alias = "update")]
    Edit(Box<edit::EditArgs>),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
    Reset(reset::ResetArgs),
    Unpin(unpin::UnpinArgs),
    #[command(visible_alias = "delete")]
    Rm(rm::RmArgs),
}

impl ConsumerCommand {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            ConsumerCommand::Add(args) => args.run().await,
            ConsumerCommand::Ls(args) => args.run().await,
            ConsumerCommand::Find(args) => args.run().await,
            ConsumerCommand::Info(args) => args.run().await,
            ConsumerCommand::Report(args) => args.run().await,
            ConsumerCommand::Next(args) => args.run().await,
            ConsumerCommand::Sub(args) => args.run().await,
            ConsumerCommand::Copy(args) => args.run().await,
            ConsumerCommand::Edit(args) => args.run().await,
            ConsumerCommand::Pause(args) => args.run().await,
            ConsumerCommand::Resume(args) => args.run().await,
            ConsumerCommand::Reset(args) => args.run().await,
            ConsumerCommand::Unpin(args) => args.run().await,
            ConsumerCommand::Rm(args) => args.run().await,
        }
    }
}
