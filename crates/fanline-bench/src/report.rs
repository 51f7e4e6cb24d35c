//! Reports of the measurements for a terminal, in Markdown, as a plot, and as JSON.

pub(crate) mod behind;
pub(crate) mod groups;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod machine;
pub(crate) mod metric;
pub(crate) mod svg;
pub(crate) mod table;
pub(crate) mod versions;

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::servers::{Program, System};
use machine::Machine;
use metric::{Metric, Sample, Summary};

/// All results of one invocation, and the machine on which they were measured.
pub(crate) struct Report {
    /// Title of the comparison.
    pub(crate) title: &'static str,
    pub(crate) machine: Machine,
    /// Command line of the run.
    pub(crate) command: String,
    pub(crate) programs: Vec<Program>,
    pub(crate) pairs: u32,
    pub(crate) duration: Duration,
    pub(crate) rows: Vec<Row>,
    /// Further notes on the results.
    pub(crate) remarks: Vec<String>,
}

impl Report {
    /// Creates a report without rows.
    pub(crate) fn new(
        title: &'static str,
        programs: &[Program],
        pairs: u32,
        duration: Duration,
    ) -> Self {
        Self {
            title,
            machine: Machine::read(),
            command: command_line(),
            programs: programs.to_vec(),
            pairs,
            duration,
            rows: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Returns the servers in the order of their columns.
    pub(crate) fn columns(&self) -> Vec<System> {
        let measured = self.programs.iter().map(|program| program.system);
        let others = measured.filter(|system| !System::DEFAULT.contains(system));
        System::DEFAULT.into_iter().chain(others).collect()
    }
}

/// A measured case as it appears in reports.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Title in reports.
    pub(crate) title: &'static str,
    /// Unit of [`Metric::Rate`].
    pub(crate) rate: &'static str,
    /// Metric of the plot.
    pub(crate) headline: Metric,
    pub(crate) targets: &'static [Target],
}

/// A target for one of Fanline's results.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) metric: Metric,
    pub(crate) of: Of,
    pub(crate) bound: Bound,
}

/// The quantity that a target bounds.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Of {
    /// Fanline's median divided by nats-server's.
    Ratio,
    /// Fanline's median, independent of nats-server.
    Fanline,
    /// Fanline's median divided by mosquitto's.
    #[serde(rename = "ratio to mosquitto")]
    RatioToMosquitto,
}

/// Returns a target with a lower bound, as a multiple of nats-server's result.
pub(crate) const fn at_least(metric: Metric, ratio: f64) -> Target {
    let (of, bound) = (Of::Ratio, Bound::AtLeast(ratio));
    Target { metric, of, bound }
}

/// Returns a target with a lower bound, as a multiple of mosquitto's result.
pub(crate) const fn at_least_of_mosquitto(metric: Metric, ratio: f64) -> Target {
    let (of, bound) = (Of::RatioToMosquitto, Bound::AtLeast(ratio));
    Target { metric, of, bound }
}

/// Returns a target with an upper bound, as a multiple of nats-server's result.
pub(crate) const fn at_most(metric: Metric, ratio: f64) -> Target {
    let (of, bound) = (Of::Ratio, Bound::AtMost(ratio));
    Target { metric, of, bound }
}

/// Returns a target with a lower bound that does not depend on nats-server.
pub(crate) const fn alone_at_least(metric: Metric, value: f64) -> Target {
    let (of, bound) = (Of::Fanline, Bound::AtLeast(value));
    Target { metric, of, bound }
}

/// Returns a target with an upper bound that does not depend on nats-server.
pub(crate) const fn alone_at_most(metric: Metric, value: f64) -> Target {
    let (of, bound) = (Of::Fanline, Bound::AtMost(value));
    Target { metric, of, bound }
}

/// The samples of one case.
pub(crate) struct Row {
    pub(crate) case: Case,
    samples: Vec<(System, Sample)>,
    /// The failed runs, with their errors.
    pub(crate) failures: Vec<(System, String)>,
}

/// The result of one run.
pub(crate) enum Outcome {
    /// Measurements.
    Measured(Sample),
    /// Error of a failed run.
    Failed(String),
}

impl From<Result<Sample>> for Outcome {
    fn from(result: Result<Sample>) -> Self {
        match result {
            Ok(sample) => Self::Measured(sample),
            Err(error) => Self::Failed(format!("{error:#}")),
        }
    }
}

/// Whether a bound is a lower or an upper bound.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    /// Returns whether `measured` satisfies the bound.
    pub(crate) fn is_met(self, measured: f64) -> bool {
        match self {
            Self::AtLeast(least) => measured >= least,
            Self::AtMost(most) => measured <= most,
        }
    }
}

impl Target {
    /// Returns the bound as text.
    pub(crate) fn words(self) -> String {
        let (sign, value) = match self.bound {
            Bound::AtLeast(least) => ("≥", least),
            Bound::AtMost(most) => ("≤", most),
        };
        match self.of {
            Of::Ratio => format!("{sign} {value}×"),
            Of::RatioToMosquitto => format!("{sign} {value}× mosquitto"),
            Of::Fanline => format!("{sign} {}", self.metric.format(value)),
        }
    }
}

