//! Commands that need the server: `serve`, `config`, `auth`, and the front end that replaces nats-server.
//! Compiled with the feature `server`.

mod auth;
mod compat;
mod config;
mod dump;
mod log;
mod notify;
mod panics;
mod serve;
mod tls;
mod values;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use auth::AuthCommand;
pub(crate) use compat::version;
use config::ConfigCommand;
use serve::ServeArgs;

use crate::FANLINE;

/// Flags that both Fanline and nats-server have. If the first argument is one of these, Fanline parses the
/// command line. Any other flag as the first argument selects nats-server's command line.
const OWN_FLAGS: &[&str] = &["-h", "--help", "-s"];

/// Commands of the server.
#[derive(Subcommand, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per process")]
pub(crate) enum ServerCommand {
    Serve(ServeArgs),
    /// Check configuration files, and print effective settings
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Create keys, hashes, and tokens for authentication
    #[command(subcommand, arg_required_else_help = true)]
    Auth(AuthCommand),
}

impl ServerCommand {
    pub(crate) fn run(self) -> ExitCode {
        match self {
            ServerCommand::Serve(args) => args.run(),
            ServerCommand::Config(command) => command.run(),
            ServerCommand::Auth(command) => match command.run() {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(FANLINE),
            },
        }
    }
}

/// Runs a server, without a command such as `serve`, if the program is called `nats-server`, if there are no
/// arguments, or if the first argument is a flag of nats-server. Otherwise returns `None`.
pub(crate) fn run_without_command(program: &str, arguments: &[String]) -> Option<ExitCode> {
    if Path::new(program)
        .file_name()
        .is_some_and(|name| name == compat::NATS_SERVER)
    {
        return Some(compat::run(compat::NATS_SERVER, arguments));
    }
    match arguments.first() {
        None => Some(ServeArgs::default().run()),
        Some(first) if first.starts_with('-') && !OWN_FLAGS.contains(&first.as_str()) => {
            Some(compat::run(FANLINE, arguments))
        }
        Some(_) => None,
    }
}
