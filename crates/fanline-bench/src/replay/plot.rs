//! A plot of the longest runs. Each flavor and number of subscribers has a group of bars.

use super::grid::{Calls, System};
use super::outcome::{Cell, Report};
use crate::report::groups::{self, Bar, Group};
use crate::report::metric::Metric;

/// Returns the plot as an SVG document.
pub(super) fn document(report: &Report) -> String {
    let most = report.messages().into_iter().max();
    let subscribers = report.subscribers();
    let ends = [subscribers.first(), subscribers.last()];
    let is_drawn = |cell: &&Cell| {
        let load = cell.load;
        let is_longest = Some(load.messages) == most;
        is_longest && ends.contains(&Some(&load.subscribers)) && !cell.results.is_empty()
    };
    let groups: Vec<Group> = report.cells.iter().filter(is_drawn).map(group).collect();
    let machine = &report.machine;
    let footer = format!(
        "{} cores, {}, Linux {}; {} messages of u32; medians, each group drawn to its longest bar",
        machine.cores,
        machine.cpu,
        machine.kernel,
        most.unwrap_or_default()
    );
    let title = "Subjects and replay: messages per second, more is better";
    groups::document(title, &groups, &footer)
}

fn group(cell: &Cell) -> Group {
    let load = cell.load;
    let subscribers = match load.subscribers {
        1 => "1 subscriber".to_owned(),
        count => format!("{count} subscribers"),
    };
    let systems = cell.results.iter().map(|(system, _)| *system);
    Group {
        title: load.flavor.title().to_owned(),
        caption: match load.calls {
            Calls::Next => subscribers,
            Calls::NextSlice => format!("{subscribers}, slices of 64"),
        },
        bars: systems.map(|system| bar(cell, system)).collect(),
    }
}

fn bar(cell: &Cell, system: System) -> Bar {
    let rate = cell.rate(system).unwrap_or_default();
    let share = system
        .reference()
        .and_then(|reference| cell.ratio(system, reference));
    let share = share.map_or_else(String::new, |share| {
        format!(", {:.0} % of the reference loop", share * 100.0)
    });
    Bar {
        label: system.label(),
        value: rate,
        words: format!("{}{share}", Metric::Rate.format(rate)),
        fill: fill(system),
    }
}

fn fill(system: System) -> &'static str {
    match system {
        System::Fanline(_) | System::FanlineOneType | System::FanlineLocal => "#1f7a8c",
        System::Reference(_) | System::ReferenceOneType => "#d9dee3",
        _ => "#9aa5b1",
    }
}
