//! `fanline-bench interest-simulation`: what it takes to tell a thousand leafs what the others want.
//!
//! Nothing is measured here and nothing is sent: lines and messages are counted that would cross links, in
//! a world drawn from a seed. `interest/world.rs` is who wants what, `interest/policy.rs` who is told what.

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

/// What the world is like.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// The same seed gives the same figures
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leaf nodes
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    leafs: u32,
    /// Hubs between the leafs and the root, where there is a tree
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    regions: u32,
    /// Subjects below each leaf's own prefix
    #[arg(long, default_value_t = 9900, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    own: u32,
    /// How many of 100 of them somebody at the leaf subscribes to
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(0..=100))]
    own_wanted_percent: u32,
    /// Subjects that any leaf may subscribe to
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    shared: u32,
    /// How often each leaf draws one of them to subscribe to, the n-th with a chance of 1/n
    #[arg(long, default_value_t = 1000)]
    shared_drawn: u32,
    /// Subscriptions that come or go in the time that is simulated
    #[arg(long, default_value_t = 1_000_000)]
    changes: u32,
    /// Messages that are published
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
    let told = Policy::ALL.map(|policy| policy.announce(&world));
    let fan_out = policy::publish(&world, arguments.publications, &mut random);
    let changed = policy::change(&mut world, arguments.changes, &mut random);
    let figures = table::Figures {
        arguments,
        distinct,
        told,
        changed,
        fan_out,
    };
    print!("{}", figures.terminal());
    report::write_to(arguments.markdown.as_deref(), || figures.markdown())
}