/// Whether a target was met.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// Unknown, because a server was not measured or failed.
    Unknown,
}

impl Verdict {
    /// Returns the text that reports contain.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Unknown => "unknown",
        }
    }
}

impl Row {
    /// Creates a row without samples.
    pub(crate) fn new(case: Case) -> Self {
        Self {
            case,
            samples: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Adds the outcome of one run.
    pub(crate) fn add(&mut self, system: System, outcome: Outcome) {
        match outcome {
            Outcome::Measured(sample) => self.samples.push((system, sample)),
            Outcome::Failed(why) => self.failures.push((system, why)),
        }
    }

    /// Returns the samples of one server.
    pub(crate) fn samples(&self, system: System) -> impl Iterator<Item = &Sample> {
        let of_system = self.samples.iter().filter(move |entry| entry.0 == system);
        of_system.map(|entry| &entry.1)
    }

    /// Returns the median and spread of one server's result.
    pub(crate) fn summary(&self, system: System, metric: Metric) -> Option<Summary> {
        Summary::of(self.samples(system).filter_map(|sample| sample.get(metric)))
    }

    /// Returns Fanline's median divided by nats-server's.
    pub(crate) fn ratio(&self, metric: Metric) -> Option<f64> {
        self.ratio_to(System::Nats, metric)
    }

    /// Returns Fanline's median divided by that of another server.
    pub(crate) fn ratio_to(&self, other: System, metric: Metric) -> Option<f64> {
        let fanline = self.summary(System::Fanline, metric)?.median;
        Some(fanline / self.summary(other, metric)?.median)
    }

    /// Returns the targets of one metric.
    pub(crate) fn targets(&self, metric: Metric) -> impl Iterator<Item = Target> {
        let targets = self.case.targets.iter().copied();
        targets.filter(move |target| target.metric == metric)
    }

    /// Returns the name of a result in this row, including its unit.
    pub(crate) fn metric_title(&self, metric: Metric) -> &'static str {
        match metric {
            Metric::Rate => self.case.rate,
            metric => metric.label(),
        }
    }

    /// Returns the measured quantity that a target bounds.
    fn measured(&self, target: Target) -> Option<f64> {
        match target.of {
            Of::Ratio => self.ratio(target.metric),
            Of::RatioToMosquitto => self.ratio_to(System::Mosquitto, target.metric),
            Of::Fanline => {
                let summary = self.summary(System::Fanline, target.metric);
                summary.map(|summary| summary.median)
            }
        }
    }

    /// Returns whether `target` was met. If a run of Fanline failed, no target is met.
    pub(crate) fn verdict(&self, target: Target) -> Verdict {
        let fanline_failed = self.failures.iter().any(|entry| entry.0 == System::Fanline);
        match self.measured(target) {
            _ if fanline_failed => Verdict::Missed,
            Some(measured) if target.bound.is_met(measured) => Verdict::Met,
            Some(_) => Verdict::Missed,
            None => Verdict::Unknown,
        }
    }
}

/// Returns the numbers of met, missed, and unknown targets, as text.
pub(crate) fn verdicts(report: &Report) -> String {
    let rows = report.rows.iter();
    let all = rows.flat_map(|row| {
        let targets = row.case.targets.iter();
        targets.map(|target| row.verdict(*target))
    });
    format!("Targets: {}.", count(all))
}

/// Returns a text such as "3 met, 2 missed, 1 unknown".
pub(crate) fn count(verdicts: impl Iterator<Item = Verdict>) -> String {
    let all = verdicts.collect::<Vec<_>>();
    let count = |wanted| all.iter().filter(|verdict| **verdict == wanted).count();
    format!(
        "{} met, {} missed, {} unknown",
        count(Verdict::Met),
        count(Verdict::Missed),
        count(Verdict::Unknown)
    )
}

/// Returns this program's command line, with file names instead of paths.
pub(crate) fn command_line() -> String {
    let words = env::args().map(|word| match word.rsplit_once('/') {
        Some((_, name)) => name.to_owned(),
        None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Writes `text` to the requested file, if there is one.
pub(crate) fn write_to(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<()> {
    match path {
        Some(path) => fs::write(path, text()).with_context(|| path.display().to_string()),
        None => Ok(()),
    }
}

/// Returns a progress bar for `runs` runs. It is visible only on a terminal.
pub(crate) fn progress(runs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "[{elapsed} of about {duration}] {wide_bar} {pos}/{len} {msg}",
    );
    let bar = ProgressBar::new(runs);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Returns a list of the cases, with their names and targets.
pub(crate) fn list(cases: impl Iterator<Item = Case>) -> String {
    let mut text = String::new();
    for case in cases {
        let targets = case.targets.iter().map(|target| describe(*target));
        let targets = targets.collect::<Vec<_>>().join(", ");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:18}{:46}{targets}", case.name, case.title);
    }
    text
}

/// Returns a target as text.
pub(crate) fn describe(target: Target) -> String {
    format!("{} {}", target.metric.label(), target.words())
}
