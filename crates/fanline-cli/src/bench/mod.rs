//! `fanline bench`: how fast a NATS server is, seen from this machine.
//!
//! Numbers include the generator: it runs on the same cores unless the server is elsewhere.

mod compare;
mod histogram;
mod process;
mod progress;
mod pubsub;
mod quick;
mod request;
mod rows;
mod tables;

use clap::{Args, Subcommand};

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::values;

/// Measure a NATS server; alone: what this machine does, in a minute.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  fanline bench                         core, latency and JetStream, on a server of its own
  fanline bench compare                 every table of the product beside its rivals, and a report
  fanline bench compare --own           the rows of `fanline bench` beside nats-server, without the sources
  fanline bench pub demo --msgs 10M --size 128
  fanline bench pubsub demo --pub 1 --sub 4
  fanline bench request demo --msgs 10k
  fanline bench sub demo --sub 2        in one terminal, and
  fanline bench pub demo                in another")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    shape: Option<Shape>,
    /// JSON instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    quick: quick::QuickArgs,
}

/// What is measured.
#[derive(Subcommand, Debug)]
enum Shape {
    /// Fanline beside its rivals, in turns; writes BENCHMARKS.md
    ///
    /// Measures every table of the product with fanline-bench, which is looked for beside this program, and built
    /// where this is run within the sources. Without it, or with --own, what this program measures by itself: the
    /// rows of `fanline bench`, beside nats-server.
    Compare(compare::CompareArgs),
    /// Publishers only
    Pub(Common),
    /// Subscribers only: waits for --msgs messages each
    Sub(Common),
    /// Publishers and subscribers together: every subscriber gets every message
    Pubsub(Common),
    /// Requests one after the other, with a responder of its own
    Request(request::RequestBenchArgs),
    /// Answer requests until interrupted, for `bench request --no-service` elsewhere
    Service(request::ServiceArgs),
}

/// Options of the publish and subscribe shapes.
#[derive(Args, Clone, Debug)]
struct Common {
    /// Subject to use
    subject: String,
    /// Publishing connections [default: 1]
    #[arg(long = "pub", value_name = "N")]
    publishers: Option<u32>,
    /// Subscribing connections [default: 1]
    #[arg(long = "sub", value_name = "N")]
    subscribers: Option<u32>,
    /// Messages in all, shared among the publishers
    #[arg(long, value_name = "N", default_value = "1M", value_parser = values::count)]
    msgs: u64,
    /// Bytes of a payload
    #[arg(long, value_name = "BYTES", default_value = "128", value_parser = values::bytes)]
    size: usize,
    /// No progress bar
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
            Shape::Compare(args) => args.run().await,
            Shape::Pub(common) if common.subscribers.is_some() => Err(Failure::Usage(
                "--sub belongs to `bench sub` or `bench pubsub`".into(),
            )),
            Shape::Sub(common) if common.publishers.is_some() => Err(Failure::Usage(
                "--pub belongs to `bench pub` or `bench pubsub`".into(),
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
