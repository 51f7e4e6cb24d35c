//! `fanline-bench all`: every table of the product, one after the other, and one report of them.
//!
//! Each table is a run of this program of its own, so that no measurement inherits another one's memory
//! or threads, and a run that was ended goes on with the next table.

mod again;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::report::command_line;
use crate::report::machine::Machine;
use crate::report::versions::built_with;

/// What is measured, and where it goes.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Go on with a run that was ended: leave out the tables that it has measured
    #[arg(long)]
    resume: bool,
    /// In less than 15 minutes: fewer rounds, messages and rows
    #[arg(long)]
    quick: bool,
    /// Without RxJava, Pekko and the crates that hubs are compared with
    #[arg(long)]
    no_rivals: bool,
    /// Only these tables; may be given several times
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// nats-server to measure, instead of the pinned version
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// Fanline to measure, instead of the one beside this program, which is built when missing
    #[arg(long, value_name = "PATH")]
    fanline: Option<PathBuf>,
    /// Where the servers keep their files: not on a tmpfs, where syncing costs nothing
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Where tables and plots are kept
    #[arg(long, value_name = "FOLDER", default_value = "docs/bench")]
    folder: PathBuf,
    /// The report
    #[arg(long, value_name = "FILE", default_value = "BENCHMARKS.md")]
    out: PathBuf,
    /// Write the report of what is there, and measure nothing
    #[arg(long)]
    no_runs: bool,
}

/// The tables that a run has measured, as long as it is not done; beside them.
const UNDER_WAY: &str = ".under-way";

struct Table {
    name: &'static str,
    heading: &'static str,
    /// How it writes a plot, if it does.
    plot: Option<&'static str>,
    /// What makes it short.
    quick: &'static [&'static str],
    has_rivals: bool,
    /// It starts servers: a nats-server and a Fanline.
    has_servers: bool,
    /// They keep files.
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
            "Subjects and replay, beside limits written by hand",
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

