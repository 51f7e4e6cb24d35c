//! `fanline bench compare`: every table of the product, where the program that measures them is; else the rows of
//! `fanline bench` beside nats-server, in turns, and a report of them.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use super::process::Program;
use super::quick::{QuickArgs, Sample, sample, short};
use super::rows::Row;
use super::tables::Tables;
use crate::failure::Failure;

/// The version that Fanline is compared with elsewhere.
const NATS_SERVER: &str = "github.com/nats-io/nats-server/v2@v2.15.2";
/// A ratio nearer to 1 than the figures of each server are to each other says nothing.
const NOISE_MIN: f64 = 0.05;

/// Options of `bench compare`.
#[derive(Args, Debug)]
pub(super) struct CompareArgs {
    /// The nats-server to compare with [default: $NATS_SERVER, the PATH, ~/go/bin]
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// Install one with `go install`, if none is found
    #[arg(long)]
    install: bool,
    /// Where the report is written
    #[arg(long, value_name = "FILE", default_value = "BENCHMARKS.md")]
    out: PathBuf,
    /// All tables: in less than 15 minutes
    #[arg(long)]
    quick: bool,
    /// All tables: go on where a run was ended
    #[arg(long)]
    resume: bool,
    /// All tables: without RxJava, Pekko and the crates that hubs are compared with
    #[arg(long)]
    no_rivals: bool,
    /// All tables: only this one; may be given several times
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// All tables: measure nothing, and write the report of those that are there
    #[arg(long, conflicts_with_all = ["quick", "resume", "no_rivals", "tables"])]
    no_runs: bool,
    /// All tables: where they and their plots are kept [default: docs/bench]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// The rows of `fanline bench` alone; so do --rounds, --time and --row
    #[arg(long, conflicts_with_all = ["quick", "resume", "no_rivals", "tables", "no_runs", "folder"])]
    own: bool,
    /// Own rows: rounds; in each both servers are measured, each time in a fresh process [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    #[command(flatten)]
    rows: QuickArgs,
}

/// What was seen of one row: samples of the rival and of Fanline.
struct Measured {
    row: &'static Row,
    samples: [Vec<Sample>; 2],
}

