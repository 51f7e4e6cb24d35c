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

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::report;
use crate::report::lines::{Line, OTHER, OWN, Section, document};
use crate::report::machine::Machine;
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
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a plot
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// A result and its target, which is a share of another result or an upper bound.
struct Row {
    result: Measurement,
    name: &'static str,
    target: Option<Target>,
}

enum Target {
    ShareOf(Measurement, f64),
    AtMost(f64),
}

const ROWS: &[Row] = &[
    Row {
        result: Measurement::Bare,
        name: "in process: a subject with one observer, messages/s",
        target: None,
    },
    Row {
        result: Measurement::Bound,
        name: "the same, bound to a server, no network subscriber",
        target: Some(Target::ShareOf(Measurement::Bare, 0.5)),
    },
    Row {
        result: Measurement::Observed,
        name: "the same, observed at the server's subject, in process",
        target: None,
    },
    Row {
        result: Measurement::Core,
        name: "to the network: a raw socket, 128 B, messages/s",
        target: None,
    },
    Row {
        result: Measurement::Slices,
        name: "to the network: a bound subject, in slices of 64",
        target: Some(Target::ShareOf(Measurement::Core, 0.8)),
    },
    Row {
        result: Measurement::Singles,
        name: "to the network: a bound subject, one by one",
        target: None,
    },
    Row {
        result: Measurement::Back,
        name: "round trip in the process, p50, ns",
        target: Some(Target::AtMost(3_000.0)),
    },
    Row {
        result: Measurement::AllTheWay,
        name: "round trip through the server, p50, ns",
        target: None,
    },
];

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut samples = vec![Vec::new(); ROWS.len()];
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for (row, samples) in ROWS.iter().zip(&mut samples) {
            samples.push(measure::measure(row.result, arguments.quick)?);
        }
    }
    let medians: Vec<[f64; 3]> = samples.into_iter().map(least_median_most).collect();
    let text = table(&medians, arguments.rounds);
    print!("{text}");
    report::write_to(arguments.markdown.as_deref(), || text.clone())?;
    report::write_to(arguments.plot.as_deref(), || plot(&medians))
}

/// Returns a plot of the medians that can be compared.
fn plot(medians: &[[f64; 3]]) -> String {
    let all: Vec<_> = ROWS
        .iter()
        .zip(medians.iter().map(|median| median[1]))
        .collect();
    let sections = [
        ("In process, messages a second", &all[..3]),
        ("To the network, messages a second", &all[3..6]),
        ("Round trip, nanoseconds: less is better", &all[6..]),
    ];
    let sections = sections.map(|(heading, rows)| {
        let most = rows
            .iter()
            .map(|row| row.1)
            .fold(f64::MIN_POSITIVE, f64::max);
        let lines = rows.iter().map(|(row, value)| Line {
            name: row.name.to_owned(),
            share: value / most,
            words: format!("{value:.0}"),
            fill: match row.result {
                Measurement::Bare | Measurement::Core => OTHER,
                _ => OWN,
            },
        });
        Section {
            heading: heading.to_owned(),
            lines: lines.collect(),
        }
    });
    let Machine { cores, cpu, kernel } = Machine::read();
    let footer = format!("{cores} cores, {cpu}, Linux {kernel}; medians");
    document(
        "The bridge",
        "each part drawn to its longest bar",
        &sections,
        &footer,
    )
}

fn least_median_most(mut samples: Vec<f64>) -> [f64; 3] {
    samples.sort_by(f64::total_cmp);
    [
        samples[0],
        samples[samples.len() / 2],
        samples[samples.len() - 1],
    ]
}

fn table(medians: &[[f64; 3]], rounds: u32) -> String {
    let machine = Machine::read();
    let mut text = String::from(
        "# The bridge\n\n| what | median | min..max | target | verdict |\n| --- | --- | --- | --- | --- |\n",
    );
    let median = |result: Measurement| {
        let at = ROWS.iter().position(|row| row.result == result);
        at.map_or(f64::NAN, |at| medians[at][1])
    };
    let mut verdicts = Vec::new();
    for (row, [least, middle, most]) in ROWS.iter().zip(medians) {
        let (target, is_met) = match row.target {
            None => (String::new(), None),
            Some(Target::AtMost(most)) => (format!("≤ {most:.0}"), Some(*middle <= most)),
            Some(Target::ShareOf(other, share)) => {
                let reached = middle / median(other);
                let target = format!("{:.0} % of it, ≥ {:.0} %", reached * 100.0, share * 100.0);
                (target, Some(reached >= share))
            }
        };
        let verdict = is_met.map_or("", |is_met| if is_met { "met" } else { "MISSED" });
        verdicts.extend(is_met);
        let name = row.name;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {name} | {middle:.0} | {least:.0}..{most:.0} | {target} | {verdict} |"
        );
    }
    let Machine { cores, cpu, kernel } = machine;
    let met = verdicts.iter().filter(|is_met| **is_met).count();
    let missed = verdicts.len() - met;
    let _ = writeln!(text, "\n- Targets: {met} met, {missed} missed.");
    let _ = writeln!(
        text,
        "- {rounds} rounds, on {cores} × {cpu}, Linux {kernel}. Server, publisher and subscriber share the machine \
         and the process. Command: `cargo run --release -p fanline-bench -- bridge`"
    );
    text
}
