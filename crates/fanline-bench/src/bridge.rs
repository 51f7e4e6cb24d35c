//! `fanline-bench bridge`: the cost of binding a subject to a server.
//!
//! The server, the publisher, and the subscribers are in this process. The network subscriber reads a socket
//! and counts bytes. There are three measurements, each compared with the same load without a bridge:
//!
//! - In process: a subject with one observer, unbound and bound to the server, without network subscribers.
//! - To the network: the messages of a bound subject to a network subscriber. The load without a bridge is a
//!   raw socket that writes full buffers to the same subscriber.
//! - Round trip: the time from before `next` on a bound subject until an observer of the server's subject is
//!   called.

mod measure;

use anyhow::Result;
use clap::Args;

use crate::report::behind::Rule;
use crate::report::metric::Metric;
use crate::report::target::{Bound, Target, Unit};
use crate::report::{self, Kind, Output, Report, Row};
use measure::Measurement;

/// Number of repetitions and output files.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Number of rounds; each round measures every result once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Measure with a tenth of the messages
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

/// A result, with the load and the system that it measures, and the target.
struct Entry {
    load: &'static Load,
    system: &'static str,
    kind: Kind,
    result: Measurement,
    limit: Option<Limit>,
}

/// A kind of load.
struct Load {
    name: &'static str,
    group: &'static str,
    metric: Metric,
}

/// A target: a minimum share of another system's result, or a maximum.
enum Limit {
    ShareOf(&'static str, f64),
    AtMost(f64),
}

const IN_PROCESS: &Load = &Load {
    name: "in-process",
    group: "In process, one observer",
    metric: Metric::Rate,
};
const TO_NETWORK: &Load = &Load {
    name: "to-network",
    group: "To the network, 128 B",
    metric: Metric::Rate,
};
const ROUND_TRIP: &Load = &Load {
    name: "round-trip",
    group: "Round trip",
    metric: Metric::P50,
};

const UNBOUND: &str = "unbound subject";
const SOCKET: &str = "raw socket";

const fn own(
    load: &'static Load,
    system: &'static str,
    result: Measurement,
    limit: Option<Limit>,
) -> Entry {
    Entry {
        load,
        system,
        kind: Kind::Own,
        result,
        limit,
    }
}

const fn reference(load: &'static Load, system: &'static str, result: Measurement) -> Entry {
    Entry {
        kind: Kind::Reference,
        ..own(load, system, result, None)
    }
}

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    reference(IN_PROCESS, UNBOUND, Measurement::Bare),
    own(IN_PROCESS, "bound, no network subscriber", Measurement::Bound, Some(Limit::ShareOf(UNBOUND, 0.5))),
    own(IN_PROCESS, "bound, observed at the server's subject", Measurement::Observed, None),
    reference(TO_NETWORK, SOCKET, Measurement::Core),
    own(TO_NETWORK, "bound, slices of 64", Measurement::Slices, Some(Limit::ShareOf(SOCKET, 0.8))),
    own(TO_NETWORK, "bound, one by one", Measurement::Singles, None),
    own(ROUND_TRIP, "in the process", Measurement::Back, Some(Limit::AtMost(3_000.0))),
    own(ROUND_TRIP, "through the server", Measurement::AllTheWay, None),
];

impl Entry {
    /// Returns the target with its result, which is in the row of the entry's load.
    fn target(&self, row: Option<&Row>) -> Option<Target> {
        let metric = self.load.metric;
        let (measured, bound, unit, to) = match *self.limit.as_ref()? {
            Limit::ShareOf(other, share) => {
                let measured = row.and_then(|row| row.ratio(self.system, other, metric));
                (
                    measured,
                    Bound::AtLeast(share),
                    Unit::Share,
                    format!(", to {other}"),
                )
            }
            Limit::AtMost(most) => {
                let measured = row.and_then(|row| row.value(self.system, metric));
                (
                    measured,
                    Bound::AtMost(most),
                    Unit::Of(metric),
                    String::new(),
                )
            }
        };
        let what = format!("{}: {}{to}", self.load.group, self.system);
        Some(Target::new(what, vec![measured], bound, unit))
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.output.list {
        let lines = ENTRIES.iter().map(|entry| {
            let target = entry.target(None).map(|target| target.bound());
            let (group, system) = (entry.load.group.to_owned(), entry.system.to_owned());
            [group, system, target.unwrap_or_default()]
        });
        print!("{}", report::list(lines));
        return Ok(());
    }
    let mut samples = vec![Vec::new(); ENTRIES.len()];
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for (entry, samples) in ENTRIES.iter().zip(&mut samples) {
            samples.push(measure::measure(entry.result, arguments.quick)?);
        }
    }
    arguments.output.write(&report(arguments.rounds, samples))
}

fn report(rounds: u32, samples: Vec<Vec<f64>>) -> Report {
    let mut report = Report::new("The bridge");
    report.set("rounds", f64::from(rounds));
    report.notes.push(format!(
        "Medians of {rounds} round(s). Server, publisher and subscriber share the machine and the process."
    ));
    for load in [IN_PROCESS, TO_NETWORK, ROUND_TRIP] {
        report.rows.push(Row {
            headline: load.metric,
            ..Row::new(load.name, load.group)
        });
    }
    for (entry, samples) in ENTRIES.iter().zip(samples) {
        let Entry {
            load, system, kind, ..
        } = entry;
        report.add_system(system, *kind, "");
        let row = report.rows.iter_mut().find(|row| row.name == load.name);
        if let Some(row) = row {
            row.record_samples(system, load.metric, samples);
            if let Some(Limit::ShareOf(other, _)) = entry.limit {
                row.compare(system, other, load.metric, Rule::Never);
            }
        }
        let target = entry.target(report.row(load.name));
        report.targets.extend(target);
    }
    report
}
