//! `fanline bench`: the speed of a NATS server, measured from this machine.
//!
//! Results include the load generator, which shares the cores of a local server.

mod latencies;
mod process;
mod pubsub;
mod quick;
mod request;
mod rows;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::values;

/// Measure a NATS server; without a command, measure this machine in a minute.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  fanline bench                         core, latency, and JetStream, on a server of its own
  fanline bench --nats-server PATH      the same, on a nats-server
  fanline bench pub demo --msgs 10M --size 128
  fanline bench pubsub demo --pub 1 --sub 4
  fanline bench request demo --msgs 10k
  fanline bench sub demo --sub 2        in one terminal, and
  fanline bench pub demo                in another")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    shape: Option<Shape>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    quick: quick::QuickArgs,
}

/// What to measure.
#[derive(Subcommand, Debug)]
enum Shape {
    /// Publish only
    Pub(Common),
    /// Subscribe only: wait for --msgs messages per subscriber
    Sub(Common),
    /// Publish and subscribe: each subscriber receives each message
    Pubsub(Common),
    /// Send requests one after the other, with a responder of its own
    Request(request::RequestBenchArgs),
    /// Answer requests until interrupted, for `bench request --no-service` on another machine
    Service(request::ServiceArgs),
}

/// Options of the publish and subscribe benchmarks.
#[derive(Args, Clone, Debug)]
struct Common {
    /// Subject to use
    subject: String,
    /// Number of publishing connections [default: 1]
    #[arg(long = "pub", value_name = "N")]
    publishers: Option<u32>,
    /// Number of subscribing connections [default: 1]
    #[arg(long = "sub", value_name = "N")]
    subscribers: Option<u32>,
    /// Total number of messages, divided among the publishers
    #[arg(long, value_name = "N", default_value = "1M", value_parser = values::count)]
    msgs: u64,
    /// Payload size in bytes
    #[arg(long, value_name = "BYTES", default_value = "128", value_parser = values::bytes)]
    size: usize,
    /// Show no progress bar
    #[arg(long)]
    no_progress: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl BenchArgs {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Some(shape) = self.shape else {
            return quick::run(&self.quick, self.json).await;
        };
        match shape {
            Shape::Pub(common) if common.subscribers.is_some() => Err(Failure::Usage(
                "--sub is an option of `bench sub` and `bench pubsub`".into(),
            )),
            Shape::Sub(common) if common.publishers.is_some() => Err(Failure::Usage(
                "--pub is an option of `bench pub` and `bench pubsub`".into(),
            )),
            Shape::Pub(common) => pubsub::run(&common, common.publishers.unwrap_or(1), 0).await,
            Shape::Sub(common) => pubsub::run(&common, 0, common.subscribers.unwrap_or(1)).await,
            Shape::Pubsub(common) => {
                let publishers = common.publishers.unwrap_or(1);
                pubsub::run(&common, publishers, common.subscribers.unwrap_or(1)).await
            }
            Shape::Request(args) => args.run().await,
            Shape::Service(args) => args.run().await,
        }
    }
}

/// Returns a progress bar on stderr, which is hidden unless `wanted`, or if stderr is not a terminal.
fn progress(total: u64, wanted: bool) -> ProgressBar {
    if !wanted {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {percent:>3}% {pos} of {len}") {
        bar.set_style(style.progress_chars("== "));
    }
    bar
}
