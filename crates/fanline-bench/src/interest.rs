//! `fanline-bench interest-simulation`: the cost of distributing interest among a thousand leaf nodes.
//!
//! Nothing is measured or sent. The simulation counts lines and messages that would cross links, in a world
//! drawn from a seed. `interest/world.rs` defines the interest of each leaf, `interest/policy.rs` its
//! distribution.

mod policy;
mod random;
mod table;
mod world;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use crate::report;
use policy::Policy;
use random::Random;
use world::World;

/// Parameters of the world.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of leaf nodes
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    leafs: u32,
    /// Number of hubs between the leaf nodes and the root in a tree
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    regions: u32,
    /// Number of subjects below each leaf's own prefix
    #[arg(long, default_value_t = 9900, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    own: u32,
    /// Percentage of them to which clients of the leaf subscribe
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(0..=100))]
    own_wanted_percent: u32,
    /// Number of subjects that any leaf may subscribe to
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    shared: u32,
    /// Number of shared subjects that each leaf draws, the n-th with a probability proportional to 1/n
    #[arg(long, default_value_t = 1000)]
    shared_drawn: u32,
    /// Number of subscriptions that are added or removed in the simulated time
    #[arg(long, default_value_t = 1_000_000)]
    changes: u32,
    /// Number of published messages
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    publications: u32,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.leafs.is_multiple_of(arguments.regions),
        "--leafs must be a multiple of --regions"
    );
    let mut random = Random::new(arguments.seed);
    let mut world = World::draw(arguments, &mut random);
    let distinct = world.distinct();
    let distribution = Policy::ALL.map(|policy| policy.announce(&world));
    let fan_out = policy::publish(&world, arguments.publications, &mut random);
    let changed = policy::change(&mut world, arguments.changes, &mut random);
    let results = table::Measurements {
        arguments,
        distinct,
        distribution,
        changed,
        fan_out,
    };
    print!("{}", results.terminal());
    report::write_to(arguments.markdown.as_deref(), || results.markdown())
}
