//! `fanline bench compare`: measures Fanline and the systems that it is compared with, in turn, and writes a
//! report. Runs the complete benchmark program if it is available. Otherwise, compares only with nats-server,
//! by the rows of `fanline bench`.

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

/// The Go module that `--install` installs.
const NATS_SERVER: &str = "github.com/nats-io/nats-server/v2@v2.15.2";
/// Largest deviation of a ratio from 1 that counts as noise.
const NOISE_MIN: f64 = 0.05;

/// Options of `bench compare`.
#[derive(Args, Debug)]
pub(super) struct CompareArgs {
    /// nats-server to compare with [default: $NATS_SERVER, then PATH, then ~/go/bin]
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// Install nats-server with `go install` if none is found
    #[arg(long)]
    install: bool,
    /// File to write the report to
    #[arg(long, value_name = "FILE", default_value = "BENCHMARKS.md")]
    out: PathBuf,
    /// All tables: finish in less than 15 minutes
    #[arg(long)]
    quick: bool,
    /// All tables: resume an interrupted run
    #[arg(long)]
    resume: bool,
    /// All tables: skip RxJava, Pekko, and the crates that hubs are compared with
    #[arg(long)]
    no_rivals: bool,
    /// All tables: measure only this table; may be repeated
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// All tables: measure nothing, and write the report from existing results
    #[arg(long, conflicts_with_all = ["quick", "resume", "no_rivals", "tables"])]
    no_runs: bool,
    /// All tables: folder of results and plots [default: docs/bench]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Measure only the rows of `fanline bench`; implied by --rounds, --time, and --row
    #[arg(long, conflicts_with_all = ["quick", "resume", "no_rivals", "tables", "no_runs", "folder"])]
    own: bool,
    /// Own rows: number of rounds; each one measures both servers in fresh processes [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    #[command(flatten)]
    rows: QuickArgs,
}

/// Samples of one row: first nats-server's, then Fanline's.
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

    /// Measures all tables with the benchmark program.
    fn run_tables(&self, tables: &Tables) -> Result<(), Failure> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut push = |name: &str, value: OsString| {
            arguments.push(name.into());
            arguments.push(value);
        };
        push("--out", self.out.clone().into());
        if let Some(server) = self.given_or_found()? {
            push("--nats-server", server.path.into());
        }
        if let Some(dir) = self.rows.given_folder() {
            push("--dir", dir.into());
        }
        if let Some(folder) = &self.folder {
            push("--folder", folder.into());
        }
        // Measure this program, unless it was built without optimization.
        if !cfg!(debug_assertions) {
            push("--fanline", Program::own()?.path.into());
        }
        for table in &self.tables {
            push("--table", table.into());
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
            // The program has already printed the reason.
            false => Err(Failure::Error("some tables were not measured".into())),
        }
    }

    /// Measures the rows of this program against nats-server.
    async fn run_own(self, is_own: bool) -> Result<(), Failure> {
        const TIME: Duration = Duration::from_secs(2);
        const ROUNDS: u32 = 3;
        if self.wants_tables() {
            return Err(Failure::Usage(
                "--quick, --resume, --no-rivals, --no-runs, --folder, and --table apply to all tables and need \
                 fanline-bench next to this program, or a current folder within the sources; use --own to measure \
                 the rows of `fanline bench`"
                    .into(),
            ));
        }
        if !is_own {
            eprintln!(
                "no fanline-bench next to this program and no sources here: measuring the rows of `fanline bench` only"
            );
        }
        let (time, rounds) = (self.rows.time(TIME), self.rounds.unwrap_or(ROUNDS));
        let programs = [self.find()?, Program::own()?];
        let rows = self.rows.rows(|_| true)?;
        // Checks before minutes of measuring whether the report can be written.
        let cannot_write = |error| Failure::Error(format!("{}: {error}", self.out.display()));
        check_writable(&self.out).map_err(cannot_write)?;
        let total = rows.len() * usize::try_from(rounds).unwrap_or(1) * programs.len();
        let mut steps = self.rows.steps(total);
        let mut all = Vec::new();
        for row in rows {
            let mut samples = [Vec::new(), Vec::new()];
            for round in 0..rounds {
                // Alternate the order, so that neither server always comes second.
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
        eprintln!("Wrote {}", self.out.display());
        Ok(())
    }

    /// Returns whether an option is set that applies to all tables only.
    fn wants_tables(&self) -> bool {
        let switches = [self.quick, self.resume, self.no_rivals, self.no_runs];
        switches.contains(&true) || !self.tables.is_empty() || self.folder.is_some()
    }

    /// Returns the given nats-server, or one that is installed.
    fn given_or_found(&self) -> Result<Option<Program>, Failure> {
        if let Some(path) = &self.nats_server {
            let found = Program::nats_server(path);
            let wrong = || Failure::Usage(format!("{} is not a nats-server", path.display()));
            return found.ok_or_else(wrong).map(Some);
        }
        Ok(installed_servers()
            .iter()
            .find_map(|path| Program::nats_server(path)))
    }

    fn find(&self) -> Result<Program, Failure> {
        if let Some(found) = self.given_or_found()? {
            return Ok(found);
        }
        if !self.install {
            return Err(Failure::Error(format!(
                "no nats-server found in $NATS_SERVER, PATH, or ~/go/bin; use --nats-server PATH, or \
                 --install to run `go install {NATS_SERVER}`"
            )));
        }
        eprintln!("Installing {NATS_SERVER}");
        let status = Command::new("go").args(["install", NATS_SERVER]).status();
        let installed = status.is_ok_and(|status| status.success());
        let found = installed_servers()
            .iter()
            .find_map(|path| Program::nats_server(path));
        found.filter(|_| installed).ok_or_else(|| {
            Failure::Error(format!(
                "`go install {NATS_SERVER}` failed; install nats-server, and use --nats-server PATH"
            ))
        })
    }
}

/// Fails if a file cannot be written. Leaves its contents unchanged.
fn check_writable(path: &Path) -> std::io::Result<()> {
    let was_there = path.exists();
    OpenOptions::new().append(true).create(true).open(path)?;
    match was_there {
        true => Ok(()),
        false => fs::remove_file(path),
    }
}

/// Returns the paths of installed nats-servers.
fn installed_servers() -> Vec<PathBuf> {
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
    let mut text = String::from("# Fanline compared with nats-server\n\n");
    let [rival, own] = programs;
    let seconds = time.as_secs_f64();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "nats-server {} and Fanline {} on {}. {rounds} rounds of {seconds} s, alternating, each in a fresh \
         process with an empty store. Values are medians, with minimum and maximum in parentheses. Generator and server \
         share the machine. CPU is the server's CPU time per message.\n\n",
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
        "\nBoth servers are started with `{usual}`, for *synced* rows with `{synced}`. By default, nats-server \
         acknowledges a message before it is on disk and syncs every two minutes, while Fanline \
         acknowledges it after the sync: keep that in mind for rows with disk storage.\n\n\
         Repeat with `fanline bench compare --own`. For a faster generator, more workloads, the library, and other rivals, \
         run `cargo run --release -p fanline-bench -- all` in the sources.\n"
    );
    text
}

/// Writes one row of the table, if the servers have such a result.
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

/// The distribution of one server's results.
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

    /// Returns which server is better, if the difference is significant.
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

/// Returns a description of the machine, as far as it affects results.
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
    fn verdict_names_the_better_server() {
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
