//! `fanline-bench all`: measures every table of the product in sequence and writes one report.
//!
//! Each table is a separate run of this program. So no measurement is affected by the memory or threads of
//! another, and an interrupted run can resume with the next table.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::compare;
use crate::report::machine::Machine;
use crate::report::target::{self, Verdict};
use crate::report::versions::built_with;
use crate::report::{Report, command_line, json, plot, table};
use crate::servers::binaries::Binaries;

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
    #[arg(long = "table", value_name = "NAME",
          value_parser = PossibleValuesParser::new(TABLES.iter().map(|table| table.name)))]
    tables: Vec<String>,
    #[command(flatten)]
    binaries: Binaries,
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

/// Extension of a table's results while it is measured. If the measurement fails, earlier results remain.
const UNFINISHED: &str = "new.json";

struct Table {
    name: &'static str,
    heading: &'static str,
    /// Arguments for a run with `--quick`.
    quick: &'static [&'static str],
    /// Options that the table's command has.
    takes: &'static [&'static str],
}

const QUICK: &[&str] = &["--quick"];
const SERVERS: &[&str] = &[NATS_SERVER, FANLINE];
const FILES: &[&str] = &[NATS_SERVER, FANLINE, DIR];
const NATS_SERVER: &str = "--nats-server";
const FANLINE: &str = "--fanline";
const DIR: &str = "--dir";
const RIVALS: &str = "--rivals";

const fn table(
    name: &'static str,
    heading: &'static str,
    quick: &'static [&'static str],
    takes: &'static [&'static str],
) -> Table {
    Table {
        name,
        heading,
        quick,
        takes,
    }
}

#[rustfmt::skip]
const TABLES: &[Table] = &[
    table("core", "Core NATS, beside nats-server", QUICK, SERVERS),
    // One row of each kind. A run with all rows takes four minutes.
    table("jetstream", "JetStream, beside nats-server", &[
        "--quick",
        "--row", "sync-memory",
        "--row", "async-memory",
        "--row", "async-file",
        "--row", "async-file-always",
        "--row", "ordered-pull",
        "--row", "fetch-acks",
        "--row", "kv-get",
        "--row", "recover-killed",
    ], FILES),
    table("mqtt", "MQTT, beside nats-server and mosquitto", QUICK, FILES),
    table("transports", "TLS and WebSocket, beside nats-server", QUICK, SERVERS),
    table("leaf", "A leaf link to a nats-server, beside a nats-server leaf", &[
        "--quick",
        "--row", "up-128",
        "--row", "down-128",
        "--row", "request-up-128",
        "--row", "interest-down",
        "--row", "mirror",
    ], FILES),
    table("cluster", "A cluster of three servers, beside nats-servers", &[
        "--quick",
        "--row", "one-128",
        "--row", "request-128",
    ], FILES),
    table("replicated", "Replicated streams, beside nats-servers", &[
        "--quick",
        "--row", "publish-128",
        "--row", "publish-one",
    ], FILES),
    table("bridge", "The bridge", QUICK, &[]),
    table("replay", "Subjects and replay, beside reference loops", QUICK, &[RIVALS]),
    table("footprint", "What a subject costs besides messages", QUICK, &[RIVALS]),
    table("schedulers", "Schedulers", QUICK, &[RIVALS]),
    table("hubs", "Hubs", QUICK, &[RIVALS]),
    table("micro", "The engine's parts, on one core", &["--samples", "5"], &[]),
];

impl Table {
    fn file(&self, folder: &Path, end: &str) -> PathBuf {
        folder.join(format!("{}.{end}", self.name))
    }

