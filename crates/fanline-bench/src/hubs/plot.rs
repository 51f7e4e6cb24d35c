//! A plot of the cells with the largest buffer. Each number of consumers has a group of bars.

use super::load::{Cell, Load};
use super::measure::{Measurement, Report, Row};
use super::targets::count;
use crate::report::groups::{self, Bar, Group};
use crate::report::metric::Metric;

/// Returns the plot as an SVG document.
pub(super) fn document(report: &Report) -> String {
    let cells = report.rows.iter().filter_map(|row| match row.load {
        Load::Lockstep(cell) => Some((cell, row)),
        _ => None,
    });
    let cells: Vec<(Cell, &Row)> = cells.collect();
    let largest = cells.iter().map(|(cell, _)| cell.buffer).max();
    let drawn = cells
        .into_iter()
        .filter(|(cell, _)| Some(cell.buffer) == largest);
    let groups: Vec<Group> = drawn.map(|(cell, row)| group(cell, row)).collect();
    let machine = &report.machine;
    let footer = format!(
        "{} cores, {}, Linux {}; buffer {}; medians of {} rounds, each group drawn to its longest bar",
        machine.cores,
        machine.cpu,
        machine.kernel,
        largest.unwrap_or_default(),
        report.plan.rounds
    );
    let title = "Broadcast hub: deliveries per second, more is better";
    groups::document(title, &groups, &footer)
}

fn group(cell: Cell, row: &Row) -> Group {
    let results = row.results.iter();
    Group {
        title: format!("{} consumers", count(cell.consumers)),
        caption: match cell.threads {
            1 => "one thread".to_owned(),
            count => format!("{count} threads"),
        },
        bars: results.map(|result| bar(cell, result)).collect(),
    }
}

fn bar(cell: Cell, result: &Measurement) -> Bar {
    let deliveries = result.value.median * cell.consumers as f64;
    Bar {
        label: result.system.name(),
        value: deliveries,
        words: Metric::Rate.format(deliveries),
        fill: if result.system.is_rival() {
            "#9aa5b1"
        } else {
            "#1f7a8c"
        },
    }
}
