//! The comparison of servers under the same loads: common options, and the measurement of a case.

pub(crate) mod cost;
pub(crate) mod site;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;

use crate::report::behind::Rule;
use crate::report::metric::{Metric, Sample};
use crate::report::target::Limit;
use crate::report::{self, Kind, Output, Report, Row};
use crate::servers::binaries::Binaries;
use crate::servers::{Program, System, process};
use crate::turns;

#[derive(Args)]
pub(crate) struct Comparison {
    /// Measure only this row; repeatable
    #[arg(long = "row", value_name = "NAME", alias = "shape")]
    rows: Vec<String>,
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
    #[command(flatten)]
    binaries: Binaries,
    /// Number of Fanline's shards instead of its default
    #[arg(long)]
    shards: Option<usize>,
    #[command(flatten)]
    output: Output,
}

/// One kind of load that all servers have.
pub(crate) struct Case<W> {
    /// Name on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) work: W,
    pub(crate) targets: &'static [Limit],
}

pub(crate) const fn case<W>(
    name: &'static str,
    title: &'static str,
    work: W,
    targets: &'static [Limit],
) -> Case<W> {
    Case {
        name,
        title,
        work,
        targets,
    }
}

pub(crate) trait Work {
    fn shown(&self) -> Shown;
}

/// The way in which reports show the results of a case.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    /// Heading of the table.
    pub(crate) group: &'static str,
    /// Unit of [`Metric::Rate`].
    pub(crate) rate: &'static str,
    pub(crate) headline: Metric,
}

impl Shown {
    pub(crate) const fn rate(group: &'static str, rate: &'static str) -> Self {
        Self {
            group,
            rate,
            headline: Metric::Rate,
        }
    }

    pub(crate) const fn headline(self, headline: Metric) -> Self {
        Self { headline, ..self }
    }
}

/// Returns a target with a lower bound, as a multiple of nats-server's result.
pub(crate) const fn at_least(metric: Metric, least: f64) -> Limit {
    Limit::at_least(metric, least).to(System::Nats.label())
}

/// Returns a target with an upper bound, as a multiple of nats-server's result.
pub(crate) const fn at_most(metric: Metric, most: f64) -> Limit {
    Limit::at_most(metric, most).to(System::Nats.label())
}

