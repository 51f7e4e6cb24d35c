//! The comparison of servers under the same loads: common options, and the measurement of a case.

pub(crate) mod cost;
pub(crate) mod one_core;
pub(crate) mod site;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;

use crate::report::behind::Rule;
use crate::report::metric::{Metric, Sample};
use crate::report::target::{Bound, Target, Unit, Verdict};
use crate::report::{self, Failure, Kind, Output, Report, Row};
use crate::servers::{Program, System, binaries, process};

/// Rows and servers to compare, number and length of measurements, and output files.
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
    /// nats-server binary to measure instead of the pinned version, which `go install` installs
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// Fanline binary to measure instead of the one next to this program, which is built if missing
    #[arg(long, value_name = "PATH")]
    fanline: Option<PathBuf>,
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
    /// Title in reports.
    pub(crate) title: &'static str,
    /// The generator's work.
    pub(crate) work: W,
    pub(crate) targets: &'static [Limit],
}

/// Returns a case.
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

/// The generator's work for a case.
pub(crate) trait Work {
    /// Returns how reports show the results.
    fn shown(&self) -> Shown;
}

/// The way in which reports show the results of a case.
pub(crate) struct Shown {
    /// Heading of the table.
    pub(crate) group: &'static str,
    /// Unit of [`Metric::Rate`].
    pub(crate) rate: &'static str,
    /// Metric of the plot.
    pub(crate) headline: Metric,
}

impl Shown {
    /// Returns the way in which reports show a rate.
    pub(crate) const fn rate(group: &'static str, rate: &'static str) -> Self {
        Self {
            group,
            rate,
            headline: Metric::Rate,
        }
    }

    /// Returns the same with another metric in the plot.
    pub(crate) const fn headline(self, headline: Metric) -> Self {
        Self { headline, ..self }
    }
}

/// The target for one of Fanline's results.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    metric: Metric,
    /// The server by whose result Fanline's result is divided.
    to: Option<System>,
    bound: Bound,
}

impl Limit {
    /// Returns the same target relative to mosquitto's result.
    pub(crate) const fn of_mosquitto(self) -> Self {
        Self {
            to: Some(System::Mosquitto),
            ..self
        }
    }

    /// Returns the same target independent of other servers.
    pub(crate) const fn alone(self) -> Self {
        Self { to: None, ..self }
    }

    fn unit(self) -> Unit {
        match self.to {
            Some(_) => Unit::Times,
            None => Unit::Of(self.metric),
        }
    }

    fn describe(self) -> String {
        let to = match self.to {
            Some(System::Mosquitto) => " mosquitto",
            _ => "",
        };
        let bound = self.bound.words(self.unit());
        format!("{} {bound}{to}", self.metric.label())
    }

    /// Returns the target with its result. If a run of Fanline failed, no target is met.
    fn check(self, row: &Row) -> Target {
        let own = System::Fanline.label();
        let measured = match self.to {
            Some(other) => row.ratio(own, other.label(), self.metric),
            None => row.value(own, self.metric),
        };
        let to = self.to.map(|to| format!(", to {}", to.label()));
        let metric = row.metric_title(self.metric);
        let what = format!("{}, {metric}{}", row.title, to.unwrap_or_default());
        let mut target = Target::new(what, vec![measured], self.bound, self.unit());
        if row.has_failed(own) {
            target.verdict = Verdict::Missed;
        }
        target
    }
}

/// Returns a target with a lower bound, as a multiple of nats-server's result.
pub(crate) const fn at_least(metric: Metric, least: f64) -> Limit {
    Limit {
        metric,
        to: Some(System::Nats),
        bound: Bound::AtLeast(least),
    }
}

/// Returns a target with an upper bound, as a multiple of nats-server's result.
pub(crate) const fn at_most(metric: Metric, most: f64) -> Limit {
    Limit {
        metric,
        to: Some(System::Nats),
        bound: Bound::AtMost(most),
    }
}

impl Comparison {
    /// Finds the servers and measures the requested cases, each by a call of `measure`. Then prints the report
    /// and writes the requested files. `others` returns servers in addition to nats-server and Fanline, and may
    /// add a note.
    pub(crate) fn run<W: Work>(
        &self,
        title: &str,
        cases: &'static [Case<W>],
        notes: &[&str],
        others: impl FnOnce(&mut Vec<String>) -> Result<Vec<Program>>,
        mut measure: impl FnMut(&mut Run, &'static Case<W>) -> Result<()>,
    ) -> Result<()> {
        if self.output.list {
            print!("{}", report::list(cases.iter().map(line)));
            return Ok(());
        }
        process::end_children_on_signals()?;
        let chosen = self.choose(cases)?;
        let mut notes: Vec<String> = notes.iter().copied().map(str::to_owned).collect();
        let others = others(&mut notes)?;
        let mut run = self.begin(title, chosen.len(), others)?;
        run.report.notes.extend(notes);
        for case in chosen {
            measure(&mut run, case)?;
        }
        run.progress.finish_and_clear();
        self.output.write(&run.report)
    }

    /// Returns the cases with the requested names, or all cases.
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
        let mut programs = self.programs()?;
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
                System::Nats | System::Mosquitto => Kind::Rival,
            };
            let command = program.command_line();
            let version = format!("{}, started as `{command}`", program.version);
            report.add_system(program.system.label(), kind, version);
        }
        report.notes.push(format!(
            "Medians of {rounds} rounds of about {seconds} s, order alternating, a fresh server process each time; the \
             load generator runs on the same cores."
        ));
        let runs = cases as u64 * u64::from(rounds) * programs.len() as u64;
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

