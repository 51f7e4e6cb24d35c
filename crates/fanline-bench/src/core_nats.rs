//! `fanline-bench core`: core NATS, Fanline compared with nats-server.

mod measure;
pub(crate) mod shapes;

use anyhow::Result;

use crate::comparison::{Comparison, no_others};
use shapes::SHAPES;

const TITLE: &str = "Core NATS: Fanline beside nats-server";
const NOTE: &str = "In a fan-out every delivery counts.";

/// Runs the subcommand.
pub(crate) fn run(comparison: &Comparison) -> Result<()> {
    comparison.run(TITLE, SHAPES, &[NOTE], no_others, |run, shape| {
        run.measure(shape, |program, duration| {
            measure::measure(program, shape.work, duration)
        });
        Ok(())
    })
}
