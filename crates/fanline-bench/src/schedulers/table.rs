//! The results as text. The lines are the same for a terminal and in Markdown.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, TableStyle, presets};

use super::cases::{FANLINE, RXJAVA};
use super::measure::{Report, Row};
use crate::report;
use crate::report::behind::{self, Better};
use crate::report::metric::{Metric, three_digits};
use crate::turns::Measurements;

/// Returns the report for a terminal.
pub(super) fn terminal(report: &Report) -> String {
    let style = presets::UTF8_FULL_CONDENSED;
    let (results, targets) = (results(report, style), targets(report, style));
    format!("{results}\n\n{targets}\n\n{}\n", notes(report).join("\n"))
}

/// Returns the report as a page.
pub(super) fn markdown(report: &Report) -> String {
    let style = presets::ASCII_MARKDOWN;
    let (results, targets) = (results(report, style), targets(report, style));
    let mut text = format!(
        "# Values onto another thread: Fanline beside floors and RxJava\n\n{results}\n\n\
         ## Targets, and what others have reported\n\n{targets}\n\n"
    );
    for note in notes(report) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- {note}");
    }
    text
}

fn results(report: &Report, style: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    table.set_header([
        "load",
        "system",
        "median",
        "min..max",
        "items/s",
        "Fanline takes",
    ]);
    for row in &report.rows {
        let mut title = row.case.name;
        for (label, results) in &row.results {
            table.add_row(line(row, std::mem::take(&mut title), label, results));
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn line(row: &Row, title: &str, label: &str, results: &Measurements) -> Vec<String> {
    let nanos = results.nanos;
    let ratio = row
        .times_as_long_as(label)
        .filter(|_| label != FANLINE)
        .map_or_else(String::new, |ratio| {
            format!("{}× as long", three_digits(ratio))
        });
    vec![
        title.to_owned(),
        label.to_owned(),
        micros(nanos.median),
        format!("{}..{}", micros(nanos.min), micros(nanos.max)),
        Metric::Rate.format(results.rate(row.case.items)),
        ratio,
    ]
}

fn targets(report: &Report, style: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    table.set_header([
        "load",
        "measured",
        "target",
        "verdict",
        "Rx in 2011 (quoted)",
        "Rx.NET (quoted)",
        "RxJava (quoted)",
    ]);
    for row in &report.rows {
        let measured = row.measured();
        let quoted = &row.case.quoted;
        table.add_row(vec![
            row.case.name.to_owned(),
            measured.map_or_else(
                || "–".to_owned(),
                |ratio| format!("{}×", three_digits(ratio)),
            ),
            row.case.target.describe(),
            row.verdict().label().to_owned(),
            quoted.rx_2011.to_owned(),
            quoted.rx_net.to_owned(),
            quoted.rxjava.to_owned(),
        ]);
    }
    table
}

fn micros(nanos: f64) -> String {
    format!("{} µs", three_digits(nanos / 1e3))
}

fn notes(report: &Report) -> Vec<String> {
    let (machine, plan) = (&report.machine, &report.plan);
    let mut notes = vec![
        format!(
            "Targets: {} (not measured in this run).",
            report::count(report.rows.iter().map(Row::verdict))
        ),
        format!(
            "Machine: {} cores, {}, Linux {}.",
            machine.cores, machine.cpu, machine.kernel
        ),
        format!(
            "Medians over {} rounds in alternating order of repetitions that take about {} ms in \
             all, after a warm-up of {} ms ({} ms in a JVM). Each repetition's count is checked.",
            plan.rounds,
            plan.turn.as_millis(),
            plan.warm_up.as_millis(),
            plan.warm_up_jvm.as_millis()
        ),
        "The floors are written by hand, in src/schedulers/floors.rs, with their omissions."
            .to_owned(),
        "Quoted results were not measured in this run: those of 2011 are of Rx for .NET on an i5 of \
         that time; those of Rx.NET 2.2.5 (on CoreCLR 3.1) and RxJava 3.1.12 (on OpenJDK 17, with \
         less warm-up than here) were taken on a virtual machine with two Xeon cores."
            .to_owned(),
    ];
    if let Some(rxjava) = &report.rxjava {
        notes.push(format!("Rival: {rxjava}; one JVM for each of its rows."));
    }
    notes.push(format!("Command: `{}`", report.command));
    notes.extend(report.rows.iter().flat_map(behind_rxjava));
    notes
}

/// Returns notes on the systems of RxJava that are faster under this load.
fn behind_rxjava(row: &Row) -> Vec<String> {
    let labels = row.results.iter().map(|(label, _)| *label);
    let rivals = labels.filter(|label| label.starts_with(RXJAVA));
    let lines = rivals.filter_map(|label| {
        behind::line(
            label,
            row.case.name,
            row.times_as_long_as(label)?,
            Better::Less,
        )
    });
    lines.collect()
}