    fn arguments(&self, all: &Arguments, with_rivals: bool) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut arguments = vec![self.name.to_owned(), "--json".to_owned()];
        arguments.push(path(&self.file(&all.folder, UNFINISHED)));
        if all.quick {
            arguments.extend(self.quick.iter().map(|word| (*word).to_owned()));
        }
        if self.takes.contains(&RIVALS) && with_rivals {
            arguments.push(RIVALS.to_owned());
        }
        for (name, given) in [
            (NATS_SERVER, &all.binaries.nats_server),
            (FANLINE, &all.binaries.fanline),
            (DIR, &all.dir),
        ] {
            if let Some(given) = given.as_deref().filter(|_| self.takes.contains(&name)) {
                arguments.extend([name.to_owned(), path(given)]);
            }
        }
        arguments
    }

    /// Measures the table. If the other systems are not available, measures it without them. Returns whether
    /// the table exists.
    fn measure(&self, all: &Arguments) -> Result<bool> {
        let with_rivals = !all.no_rivals;
        if self.run(all, with_rivals)? {
            return Ok(true);
        }
        if !(self.takes.contains(&RIVALS) && with_rivals) {
            return Ok(false);
        }
        eprintln!("== {}: measuring again without rivals", self.name);
        self.run(all, false)
    }

    /// Returns the results, if they were measured by this version of the program.
    fn results(&self, folder: &Path) -> Option<Report> {
        json::read(&self.file(folder, "json")).ok()
    }

    /// Writes the page and the plot of the results, and returns the page. Without results, returns the page of
    /// an earlier version.
    fn page(&self, folder: &Path, results: Option<&Report>) -> Result<Option<String>> {
        let path = self.file(folder, "md");
        let Some(results) = results else {
            return Ok(fs::read_to_string(path).ok());
        };
        let page = table::markdown(results);
        fs::write(&path, &page).with_context(|| path.display().to_string())?;
        fs::write(self.file(folder, "svg"), plot::document(results))?;
        Ok(Some(page))
    }

    fn run(&self, all: &Arguments, with_rivals: bool) -> Result<bool> {
        let arguments = self.arguments(all, with_rivals);
        eprintln!("== {}", arguments.join(" "));
        let mut command = Command::new(std::env::current_exe()?);
        let is_measured = command.args(arguments).status()?.success();
        if is_measured {
            let unfinished = self.file(&all.folder, UNFINISHED);
            fs::rename(unfinished, self.file(&all.folder, "json"))?;
        }
        Ok(is_measured)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    fs::create_dir_all(&arguments.folder)?;
    let failed = match arguments.no_runs {
        true => Vec::new(),
        false => measure(arguments)?,
    };
    fs::write(&arguments.out, report(arguments)?)
        .with_context(|| format!("{} cannot be written", arguments.out.display()))?;
    eprintln!("written to {}", arguments.out.display());
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(())
}

