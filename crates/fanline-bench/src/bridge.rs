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

use fanline_server::Auth;
use measure::{accounts, emit, emit_observed, raw_socket, round_trip, to_network, with_server};

use crate::report::behind::Rule;
use crate::report::metric::Metric;
use crate::report::target::{Bound, Target, Unit};
use crate::report::{Kind, Output, Report, Row};

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

/// A kind of load: name of its row, heading of its table, and metric.
type Load = (&'static str, &'static str, Metric);

/// A result, with the load and the system that it measures, and the target.
struct Entry {
    load: Load,
    system: &'static str,
    kind: Kind,
    /// Returns the result with the given divisor of the number of messages.
    measure: fn(u64) -> Result<f64>,
    target: Option<Against>,
}

/// A target: a minimum share of another system's result, or a maximum.
#[derive(Clone, Copy)]
enum Against {
    ShareOf(&'static str, f64),
    AtMost(f64),
}

const IN_PROCESS: Load = ("in-process", "In process, one observer", Metric::Rate);
const TO_NETWORK: Load = ("to-network", "To the network, 128 B", Metric::Rate);
const ROUND_TRIP: Load = ("round-trip", "Round trip", Metric::P50);

const MESSAGES: u64 = 4_000_000;
const ROUND_TRIPS: u64 = 100_000;

const UNBOUND: &str = "unbound subject";
const SOCKET: &str = "raw socket";

const fn own(
    load: Load,
    system: &'static str,
    measure: fn(u64) -> Result<f64>,
    target: Option<Against>,
) -> Entry {
    Entry {
        load,
        system,
        kind: Kind::Own,
        measure,
        target,
    }
}

const fn reference(load: Load, system: &'static str, measure: fn(u64) -> Result<f64>) -> Entry {
    Entry {
        kind: Kind::Reference,
        ..own(load, system, measure, None)
    }
}

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    reference(IN_PROCESS, UNBOUND, |share| Ok(emit(MESSAGES / share, None))),
    own(IN_PROCESS, "bound, no network subscriber", |share| {
        with_server(Auth::Open, |_, bridge| Ok(emit(MESSAGES / share, Some(bridge))))
    }, Some(Against::ShareOf(UNBOUND, 0.5))),
    own(IN_PROCESS, "bound, observed at the server's subject", |share| {
        with_server(Auth::Open, |_, bridge| emit_observed(bridge, MESSAGES / share))
    }, None),
    reference(TO_NETWORK, SOCKET, |share| {
        with_server(Auth::Open, |server, _| raw_socket(server, MESSAGES / share))
    }),
    own(TO_NETWORK, "bound, slices of 64", |share| {
        with_server(Auth::Open, |server, bridge| to_network(server, bridge, MESSAGES / share, 64))
    }, Some(Against::ShareOf(SOCKET, 0.8))),
    own(TO_NETWORK, "bound, one by one", |share| {
        with_server(Auth::Open, |server, bridge| to_network(server, bridge, MESSAGES / share, 1))
    }, None),
    own(ROUND_TRIP, "in the process", |share| {
        with_server(Auth::Open, |_, bridge| round_trip(bridge, ROUND_TRIPS / share))
    }, Some(Against::AtMost(3_000.0))),
    own(ROUND_TRIP, "through the server", |share| {
        with_server(accounts()?, |_, bridge| round_trip(bridge, ROUND_TRIPS / share / 10))
    }, None),
];

impl Entry {
    /// Returns the target with its result, which is in the row of the entry's load.
    fn target(&self, report: &Report) -> Option<Target> {
        let (name, group, metric) = self.load;
        let row = report.row(name);
        let what = format!("{group}: {}", self.system);
        Some(match self.target? {
            Against::ShareOf(other, share) => {
                let measured = row.and_then(|row| row.ratio(self.system, other, metric));
                let what = format!("{what}, to {other}");
                Target::new(what, vec![measured], Bound::AtLeast(share), Unit::Share)
            }
            Against::AtMost(most) => {
                let measured = row.and_then(|row| row.value(self.system, metric));
                Target::new(what, vec![measured], Bound::AtMost(most), Unit::Of(metric))
            }
        })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut report = Report::new("The bridge");
    let line = |entry: &Entry| {
        let target = entry.target(&report).map(|target| target.bound());
        let [group, system] = [entry.load.1, entry.system].map(str::to_owned);
        [group, system, target.unwrap_or_default()]
    };
    if arguments
        .output
        .lists(|| ENTRIES.iter().map(line).collect())
    {
        return Ok(());
    }
    let rounds = arguments.rounds;
    let divisor = if arguments.quick { 10 } else { 1 };
    let mut samples = vec![Vec::new(); ENTRIES.len()];
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (entry, samples) in ENTRIES.iter().zip(&mut samples) {
            samples.push((entry.measure)(divisor)?);
        }
    }
    report.set("rounds", f64::from(rounds));
    report.notes.push(format!(
        "Medians of {rounds} round(s). Server, publisher and subscriber share the machine and the process."
    ));
    for (name, group, headline) in [IN_PROCESS, TO_NETWORK, ROUND_TRIP] {
        let mut row = Row {
            headline,
            ..Row::new(name, group)
        };
        for (entry, samples) in ENTRIES.iter().zip(&samples) {
            if entry.load.0 != name {
                continue;
            }
            report.add_system(entry.system, entry.kind, "");
            row.record_samples(entry.system, headline, samples.clone());
            if let Some(Against::ShareOf(other, _)) = entry.target {
                row.compare(entry.system, other, headline, Rule::Never);
            }
        }
        report.rows.push(row);
    }
    let targets = ENTRIES.iter().filter_map(|entry| entry.target(&report));
    report.targets = targets.collect();
    arguments.output.write(&report)
}
