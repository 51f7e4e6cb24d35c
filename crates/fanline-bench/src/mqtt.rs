//! `fanline-bench mqtt`: MQTT, Fanline compared with nats-server and mosquitto.

mod allocations;
mod measure;
pub(crate) mod rows;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::comparison::Comparison;
use crate::comparison::site::{Site, StoredComparison};
use crate::servers::{Program, System, binaries};
use rows::{NOTES, ROWS};

const TITLE: &str = "MQTT: Fanline beside nats-server and mosquitto";

/// Rows to measure, directory of the files, and comparison options.
#[derive(Args)]
pub(crate) struct Arguments {
    /// mosquitto binary to measure instead of the system's
    #[arg(long, value_name = "PATH")]
    mosquitto: Option<PathBuf>,
    #[command(flatten)]
    stored: StoredComparison,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let comparison = &arguments.stored.comparison;
    let others =
        |notes: &mut Vec<String>| mosquitto(comparison, arguments.mosquitto.as_deref(), notes);
    comparison.run(TITLE, ROWS, NOTES, others, |run, row| {
        let site = Site::new(&arguments.stored.dir)?;
        run.measure_where(row, |program, duration| {
            measure::measure(program, &row.work, &site, duration)
        });
        Ok(())
    })
}

/// Returns mosquitto. Without it, compares the other two servers, unless it was requested by name.
fn mosquitto(
    comparison: &Comparison,
    given: Option<&Path>,
    notes: &mut Vec<String>,
) -> Result<Vec<Program>> {
    if !comparison.wants(System::Mosquitto) {
        return Ok(Vec::new());
    }
    match binaries::mosquitto(given) {
        Ok(program) => Ok(vec![program]),
        Err(missing) if given.is_none() && comparison.wants(System::Fanline) => {
            notes.push(format!("Without mosquitto: {missing}."));
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}