/// Returns a case as a line of `--list`.
fn line<W>(case: &Case<W>) -> [String; 3] {
    let targets = case.targets.iter().map(|target| target.describe());
    let targets = targets.collect::<Vec<_>>().join(", ");
    [case.name.to_owned(), case.title.to_owned(), targets]
}

/// A report in progress.
pub(crate) struct Run {
    programs: Vec<Program>,
    rounds: u32,
    duration: Duration,
    progress: ProgressBar,
    report: Report,
}

impl Run {
    /// Measures one case on all servers in sequence.
    pub(crate) fn measure<W: Work>(
        &mut self,
        case: &Case<W>,
        mut measure: impl FnMut(&Program, Duration) -> Result<Sample>,
    ) {
        self.measure_where(case, |program, duration| {
            measure(program, duration).map(Some)
        });
    }

    /// Does the same as [`measure`](Self::measure), for cases that some servers do not support.
    pub(crate) fn measure_where<W: Work>(
        &mut self,
        case: &Case<W>,
        mut measure: impl FnMut(&Program, Duration) -> Result<Option<Sample>>,
    ) {
        let shown = case.work.shown();
        let mut row = Row {
            title: case.title.to_owned(),
            rate: shown.rate.to_owned(),
            headline: shown.headline,
            ..Row::new(case.name, shown.group)
        };
        let mut samples: Vec<(System, Sample)> = Vec::new();
        for round in 0..self.rounds {
            let mut order = self.programs.iter().collect::<Vec<_>>();
            // Alternating the order makes drift of the machine affect both servers equally.
            if round % 2 == 1 {
                order.reverse();
            }
            for program in order {
                let label = program.system.label();
                self.progress
                    .set_message(format!("{}: {label}", case.title));
                match measure(program, self.duration) {
                    Ok(sample) => samples.extend(sample.map(|sample| (program.system, sample))),
                    Err(error) => row.failures.push(Failure {
                        system: label.to_owned(),
                        error: format!("{error:#}"),
                    }),
                }
                self.progress.inc(1);
            }
        }
        self.record(&mut row, &samples);
        let targets = case.targets.iter().map(|target| target.check(&row));
        self.report.targets.extend(targets);
        self.report.rows.push(row);
    }

    /// Stores all samples of a row, and Fanline's ratios to the other servers.
    fn record(&self, row: &mut Row, samples: &[(System, Sample)]) {
        let metrics = samples.iter().flat_map(|(_, sample)| sample.metrics());
        let metrics: BTreeSet<Metric> = metrics.collect();
        for program in &self.programs {
            for metric in &metrics {
                let of_system = samples.iter().filter(|entry| entry.0 == program.system);
                let values = of_system.filter_map(|entry| entry.1.get(*metric));
                row.record_samples(program.system.label(), *metric, values.collect());
            }
        }
        let own = System::Fanline.label();
        let others = self.programs.iter().map(|program| program.system.label());
        for other in others.filter(|other| *other != own) {
            for metric in &metrics {
                let rule = match metric {
                    // This time does not measure a server.
                    Metric::GeneratorCpu => Rule::Never,
                    _ => Rule::Range,
                };
                row.compare(own, other, *metric, rule);
            }
        }
    }

    /// Adds a note, which is printed below the tables.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.report.notes.push(note.into());
    }
}

/// Returns no servers in addition to nats-server and Fanline.
pub(crate) fn no_others(_: &mut Vec<String>) -> Result<Vec<Program>> {
    Ok(Vec::new())
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
        check(crate::core_nats::shapes::SHAPES);
        check(crate::jetstream::rows::ROWS);
        check(crate::leaf::rows::ROWS);
        check(crate::mqtt::rows::ROWS);
        check(crate::transports::rows::ROWS);
    }

    #[test]
    fn failed_run_of_fanline_misses_targets() {
        let target = at_most(Metric::Ready, 2.0);
        let mut row = Row::new("row", "group");
        for (system, value) in [(System::Fanline, 3.0), (System::Nats, 2.0)] {
            row.record_value(system.label(), Metric::Ready, value);
        }
        assert_eq!(target.check(&row).verdict, Verdict::Met);
        assert_eq!(target.alone().check(&row).verdict, Verdict::Missed);
        assert_eq!(target.of_mosquitto().check(&row).verdict, Verdict::Unknown);
        row.failures.push(Failure {
            system: System::Fanline.label().to_owned(),
            error: String::new(),
        });
        assert_eq!(target.check(&row).verdict, Verdict::Missed);
    }
}