/// Measures the tables in sequence and records the finished ones. Returns the names of the failed tables.
fn measure(arguments: &Arguments) -> Result<Vec<&'static str>> {
    let names = &arguments.tables;
    let is_chosen =
        |table: &&Table| names.is_empty() || names.iter().any(|name| name == table.name);
    let notes = arguments.folder.join(PROGRESS_FILE);
    let mut done = match arguments.resume {
        true => fs::read_to_string(&notes).unwrap_or_default(),
        false => String::new(),
    };
    let mut failed = Vec::new();
    for table in TABLES.iter().filter(is_chosen) {
        if done.lines().any(|name| name == table.name) {
            eprintln!("== {}: measured already", table.name);
            continue;
        }
        fs::write(&notes, &done)?;
        let before = table.results(&arguments.folder);
        // Continue after a failure, because the remaining tables are useful without this one.
        if table.measure(arguments)? {
            done.push_str(table.name);
            done.push('\n');
            let both = before.zip(table.results(&arguments.folder));
            let comparison = both.and_then(|(before, now)| compare::summary(&before, &now));
            if let Some(comparison) = comparison {
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

/// A table with its results and its page, if they exist.
type Entry = (&'static Table, Option<Report>, Option<String>);

/// Returns a page that contains a summary, and all existing tables with their plots. Writes the pages and plots
/// of the tables.
fn report(arguments: &Arguments) -> Result<String> {
    let Machine { cores, cpu, kernel } = Machine::read();
    let versions = built_with(&["fanline", "tokio", "async-broadcast", "asyncband", "rxrust"]);
    let mut text = format!(
        "# Benchmarks\n\nWritten by `{}` on {cores} × {cpu}, Linux {kernel}; {versions}. \
         `cargo run --release -p fanline-bench -- all` repeats all measurements. Each table lists the servers' \
         versions, command lines, medians, ranges, ratios, CPU and memory, and the command that measures only this \
         table. The [README](crates/fanline-bench/README.md) describes the methods. Load and servers share the \
         machine.\n",
        command_line(),
    );
    let mut entries = Vec::new();
    for table in TABLES {
        let results = table.results(&arguments.folder);
        let page = table.page(&arguments.folder, results.as_ref())?;
        entries.push((table, results, page));
    }
    text += &summary(&entries);
    for (table, _, page) in entries {
        text += &format!("\n## {}\n\n", table.heading);
        let Some(markdown) = page else {
            text += "Not measured.\n";
            continue;
        };
        let plot = table.file(&arguments.folder, "svg");
        if plot.exists() {
            // Relative, if the plot is below the report's directory.
            let folder = arguments.out.parent().unwrap_or_else(|| Path::new(""));
            let link = plot.strip_prefix(folder).unwrap_or(&plot);
            text += &format!("![{}]({})\n\n", table.heading, link.display());
        }
        text += &nested(&markdown);
    }
    Ok(text)
}

/// Returns the number of met targets for each table, and all missed targets and slower results.
fn summary(entries: &[Entry]) -> String {
    let mut table = String::from("\n| table | targets |\n| --- | --- |\n");
    let mut lost = String::new();
    for (of, results, page) in entries {
        let verdicts = match (results, page) {
            (Some(results), _) if results.targets.is_empty() => "no targets".to_owned(),
            (Some(results), _) => target::count(&results.targets),
            (None, Some(_)) => "measured by an earlier version".to_owned(),
            (None, None) => "not measured".to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {} | {verdicts} |", of.heading);
        for line in results.iter().flat_map(losses) {
            let _ = writeln!(lost, "- {}: {line}", of.heading);
        }
        if results.is_none() && page.is_some() {
            let _ = writeln!(lost, "- {}: see its table, {verdicts}.", of.heading);
        }
    }
    if lost.is_empty() {
        lost.push_str("- None in these tables.\n");
    }
    format!("{table}\n## Losses\n\nMissed targets, faster rivals, and failed runs:\n\n{lost}")
}

fn losses(report: &Report) -> Vec<String> {
    let targets = report.targets.iter();
    let missed = targets.filter(|target| target.verdict == Verdict::Missed);
    let missed = missed.map(|target| {
        let words = [
            &target.what,
            &target.cells,
            &target.measured(),
            &target.bound(),
            target.verdict.label(),
        ];
        let words = words.into_iter().filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" · ")
    });
    missed.chain(table::losses(report)).collect()
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
    use crate::report::behind::Rule;
    use crate::report::metric::Metric;
    use crate::report::target::{Bound, Target, Unit};
    use crate::report::{Kind, Row};

    #[test]
    fn page_becomes_section() {
        let page = "# Title\n\n| a |\n| --- |\n\n## Part\n\ntext\n";
        assert_eq!(nested(page), "| a |\n| --- |\n\n### Part\n\ntext\n");
    }

    #[test]
    fn losses_are_found() {
        let mut report = Report::new("Title");
        report.add_system("Fanline", Kind::Own, "");
        let mut row = Row::new("1-1", "group");
        row.title = "1 to 1".to_owned();
        row.record_value("Fanline", Metric::ServerCpu, 8.8);
        row.record_value("nats-server", Metric::ServerCpu, 8.0);
        row.compare("Fanline", "nats-server", Metric::ServerCpu, Rule::Median);
        row.fail("nats-server", "too slow");
        report.rows.push(row);
        for (what, most) in [("rate", 10.0), ("CPU", 8.0)] {
            let (bound, unit) = (Bound::AtMost(most), Unit::Of(Metric::ServerCpu));
            let target = Target::new(format!("1 to 1, {what}"), vec![Some(9.0)], bound, unit);
            report.targets.push(target);
        }
        assert_eq!(
            losses(&report),
            [
                "1 to 1, CPU · 9.00 ns · ≤ 8.00 ns · MISSED",
                "FAILED: 1 to 1, nats-server: too slow.",
                "Behind nats-server: 1 to 1, server CPU, 1.10×.",
            ]
        );
        let entry = |results, page| (&TABLES[0], results, page);
        let entries = [
            entry(Some(report), None),
            entry(Some(Report::new("empty")), None),
            entry(None, Some("page".to_owned())),
            entry(None, None),
        ];
        let text = summary(&entries);
        for verdicts in [
            "1 met, 1 missed, 0 unknown",
            "no targets",
            "measured by an earlier version",
            "not measured",
        ] {
            assert!(text.contains(&format!("| {verdicts} |")), "{text}");
        }
        assert!(text.contains("- Core NATS, beside nats-server: see its table, measured"));
        assert!(summary(&entries[1..2]).contains("- None in these tables."));
    }
}
