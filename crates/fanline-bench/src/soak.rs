//! `fanline-bench soak`: all kinds of load at once on one server, which is stopped and killed in the
//! meantime.
//!
//! The *director* (`director.rs`) is this program's main thread. It starts, stops, and kills the server, and
//! takes samples of it. The *stage* (`stage.rs`) is the state that the loads share: the server's address,
//! whether the server is being restarted, and the errors. A *load* (`core_load.rs`, `stream_load.rs`,
//! `mqtt_load.rs`, `crowd.rs`, `churn.rs`, `slow.rs`) communicates with the server and checks all responses.
//! If the server was restarted in the meantime, an error is excused, and the load resumes at its position. A
//! message that is lost or out of order is never excused.
//!
//! Restarts occur in the first part of the run. The second part has none, so that memory and descriptors of
//! one process can be observed over time.

mod checks;
mod churn;
mod core_load;
mod crowd;
mod director;
mod mqtt_load;
mod number;
mod plan;
mod report;
mod slow;
mod stage;
mod stream_load;
mod trend;

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use crate::servers::{binaries, process};
use plan::Plan;

/// Length and size of the run, and location of the report.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Length of the run, in minutes
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    minutes: u64,
    /// Run for two minutes
    #[arg(long, conflicts_with = "minutes")]
    quick: bool,
    /// Number of permanent connections; fewer if the limit on open files does not allow them
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// Parent directory of the server's streams; do not use a tmpfs, on which syncing costs nothing
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// Fanline binary to load instead of the one next to this program, which is built if missing
    #[arg(long, value_name = "PATH")]
    fanline: Option<PathBuf>,
    /// Number of Fanline's shards instead of its default
    #[arg(long)]
    shards: Option<usize>,
    /// Directory of soak.md and soak.svg
    #[arg(long, value_name = "FOLDER", default_value = "docs/bench")]
    folder: PathBuf,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let minutes = if arguments.quick {
        plan::QUICK_MINUTES
    } else {
        arguments.minutes
    };
    let program = binaries::fanline(arguments.fanline.as_deref(), arguments.shards)?;
    let plan = Plan::new(minutes, arguments.connections, process::raise_file_limit());
    if let Some(shortfall) = plan.shortfall() {
        eprintln!("{shortfall}");
    }
    let record = director::direct(&program, &plan, &arguments.dir)?;
    let checks = checks::all(&record, &plan);
    let report = report::Report::new(&program, &plan, &record, &checks);
    print!("{}", report.terminal());
    fs::create_dir_all(&arguments.folder)?;
    fs::write(arguments.folder.join("soak.md"), report.markdown())?;
    fs::write(
        arguments.folder.join("soak.svg"),
        report::plot(&plan, &record),
    )?;
    let failed: Vec<_> = checks.iter().filter(|check| !check.is_passed).collect();
    let names = failed.iter().map(|check| check.name).collect::<Vec<_>>();
    ensure!(failed.is_empty(), "not passed: {}", names.join("; "));
    Ok(())
}
