//! `fanline check`: health checks for Nagios and compatible systems. One check, one file.

mod connection;
mod consumer;
mod jetstream;
mod report;
mod server;
mod stream;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use report::{Format, Level, Report};

/// Run a health check; exit codes 0 OK, 1 warning, 2 critical, 3 unknown.
#[derive(Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
A higher number is worse, unless the critical threshold is lower than the warning one: then a lower number is
worse. Thresholds that are not set are not checked.

Examples:
  fanline check connection --rtt-warn 100ms --rtt-critical 500ms
  fanline check stream ORDERS --msgs-warn 1000 --msgs-critical 10000 --seen-critical 5m
  fanline check consumer ORDERS billing --unprocessed-critical 5000
  fanline check server --monitor http://127.0.0.1:8222 --conn-critical 5000 --format json"
)]
pub(crate) struct CheckArgs {
    /// Output format
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value = "nagios"
    )]
    format: Format,
    #[command(subcommand)]
    check: Check,
}

#[derive(Subcommand, Debug)]
enum Check {
    Connection(connection::ConnectionCheck),
    Jetstream(jetstream::JetStreamCheck),
    Stream(stream::StreamCheck),
    Consumer(consumer::ConsumerCheck),
    Server(server::ServerCheck),
}

impl CheckArgs {
    pub(crate) async fn run(self) -> ExitCode {
        let (mut report, outcome) = match self.check {
            Check::Connection(check) => check.run().await,
            Check::Jetstream(check) => check.run().await,
            Check::Stream(check) => check.run().await,
            Check::Consumer(check) => check.run().await,
            Check::Server(check) => check.run().await,
        };
        match outcome {
            Ok(()) => {}
            // With wrong usage, the check could not run, so the state is unknown.
            Err(Failure::Usage(text)) => report.found(Level::Unknown, text),
            Err(failure) => report.found(Level::Critical, failure.to_string()),
        }
        let text = report.text(self.format);
        match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => report.exit_code(),
            Err(_) => ExitCode::from(Level::Unknown.code()),
        }
    }
}

/// The result of a check: its findings, and the error that ended it early.
type Checked = (Report, Result<(), Failure>);

#[expect(clippy::cast_precision_loss, reason = "compared with a bound")]
fn float(count: u64) -> f64 {
    count as f64
}
