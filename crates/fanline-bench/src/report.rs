//! What the measurements say, for a terminal, Markdown, a plot and other programs.

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

/// All that one invocation has measured, and on what.
pub(crate) struct Report {
    /// What is compared.
    pub(crate) title: &'static str,
    pub(crate) machine: Machine,
    /// How this was asked for.
    pub(crate) command: String,
    pub(crate) programs: Vec<Program>,
    pub(crate) pairs: u32,
    pub(crate) duration: Duration,
    pub(crate) rows: Vec<Row>,
    /// What else is to be known of these figures.
    pub(crate) remarks: Vec<String>,
}

impl Report {
    /// A report without rows yet.
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

    /// The servers, in the order of their columns.
    pub(crate) fn columns(&self) -> Vec<System> {
        let measured = self.programs.iter().map(|program| program.system);
        let others = measured.filter(|system| !System::USUAL.contains(system));
        System::USUAL.into_iter().chain(others).collect()
    }
}

/// What is measured, as reports show it.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    /// As the command line takes it.
    pub(crate) name: &'static str,
    /// As reports print it.
    pub(crate) title: &'static str,
    /// What [`Metric::Rate`] counts.
    pub(crate) rate: &'static str,
    /// What a plot shows.
    pub(crate) headline: Metric,
    pub(crate) targets: &'static [Target],
}

/// What Fanline should reach in one figure.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) metric: Metric,
    pub(crate) of: Of,
    pub(crate) bound: Bound,
}

/// What a target bounds.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Of {
    /// Fanline's median divided by nats-server's.
    Ratio,
    /// Fanline's median, whatever nats-server gives.
    Fanline,
    /// Fanline's median divided by mosquitto's.
    #[serde(rename = "ratio to mosquitto")]
    RatioToMosquitto,
}

/// At least so many times what nats-server gives.
pub(crate) const fn at_least(metric: Metric, ratio: f64) -> Target {
    let (of, bound) = (Of::Ratio, Bound::AtLeast(ratio));
    Target { metric, of, bound }
}

/// At least so many times what mosquitto gives.
pub(crate) const fn at_least_of_mosquitto(metric: Metric, ratio: f64) -> Target {
    let (of, bound) = (Of::RatioToMosquitto, Bound::AtLeast(ratio));
    Target { metric, of, bound }
}

/// At most so many times what nats-server takes.
pub(crate) const fn at_most(metric: Metric, ratio: f64) -> Target {
    let (of, bound) = (Of::Ratio, Bound::AtMost(ratio));
    Target { metric, of, bound }
}

/// At least this, whatever nats-server gives.
pub(crate) const fn alone_at_least(metric: Metric, value: f64) -> Target {
    let (of, bound) = (Of::Fanline, Bound::AtLeast(value));
    Target { metric, of, bound }
}

/// At most this, whatever nats-server takes.
pub(crate) const fn alone_at_most(metric: Metric, value: f64) -> Target {
    let (of, bound) = (Of::Fanline, Bound::AtMost(value));
    Target { metric, of, bound }
}

/// One case's samples.
pub(crate) struct Row {
    pub(crate) case: Case,
    samples: Vec<(System, Sample)>,
    /// Runs that gave no figure, and why.
    pub(crate) failures: Vec<(System, String)>,
}

/// What one run gave.
pub(crate) enum Outcome {
    /// Figures.
    Measured(Sample),
    /// None, and why.
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

/// Which side is good.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    /// Whether `measured` is good enough.
    pub(crate) fn is_met(self, measured: f64) -> bool {
        match self {
            Self::AtLeast(least) => measured >= least,
            Self::AtMost(most) => measured <= most,
        }
    }
}

impl Target {
    /// The bound in words.
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

/// Whether a target was reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// One of the servers was not measured, or failed.
    Unknown,
}

impl Verdict {
    /// As reports print it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Unknown => "unknown",
        }
    }
}

impl Row {
    /// A row without samples yet.
    pub(crate) fn new(case: Case) -> Self {
        Self {
            case,
            samples: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Takes the outcome of one run.
    pub(crate) fn add(&mut self, system: System, outcome: Outcome) {
        match outcome {
            Outcome::Measured(sample) => self.samples.push((system, sample)),
            Outcome::Failed(why) => self.failures.push((system, why)),
        }
    }

    /// The samples of one server.
    pub(crate) fn samples(&self, system: System) -> impl Iterator<Item = &Sample> {
        let of_system = self.samples.iter().filter(move |entry| entry.0 == system);
        of_system.map(|entry| &entry.1)
    }

    /// Median and spread of one server.
    pub(crate) fn summary(&self, system: System, metric: Metric) -> Option<Summary> {
        Summary::of(self.samples(system).filter_map(|sample| sample.get(metric)))
    }

    /// Fanline's median divided by nats-server's.
    pub(crate) fn ratio(&self, metric: Metric) -> Option<f64> {
        self.ratio_to(System::Nats, metric)
    }

    /// Fanline's median divided by that of another.
    pub(crate) fn ratio_to(&self, other: System, metric: Metric) -> Option<f64> {
        let fanline = self.summary(System::Fanline, metric)?.median;
        Some(fanline / self.summary(other, metric)?.median)
    }

    /// What Fanline should reach in one figure.
    pub(crate) fn targets(&self, metric: Metric) -> impl Iterator<Item = Target> {
        let targets = self.case.targets.iter().copied();
        targets.filter(move |target| target.metric == metric)
    }

    /// What a figure is called here, with what it counts.
    pub(crate) fn figure(&self, metric: Metric) -> &'static str {
        match metric {
            Metric::Rate => self.case.rate,
            metric => metric.label(),
        }
    }

    /// What a target is about.
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

    /// Whether `target` was reached. A run of Fanline that failed is no target reached.
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

/// How many targets were met, missed and left open.
pub(crate) fn verdicts(report: &Report) -> String {
    let rows = report.rows.iter();
    let all = rows.flat_map(|row| {
        let targets = row.case.targets.iter();
        targets.map(|target| row.verdict(*target))
    });
    format!("Targets: {}.", count(all))
}

/// "3 met, 2 missed, 1 unknown".
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

/// This program's own command line, with names of files instead of the folders they are in.
pub(crate) fn command_line() -> String {
    let words = env::args().map(|word| match word.rsplit_once('/') {
        Some((_, name)) => name.to_owned(),
        None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Writes `text` to the file that was asked for, if one was.
pub(crate) fn write_to(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<()> {
    match path {
        Some(path) => fs::write(path, text()).with_context(|| path.display().to_string()),
        None => Ok(()),
    }
}

/// A bar that counts `runs`, shown on a terminal only.
pub(crate) fn progress(runs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "[{elapsed} of about {duration}] {wide_bar} {pos}/{len} {msg}",
    );
    let bar = ProgressBar::new(runs);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// The cases by name, with what Fanline should reach.
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

/// A target in words.
pub(crate) fn describe(target: Target) -> String {
    format!("{} {}", target.metric.label(), target.words())
}
