//! `fanline-bench replicated`: streams with three replicas, on three servers of each kind on this machine.

mod idle;
mod measure;
pub(crate) mod rows;
mod trio;

use anyhow::Result;

use crate::cluster::mesh;
use crate::comparison::site::{Site, StoredComparison};
use crate::servers::System;
use measure::Stage;
use rows::ROWS;

const TITLE: &str = "Replicated streams: three Fanline servers beside three nats-servers";

const NOTES: [&str; 4] = [
    "All streams have three replicas on disk. Fanline always syncs before an acknowledgement, nats-server every two minutes, and \"nats-server, synced\" before each.",
    "Clients connect to the server that leads their stream. CPU and memory are those of all three servers together.",
    "An outage is the time from the first failed publish to the acknowledgement of the first good one, after kill -9 of the stream's leader. The publisher is at another server, and publishes every 2 ms.",
    "Idle traffic is that of the whole machine over loopback. Items are created for at most a minute; the column \"elements\" has their number.",
];

pub(crate) fn run(arguments: &StoredComparison) -> Result<()> {
    let comparison = &arguments.comparison;
    let mut synced = comparison.nats_server()?;
    synced.system = System::NatsSynced;
    let mut notes: Vec<String> = NOTES.iter().map(|note| (*note).to_owned()).collect();
    for system in [System::Nats, System::NatsSynced, System::Fanline] {
        let config = mesh::store(system, "DIR");
        notes.push(format!("{}: `{}`.", system.label(), config.trim_end()));
    }
    let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
    comparison.run(TITLE, ROWS, &notes, vec![synced], |run, row| {
        let site = Site::new(&arguments.dir)?;
        let times = row.work.rounds(comparison.quick);
        run.measure_often(row, times, |program, duration| {
            measure::measure(
                row.work,
                &Stage {
                    program,
                    site: &site,
                    duration,
                    quick: comparison.quick,
                },
            )
        });
        Ok(())
    })
}
