//! `fanline-bench all`: measures every table of the product in sequence and writes one report.
//!
//! Each table is a separate run of this program. So no measurement is affected by the memory or threads of
//! another, and an interrupted run can resume with the next table.

mod repeat;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::report::command_line;
use crate::report::machine::Machine;
use crate::report::versions::built_with;

/// Tables to measure and output files.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Resume an interrupted run, and skip the tables that it has measured
    #[arg(long)]
    resume: bool,
    /// Finish in less than 15 minutes, with fewer rounds, messages, and rows
    #[arg(long)]
    quick: bool,
    /// Skip RxJava, Pekko, and the crates that hubs are compared with
    #[arg(long)]
    no_rivals: bool,
    /// Measure only this table; repeatable
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// nats-server binary to measure instead of the pinned version
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// Fanline binary to measure instead of the one next to this program, which is built if missing
    #[arg(long, value_name = "PATH")]
    fanline: Option<PathBuf>,
    /// Parent directory of the servers' files; do not use a tmpfs, on which syncing costs nothing
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Directory of tables and plots
    #[arg(long, value_name = "FOLDER", default_value = "docs/bench")]
    folder: PathBuf,
    /// Report file
    #[arg(long, value_name = "FILE", default_value = "BENCHMARKS.md")]
    out: PathBuf,
    /// Write the report of the existing tables, without measuring
    #[arg(long)]
    no_runs: bool,
}

/// File in the output directory that lists the tables that an unfinished run has measured.
const PROGRESS_FILE: &str = ".under-way";

struct Table {
    name: &'static str,
    heading: &'static str,
    /// Option that writes a plot, if the table has one.
    plot: Option<&'static str>,
    /// Options for a run with `--quick`.
    quick: &'static [&'static str],
    has_rivals: bool,
    /// Whether the table needs a nats-server and a Fanline server.
    has_servers: bool,
    /// Whether these servers write files.
    has_files: bool,
}

const TABLES: &[Table] = &[
    Table::server("core", "Core NATS, beside nats-server", &["--quick"]),
    Table {
        has_files: true,
        ..Table::server(
            "jetstream",
            "JetStream, beside nats-server",
            JETSTREAM_QUICK,
        )
    },
    Table {
        has_files: true,
        ..Table::server(
            "mqtt",
            "MQTT, beside nats-server and mosquitto",
            &["--quick"],
        )
    },
    Table::server(
        "transports",
        "TLS and WebSocket, beside nats-server",
        &["--quick"],
    ),
    Table {
        has_files: true,
        ..Table::server(
            "leaf",
            "A leaf link to a nats-server, beside a nats-server leaf",
            LEAF_QUICK,
        )
    },
    Table {
        plot: Some("--plot"),
        ..Table::new("bridge", "The bridge", &["--quick"])
    },
    Table {
        plot: Some("--plot"),
        has_rivals: true,
        ..Table::new(
            "replay",
            "Subjects and replay, beside reference loops",
            &["--quick"],
        )
    },
    Table {
        plot: Some("--plot"),
        has_rivals: true,
        ..Table::new("schedulers", "Schedulers", &["--quick"])
    },
    Table {
        plot: Some("--plot"),
        has_rivals: true,
        ..Table::new("hubs", "Hubs", &["--quick"])
    },
    Table {
        plot: Some("--plot"),
        ..Table::new(
            "micro",
            "The engine's parts, on one core",
            &["--samples", "5"],
        )
    },
];

/// Arguments for a quick run: one row of each kind. A run with all rows takes four minutes.
#[rustfmt::skip]
const JETSTREAM_QUICK: &[&str] = &[
    "--quick",
    "--row", "sync-memory",
    "--row", "async-memory",
    "--row", "async-file",
    "--row", "async-file-always",
    "--row", "ordered-pull",
    "--row", "fetch-acks",
    "--row", "kv-get",
    "--row", "recover-killed",
];

#[rustfmt::skip]
const LEAF_QUICK: &[&str] = &[
    "--quick",
    "--row", "up-128",
    "--row", "down-128",
    "--row", "request-128",
    "--row", "interest-down",
    "--row", "mirror",
];

