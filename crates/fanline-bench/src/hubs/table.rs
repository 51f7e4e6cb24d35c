//! The figures, for a terminal and as a plot.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

use super::runs::{Cell, System};
use crate::report::svg::Canvas;

/// One cell's figures.
pub(super) struct Row {
    cell: Cell,
    /// Elements per second.
    medians: Vec<(System, f64)>,
}

impl Row {
    pub(super) fn new(cell: Cell, systems: &[System], times: Vec<Vec<Duration>>) -> Self {
        let medians = systems
            .iter()
            .copied()
            .zip(times)
            .map(|(system, mut times)| {
                times.sort_unstable();
                let median = times[times.len() / 2].as_secs_f64();
                (system, cell.elements as f64 / median)
            });
        Self {
            cell,
            medians: medians.collect(),
        }
    }

    fn deliveries(&self, elements: f64) -> f64 {
        elements * self.cell.consumers as f64
    }

    fn stream(&self) -> Option<f64> {
        let stream = self
            .medians
            .iter()
            .find(|(system, _)| *system == System::Stream);
        stream.map(|(_, elements)| *elements)
    }
}

pub(super) fn terminal(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "threads",
        "buffer",
        "consumers",
        "system",
        "elements/s",
        "deliveries/s",
        "ns/delivery",
        "stream is",
    ]);
    for row in rows {
        for (system, elements) in &row.medians {
            let deliveries = row.deliveries(*elements);
            let ratio = match row.stream() {
                Some(stream) if system.is_rival() => format!("{:.1}x", stream / elements),
                _ => String::new(),
            };
            table.add_row([
                row.cell.threads.to_string(),
                row.cell.buffer.to_string(),
                row.cell.consumers.to_string(),
                system.name().to_owned(),
                format!("{elements:.0}"),
                format!("{:.1} M", deliveries / 1e6),
                format!("{:.2}", 1e9 / deliveries),
                ratio,
            ]);
        }
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = table.to_string();
    text.push('\n');
    text
}

/// A bar for each system of each cell.
pub(super) fn plot(rows: &[Row]) -> String {
    const WIDTH: f64 = 920.0;
    const LINE: f64 = 16.0;
    const LABEL: f64 = 330.0;
    let bars: usize = rows.iter().map(|row| row.medians.len()).sum();
    let mut canvas = Canvas::new(60.0 + LINE * bars as f64);
    canvas.text(10.0, 24.0, "Deliveries per second");
    let most = rows
        .iter()
        .flat_map(|row| {
            row.medians
                .iter()
                .map(|(_, elements)| row.deliveries(*elements))
        })
        .fold(1.0, f64::max);
    let mut y = 44.0;
    for row in rows {
        for (system, elements) in &row.medians {
            let deliveries = row.deliveries(*elements);
            let mut label = String::new();
            let Cell {
                threads,
                buffer,
                consumers,
                ..
            } = row.cell;
            let _ = write!(
                label,
                "{threads} thr, buffer {buffer}, {consumers}: {} {:.0} M",
                system.name(),
                deliveries / 1e6
            );
            canvas.caption(10.0, y + 11.0, &label);
            let length = (WIDTH - LABEL - 20.0) * deliveries / most;
            let fill = if system.is_rival() {
                "#9aa5b1"
            } else {
                "#2563eb"
            };
            canvas.bar((LABEL, y), (length, LINE - 4.0), fill);
            y += LINE;
        }
    }
    canvas.finish()
}
