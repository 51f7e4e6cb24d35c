//! `fanline-bench leaf`: a leaf connection to a nats-server, with Fanline and with nats-server as the leaf
//! node.

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

/// Rows to measure, directory of the files, and comparison options.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this row; repeatable
    #[arg(long = "row", value_name = "NAME")]
    rows: Vec<String>,
    /// List the rows and their targets, without measuring
    #[arg(long)]
    list: bool,
    /// Parent directory of the servers' files; do not use a tmpfs, on which syncing costs nothing
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
    run.remark("The hub is nats-server in all rows. CPU and memory are those of the leaf.");
    run.remark("In the notes \"without a leaf\", the generator itself acts as the leaf, in the same rounds: the limit for a leaf without cost.");
    run.remark("In rows with compression, both sides of the link use s2_fast. Payloads repeat the alphabet, so these rows show the cost of compression and not its savings.");
    run.remark("A mirror is ready when the leaf reports all messages; interest is ready when a message arrives on the subject of the last subscription.");
    run.remark("Fanline syncs its mirror before it counts a record, nats-server every two minutes; both are the defaults.");
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

/// The upper bound for any leaf node is the rate of the hub without a leaf node (`without`). In each round,
/// this rate is measured right after the rate with nats-server as the leaf node (`with_nats`).
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
