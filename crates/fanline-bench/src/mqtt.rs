//! `fanline-bench mqtt`: MQTT, Fanline compared with nats-server and mosquitto.

mod allocations;
mod measure;
pub(crate) mod rows;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::comparison::site::{Site, StoredComparison};
use crate::servers::{System, binaries};
use rows::{NOTES, ROWS};

const TITLE: &str = "MQTT: Fanline beside nats-server and mosquitto";

#[derive(Args)]
pub(crate) struct Arguments {
    /// mosquitto binary to measure instead of the system's
    #[arg(long, value_name = "PATH")]
    mosquitto: Option<PathBuf>,
    #[command(flatten)]
    stored: StoredComparison,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let comparison = &arguments.stored.comparison;
    let mut notes = NOTES.to_vec();
    let missing;
    let others = match binaries::mosquitto(arguments.mosquitto.as_deref()) {
        _ if !comparison.wants(System::Mosquitto) => Vec::new(),
        Ok(program) => vec![program],
        // Compare the other two servers, unless mosquitto was requested by name.
        Err(error) if arguments.mosquitto.is_none() && comparison.wants(System::Fanline) => {
            missing = format!("Without mosquitto: {error}.");
            notes.push(&missing);
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    comparison.run(TITLE, ROWS, &notes, others, |run, row| {
        let site = Site::new(&arguments.stored.dir)?;
        run.measure(row, |program, duration| {
            measure::measure(program, &row.work, &site, duration)
        });
        Ok(())
    })
}
