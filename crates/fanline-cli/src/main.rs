//! The command `fanline`: a NATS-compatible server, and tools to publish, subscribe, request and
//! measure against any NATS server. Under the name `nats-server` it stands in for that program.

mod args;
mod bench;
mod commands;
mod compat;
mod connection;
mod dump;
mod failure;
mod files;
mod jetstream;
mod log;
mod monitor;
mod notify;
mod output;
mod panics;
mod payload;
mod record;
mod serve;
mod show;
mod table;
mod terminal;
mod tls;
mod value;
mod values;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

/// The name in messages, unless the program runs as nats-server.
const FANLINE: &str = "fanline";
/// Flags that nats-server has too, and that mean the tools' own here.
const OWN_FLAGS: &[&str] = &["-h", "--help", "-s"];

fn main() -> ExitCode {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let called = words.next().unwrap_or_default();
    let arguments: Vec<String> = words.collect();
    if Path::new(&called)
        .file_name()
        .is_some_and(|name| name == compat::NATS_SERVER)
    {
        return compat::run(compat::NATS_SERVER, &arguments);
    }
    match arguments.first() {
        None => return serve::ServeArgs::default().run(),
        Some(first) if first.starts_with('-') && !OWN_FLAGS.contains(&first.as_str()) => {
            return compat::run(FANLINE, &arguments);
        }
        Some(_) => {}
    }
    match args::Cli::try_parse() {
        Ok(cli) => cli.command.run(),
        Err(error) => refuse(&error, &arguments[0]),
    }
}

/// Says what is wrong with the arguments. Whoever starts a server gets nats-server's exit code
/// for it; the tools keep 2, so that a script can tell it from a failure.
fn refuse(error: &clap::Error, first: &str) -> ExitCode {
    // Nothing is left to do when the message cannot be written.
    let _ = error.print();
    let starts_server = first.starts_with('-') || first == "serve";
    match error.use_stderr() {
        true if starts_server => ExitCode::from(1),
        // Whoever watches takes 2 for "critical"; nobody knows how it is.
        true if first == "check" => ExitCode::from(3),
        true => ExitCode::from(2),
        false => ExitCode::SUCCESS,
    }
}
