//! `fanline-bench leaf`: one leaf link to a nats-server, with Fanline and with nats-server as the leaf.

mod link;
mod measure;
mod rows;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::comparison::site::Site;
use crate::comparison::{Comparison, choose};
use crate::report;
use crate::report::metric::{Metric, Summary};
use crate::servers::System;
use rows::{ROWS, Row};

const TITLE: &str = "A leaf link: Fanline beside nats-server";

/// Which rows, where the files lie, and how it is measured.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this row; may be given several times
    #[arg(long = "row", value_name = "NAME")]
    rows: Vec<String>,
    /// List the rows and their targets, and measure nothing
    #[arg(long)]
    list: bool,
    /// Where the servers keep their files: not on a tmpfs, where syncing costs nothing
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    #[command(flatten)]
    comparison: Comparison,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        print!("{}", report::list(ROWS.iter().map(Row::case)));
        return Ok(());
    }
    let rows = choose(ROWS, &arguments.rows, |row| row.name)?;
    let hub = arguments.comparison.nats_server()?;
    let mut run = arguments.comparison.begin(TITLE, rows.len())?;
    run.remark("The hub is nats-server in all rows. CPU and memory are the leaf's.");
    run.remark("Without a leaf, below, the generator itself speaks the leaf's part to the hub, in the same rounds: a leaf that costs nothing would reach that, and none can pass it.");
    run.remark("In rows that say compressed, both sides of the link do s2_fast; payloads are the alphabet again and again, so that shows what compressing costs, and not what it saves.");
    run.remark("A mirror is ready when the leaf says that it holds all; interest when a message gets through to the subject that was asked for last.");
    run.remark("The mirror of Fanline is synced before a record of it counts, that of nats-server every two minutes, as both do by default.");
    for row in rows {
        let site = Site::new(&arguments.dir)?;
        let mut bound = Bound::default();
        run.measure(row.case(), |program, duration| {
            let quick = arguments.comparison.quick;
            let sample = measure::measure(&hub, program, row, &site, duration, quick)?;
            if program.system == System::Nats {
                bound.with_nats.extend(sample.get(Metric::Rate));
                let without = measure::without_leaf(&hub, row, &site, duration)?;
                bound.without.extend(without);
            }
            Ok(sample)
        });
        if let Some(remark) = bound.remark(row) {
            run.remark(remark);
        }
    }
    run.finish()
}

/// What no leaf can pass: the hub's own pace, measured beside nats-server as leaf in each round.
#[derive(Default)]
struct Bound {
    with_nats: Vec<f64>,
    without: Vec<f64>,
}

impl Bound {
    fn remark(self, row: &Row) -> Option<String> {
        let with_nats = Summary::of(self.with_nats.into_iter())?;
        let without = Summary::of(self.without.into_iter())?;
        let rate = |value| Metric::Rate.format(value);
        Some(format!(
            "{}, without a leaf: {} ({}..{}), {:.2}× nats-server.",
            row.title,
            rate(without.median),
            rate(without.min),
            rate(without.max),
            without.median / with_nats.median
        ))
    }
}