impl Table {
    const fn new(
        name: &'static str,
        heading: &'static str,
        quick: &'static [&'static str],
    ) -> Self {
        Table {
            name,
            heading,
            plot: None,
            quick,
            has_rivals: false,
            has_servers: false,
            has_files: false,
        }
    }

    const fn server(
        name: &'static str,
        heading: &'static str,
        quick: &'static [&'static str],
    ) -> Self {
        Table {
            plot: Some("--svg"),
            has_servers: true,
            ..Table::new(name, heading, quick)
        }
    }

    fn file(&self, folder: &Path, end: &str) -> PathBuf {
        folder.join(format!("{}.{end}", self.name))
    }

    /// Returns the arguments with which this program measures the table.
    fn arguments(&self, all: &Arguments, with_rivals: bool) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut arguments = vec![self.name.to_owned(), "--markdown".to_owned()];
        arguments.push(path(&self.file(&all.folder, "md")));
        if let Some(plot) = self.plot {
            arguments.extend([plot.to_owned(), path(&self.file(&all.folder, "svg"))]);
        }
        if all.quick {
            arguments.extend(self.quick.iter().map(|word| (*word).to_owned()));
        }
        if self.has_rivals && with_rivals {
            arguments.push("--rivals".to_owned());
        }
        for (name, given, takes_it) in [
            ("--nats-server", &all.nats_server, self.has_servers),
            ("--fanline", &all.fanline, self.has_servers),
            ("--dir", &all.dir, self.has_files),
        ] {
            if let Some(given) = given.as_deref().filter(|_| takes_it) {
                arguments.extend([name.to_owned(), path(given)]);
            }
        }
        arguments
    }

    /// Measures the table. If the other systems are not available, measures it without them. Returns whether
    /// the table exists.
    fn measure(&self, all: &Arguments) -> Result<bool> {
        let with_rivals = !all.no_rivals;
        if self.run(&self.arguments(all, with_rivals))? {
            return Ok(true);
        }
        if !(self.has_rivals && with_rivals) {
            return Ok(false);
        }
        eprintln!("== {}: measuring again without rivals", self.name);
        self.run(&self.arguments(all, false))
    }

    fn run(&self, arguments: &[String]) -> Result<bool> {
        eprintln!("== {}", arguments.join(" "));
        let mut command = Command::new(std::env::current_exe()?);
        Ok(command.args(arguments).status()?.success())
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let tables = chosen(&arguments.tables)?;
    fs::create_dir_all(&arguments.folder)?;
    let failed = match arguments.no_runs {
        true => Vec::new(),
        false => measure(arguments, &tables)?,
    };
    fs::write(&arguments.out, report(arguments)?)
        .with_context(|| format!("{} cannot be written", arguments.out.display()))?;
    eprintln!("written to {}", arguments.out.display());
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(())
}

