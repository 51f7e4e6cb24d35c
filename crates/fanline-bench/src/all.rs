//! `fanline-bench all`: every table of the product, one after the other, and one report of them.
//!
//! Each table is a run of this program of its own, so that no measurement inherits another one's memory
//! or threads, and a run that was ended goes on with the next table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::report::machine::Machine;

/// What is measured, and where it goes.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Leave out tables that are there already
    #[arg(long)]
    resume: bool,
    /// Fewer rounds and messages, where a table has such a form
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

struct Table {
    name: &'static str,
    heading: &'static str,
    /// How it writes a plot, if it does.
    plot: Option<&'static str>,
    has_quick: bool,
    has_rivals: bool,
    has_nats_server: bool,
}

const TABLES: &[Table] = &[
    Table::server("core", "Core NATS, beside nats-server"),
    Table::server("jetstream", "JetStream, beside nats-server"),
    Table::server("transports", "TLS and WebSocket, beside nats-server"),
    Table {
        has_quick: true,
        ..Table::new("bridge", "The bridge")
    },
    Table {
        plot: Some("--plot"),
        has_quick: true,
        has_rivals: true,
        ..Table::new(
            "replay",
            "Subjects and replay, beside limits written by hand",
        )
    },
    Table {
        has_quick: true,
        has_rivals: true,
        ..Table::new("schedulers", "Schedulers")
    },
    Table {
        plot: Some("--plot"),
        has_quick: true,
        has_rivals: true,
        ..Table::new("hubs", "Hubs")
    },
    Table::new("micro", "The engine's parts, on one core"),
];

impl Table {
    const fn new(name: &'static str, heading: &'static str) -> Self {
        Table {
            name,
            heading,
            plot: None,
            has_quick: false,
            has_rivals: false,
            has_nats_server: false,
        }
    }

    const fn server(name: &'static str, heading: &'static str) -> Self {
        Table {
            plot: Some("--svg"),
            has_quick: true,
            has_nats_server: true,
            ..Table::new(name, heading)
        }
    }

    fn file(&self, folder: &Path, end: &str) -> PathBuf {
        folder.join(format!("{}.{end}", self.name))
    }

    /// The arguments that this program is run with for it.
    fn arguments(&self, all: &Arguments) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut arguments = vec![self.name.to_owned(), "--markdown".to_owned()];
        arguments.push(path(&self.file(&all.folder, "md")));
        if let Some(plot) = self.plot {
            arguments.extend([plot.to_owned(), path(&self.file(&all.folder, "svg"))]);
        }
        if self.has_quick && all.quick {
            arguments.push("--quick".to_owned());
        }
        if self.has_rivals && !all.no_rivals {
            arguments.push("--rivals".to_owned());
        }
        if let Some(server) = all.nats_server.as_deref().filter(|_| self.has_nats_server) {
            arguments.extend(["--nats-server".to_owned(), path(server)]);
        }
        arguments
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let tables = chosen(&arguments.tables)?;
    fs::create_dir_all(&arguments.folder)?;
    let mut failed = Vec::new();
    for table in tables {
        let file = table.file(&arguments.folder, "md");
        if arguments.no_runs || arguments.resume && file.exists() {
            continue;
        }
        let run = table.arguments(arguments);
        eprintln!("== {}", run.join(" "));
        let status = Command::new(std::env::current_exe()?).args(&run).status()?;
        // The others are worth having all the same.
        if !status.success() {
            failed.push(table.name);
        }
    }
    fs::write(&arguments.out, report(arguments)?)
        .with_context(|| format!("{} cannot be written", arguments.out.display()))?;
    eprintln!("written to {}", arguments.out.display());
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(())
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

/// All tables that are there, with their plots.
fn report(arguments: &Arguments) -> Result<String> {
    let Machine { cores, cpu, kernel } = Machine::read();
    let mut text = format!(
        "# Benchmarks\n\nWritten by `cargo run --release -p fanline-bench -- all` on {cores} × {cpu}, Linux {kernel}. \
         Each table says below it how it was taken; \
         [how all of it is measured](crates/fanline-bench/README.md). A quick look at your own machine: \
         `fanline bench`, and `fanline bench compare` beside a nats-server.\n"
    );
    for table in TABLES {
        let Ok(markdown) = fs::read_to_string(table.file(&arguments.folder, "md")) else {
            text += &format!("\n## {}\n\nNot measured.\n", table.heading);
            continue;
        };
        text += &format!("\n## {}\n\n", table.heading);
        let plot = table.file(&arguments.folder, "svg");
        if plot.exists() {
            text += &format!("![{}]({})\n\n", table.heading, plot.display());
        }
        text += &below(&markdown);
    }
    Ok(text)
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
    fn tables_are_chosen_by_name() {
        assert_eq!(chosen(&[]).expect("all").len(), TABLES.len());
        assert_eq!(chosen(&["hubs".to_owned()]).expect("one").len(), 1);
        assert!(chosen(&["hub".to_owned()]).is_err());
    }
}
