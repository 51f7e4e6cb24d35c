//! Command line of `fanline`.

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::FANLINE;
use crate::bench::BenchArgs;
use crate::commands::check::CheckArgs;
use crate::commands::completions::CompletionsArgs;
use crate::commands::consumer::ConsumerCommand;
use crate::commands::kv::KvCommand;
use crate::commands::man::ManArgs;
use crate::commands::object::ObjectCommand;
use crate::commands::publish::PubArgs;
use crate::commands::reply::ReplyArgs;
use crate::commands::request::RequestArgs;
use crate::commands::rtt::RttArgs;
use crate::commands::stream::StreamCommand;
use crate::commands::subscribe::SubArgs;
use crate::commands::top::TopArgs;
use crate::failure::Failure;
#[cfg(feature = "server")]
use crate::server::ServerCommand;

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

`fanline` without a command is `fanline serve`. With nats-server's own flags first (fanline -p 4222 -D), or
under the name nats-server, it behaves like nats-server; its exit codes are then 0 and 1.

Exit codes: 0 success, 1 error, 2 wrong usage (1 when starting a server), 3 no response (timeout, no
responders). `fanline check` has the exit codes of Nagios plugins.
Tools connect to --server, else $FANLINE_URL, else $NATS_URL, else nats://127.0.0.1:4222.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    #[cfg(feature = "server")]
    #[command(flatten)]
    Server(ServerCommand),
    Pub(PubArgs),
    Sub(SubArgs),
    Request(RequestArgs),
    Reply(ReplyArgs),
    Rtt(RttArgs),
    /// Manage streams, which store published messages
    #[command(subcommand, visible_alias = "str", arg_required_else_help = true)]
    Stream(StreamCommand),
    /// Manage consumers, which track a reader's position in a stream
    #[command(subcommand, visible_alias = "con", arg_required_else_help = true)]
    Consumer(ConsumerCommand),
    /// Manage key-value buckets
    #[command(subcommand, arg_required_else_help = true)]
    Kv(KvCommand),
    /// Manage object stores, for files of any size
    #[command(subcommand, visible_alias = "obj", arg_required_else_help = true)]
    Object(ObjectCommand),
    Bench(BenchArgs),
    Top(TopArgs),
    Check(CheckArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    /// Print the version
    Version,
}

impl Command {
    pub(crate) fn run(self) -> ExitCode {
        let outcome = match self {
            #[cfg(feature = "server")]
            Command::Server(command) => return command.run(),
            Command::Check(args) => return check(args),
            Command::Version => {
                let line = crate::version(FANLINE);
                std::io::stdout()
                    .write_all(line.as_bytes())
                    .map_err(Failure::from)
            }
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(),
            Command::Pub(args) => block_on(args.run()),
            Command::Sub(args) => block_on(args.run()),
            Command::Request(args) => block_on(args.run()),
            Command::Reply(args) => block_on(args.run()),
            Command::Rtt(args) => block_on(args.run()),
            Command::Stream(command) => block_on(command.run()),
            Command::Consumer(command) => block_on(command.run()),
            Command::Kv(command) => block_on(command.run()),
            Command::Object(command) => block_on(command.run()),
            Command::Top(args) => block_on(args.run()),
            Command::Bench(args) => block_on_all_cores(args.run()),
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(FANLINE),
        }
    }
}

/// Runs a check, which has exit codes of its own.
fn check(args: CheckArgs) -> ExitCode {
    let mut code = ExitCode::from(3);
    let outcome = block_on(async {
        code = args.run().await;
        Ok(())
    });
    match outcome {
        Ok(()) => code,
        Err(failure) => {
            failure.report(FANLINE);
            code
        }
    }
}

/// Runs a tool with a single connection. One thread suffices, and has the lowest latency.
fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    run_on(&mut tokio::runtime::Builder::new_current_thread(), work)
}

/// Runs a tool with many independent connections.
fn block_on_all_cores(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    run_on(&mut tokio::runtime::Builder::new_multi_thread(), work)
}

fn run_on(
    builder: &mut tokio::runtime::Builder,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let runtime = builder.enable_all().build()?;
    let outcome = runtime.block_on(work);
    // A pending read of stdin must not keep the program alive.
    runtime.shutdown_background();
    outcome
}
