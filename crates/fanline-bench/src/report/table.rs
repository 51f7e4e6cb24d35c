//! The figures as tables, on a terminal and in Markdown.

use comfy_table::{CellAlignment, Table, presets};

use super::metric::{Metric, three_digits};
use super::{Report, Row, Verdict, describe};
use crate::servers::System;

/// Everything, for people at a terminal.
pub(crate) fn terminal(report: &Report) -> String {
    let mut table = throughput(report);
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.to_string()
}

fn throughput(report: &Report) -> Table {
    let mut table = Table::new();
    table.set_header([
        "shape",
        "nats-server",
        "Fanline",
        "ratio",
        "nats-server min..max",
        "Fanline min..max",
        "CPU/msg nats-server",
        "Fanline",
        "ratio",
        "peak nats-server",
        "Fanline",
        "targets",
    ]);
    for row in &report.rows {
        let [nats, fanline] = System::ALL;
        table.add_row([
            row.shape.title.to_owned(),
            median(row, nats, Metric::Rate),
            median(row, fanline, Metric::Rate),
            ratio(row, Metric::Rate),
            spread(row, nats, Metric::Rate),
            spread(row, fanline, Metric::Rate),
            median(row, nats, Metric::ServerCpu),
            median(row, fanline, Metric::ServerCpu),
            ratio(row, Metric::ServerCpu),
            median(row, nats, Metric::PeakMemory),
            median(row, fanline, Metric::PeakMemory),
            targets(row),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn median(row: &Row, system: System, metric: Metric) -> String {
    let summary = row.summary(system, metric);
    summary.map_or_else(String::new, |summary| metric.format(summary.median))
}

fn spread(row: &Row, system: System, metric: Metric) -> String {
    row.summary(system, metric)
        .map_or_else(String::new, |summary| {
            format!(
                "{}..{}",
                metric.format(summary.min),
                metric.format(summary.max)
            )
        })
}

fn ratio(row: &Row, metric: Metric) -> String {
    row.ratio(metric)
        .map_or_else(String::new, |ratio| format!("{}×", three_digits(ratio)))
}

fn targets(row: &Row) -> String {
    let describe = |target| {
        let verdict = match row.verdict(target) {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
            Verdict::Unknown => "unknown",
        };
        format!("{}: {verdict}", describe(target))
    };
    let targets = row.shape.targets.iter().map(|target| describe(*target));
    targets.collect::<Vec<_>>().join(", ")
}
