//! `fanline-bench leaf`: a leaf connection to a nats-server, with Fanline and with nats-server as the leaf
//! node.

mod link;
mod measure;
pub(crate) mod rows;

use anyhow::Result;

use crate::comparison::site::{Site, StoredComparison};
use crate::report::metric::{Metric, Summary};
use crate::servers::System;
use rows::ROWS;

const TITLE: &str = "A leaf link: Fanline beside nats-server";

const NOTES: [&str; 5] = [
    "The hub is nats-server in all rows. CPU and memory are those of the leaf.",
    "In the notes \"without a leaf\", the generator itself acts as the leaf, in the same rounds: the limit for a leaf without cost.",
    "In rows with compression, both sides of the link use s2_fast. Payloads repeat the alphabet, so these rows show the cost of compression and not its savings.",
    "A mirror is ready when the leaf reports all messages; interest is ready when a message arrives on the subject of the last subscription.",
    "Fanline syncs its mirror before it counts a record, nats-server every two minutes; both are the defaults.",
];

pub(crate) fn run(arguments: &StoredComparison) -> Result<()> {
    let comparison = &arguments.comparison;
    comparison.run(TITLE, ROWS, &NOTES, Vec::new(), |run, row| {
        let hub = comparison.nats_server()?;
        let site = Site::new(&arguments.dir)?;
        let mut bound = Bound::default();
        run.measure(row, |program, duration| {
            let quick = comparison.quick;
            let sample = measure::measure(&hub, program, &row.work, &site, duration, quick)?;
            if program.system == System::Nats {
                bound.with_nats.extend(sample.get(Metric::Rate));
                let without = measure::without_leaf(&hub, &row.work, &site, duration)?;
                bound.without.extend(without);
            }
            Ok(sample)
        });
        if let Some(note) = bound.note(row.title) {
            run.note(note);
        }
        Ok(())
    })
}

/// The upper bound for any leaf node is the rate of the hub without a leaf node (`without`). In each round,
/// this rate is measured right after the rate with nats-server as the leaf node (`with_nats`).
#[derive(Default)]
struct Bound {
    with_nats: Vec<f64>,
    without: Vec<f64>,
}

impl Bound {
    fn note(self, title: &str) -> Option<String> {
        let with_nats = Summary::of(self.with_nats.into_iter())?;
        let without = Summary::of(self.without.into_iter())?;
        let rate = |value| Metric::Rate.format(value);
        Some(format!(
            "{title}, without a leaf: {} ({}..{}), {:.2}× nats-server.",
            rate(without.median),
            rate(without.min),
            rate(without.max),
            without.median / with_nats.median
        ))
    }
}
