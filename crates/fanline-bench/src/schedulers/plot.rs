//! A plot of the medians, with a section for each load.

use super::cases::FANLINE;
use super::measure::{Report, Row};
use crate::report::lines::{Line, OTHER, OWN, Section, document};
use crate::report::machine::Machine;
use crate::report::metric::Metric;

/// Returns the plot as an SVG document.
pub(super) fn svg(report: &Report) -> String {
    let sections: Vec<_> = report.rows.iter().map(section).collect();
    let Machine { cores, cpu, kernel } = &report.machine;
    document(
        "Values onto another thread: items per second",
        "more is better; each load drawn to its longest bar",
        &sections,
        &format!("{cores} cores, {cpu}, Linux {kernel}; medians"),
    )
}

fn section(row: &Row) -> Section {
    let rate = |results: &crate::turns::Measurements| results.rate(row.case.items);
    let rates = row.results.iter().map(|(_, results)| rate(results));
    let most = rates.fold(f64::MIN_POSITIVE, f64::max);
    let lines = row.results.iter().map(|(label, results)| Line {
        name: (*label).to_owned(),
        share: rate(results) / most,
        words: Metric::Rate.format(rate(results)),
        fill: if *label == FANLINE { OWN } else { OTHER },
    });
    Section {
        heading: row.case.name.to_owned(),
        lines: lines.collect(),
    }
}