/// One row of each kind: all of them take four minutes.
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

    /// The arguments that this program is run with for it.
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

    /// Measures it; without rivals where they cannot be had. Says whether there is a table.
    fn measure(&self, all: &Arguments) -> Result<bool> {
        let with_rivals = !all.no_rivals;
        if self.run(&self.arguments(all, with_rivals))? {
            return Ok(true);
        }
        if !(self.has_rivals && with_rivals) {
            return Ok(false);
        }
        eprintln!("== {}: once more, without rivals", self.name);
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

/// Measures them one by one, and notes those that are done. Gives the names of those that failed.
fn measure(arguments: &Arguments, tables: &[&'static Table]) -> Result<Vec<&'static str>> {
    let notes = arguments.folder.join(UNDER_WAY);
    let mut done = match arguments.resume {
        true => fs::read_to_string(&notes).unwrap_or_default(),
        false => String::new(),
    };
    let mut failed = Vec::new();
    for table in tables {
        if done.lines().any(|name| name == table.name) {
            eprintln!("== {}: measured before", table.name);
            continue;
        }
        fs::write(&notes, &done)?;
        let page = || fs::read_to_string(table.file(&arguments.folder, "md")).unwrap_or_default();
        let before = page();
        // The others are worth having all the same.
        if table.measure(arguments)? {
            done.push_str(table.name);
            done.push('\n');
            if let Some(told) = again::compare(&before, &page()) {
                eprintln!("== {}: {told}", table.name);
            }
        } else {
            failed.push(table.name);
        }
    }
    if failed.is_empty() {
        // Where all was measured before, and it is gone already.
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
            bail!("no table {name}; there are: {}", known.join(", "));
        }
    }
    let is_chosen =
        |table: &&Table| names.is_empty() || names.iter().any(|name| name == table.name);
    Ok(TABLES.iter().filter(is_chosen).collect())
}

/// All tables that are there, with their plots, behind what is to be seen at a glance.
fn report(arguments: &Arguments) -> Result<String> {
    let Machine { cores, cpu, kernel } = Machine::read();
    let versions = built_with(&["fanline", "tokio", "async-broadcast", "asyncband", "rxrust"]);
    let mut text = format!(
        "# Benchmarks\n\nWritten by `{}` on {cores} × {cpu}, Linux {kernel}; {versions}. `fanline bench compare` takes all of \
         it again. The servers' versions, command lines, medians, spread, ratios, CPU and memory are with each table, \
         and so is the command that takes it alone; [how all of it is measured](crates/fanline-bench/README.md). Load \
         and servers share the machine.\n",
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
    text += &glance(&pages);
    let soak = arguments.folder.join("soak.md");
    if soak.exists() {
        let link = linked_from(&arguments.out, &soak);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\n[Soak]({}): everything at once, with restarts and kills, and what is lost and leaked then.",
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
        text += &below(&markdown);
    }
    Ok(text)
}

/// A file as the report names it: from where the report is, if the file is below that.
fn linked_from(report: &Path, file: &Path) -> PathBuf {
    let folder = report.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let both = folder.canonicalize().ok().zip(file.canonicalize().ok());
    let below = both.and_then(|(folder, file)| Some(file.strip_prefix(folder).ok()?.to_owned()));
    below.unwrap_or_else(|| file.to_owned())
}

/// How many bars each table meets, and all that was lost.
fn glance(pages: &[(&Table, Option<String>)]) -> String {
    let mut table = String::from("\n| table | bars |\n| --- | --- |\n");
    let mut lost = String::new();
    for (of, page) in pages {
        let page = page.as_deref().unwrap_or_default();
        let verdicts = verdicts(page).unwrap_or(match page {
            "" => "not measured",
            _ => "none is set",
        });
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {} | {verdicts} |", of.heading);
        for line in losses(page) {
            let _ = writeln!(lost, "- {}: {line}", of.heading);
        }
    }
    if lost.is_empty() {
        lost.push_str("- Nothing in these tables.\n");
    }
    format!(
        "{table}\n## What is lost\n\nBars that are missed, rivals that are faster, runs that failed:\n\n{lost}"
    )
}

/// What a page says of its bars, in short.
fn verdicts(page: &str) -> Option<&str> {
    let said = |line: &'_ str| line.starts_with("- Targets: ") || line.starts_with("- Bars: ");
    let line = page.lines().find(|line| said(line))?;
    let (_, verdicts) = line.split_once(": ")?;
    Some(verdicts.trim_end_matches('.'))
}

/// The lines of a page's tables that miss a bar, and what it says of runs that failed and of rivals that
/// are ahead.
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
        // A row may leave out what the one above has said.
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

/// A table's own page as part of another one: without its title, and with its headings one step down.
fn below(markdown: &str) -> String {
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
    fn a_page_becomes_a_part() {
        let page = "# Title\n\n| a |\n| --- |\n\n## Part\n\ntext\n";
        assert_eq!(below(page), "| a |\n| --- |\n\n### Part\n\ntext\n");
    }

    #[test]
    fn plots_are_named_from_where_the_report_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (report, expected) in [
            (root.join("BENCHMARKS.md"), PathBuf::from("src/all.rs")),
            (root.join("src/BENCHMARKS.md"), PathBuf::from("all.rs")),
            // Not below it.
            (root.join("rivals/B.md"), root.join("src/all.rs")),
        ] {
            assert_eq!(linked_from(&report, &root.join("src/all.rs")), expected);
        }
    }

    #[test]
    fn what_is_lost_is_found() {
        let page = "| shape | figure | Fanline | verdict |\n|---|---|---|---|\n\
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
        assert_eq!(verdicts("no bars"), None);
        assert!(losses("").is_empty());
    }

    #[test]
    fn tables_are_chosen_by_name() {
        assert_eq!(chosen(&[]).expect("all").len(), TABLES.len());
        assert_eq!(chosen(&["hubs".to_owned()]).expect("one").len(), 1);
        assert!(chosen(&["hub".to_owned()]).is_err());
    }
}
