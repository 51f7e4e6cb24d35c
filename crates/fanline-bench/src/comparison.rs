//! Two servers under the same loads, in turn: what all such subcommands take, and how a case is run.

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

/// Which servers, how often and for how long, and where the figures go.
#[derive(Args)]
pub(crate) struct Comparison {
    /// Rounds; each measures both servers, in alternating order, each time in a fresh process
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Length that one measurement aims at
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Three rounds of 0.6 seconds: about two minutes in all
    #[arg(long, conflicts_with_all = ["pairs", "seconds"])]
    pub(crate) quick: bool,
    /// Measure one server alone
    #[arg(long)]
    only: Option<System>,
    /// nats-server to measure, instead of the pinned version, which is installed by `go install`
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// Fanline to measure, instead of the one beside this program, which is built when missing
    #[arg(long, value_name = "PATH")]
    fanline: Option<PathBuf>,
    /// Shards of Fanline, instead of its default
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
    /// Finds the servers and starts a report on about so many cases.
    pub(crate) fn begin(&self, title: &'static str, cases: usize) -> Result<Run<'_>> {
        let programs = self.programs()?;
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

    /// nats-server, for a part in which both are compared beside it.
    pub(crate) fn nats_server(&self) -> Result<Program> {
        binaries::nats_server(self.nats_server.as_deref())
    }

    fn programs(&self) -> Result<Vec<Program>> {
        let wanted = System::ALL
            .into_iter()
            .filter(|system| self.only.is_none_or(|only| only == *system));
        wanted
            .map(|system| match system {
                System::Nats => self.nats_server(),
                System::Fanline => binaries::fanline(self.fanline.as_deref(), self.shards),
            })
            .collect()
    }
}

/// A report while it is made.
pub(crate) struct Run<'a> {
    arguments: &'a Comparison,
    progress: ProgressBar,
    report: Report,
}

impl Run<'_> {
    /// Measures one case on all servers in turn.
    pub(crate) fn measure(
        &mut self,
        case: Case,
        mut measure: impl FnMut(&Program, Duration) -> Result<Sample>,
    ) {
        let mut row = Row::new(case);
        for round in 0..self.report.pairs {
            let mut order = self.report.programs.iter().collect::<Vec<_>>();
            // So that what drifts on the machine meets both alike.
            if round % 2 == 1 {
                order.reverse();
            }
            for program in order {
                let message = format!("{}: {}", case.title, program.system.label());
                self.progress.set_message(message);
                let outcome: Outcome = measure(program, self.report.duration).into();
                row.add(program.system, outcome);
                self.progress.inc(1);
            }
        }
        self.report.rows.push(row);
    }

    /// Adds to what is said below the table.
    pub(crate) fn remark(&mut self, remark: impl Into<String>) {
        self.report.remarks.push(remark.into());
    }

    /// Prints and writes what was asked for.
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

/// Those of `all` that are named; all when none is.
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
        found.with_context(|| format!("no {name:?}; --list shows what there is"))
    };
    names.iter().map(find).collect()
}
