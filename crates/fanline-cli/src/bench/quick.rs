//! `fanline bench` without a command: the speed of this machine, in a minute.

use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::process::{Process, Program};
use super::rows::{Figures, ROWS, Row};
use crate::connection::interrupted;
use crate::failure::Failure;
use crate::jetstream::print_json;
use crate::table::Table;
use crate::values;

/// Options of `fanline bench` without a command, and of `bench compare`.
#[derive(Args, Clone, Debug)]
pub(super) struct QuickArgs {
    /// Duration of each measurement
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    time: Option<Duration>,
    /// Folder for the stores of measured servers [default: the system's temporary folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Measure only rows whose name contains this text
    #[arg(long, value_name = "TEXT")]
    row: Option<String>,
    /// Show no progress
    #[arg(long)]
    no_progress: bool,
}

impl QuickArgs {
    pub(super) fn time(&self, default: Duration) -> Duration {
        self.time.unwrap_or(default)
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    pub(super) fn given_folder(&self) -> Option<PathBuf> {
        self.dir.clone()
    }

    /// Returns whether an option is set that applies to these rows only.
    pub(super) fn is_chosen(&self) -> bool {
        self.time.is_some() || self.row.is_some()
    }

    /// Returns the selected rows that `are_wanted` accepts.
    pub(super) fn rows(
        &self,
        are_wanted: impl Fn(&Row) -> bool,
    ) -> Result<Vec<&'static Row>, Failure> {
        let text = self.row.as_deref().unwrap_or_default();
        let named = |row: &&Row| row.name.contains(text) && are_wanted(row);
        let rows: Vec<_> = ROWS.iter().filter(named).collect();
        match rows.is_empty() {
            true => Err(Failure::Usage(format!(
                "no row has a name that contains {text:?}"
            ))),
            false => Ok(rows),
        }
    }

    pub(super) fn steps(&self, total: usize) -> Steps {
        Steps {
            is_shown: !self.no_progress,
            done: 0,
            total,
        }
    }
}

/// Progress on stderr.
pub(super) struct Steps {
    is_shown: bool,
    done: usize,
    total: usize,
}

impl Steps {
    pub(super) fn begin(&mut self, what: &str) {
        self.done += 1;
        if self.is_shown {
            let (begin, end) = match stderr().is_terminal() {
                true => ("\r\x1b[K", ""),
                false => ("", "\n"),
            };
            // Ignore a closed stderr.
            let _ = write!(
                stderr(),
                "{begin}[{}/{}] {what}{end}",
                self.done,
                self.total
            );
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if self.is_shown && self.done > 0 && stderr().is_terminal() {
            let _ = stderr().write_all(b"\r\x1b[K");
        }
    }
}

/// One measurement of one server.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) figures: Figures,
    /// CPU time of the server per message, in nanoseconds.
    pub(super) cpu_nanos: Option<f64>,
}

/// Starts a server, measures one row, and stops the server, also on an interrupt.
pub(super) async fn sample(
    program: &Program,
    row: &Row,
    folder: &Path,
    time: Duration,
) -> Result<Sample, Failure> {
    tokio::select! {
        sample = measure(program, row, folder, time) => sample,
        () = interrupted() => Err(Failure::Error("interrupted".into())),
    }
}

async fn measure(
    program: &Program,
    row: &Row,
    folder: &Path,
    time: Duration,
) -> Result<Sample, Failure> {
    let server = Process::start(program, folder, row.syncs_always).await?;
    let before = server.cpu();
    let figures = row.measure(&server.url, time).await?;
    let used = server.cpu().zip(before).map(|(now, before)| now - before);
    let count = figures.count.max(1) as f64;
    Ok(Sample {
        cpu_nanos: used.map(|used| used.as_nanos() as f64 / count),
        figures,
    })
}

/// Formats a number with few decimals and a letter: `12.3 M`.
pub(super) fn short(number: f64) -> String {
    let (scaled, letter) = match number {
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e3 => (n / 1e3, " k"),
        n => (n, ""),
    };
    let decimals = match scaled {
        n if n >= 100.0 => 0,
        n if n >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.decimals$}{letter}")
}

/// Formats the CPU time per message.
fn cost(nanos: f64) -> String {
    match nanos {
        n if n >= 10_000.0 => format!("{:.1} µs", n / 1e3),
        n => format!("{n:.0} ns"),
    }
}

/// Measures all rows on a server of this program.
pub(super) async fn run(args: &QuickArgs, as_json: bool) -> Result<(), Failure> {
    const TIME: Duration = Duration::from_secs(6);
    // By default, Fanline syncs before it acknowledges, so rows with `syncs_always` would be duplicates.
    let rows = args.rows(|row| !row.syncs_always)?;
    let program = Program::own()?;
    let mut steps = args.steps(rows.len());
    let mut measured = Vec::new();
    for row in rows {
        steps.begin(row.name);
        let sample = sample(&program, row, &args.folder(), args.time(TIME)).await?;
        measured.push((row, sample));
    }
    drop(steps);
    match as_json {
        true => print_json(&measured.iter().map(to_json).collect::<Vec<_>>()),
        false => print_table(&measured),
    }
}

fn to_json((row, sample): &(&Row, Sample)) -> Value {
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let latency = sample.figures.latency;
    json!({
        "row": row.name,
        "rate": sample.figures.rate(),
        "unit": row.unit(),
        "p50_us": latency.map(|both| micros(both.0)),
        "p99_us": latency.map(|both| micros(both.1)),
        "server_cpu_ns": sample.cpu_nanos,
    })
}

fn print_table(measured: &[(&Row, Sample)]) -> Result<(), Failure> {
    let mut table = Table::new(["", ">result", "", ">p50", ">p99", ">server CPU"]);
    for (row, sample) in measured {
        let latency = sample.figures.latency;
        let micros = |of: fn((Duration, Duration)) -> Duration| {
            latency.map_or_else(String::new, |both| {
                format!("{:.1} µs", of(both).as_nanos() as f64 / 1e3)
            })
        };
        table.row([
            row.name.to_owned(),
            short(sample.figures.rate()),
            row.unit().to_owned(),
            micros(|both| both.0),
            micros(|both| both.1),
            sample.cpu_nanos.map_or_else(String::new, cost),
        ]);
    }
    table.print()?;
    println!(
        "\nGenerator and server share this machine. Streams on disk are synced before each acknowledgement."
    );
    println!("Compare with rivals: fanline bench compare");
    Ok(())
}
