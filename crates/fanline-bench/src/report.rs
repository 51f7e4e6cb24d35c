//! The results of a command. All commands have the same schema, tables, plots, and JSON.
//!
//! A [`Report`] consists of rows. A [`Row`] is one load, with the results of all systems under this load. A
//! result is the [`Summary`] of one [`Metric`] of one system. Commands fill rows and [`targets`](target).
//! [`table`] and [`plot`] draw any report, and [`compare`](crate::compare) compares two of the same command.

pub(crate) mod behind;
pub(crate) mod json;
pub(crate) mod machine;
pub(crate) mod metric;
pub(crate) mod plot;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod versions;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{HumanCount, ProgressBar, ProgressFinish, ProgressStyle};
use serde::{Deserialize, Serialize};

use behind::Rule;
use machine::Machine;
use metric::{Metric, Summary};
use target::Target;

/// Version of the schema. It changes when a field changes its name or meaning.
pub(crate) const SCHEMA: u32 = 1;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Output {
    /// List the rows and the targets, without measuring
    #[arg(long)]
    list: bool,
    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a plot as SVG
    #[arg(long, value_name = "FILE", alias = "plot")]
    svg: Option<PathBuf>,
    /// Write every result as JSON, for `fanline-bench compare` and other programs
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Output {
    /// With `--list`, prints the lines, which consist of a name, a title, and targets. Returns whether it did.
    pub(crate) fn lists(&self, lines: impl FnOnce() -> Vec<[String; 3]>) -> bool {
        if self.list {
            print!("{}", list(&lines()));
        }
        self.list
    }

    /// Prints the report and writes the requested files.
    pub(crate) fn write(&self, report: &Report) -> Result<()> {
        print!("{}", table::terminal(report));
        write_to(self.markdown.as_deref(), || table::markdown(report))?;
        write_to(self.svg.as_deref(), || plot::document(report))?;
        match &self.json {
            Some(path) => json::save(report, path),
            None => Ok(()),
        }
    }
}

/// All results of one invocation, and the machine on which they were measured.
///
/// In JSON, times are nanoseconds, rates are per second, and memory is in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) schema: u32,
    pub(crate) title: String,
    pub(crate) command: String,
    pub(crate) machine: Machine,
    /// Number and length of runs. A run can be resumed only with the same settings.
    pub(crate) settings: BTreeMap<String, f64>,
    /// The measured systems, in the order of the tables.
    pub(crate) systems: Vec<System>,
    pub(crate) rows: Vec<Row>,
    pub(crate) targets: Vec<Target>,
    pub(crate) notes: Vec<String>,
    /// Whether the plot has one logarithmic scale for all rows, instead of one scale for each row.
    pub(crate) is_logarithmic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct System {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Version and command line, if the system is not a part of this program.
    pub(crate) version: String,
}

/// The role of a system in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Own,
    /// A hand-written loop, or a load without the measured part.
    Reference,
    Rival,
}

/// One load, with the results of all systems.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Name that no other row of the report has.
    pub(crate) name: String,
    /// Heading of the table that contains the row.
    pub(crate) group: String,
    /// Title of the lines in the table. Rows with different columns share it.
    pub(crate) title: String,
    /// Column of the table. If it is empty, each metric has a column.
    pub(crate) column: String,
    /// Unit of [`Metric::Rate`].
    pub(crate) rate: String,
    /// Metric of the plot, and of the table if the row has a column.
    pub(crate) headline: Metric,
    /// Whether the plot contains the row.
    pub(crate) is_plotted: bool,
    pub(crate) results: Vec<Measured>,
    pub(crate) ratios: Vec<Ratio>,
    pub(crate) failures: Vec<Failure>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) system: String,
    pub(crate) metric: Metric,
    #[serde(flatten)]
    pub(crate) summary: Summary,
    /// The result of each run, if there are few runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) samples: Vec<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ratio {
    pub(crate) system: String,
    pub(crate) to: String,
    pub(crate) metric: Metric,
    pub(crate) value: f64,
    /// Whether the system is worse than the other by more than noise.
    pub(crate) is_behind: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) system: String,
    pub(crate) error: String,
}

