//! The results as text. The lines are the same for a terminal and in Markdown.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, TableStyle, presets};

use super::metric::{Metric, three_digits};
use super::{Report, Row, Target, Verdict, describe, verdicts};
use crate::servers::System;

/// Returns the report for a terminal.
pub(crate) fn terminal(report: &Report) -> String {
    let table = table(report, presets::UTF8_FULL_CONDENSED);
    let mut text = format!("{table}\n\n");
    for line in notes(report) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Returns the report as a page.
pub(crate) fn markdown(report: &Report) -> String {
    let table = table(report, presets::ASCII_MARKDOWN);
    let mut text = format!("# {}\n\n{table}\n\n", report.title);
    for line in notes(report) {
        let _ = writeln!(text, "- {line}");
    }
    text
}

/// Returns an empty table. The first `words` columns are for text, and the other columns for results.
pub(crate) fn new_table(style: TableStyle, header: Vec<String>, words: usize) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(header);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Returns the table. Each line is one result, with its target and verdict.
fn table(report: &Report, style: TableStyle) -> Table {
    let columns = report.columns();
    let mut header = vec!["shape", "result"];
    for system in &columns {
        header.extend([system.label(), "min..max"]);
    }
    header.push("ratio");
    header.extend(
        columns
            .contains(&System::Mosquitto)
            .then_some("to mosquitto"),
    );
    let results = header.len() - 2;
    header.extend(["target", "verdict"]);
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(header);
    for row in &report.rows {
        let mut title = row.case.title;
        let metrics = Metric::ALL
            .iter()
            .filter(|metric| has_result(row, &columns, **metric));
        for metric in metrics {
            table.add_row(line(row, &columns, *metric, title));
            title = "";
        }
        if !row.failures.is_empty() {
            table.add_row(failures(row, &columns, title));
        }
    }
    for column in table.column_iter_mut().skip(2).take(results) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn has_result(row: &Row, columns: &[System], metric: Metric) -> bool {
    let mut systems = columns.iter();
    systems.any(|system| row.summary(*system, metric).is_some())
}

fn line(row: &Row, columns: &[System], metric: Metric, title: &str) -> Vec<String> {
    let mut cells = vec![title.to_owned(), row.metric_title(metric).to_owned()];
    for &system in columns {
        let summary = row.summary(system, metric);
        let write = |value| metric.format(value);
        cells.push(summary.map_or_else(String::new, |summary| write(summary.median)));
        cells.push(summary.map_or_else(String::new, |summary| {
            format!("{}..{}", write(summary.min), write(summary.max))
        }));
    }
    let others = columns.iter().filter(|system| **system != System::Fanline);
    for &other in others {
        let ratio = row.ratio_to(other, metric);
        cells.push(ratio.map_or_else(String::new, |ratio| format!("{}×", three_digits(ratio))));
    }
    let targets = row.targets(metric).map(Target::words);
    cells.push(targets.collect::<Vec<_>>().join(", "));
    let verdicts = row
        .targets(metric)
        .map(|target| row.verdict(target).label());
    cells.push(verdicts.collect::<Vec<_>>().join(", "));
    cells
}

/// Returns a row with the number of failed runs. Their errors are listed below the table.
fn failures(row: &Row, columns: &[System], title: &str) -> Vec<String> {
    let mut cells = vec![title.to_owned(), "failed runs".to_owned()];
    for &system in columns {
        let failures = row.failures.iter().filter(|entry| entry.0 == system);
        let count = failures.count();
        let runs = count + row.samples(system).count();
        let cell = match count {
            0 => String::new(),
            count => format!("FAILED {count} of {runs}"),
        };
        cells.extend([cell, String::new()]);
    }
    cells
}

/// Returns the notes on results, machine, and verdicts.
fn notes(report: &Report) -> Vec<String> {
    let machine = &report.machine;
    let mut lines = vec![
        verdicts(report),
        format!(
            "Machine: {} cores, {}, Linux {}; the load generator runs on the same cores.",
            machine.cores, machine.cpu, machine.kernel
        ),
    ];
    for program in &report.programs {
        let label = program.system.label();
        let command = program.command_line();
        lines.push(format!(
            "{label}: {}, started as `{command}`.",
            program.version
        ));
    }
    lines.push(format!(
        "Medians of {} rounds of about {} s, order alternating, a fresh server process each time; \
         ratio: Fanline's median divided by nats-server's.",
        report.pairs,
        report.duration.as_secs_f64()
    ));
    lines.extend(report.remarks.iter().cloned());
    lines.push(format!("Command: `{}`", report.command));
    for row in &report.rows {
        let title = row.case.title;
        let failures = row.failures.iter();
        let spread =
            failures.map(|(system, why)| format!("FAILED: {title}, {}: {why}.", system.label()));
        lines.extend(spread);
    }
    let missed = report.rows.iter().flat_map(|row| {
        let targets = row.case.targets.iter();
        let missed = targets.filter(|target| row.verdict(**target) == Verdict::Missed);
        missed.map(|target| format!("Missed: {}, {}.", row.case.title, describe(*target)))
    });
    lines.extend(missed);
    lines.extend(behind(report));
    lines
}

/// Returns the results in which another server is clearly better: even Fanline's best round is worse than the
/// other server's worst round.
fn behind(report: &Report) -> Vec<String> {
    let columns = report.columns();
    let mut lines = Vec::new();
    let others = columns.iter().filter(|system| **system != System::Fanline);
    for row in &report.rows {
        for &other in others.clone() {
            let results = Metric::ALL.iter().copied();
            // Ignore the generator's CPU time, which does not measure a server.
            let results = results.filter(|metric| *metric != Metric::GeneratorCpu);
            let lost = results.filter(|metric| is_behind(row, other, *metric));
            lines.extend(lost.filter_map(|metric| {
                let ratio = three_digits(row.ratio_to(other, metric)?);
                let (label, title) = (other.label(), row.case.title);
                let result = row.metric_title(metric);
                Some(format!("Behind {label}: {title}, {result} {ratio}×."))
            }));
        }
    }
    lines
}

fn is_behind(row: &Row, other: System, metric: Metric) -> bool {
    let own = row.summary(System::Fanline, metric);
    let both = own.zip(row.summary(other, metric));
    both.is_some_and(|(own, other)| match metric {
        Metric::Rate | Metric::AgainstOpen => own.max < other.min,
        _ => own.min > other.max,
    })
}
