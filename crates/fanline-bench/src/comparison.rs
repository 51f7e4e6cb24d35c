//! The comparison of servers under the same loads: common options, and the measurement of a case.

pub(crate) mod cost;
pub(crate) mod one_core;
pub(crate) mod site;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;

use crate::report::metric::Sample;
use crate::report::{self, Case, Outcome, Report, Row};
use crate::servers::{Program, System, binaries, process};

/// Servers to compare, number and length of measurements, and output files.
#[derive(Args)]
pub(crate) struct Comparison {
    /// Number of rounds; each measures every server in alternating order, each time in a new process
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Target length of one measurement
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Three rounds of 0.6 seconds, about two minutes in total
    #[arg(long, conflicts_with_all = ["pairs", "seconds"])]
    pub(crate) quick: bool,
    /// Measure only one server
    #[arg(long)]
    only: Option<System>,
    /// nats-server binary to measure instead of the pinned version, which `go install` installs
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// Fanline binary to measure instead of the one next to this program, which is built if missing
    #[arg(long, value_name = "PATH")]
    fanline: Option<PathBuf>,
    /// Number of Fanline's shards instead of its default
    #[arg(long)]
    shards: Option<usize>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a plot
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write every sample
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Comparison {
    /// Finds the servers and starts a report on about `cases` cases.
    pub(crate) fn begin(&self, title: &'static str, cases: usize) -> Result<Run<'_>> {
        self.begin_with(title, cases, Vec::new())
    }

    /// Does the same as [`begin`](Self::begin), with other servers in addition to the usual two.
    pub(crate) fn begin_with(
        &self,
        title: &'static str,
        cases: usize,
        others: Vec<Program>,
    ) -> Result<Run<'_>> {
        let mut programs = self.programs()?;
        programs.extend(others.into_iter().filter(|other| self.wants(other.system)));
        process::raise_file_limit();
        let (pairs, seconds) = if self.quick {
            (3, 0.6)
        } else {
            (self.pairs, self.seconds)
        };
        let duration = Duration::try_from_secs_f64(seconds).context("--seconds")?;
        let runs = cases as u64 * u64::from(pairs) * programs.len() as u64;
        Ok(Run {
            arguments: self,
            progress: report::progress(runs),
            report: Report::new(title, &programs, pairs, duration),
        })
    }

    /// Returns nats-server for use as a part of the tested system, in addition to the compared servers. For
    /// example, it is the hub to which each compared leaf node connects.
    pub(crate) fn nats_server(&self) -> Result<Program> {
        binaries::nats_server(self.nats_server.as_deref())
    }

    fn programs(&self) -> Result<Vec<Program>> {
        let mut programs = Vec::new();
        if self.wants(System::Nats) {
            programs.push(self.nats_server()?);
        }
        if self.wants(System::Fanline) {
            programs.push(binaries::fanline(self.fanline.as_deref(), self.shards)?);
        }
        Ok(programs)
    }

    /// Returns whether a server must be measured.
    pub(crate) fn wants(&self, system: System) -> bool {
        self.only.is_none_or(|only| only == system)
    }
}

/// A report in progress.
pub(crate) struct Run<'a> {
    arguments: &'a Comparison,
    progress: ProgressBar,
    report: Report,
}

impl Run<'_> {
    /// Measures one case on all servers in sequence.
    pub(crate) fn measure(
        &mut self,
        case: Case,
        mut measure: impl FnMut(&Program, Duration) -> Result<Sample>,
    ) {
        self.measure_where(case, |program, duration| {
            measure(program, duration).map(Some)
        });
    }

    /// Does the same as [`measure`](Self::measure), for cases that some servers do not support.
    pub(crate) fn measure_where(
        &mut self,
        case: Case,
        mut measure: impl FnMut(&Program, Duration) -> Result<Option<Sample>>,
    ) {
        let mut row = Row::new(case);
        for round in 0..self.report.pairs {
            let mut order = self.report.programs.iter().collect::<Vec<_>>();
            // Alternating the order makes drift of the machine affect both servers equally.
            if round % 2 == 1 {
                order.reverse();
            }
            for program in order {
                let message = format!("{}: {}", case.title, program.system.label());
                self.progress.set_message(message);
                if let Some(outcome) = measure(program, self.report.duration).transpose() {
                    row.add(program.system, Outcome::from(outcome));
                }
                self.progress.inc(1);
            }
        }
        self.report.rows.push(row);
    }

    /// Adds a remark, which is printed below the table.
    pub(crate) fn remark(&mut self, remark: impl Into<String>) {
        self.report.remarks.push(remark.into());
    }

    /// Prints the report and writes the requested files.
    pub(crate) fn finish(self) -> Result<()> {
        self.progress.finish_and_clear();
        let (arguments, report) = (self.arguments, &self.report);
        print!("{}", report::table::terminal(report));
        report::write_to(arguments.markdown.as_deref(), || {
            report::table::markdown(report)
        })?;
        report::write_to(arguments.svg.as_deref(), || report::svg::document(report))?;
        report::write_to(arguments.json.as_deref(), || {
            format!("{:#}\n", report::json::value(report))
        })
    }
}

/// Returns the members of `all` with the given names. Without names, returns all.
pub(crate) fn choose<T>(
    all: &'static [T],
    names: &[String],
    name_of: impl Fn(&T) -> &str,
) -> Result<Vec<&'static T>> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |name: &String| {
        let found = all.iter().find(|one| name_of(one) == name);
        found.with_context(|| format!("no {name:?}; --list shows all names"))
    };
    names.iter().map(find).collect()
}