impl Comparison {
    /// Finds the servers and measures the requested cases, each by a call of `measure`. Then prints the report
    /// and writes the requested files. `others` are servers in addition to nats-server and Fanline.
    pub(crate) fn run<W: Work>(
        &self,
        title: &str,
        cases: &'static [Case<W>],
        notes: &[&str],
        others: Vec<Program>,
        mut measure: impl FnMut(&mut Run, &'static Case<W>) -> Result<()>,
    ) -> Result<()> {
        if self.output.lists(|| cases.iter().map(line).collect()) {
            return Ok(());
        }
        let chosen = self.choose(cases)?;
        let mut run = self.begin(title, chosen.len(), others)?;
        let notes = notes.iter().map(|note| (*note).to_owned());
        run.report.notes.extend(notes);
        for case in chosen {
            measure(&mut run, case)?;
        }
        run.progress.finish_and_clear();
        self.output.write(&run.report)
    }

    fn choose<W>(&self, cases: &'static [Case<W>]) -> Result<Vec<&'static Case<W>>> {
        if self.rows.is_empty() {
            return Ok(cases.iter().collect());
        }
        let find = |name: &String| {
            let found = cases.iter().find(|case| case.name == name);
            found.with_context(|| format!("no {name:?}; --list shows all names"))
        };
        self.rows.iter().map(find).collect()
    }

    fn begin(&self, title: &str, cases: usize, others: Vec<Program>) -> Result<Run> {
        let mut programs = Vec::new();
        if self.wants(System::Nats) {
            programs.push(self.nats_server()?);
        }
        if self.wants(System::Fanline) {
            programs.push(self.binaries.fanline(self.shards)?);
        }
        programs.extend(others.into_iter().filter(|other| self.wants(other.system)));
        process::raise_file_limit();
        let (rounds, seconds) = match self.quick {
            true => (3, 0.6),
            false => (self.pairs, self.seconds),
        };
        let mut report = Report::new(title);
        report.set("rounds", f64::from(rounds));
        report.set("seconds", seconds);
        for program in &programs {
            let kind = match program.system {
                System::Fanline => Kind::Own,
                System::Nats | System::NatsSynced | System::Mosquitto => Kind::Rival,
            };
            let command = program.command_line();
            let version = format!("{}, started as `{command}`", program.version);
            report.add_system(program.system.label(), kind, version);
        }
        report.notes.push(format!(
            "Medians of {rounds} rounds of about {seconds} s, order alternating, a fresh server process each time; the \
             load generator runs on the same cores."
        ));
        let runs = cases * rounds as usize * programs.len();
        Ok(Run {
            programs,
            rounds,
            duration: Duration::try_from_secs_f64(seconds).context("--seconds")?,
            progress: report::progress(runs),
            report,
        })
    }

    /// Returns nats-server for use as a part of the tested system, in addition to the compared servers. For
    /// example, it is the hub to which each compared leaf node connects.
    pub(crate) fn nats_server(&self) -> Result<Program> {
        self.binaries.nats_server()
    }

    pub(crate) fn wants(&self, system: System) -> bool {
        self.only.is_none_or(|only| only == system)
    }
}

fn line<W>(case: &Case<W>) -> [String; 3] {
    let [name, title] = [case.name, case.title].map(str::to_owned);
    [name, title, Limit::list(case.targets)]
}

pub(crate) struct Run {
    programs: Vec<Program>,
    rounds: u32,
    duration: Duration,
    progress: ProgressBar,
    report: Report,
}

impl Run {
    /// Measures one case on all servers in alternating order. `measure` may return `None` for a server that does
    /// not support the case.
    pub(crate) fn measure<W: Work, S: Into<Option<Sample>>>(
        &mut self,
        case: &Case<W>,
        measure: impl FnMut(&Program, Duration) -> Result<S>,
    ) {
        self.measure_often(case, 1, measure);
    }

    /// Does the same as [`measure`](Self::measure), with `times` as many rounds.
    pub(crate) fn measure_often<W: Work, S: Into<Option<Sample>>>(
        &mut self,
        case: &Case<W>,
        times: u32,
        mut measure: impl FnMut(&Program, Duration) -> Result<S>,
    ) {
        let rounds = self.rounds * times;
        let more = (rounds - self.rounds) as usize * self.programs.len();
        self.progress.inc_length(more as u64);
        let shown = case.work.shown();
        let mut row = Row {
            title: case.title.to_owned(),
            rate: shown.rate.to_owned(),
            headline: shown.headline,
            ..Row::new(case.name, shown.group)
        };
        let mut samples: Vec<(System, Sample)> = Vec::new();
        for index in turns::order(rounds, self.programs.len()) {
            let program = &self.programs[index];
            let label = program.system.label();
            self.progress
                .set_message(format!("{}: {label}", case.title));
            match measure(program, self.duration) {
                Ok(sample) => {
                    let sample = sample.into();
                    samples.extend(sample.map(|sample| (program.system, sample)));
                }
                Err(error) => row.fail(label, format!("{error:#}")),
            }
            self.progress.inc(1);
        }
        self.record(&mut row, &samples);
        let own = System::Fanline.label();
        let targets = case.targets.iter().map(|target| target.check(&row, own));
        self.report.targets.extend(targets);
        self.report.rows.push(row);
    }

    fn record(&self, row: &mut Row, samples: &[(System, Sample)]) {
        let metrics = samples.iter().flat_map(|(_, sample)| sample.metrics());
        let metrics: BTreeSet<Metric> = metrics.collect();
        let systems = self.programs.iter().map(|program| program.system);
        for system in systems.clone() {
            for metric in &metrics {
                let of_system = samples.iter().filter(|entry| entry.0 == system);
                let values = of_system.filter_map(|entry| entry.1.get(*metric));
                row.record_samples(system.label(), *metric, values.collect());
            }
        }
        for other in systems.filter(|other| *other != System::Fanline) {
            for metric in &metrics {
                let rule = match metric {
                    // This time does not measure a server.
                    Metric::GeneratorCpu | Metric::Sync => Rule::Never,
                    _ => Rule::Range,
                };
                row.compare(System::Fanline.label(), other.label(), *metric, rule);
            }
        }
    }

    pub(crate) fn note(&mut self, note: String) {
        self.report.notes.push(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<W>(cases: &[Case<W>]) {
        for (index, case) in cases.iter().enumerate() {
            assert!(cases[..index].iter().all(|other| other.name != case.name));
        }
    }

    #[test]
    fn row_names_are_unique() {
        check(crate::core_nats::SHAPES);
        check(crate::jetstream::rows::ROWS);
        check(crate::leaf::rows::ROWS);
        check(crate::mqtt::rows::ROWS);
        check(crate::replicated::rows::ROWS);
        check(crate::transports::ROWS);
    }
}
