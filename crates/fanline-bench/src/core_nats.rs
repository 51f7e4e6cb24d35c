//! `fanline-bench core`: core NATS, Fanline compared with nats-server.

mod measure;
pub(crate) mod shapes;

use anyhow::Result;
use clap::Args;

use crate::comparison::{Comparison, choose};
use crate::report;
use shapes::{SHAPES, Shape};

const TITLE: &str = "Core NATS: Fanline beside nats-server";

/// Shapes to measure and comparison options.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this shape; repeatable
    #[arg(long = "shape", value_name = "NAME")]
    shapes: Vec<String>,
    /// List the shapes and their targets, without measuring
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    comparison: Comparison,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        print!("{}", report::list(SHAPES.iter().map(Shape::case)));
        return Ok(());
    }
    let shapes = choose(SHAPES, &arguments.shapes, |shape| shape.name)?;
    let mut run = arguments.comparison.begin(TITLE, shapes.len())?;
    run.remark("In a fan-out every delivery counts.");
    for shape in shapes {
        run.measure(shape.case(), |program, duration| {
            measure::measure(program, shape.work, duration)
        });
    }
    run.finish()
}