impl Report {
    /// Creates a report without rows.
    pub(crate) fn new(title: &str) -> Self {
        Self {
            schema: SCHEMA,
            title: title.to_owned(),
            command: command_line(),
            machine: Machine::read(),
            settings: BTreeMap::new(),
            systems: Vec::new(),
            rows: Vec::new(),
            targets: Vec::new(),
            notes: Vec::new(),
            is_logarithmic: false,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: f64) {
        self.settings.insert(name.to_owned(), value);
    }

    /// Adds a system, unless the report contains it already.
    pub(crate) fn add_system(&mut self, name: &str, kind: Kind, version: impl Into<String>) {
        if self.system(name).is_none() {
            self.systems.push(System {
                name: name.to_owned(),
                kind,
                version: version.into(),
            });
        }
    }

    pub(crate) fn add_measured(&mut self, name: &str, kind: Kind, version: impl Into<String>) {
        let mut results = self.rows.iter().flat_map(|row| &row.results);
        if results.any(|result| result.system == name) {
            self.add_system(name, kind, version);
        }
    }

    pub(crate) fn system(&self, name: &str) -> Option<&System> {
        self.systems.iter().find(|system| system.name == name)
    }

    pub(crate) fn is_kind(&self, name: &str, kind: Kind) -> bool {
        self.system(name).is_some_and(|system| system.kind == kind)
    }

    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, group: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            group: group.into(),
            title: String::new(),
            column: String::new(),
            rate: "messages/s".to_owned(),
            headline: Metric::Rate,
            is_plotted: true,
            results: Vec::new(),
            ratios: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(crate) fn record(&mut self, system: &str, metric: Metric, summary: Summary) {
        self.record_with(system, metric, summary, Vec::new());
    }

    fn record_with(&mut self, system: &str, metric: Metric, summary: Summary, samples: Vec<f64>) {
        self.results.push(Measured {
            system: system.to_owned(),
            metric,
            summary,
            samples,
        });
    }

    pub(crate) fn record_value(&mut self, system: &str, metric: Metric, value: f64) {
        self.record(system, metric, Summary::single(value));
    }

    /// Stores the median and spread of several runs, and their results. Does nothing without runs.
    pub(crate) fn record_samples(&mut self, system: &str, metric: Metric, samples: Vec<f64>) {
        if let Some(summary) = Summary::of(samples.iter().copied()) {
            self.record_with(system, metric, summary, samples);
        }
    }

    pub(crate) fn fail(&mut self, system: &str, error: impl Into<String>) {
        self.failures.push(Failure {
            system: system.to_owned(),
            error: error.into(),
        });
    }

    /// Stores the ratio of two systems' medians, if both have a result.
    pub(crate) fn compare(&mut self, system: &str, to: &str, metric: Metric, rule: Rule) {
        let both = self.summary(system, metric).zip(self.summary(to, metric));
        let Some((own, other)) = both else {
            return;
        };
        let value = own.median / other.median;
        if value.is_finite() {
            self.ratios.push(Ratio {
                system: system.to_owned(),
                to: to.to_owned(),
                metric,
                value,
                is_behind: rule.is_behind(own, other, metric.better()),
            });
        }
    }

    pub(crate) fn summary(&self, system: &str, metric: Metric) -> Option<Summary> {
        let is_it = |result: &&Measured| result.system == system && result.metric == metric;
        self.results.iter().find(is_it).map(|result| result.summary)
    }

    pub(crate) fn value(&self, system: &str, metric: Metric) -> Option<f64> {
        self.summary(system, metric).map(|summary| summary.median)
    }

    pub(crate) fn ratio(&self, system: &str, to: &str, metric: Metric) -> Option<f64> {
        Some(self.value(system, metric)? / self.value(to, metric)?)
    }

    /// Returns the name of a result in this row, including its unit.
    pub(crate) fn metric_title(&self, metric: Metric) -> &str {
        match metric {
            Metric::Rate => &self.rate,
            metric => metric.label(),
        }
    }

    /// Returns the text by which notes refer to the row.
    pub(crate) fn label(&self) -> String {
        let is_title_enough = self.column.is_empty() && !self.title.is_empty();
        let group = if is_title_enough { "" } else { &self.group };
        let parts = [group, &self.title, &self.column].into_iter();
        let parts = parts.filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn has_failed(&self, system: &str) -> bool {
        self.failures.iter().any(|failure| failure.system == system)
    }
}

/// Returns this program's command line, with file names instead of paths.
pub(crate) fn command_line() -> String {
    let words = env::args().map(|word| match word.rsplit_once('/') {
        Some((_, name)) => name.to_owned(),
        None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) fn write_to(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<()> {
    match path {
        Some(path) => fs::write(path, text()).with_context(|| path.display().to_string()),
        None => Ok(()),
    }
}

/// Returns whether a name contains one of the requested texts, or whether none was requested.
pub(crate) fn is_chosen(texts: &[String], name: &str) -> bool {
    texts.is_empty() || texts.iter().any(|text| name.contains(text))
}

/// Returns a progress bar for `runs` runs. It is visible only on a terminal.
pub(crate) fn progress(runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "[{elapsed} of about {duration}] {wide_bar} {pos}/{len} {msg}",
    );
    let bar = ProgressBar::new(runs as u64).with_finish(ProgressFinish::AndClear);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn list(lines: &[[String; 3]]) -> String {
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count() + 2);
        widths.max().unwrap_or_default()
    };
    let (first, second) = (width(0), width(1));
    let lines = lines.iter().map(|[name, title, targets]| {
        let line = format!("{name:first$}{title:second$}{targets}");
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// Returns a number of things with commas between groups of three digits.
pub(crate) fn count(number: usize) -> String {
    HumanCount(number as u64).to_string()
}
