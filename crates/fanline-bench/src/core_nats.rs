//! `fanline-bench core`: core NATS, Fanline against nats-server.

mod measure;
pub(crate) mod shapes;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::report::{self, Outcome, Report, Row};
use crate::servers::{Program, System, binaries, process};
use shapes::{SHAPES, Shape};

/// Which servers, which shapes, how often and for how long, and where the figures go.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this shape; may be given several times
    #[arg(long = "shape", value_name = "NAME")]
    shapes: Vec<String>,
    /// List the shapes and their targets, and measure nothing
    #[arg(long)]
    list: bool,
    /// Rounds; each measures both servers, in alternating order, each time in a fresh process
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Length that one measurement aims at
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Three rounds of 0.6 seconds: about two minutes in all
    #[arg(long, conflicts_with_all = ["pairs", "seconds"])]
    quick: bool,
    /// Measure one server alone
    #[arg(long)]
    only: Option<System>,
    /// nats-server to measure, instead of the pinned version, which is installed by `go install`
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// Fanline to measure, instead of the one beside this program, which is built when missing
    #[arg(long, value_name = "PATH")]
    fanline: Option<PathBuf>,
    /// Shards of Fanline, instead of its default
    #[arg(long)]
    shards: Option<usize>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a plot
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write every sample
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        print!("{}", report::list(SHAPES));
        return Ok(());
    }
    let shapes = chosen(&arguments.shapes)?;
    let report = measure_all(arguments, &shapes)?;
    print!("{}", report::table::terminal(&report));
    report::write_to(arguments.markdown.as_deref(), || {
        report::table::markdown(&report)
    })?;
    report::write_to(arguments.svg.as_deref(), || report::svg::document(&report))?;
    report::write_to(arguments.json.as_deref(), || {
        format!("{:#}\n", report::json::value(&report))
    })?;
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Shape>> {
    if names.is_empty() {
        return Ok(SHAPES.iter().collect());
    }
    let find = |name: &String| {
        let shape = SHAPES.iter().find(|shape| shape.name == name);
        shape.with_context(|| format!("no shape {name:?}; --list shows them"))
    };
    names.iter().map(find).collect()
}

fn programs(arguments: &Arguments) -> Result<Vec<Program>> {
    let wanted = System::ALL
        .into_iter()
        .filter(|system| arguments.only.is_none_or(|only| only == *system));
    wanted
        .map(|system| match system {
            System::Nats => binaries::nats_server(arguments.nats_server.as_deref()),
            System::Fanline => binaries::fanline(arguments.fanline.as_deref(), arguments.shards),
        })
        .collect()
}

fn measure_all(arguments: &Arguments, shapes: &[&'static Shape]) -> Result<Report> {
    let programs = programs(arguments)?;
    process::raise_file_limit();
    let (pairs, seconds) = if arguments.quick {
        (3, 0.6)
    } else {
        (arguments.pairs, arguments.seconds)
    };
    let duration = Duration::try_from_secs_f64(seconds).context("--seconds")?;
    let mut report = Report::new(&programs, pairs, duration);
    let progress = report::progress(shapes.len() as u64 * u64::from(pairs) * programs.len() as u64);
    for shape in shapes {
        let mut row = Row::new(shape);
        for round in 0..pairs {
            let mut order = programs.iter().collect::<Vec<_>>();
            // So that what drifts on the machine meets both alike.
            if round % 2 == 1 {
                order.reverse();
            }
            for program in order {
                progress.set_message(format!("{}: {}", shape.title, program.system.label()));
                let outcome: Outcome = measure::measure(program, shape.work, duration).into();
                row.add(program.system, outcome);
                progress.inc(1);
            }
        }
        report.rows.push(row);
    }
    progress.finish_and_clear();
    Ok(report)
}