impl CompareArgs {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let is_own = self.own || self.rounds.is_some() || self.rows.is_chosen();
        match Tables::find().filter(|_| !is_own) {
            Some(tables) => self.run_tables(&tables),
            None => self.run_own(is_own).await,
        }
    }

    /// Every table, with the program that has them.
    fn run_tables(&self, tables: &Tables) -> Result<(), Failure> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut say = |name: &str, value: OsString| {
            arguments.push(name.into());
            arguments.push(value);
        };
        say("--out", self.out.clone().into());
        if let Some(server) = self.given_or_found()? {
            say("--nats-server", server.path.into());
        }
        if let Some(dir) = self.rows.given_folder() {
            say("--dir", dir.into());
        }
        if let Some(folder) = &self.folder {
            say("--folder", folder.into());
        }
        // What is asked about is this program; one that was not optimised would tell nothing.
        if !cfg!(debug_assertions) {
            say("--fanline", Program::own()?.path.into());
        }
        for table in &self.tables {
            say("--table", table.into());
        }
        for (name, is_given) in [
            ("--quick", self.quick),
            ("--resume", self.resume),
            ("--no-rivals", self.no_rivals),
            ("--no-runs", self.no_runs),
        ] {
            if is_given {
                arguments.push(name.into());
            }
        }
        match tables.run(&arguments)?.success() {
            true => Ok(()),
            // It has said why.
            false => Err(Failure::Error("not every table was measured".into())),
        }
    }

    /// The rows that this program has, beside nats-server.
    async fn run_own(self, is_own: bool) -> Result<(), Failure> {
        const TIME: Duration = Duration::from_secs(2);
        const ROUNDS: u32 = 3;
        if self.wants_tables() {
            return Err(Failure::Usage(
                "--quick, --resume, --no-rivals, --no-runs, --folder and --table are for all tables, which need \
                 fanline-bench beside this program, or the sources around the current folder; --own does without"
                    .into(),
            ));
        }
        if !is_own {
            eprintln!(
                "no fanline-bench beside this program, and no sources here: these are the rows of `fanline bench`"
            );
        }
        let (time, rounds) = (self.rows.time(TIME), self.rounds.unwrap_or(ROUNDS));
        let programs = [self.find()?, Program::own()?];
        let rows = self.rows.rows(|_| true)?;
        // What takes minutes must not be lost at its end.
        let cannot_write = |error| Failure::Error(format!("{}: {error}", self.out.display()));
        check_writable(&self.out).map_err(cannot_write)?;
        let total = rows.len() * usize::try_from(rounds).unwrap_or(1) * programs.len();
        let mut steps = self.rows.steps(total);
        let mut all = Vec::new();
        for row in rows {
            let mut samples = [Vec::new(), Vec::new()];
            for round in 0..rounds {
                // A B, then B A: neither always comes after the other.
                let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
                for at in order {
                    let program = &programs[at];
                    steps.begin(&format!("{}, {}", row.name, program.name));
                    let folder = self.rows.folder();
                    samples[at].push(sample(program, row, &folder, time).await?);
                }
            }
            all.push(Measured { row, samples });
        }
        drop(steps);
        let report = report(&programs, &all, rounds, time);
        fs::write(&self.out, &report).map_err(cannot_write)?;
        print!("{report}");
        eprintln!("written to {}", self.out.display());
        Ok(())
    }

    /// Whether something is asked for that only all tables have.
    fn wants_tables(&self) -> bool {
        let switches = [self.quick, self.resume, self.no_rivals, self.no_runs];
        switches.contains(&true) || !self.tables.is_empty() || self.folder.is_some()
    }

    /// The nats-server that was named, or one that is there.
    fn given_or_found(&self) -> Result<Option<Program>, Failure> {
        if let Some(path) = &self.nats_server {
            let found = Program::nats_server(path);
            let wrong = || Failure::Usage(format!("{} is no nats-server", path.display()));
            return found.ok_or_else(wrong).map(Some);
        }
        Ok(places().iter().find_map(|path| Program::nats_server(path)))
    }

    fn find(&self) -> Result<Program, Failure> {
        if let Some(found) = self.given_or_found()? {
            return Ok(found);
        }
        if !self.install {
            return Err(Failure::Error(format!(
                "no nats-server found in $NATS_SERVER, in the PATH or in ~/go/bin; give --nats-server PATH, or \
                 --install to have it installed with `go install {NATS_SERVER}`"
            )));
        }
        eprintln!("installing {NATS_SERVER}");
        let status = Command::new("go").args(["install", NATS_SERVER]).status();
        let installed = status.is_ok_and(|status| status.success());
        let found = places().iter().find_map(|path| Program::nats_server(path));
        found.filter(|_| installed).ok_or_else(|| {
            Failure::Error(format!(
                "`go install {NATS_SERVER}` failed; give --nats-server PATH"
            ))
        })
    }
}

/// Fails where a file could not be written, and leaves there what there was.
fn check_writable(path: &Path) -> std::io::Result<()> {
    let was_there = path.exists();
    OpenOptions::new().append(true).create(true).open(path)?;
    match was_there {
        true => Ok(()),
        false => fs::remove_file(path),
    }
}

/// Where a nats-server may be.
fn places() -> Vec<PathBuf> {
    let named = std::env::var_os("NATS_SERVER").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::home_dir().map(|home| home.join("go/bin"));
    let folders = std::env::split_paths(&path).chain(home);
    named
        .into_iter()
        .chain(folders.map(|folder| folder.join("nats-server")))
        .filter(|path| path.is_file())
        .collect()
}

