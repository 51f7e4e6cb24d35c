//! `fanline stream`: one command, one file.

mod add;
mod backup;
mod config;
mod copy;
mod details;
mod edit;
mod find;
mod gaps;
mod get;
mod info;
mod ls;
mod purge;
mod report;
mod restore;
mod rm;
mod rmm;
mod seal;
mod state;
mod subjects;
mod view;

use clap::Subcommand;

use crate::failure::Failure;

/// Commands for streams.
#[derive(Subcommand, Debug)]
pub(crate) enum StreamCommand {
    #[command(visible_aliases = ["create", "new"])]
    Add(Box<add::AddArgs>),
    #[command(visible_alias = "list")]
    Ls(ls::LsArgs),
    #[command(visible_alias = "query")]
    Find(find::FindArgs),
    Info(info::InfoArgs),
    State(state::StateArgs),
    Subjects(subjects::SubjectsArgs),
    Report(report::ReportArgs),
    View(view::ViewArgs),
    Get(get::GetArgs),
    Gaps(gaps::GapsArgs),
    #[command(visible_alias = "cp")]
    Copy(Box<copy::CopyArgs>),
    #[command(visible_alias = "update")]
    Edit(Box<edit::EditArgs>),
    Purge(purge::PurgeArgs),
    Rmm(rmm::RmmArgs),
    Seal(seal::SealArgs),
    #[command(visible_alias = "delete")]
    Rm(rm::RmArgs),
    #[command(visible_alias = "snapshot")]
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
}

impl StreamCommand {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            StreamCommand::Add(args) => args.run().await,
            StreamCommand::Ls(args) => args.run().await,
            StreamCommand::Find(args) => args.run().await,
            StreamCommand::Info(args) => args.run().await,
            StreamCommand::State(args) => args.run().await,
            StreamCommand::Subjects(args) => args.run().await,
            StreamCommand::Report(args) => args.run().await,
            StreamCommand::View(args) => args.run().await,
            StreamCommand::Get(args) => args.run().await,
            StreamCommand::Gaps(args) => args.run().await,
            StreamCommand::Copy(args) => args.run().await,
            StreamCommand::Edit(args) => args.run().await,
            StreamCommand::Purge(args) => args.run().await,
            StreamCommand::Rmm(args) => args.run().await,
            StreamCommand::Seal(args) => args.run().await,
            StreamCommand::Rm(args) => args.run().await,
            StreamCommand::Backup(args) => args.run().await,
            StreamCommand::Restore(args) => args.run().await,
        }
    }
}
