//! `fanline-bench cluster`: clusters of three servers on this machine, all Fanline, all nats-server, or mixed.

mod measure;
pub(crate) mod mesh;
pub(crate) mod rows;

use anyhow::Result;

use crate::comparison::site::{Site, StoredComparison};
use rows::ROWS;

const TITLE: &str = "A cluster of three servers: Fanline beside nats-server";

const NOTES: [&str; 4] = [
    "Messages are published at one server and received at another one, by many subscribers at all three. CPU and memory are those of all three servers together.",
    "In mixed rows the publisher's server is Fanline or nats-server, and the other two are nats-servers.",
    "A mesh is ready when a message passes between each two servers; the time includes the start of the three processes.",
    "Interest is ready when a server that joins passes a message to the subject of the last subscription; the time includes its start.",
];

pub(crate) fn run(arguments: &StoredComparison) -> Result<()> {
    let comparison = &arguments.comparison;
    comparison.run(TITLE, ROWS, &NOTES, Vec::new(), |run, row| {
        let others = comparison.nats_server()?;
        let site = Site::new(&arguments.dir)?;
        run.measure(row, |program, duration| {
            measure::measure(program, &others, &row.work, &site, duration)
        });
        Ok(())
    })
}