/// Measures the tables in sequence and records the finished ones. Returns the names of the failed tables.
fn measure(arguments: &Arguments, tables: &[&'static Table]) -> Result<Vec<&'static str>> {
    let notes = arguments.folder.join(PROGRESS_FILE);
    let mut done = match arguments.resume {
        true => fs::read_to_string(&notes).unwrap_or_default(),
        false => String::new(),
    };
    let mut failed = Vec::new();
    for table in tables {
        if done.lines().any(|name| name == table.name) {
            eprintln!("== {}: measured already", table.name);
            continue;
        }
        fs::write(&notes, &done)?;
        let page = || fs::read_to_string(table.file(&arguments.folder, "md")).unwrap_or_default();
        let before = page();
        // Continue after a failure, because the remaining tables are useful without this one.
        if table.measure(arguments)? {
            done.push_str(table.name);
            done.push('\n');
            if let Some(comparison) = repeat::compare(&before, &page()) {
                eprintln!("== {}: {comparison}", table.name);
            }
        } else {
            failed.push(table.name);
        }
    }
    if failed.is_empty() {
        // The file does not exist if all tables had been measured before.
        let _ = fs::remove_file(&notes);
    } else {
        fs::write(&notes, &done)?;
    }
    Ok(failed)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Table>> {
    for name in names {
        if !TABLES.iter().any(|table| table.name == name) {
            let known: Vec<_> = TABLES.iter().map(|table| table.name).collect();
            bail!("no table {name}; known tables: {}", known.join(", "));
        }
    }
    let is_chosen =
        |table: &&Table| names.is_empty() || names.iter().any(|name| name == table.name);
    Ok(TABLES.iter().filter(is_chosen).collect())
}

/// Returns a page that contains a summary, and all existing tables with their plots.
fn report(arguments: &Arguments) -> Result<String> {
    let Machine { cores, cpu, kernel } = Machine::read();
    let versions = built_with(&["fanline", "tokio", "async-broadcast", "asyncband", "rxrust"]);
    let mut text = format!(
        "# Benchmarks\n\nWritten by `{}` on {cores} × {cpu}, Linux {kernel}; {versions}. `fanline bench compare` repeats \
         all measurements. Each table lists the servers' versions, command lines, medians, spread, ratios, CPU and \
         memory, and the command that measures only this table. The [README](crates/fanline-bench/README.md) \
         describes the methods. Load and servers share the machine.\n",
        command_line(),
    );
    let pages: Vec<(&Table, Option<String>)> = TABLES
        .iter()
        .map(|table| {
            (
                table,
                fs::read_to_string(table.file(&arguments.folder, "md")).ok(),
            )
        })
        .collect();
    text += &summary(&pages);
    let soak = arguments.folder.join("soak.md");
    if soak.exists() {
        let link = linked_from(&arguments.out, &soak);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\n[Soak]({}): all kinds of load at once, with restarts and kills; checks for losses and leaks.",
            link.display()
        );
    }
    for (table, page) in pages {
        let Some(markdown) = page else {
            text += &format!("\n## {}\n\nNot measured.\n", table.heading);
            continue;
        };
        text += &format!("\n## {}\n\n", table.heading);
        let plot = table.file(&arguments.folder, "svg");
        if plot.exists() {
            let link = linked_from(&arguments.out, &plot);
            text += &format!("![{}]({})\n\n", table.heading, link.display());
        }
        text += &nested(&markdown);
    }
    Ok(text)
}

/// Returns the path by which the report links to a file. It is relative if the file is below the report's
/// directory.
fn linked_from(report: &Path, file: &Path) -> PathBuf {
    let folder = report.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let both = folder.canonicalize().ok().zip(file.canonicalize().ok());
    let nested = both.and_then(|(folder, file)| Some(file.strip_prefix(folder).ok()?.to_owned()));
    nested.unwrap_or_else(|| file.to_owned())
}

/// Returns the number of met targets for each table, and all missed targets and slower results.
fn summary(pages: &[(&Table, Option<String>)]) -> String {
    let mut table = String::from("\n| table | targets |\n| --- | --- |\n");
    let mut lost = String::new();
    for (of, page) in pages {
        let page = page.as_deref().unwrap_or_default();
        let verdicts = verdicts(page).unwrap_or(match page {
            "" => "not measured",
            _ => "no targets",
        });
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {} | {verdicts} |", of.heading);
        for line in losses(page) {
            let _ = writeln!(lost, "- {}: {line}", of.heading);
        }
    }
    if lost.is_empty() {
        lost.push_str("- None in these tables.\n");
    }
    format!("{table}\n## Losses\n\nMissed targets, faster rivals, and failed runs:\n\n{lost}")
}

/// Returns the summary of a page's targets, such as "3 met, 2 missed, 1 unknown".
fn verdicts(page: &str) -> Option<&str> {
    let is_summary =
        |line: &'_ str| line.starts_with("- Targets: ") || line.starts_with("- Bars: ");
    let line = page.lines().find(|line| is_summary(line))?;
    let (_, verdicts) = line.split_once(": ")?;
    Some(verdicts.trim_end_matches('.'))
}

/// Returns two kinds of lines from a page: the table lines whose target was missed, and the notes about
/// failed runs or faster systems.
fn losses(page: &str) -> Vec<String> {
    let (mut losses, mut title) = (Vec::new(), "");
    for line in page.lines() {
        if line.starts_with("- Behind ") || line.starts_with("- FAILED") {
            losses.push(line.trim_start_matches("- ").to_owned());
        }
        let Some(row) = line.strip_prefix('|') else {
            title = "";
            continue;
        };
        let mut cells = row.trim_end_matches('|').split('|').map(str::trim);
        // A row may omit its first cell if that cell equals the one above.
        match cells.next() {
            Some("") | None => {}
            Some(first) => title = first,
        }
        if row.contains("MISSED") {
            let words = [title].into_iter().chain(cells);
            let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
            losses.push(words.join(" · "));
        }
    }
    losses
}

/// Returns a table's page as a section of another page. It omits the title, and adds one level to its
/// headings.
fn nested(markdown: &str) -> String {
    let mut text = String::new();
    for line in markdown.trim().lines() {
        if line.starts_with("# ") {
            continue;
        }
        if line.starts_with("##") {
            text.push('#');
        }
        text += line;
        text.push('\n');
    }
    text.trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_becomes_section() {
        let page = "# Title\n\n| a |\n| --- |\n\n## Part\n\ntext\n";
        assert_eq!(nested(page), "| a |\n| --- |\n\n### Part\n\ntext\n");
    }

    #[test]
    fn plot_paths_are_relative_to_report() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (report, expected) in [
            (root.join("BENCHMARKS.md"), PathBuf::from("src/all.rs")),
            (root.join("src/BENCHMARKS.md"), PathBuf::from("all.rs")),
            // These files are not below the report's directory.
            (root.join("rivals/B.md"), root.join("src/all.rs")),
        ] {
            assert_eq!(linked_from(&report, &root.join("src/all.rs")), expected);
        }
    }

    #[test]
    fn losses_are_found() {
        let page = "| shape | result | Fanline | verdict |\n|---|---|---|---|\n\
                    | 1 to 1 | rate | 7 M | met |\n|  | CPU | 9 ns | MISSED |\n\n\
                    - Targets: 1 met, 1 missed, 0 unknown.\n- Behind nats-server: 1 to 1, CPU 1.1×.\n";
        assert_eq!(verdicts(page), Some("1 met, 1 missed, 0 unknown"));
        assert_eq!(
            losses(page),
            [
                "1 to 1 · CPU · 9 ns · MISSED",
                "Behind nats-server: 1 to 1, CPU 1.1×."
            ]
        );
        assert_eq!(verdicts("no targets"), None);
        assert!(losses("").is_empty());
    }

    #[test]
    fn tables_are_selected_by_name() {
        assert_eq!(chosen(&[]).expect("all").len(), TABLES.len());
        assert_eq!(chosen(&["hubs".to_owned()]).expect("one").len(), 1);
        assert!(chosen(&["hub".to_owned()]).is_err());
    }
}
