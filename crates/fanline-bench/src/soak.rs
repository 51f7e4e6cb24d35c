//! `fanline-bench soak`: everything at once on one server that is stopped and killed meanwhile.
//!
//! The *director* (`director.rs`) is this program's main thread: it starts, stops and kills the server and takes
//! samples of it. The *stage* (`stage.rs`) is what the loads share: where the server is, whether it is being
//! restarted, and what went wrong. A *load* (`core_load.rs`, `kept.rs`, `mqtt_load.rs`, `crowd.rs`, `churn.rs`,
//! `slow.rs`) talks to the server and checks all that it is told. An error is excused when a restart came
//! between, and the load begins again where it was; a message that is lost or out of order is never excused.
//!
//! Restarts are in the first part of the run. The second part has none, so that memory and descriptors of one process
//! can be followed over time.

mod checks;
mod churn;
mod core_load;
mod crowd;
mod director;
mod kept;
mod mqtt_load;
mod number;
mod plan;
mod report;
mod slow;
mod stage;
mod trend;

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use crate::servers::{binaries, process};
use plan::Plan;

/// How long, how much, and where the report goes.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How long it takes, in minutes
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    minutes: u64,
    /// Two minutes
    #[arg(long, conflicts_with = "minutes")]
    quick: bool,
    /// Connections that stay; fewer where the limit on open files does not allow so many
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// Where the server keeps its streams: not on a tmpfs, where syncing costs nothing
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// Fanline to load, instead of the one beside this program, which is built when missing
    #[arg(long, value_name = "PATH")]
    fanline: Option<PathBuf>,
    /// Shards of Fanline, instead of its default
    #[arg(long)]
    shards: Option<usize>,
    /// Where soak.md and soak.svg are written
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
    let told = report::Report::new(&program, &plan, &record, &checks);
    print!("{}", told.terminal());
    fs::create_dir_all(&arguments.folder)?;
    fs::write(arguments.folder.join("soak.md"), told.markdown())?;
    fs::write(
        arguments.folder.join("soak.svg"),
        report::plot(&plan, &record),
    )?;
    let failed: Vec<_> = checks.iter().filter(|check| !check.is_passed).collect();
    let names = failed.iter().map(|check| check.name).collect::<Vec<_>>();
    ensure!(failed.is_empty(), "not passed: {}", names.join("; "));
    Ok(())
}
