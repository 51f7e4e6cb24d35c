//! `fanline bench` without a command: the speed of this machine, in a minute.

use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::process::{Process, is_nats_server, own_program};
use super::rows::{Figures, ROWS, Row};
use crate::connection::interrupted;
use crate::failure::Failure;
use crate::jetstream::print_json;
use crate::table::Table;
use crate::values;

/// Options of `fanline bench` without a command.
#[derive(Args, Clone, Debug)]
pub(super) struct QuickArgs {
    /// Duration of each measurement
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    time: Option<Duration>,
    /// Measure this nats-server instead of Fanline
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
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
    fn folder(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Returns the measured program.
    fn program(&self) -> Result<PathBuf, Failure> {
        match &self.nats_server {
            None => own_program(),
            Some(path) if is_nats_server(path) => Ok(path.clone()),
            Some(path) => Err(Failure::Usage(format!(
                "{} is not a nats-server",
                path.display()
            ))),
        }
    }

    /// Returns the selected rows that `are_wanted` accepts.
    fn rows(&self, are_wanted: impl Fn(&Row) -> bool) -> Result<Vec<&'static Row>, Failure> {
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

    fn steps(&self, total: usize) -> Steps {
        Steps {
            is_shown: !self.no_progress,
            done: 0,
            total,
        }
    }
}

/// Progress on stderr.
struct Steps {
    is_shown: bool,
    done: usize,
    total: usize,
}

impl Steps {
    fn begin(&mut self, what: &str) {
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
struct Sample {
    figures: Figures,
    /// CPU time of the server per message, in nanoseconds.
    cpu_nanos: Option<f64>,
}

/// Starts a server, measures one row, and stops the server, also on an interrupt.
async fn sample(
    program: &Path,
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
    program: &Path,
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
fn short(number: f64) -> String {
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

/// Measures all rows on a server of this program, or on nats-server.
pub(super) async fn run(args: &QuickArgs, as_json: bool) -> Result<(), Failure> {
    const TIME: Duration = Duration::from_secs(6);
    let program = args.program()?;
    // By default, Fanline syncs before it acknowledges, so rows with `syncs_always` would be duplicates.
    let is_rival = args.nats_server.is_some();
    let rows = args.rows(|row| is_rival || !row.syncs_always)?;
    let mut steps = args.steps(rows.len());
    let mut measured = Vec::new();
    for row in rows {
        steps.begin(row.name);
        let sample = sample(&program, row, &args.folder(), args.time.unwrap_or(TIME)).await?;
        measured.push((row, sample));
    }
    drop(steps);
    match as_json {
        true => print_json(&measured.iter().map(to_json).collect::<Vec<_>>()),
        false => print_table(&measured, is_rival),
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

fn print_table(measured: &[(&Row, Sample)], is_rival: bool) -> Result<(), Failure> {
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
    let synced = match is_rival {
        true => "By default, nats-server acknowledges a message before it is on disk.",
        false => "Streams on disk are synced before each acknowledgement.",
    };
    println!("\nGenerator and server share this machine. {synced}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded() {
        for (number, expected) in [
            (0.0, "0.00"),
            (7.25, "7.25"),
            (999.4, "999"),
            (1_234.0, "1.23 k"),
            (36_300_000.0, "36.3 M"),
        ] {
            assert_eq!(short(number), expected);
        }
    }
}