fn report(programs: &[Program; 2], all: &[Measured], rounds: u32, time: Duration) -> String {
    let mut text = String::from("# Fanline beside nats-server\n\n");
    let [rival, own] = programs;
    let seconds = time.as_secs_f64();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "nats-server {} and Fanline {} on {}. {rounds} rounds of {seconds} s, in turns, each time in a fresh \
         process with an empty store; medians, and in brackets the least and the most. Generator and server \
         share the machine. CPU is the server's own, for each message.\n\n",
        rival.version,
        own.version,
        machine()
    );
    text.push_str(
        "| | | nats-server | Fanline | ratio | better |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for measured in all {
        let name = measured.row.name;
        let rate = |sample: &Sample| Some(sample.figures.rate());
        let p50 = |sample: &Sample| {
            sample
                .figures
                .latency
                .map(|both| both.0.as_nanos() as f64 / 1e3)
        };
        let p99 = |sample: &Sample| {
            sample
                .figures
                .latency
                .map(|both| both.1.as_nanos() as f64 / 1e3)
        };
        let unit = measured.row.unit();
        line(&mut text, name, unit, measured, rate, true);
        line(&mut text, "", "p50, µs", measured, p50, false);
        line(&mut text, "", "p99, µs", measured, p99, false);
        line(
            &mut text,
            "",
            "CPU, ns",
            measured,
            |sample| sample.cpu_nanos,
            false,
        );
    }
    let (usual, synced) = (Program::command_line(false), Program::command_line(true));
    let _ = write!(
        text,
        "\nBoth are started with `{usual}`, and where it says *synced* with `{synced}`. By default nats-server \
         acknowledges what the system has and syncs the disk every two minutes, while Fanline acknowledges \
         what is on the disk: compare the rows on disk with that in mind.\n\n\
         Again: `fanline bench compare --own`. With a faster generator, more loads, the library, and rivals other than \
         nats-server, from the sources: `cargo run --release -p fanline-bench -- all`.\n"
    );
    text
}

/// One line of the table, if there is such a figure.
fn line(
    text: &mut String,
    name: &str,
    unit: &str,
    measured: &Measured,
    figure: impl Fn(&Sample) -> Option<f64>,
    more_is_better: bool,
) {
    let spreads = measured.samples.each_ref().map(|samples| {
        let figures: Option<Vec<f64>> = samples.iter().map(&figure).collect();
        figures.and_then(Spread::of)
    });
    let [Some(rival), Some(own)] = spreads else {
        return;
    };
    let ratio = own.median / rival.median.max(1e-9);
    let better = own.verdict(&rival, ratio, more_is_better);
    let _ = writeln!(
        text,
        "| {name} | {unit} | {} | {} | {ratio:.2}× | {better} |",
        rival.shown(),
        own.shown()
    );
}

/// The figures of one server.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        Some(Spread {
            least: *figures.first()?,
            median: *figures.get(figures.len() / 2)?,
            most: *figures.last()?,
        })
    }

    fn shown(&self) -> String {
        let [least, median, most] = [self.least, self.median, self.most].map(short);
        format!("{median} ({least} – {most})")
    }

    /// Who is better, if the figures are clear about it.
    fn verdict(&self, rival: &Spread, ratio: f64, more_is_better: bool) -> &'static str {
        let overlap = self.least <= rival.most && rival.least <= self.most;
        if overlap || (ratio - 1.0).abs() < NOISE_MIN {
            return "neither";
        }
        match (ratio > 1.0) == more_is_better {
            true => "Fanline",
            false => "**nats-server**",
        }
    }
}

/// The machine, as far as it explains figures.
fn machine() -> String {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let processor = read(Path::new("/proc/cpuinfo"));
    let model = processor.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    let kernel = read(Path::new("/proc/sys/kernel/osrelease"));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cores} × {}, {} {}",
        model.as_deref().unwrap_or("unknown processor"),
        std::env::consts::OS,
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_shown_as_plainly_as_wins() {
        let spread = |figures: [f64; 3]| Spread::of(figures.to_vec()).expect("figures");
        for (own, rival, more_is_better, expected) in [
            ([9.0, 10.0, 11.0], [4.0, 5.0, 6.0], true, "Fanline"),
            ([9.0, 10.0, 11.0], [4.0, 5.0, 6.0], false, "**nats-server**"),
            ([4.0, 5.0, 6.0], [9.0, 10.0, 11.0], true, "**nats-server**"),
            ([4.0, 5.0, 6.0], [9.0, 10.0, 11.0], false, "Fanline"),
            ([4.0, 5.0, 9.5], [9.0, 10.0, 11.0], true, "neither"),
            ([10.1, 10.2, 10.3], [9.8, 9.9, 10.0], true, "neither"),
        ] {
            let (own, rival) = (spread(own), spread(rival));
            let ratio = own.median / rival.median;
            assert_eq!(own.verdict(&rival, ratio, more_is_better), expected);
        }
    }

    #[test]
    fn numbers_are_short() {
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
