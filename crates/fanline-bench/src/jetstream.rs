//! `fanline-bench jetstream`: storage on disk and in memory, Fanline compared with nats-server.

mod measure;
pub(crate) mod rows;

use anyhow::Result;

use crate::comparison::site::{Site, StoredComparison};
use measure::Stage;
use rows::ROWS;

const TITLE: &str = "JetStream: Fanline beside nats-server";

pub(crate) fn run(arguments: &StoredComparison) -> Result<()> {
    let comparison = &arguments.comparison;
    comparison.run(TITLE, ROWS, &[], Vec::new(), |run, row| {
        let site = Site::new(&arguments.dir)?;
        run.measure(row, |program, duration| {
            (row.work.measure)(&Stage {
                program,
                load: &row.work,
                site: &site,
                duration,
                quick: comparison.quick,
            })
        });
        run.note(row.work.note(row.title));
        Ok(())
    })
}
