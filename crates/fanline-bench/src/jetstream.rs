//! `fanline-bench jetstream`: storage on disk and in memory, Fanline compared with nats-server.

mod measure;
mod rows;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::comparison::site::Site;
use crate::comparison::{Comparison, choose};
use crate::report;
use rows::{ROWS, Row};

const TITLE: &str = "JetStream: Fanline beside nats-server";

/// Rows to measure, directory of the files, and comparison options.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Measure only this row; repeatable
    #[arg(long = "row", value_name = "NAME")]
    rows: Vec<String>,
    /// List the rows and their targets, without measuring
    #[arg(long)]
    list: bool,
    /// Parent directory of both servers' files; do not use a tmpfs, on which syncing costs nothing
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
    let mut run = arguments.comparison.begin(TITLE, rows.len())?;
    for row in rows {
        let site = Site::new(&arguments.dir)?;
        run.measure(row.case(), |program, duration| {
            measure::measure(program, row, &site, duration, arguments.comparison.quick)
        });
        run.remark(row.remark());
    }
    run.finish()
}
