//! The command line of `fanline`.

use clap::{Parser, Subcommand};

use crate::commands::completions::CompletionsArgs;
use crate::commands::publish::PubArgs;
use crate::commands::reply::ReplyArgs;
use crate::commands::request::RequestArgs;
use crate::commands::rtt::RttArgs;
use crate::commands::subscribe::SubArgs;
use crate::failure::Failure;

/// One publish, every subscriber: a NATS-compatible server, and the tools to talk to one.
#[derive(Parser, Debug)]
#[command(
    name = "fanline",
    disable_version_flag = true,
    arg_required_else_help = true
)]
#[command(after_help = "\
Try it in three terminals:
  fanline serve
  fanline sub 'greetings.>'
  fanline pub greetings.world hello

Exit codes: 0 done, 1 an error, 2 wrong usage, 3 nobody answered (timeout, no responders).
The server is $FANLINE_URL, then $NATS_URL, then nats://127.0.0.1:4222, or what --server says.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Pub(PubArgs),
    Sub(SubArgs),
    Request(RequestArgs),
    Reply(ReplyArgs),
    Rtt(RttArgs),
    Completions(CompletionsArgs),
}

impl Command {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Completions(args) => args.run(),
            Command::Pub(args) => block_on(args.run()),
            Command::Sub(args) => block_on(args.run()),
            Command::Request(args) => block_on(args.run()),
            Command::Reply(args) => block_on(args.run()),
            Command::Rtt(args) => block_on(args.run()),
        }
    }
}

/// The tools are one connection each: one thread is enough, and answers fastest.
fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(work);
    // A read of stdin that is still waiting must not keep the program alive.
    runtime.shutdown_background();
    outcome
}
