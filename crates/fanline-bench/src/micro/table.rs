//! The results as text.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, TableStyle, presets};

use super::cases::{Case, Result, Target};
use super::plot;
use crate::report::command_line;
use crate::report::machine::Machine;
use crate::report::metric::{Metric, three_digits};

/// All results of one invocation.
pub(super) struct Report {
    machine: Machine,
    results: Vec<Result>,
    samples: u32,
    length: Duration,
}

impl Report {
    pub(super) fn new(results: Vec<Result>, samples: u32, length: Duration) -> Self {
        Self {
            machine: Machine::read(),
            results,
            samples,
            length,
        }
    }

    /// Returns the report for a terminal.
    pub(super) fn terminal(&self) -> String {
        format!(
            "{}\n\n{}\n",
            self.table(presets::UTF8_FULL_CONDENSED),
            self.notes().join("\n")
        )
    }

    /// Returns the report as a page.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "# The engine's parts on one core\n\n{}\n\n",
            self.table(presets::ASCII_MARKDOWN)
        );
        for note in self.notes() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "- {note}");
        }
        text
    }

    /// Returns the report as a plot.
    pub(super) fn plot(&self) -> String {
        plot::svg(&self.results, &self.machine)
    }

    fn table(&self, style: TableStyle) -> Table {
        let mut table = Table::new();
        table.load_style(style);
        table.set_header([
            "case",
            "ns",
            "min..max",
            "per second",
            "of",
            "B",
            "allocations",
            "target",
            "verdict",
        ]);
        for result in &self.results {
            table.add_row(line(result));
        }
        for column in [1, 2, 3, 5, 6] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    fn notes(&self) -> Vec<String> {
        let machine = &self.machine;
        let verdicts = self.results.iter().flat_map(|result| {
            let targets = result.case.targets.iter();
            targets.map(|target| target.is_met(&result.results))
        });
        let (met, missed): (Vec<bool>, Vec<bool>) = verdicts.partition(|is_met| *is_met);
        vec![
            format!("Targets: {} met, {} missed.", met.len(), missed.len()),
            format!(
                "Machine: {} cores, {}, Linux {}; one thread.",
                machine.cores, machine.cpu, machine.kernel
            ),
            format!(
                "Medians of {} samples of about {} ms, after a warm-up; bytes and allocations are \
                 means over all of them, per operation.",
                self.samples,
                self.length.as_millis()
            ),
            format!("Command: `{}`", command_line()),
        ]
    }
}

/// Returns a list of the cases and their targets.
pub(super) fn list(cases: &[Case]) -> String {
    let mut text = String::new();
    for case in cases {
        let _ = writeln!(text, "{:46}{}", case.name, targets(case.targets));
    }
    text
}

fn line(result: &Result) -> Vec<String> {
    let Result { case, results } = result;
    let nanos = results.nanos;
    let is_met = case.targets.iter().all(|target| target.is_met(results));
    let verdict = match (case.targets, is_met) {
        ([], _) => "",
        (_, true) => "met",
        (_, false) => "MISSED",
    };
    vec![
        case.name.to_owned(),
        three_digits(nanos.median),
        format!("{}..{}", three_digits(nanos.min), three_digits(nanos.max)),
        Metric::Rate.format(1e9 / nanos.median),
        case.unit.to_owned(),
        amount(results.bytes),
        amount(results.allocations),
        targets(case.targets),
        verdict.to_owned(),
    ]
}

fn targets(targets: &[Target]) -> String {
    let words = targets.iter().map(|target| target.describe());
    words.collect::<Vec<_>>().join(", ")
}

/// Formats an amount. The text "0" means exactly zero, and small amounts are not rounded to zero.
fn amount(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.005 => "< 0.01".to_owned(),
        value => three_digits(value),
    }
}
