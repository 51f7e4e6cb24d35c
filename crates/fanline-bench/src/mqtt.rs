//! `fanline-bench mqtt`: MQTT, Fanline compared with nats-server and mosquitto.

mod allocations;
mod measure;
mod rows;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::comparison::site::Site;
use crate::comparison::{Comparison, choose};
use crate::report;
use crate::servers::{System, binaries};
use rows::{ROWS, Row};

const TITLE: &str = "MQTT: Fanline beside nats-server and mosquitto";

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
    /// mosquitto binary to measure instead of the system's
    #[arg(long, value_name = "PATH")]
    mosquitto: Option<PathBuf>,
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
    let given = arguments.mosquitto.as_deref();
    let mosquitto = arguments
        .comparison
        .wants(System::Mosquitto)
        .then(|| binaries::mosquitto(given));
    let (others, missing) = match mosquitto {
        Some(Ok(program)) => (vec![program], None),
        // Compare the other two servers without mosquitto, unless it was requested by name.
        Some(Err(error)) if given.is_none() && arguments.comparison.wants(System::Fanline) => {
            (Vec::new(), Some(error))
        }
        Some(Err(error)) => return Err(error),
        None => (Vec::new(), None),
    };
    let mut run = arguments.comparison.begin_with(TITLE, rows.len(), others)?;
    if let Some(missing) = missing {
        run.remark(format!("Without mosquitto: {missing}."));
    }
    for row in rows {
        let site = Site::new(&arguments.dir)?;
        run.measure_where(row.case(), |program, duration| {
            measure::measure(program, row, &site, duration)
        });
    }
    for remark in rows::REMARKS {
        run.remark(*remark);
    }
    run.finish()
}
