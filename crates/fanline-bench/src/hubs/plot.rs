//! The cells of the largest buffer as a plot: a group of bars for each number of consumers, drawn to the
//! longest of the group.

use super::bars::count;
use super::load::{Cell, Load};
use super::measure::{Report, Row};
use crate::report::metric::Metric;
use crate::report::svg::Canvas;

const CAPTION_LEFT: f64 = 190.0;
const BAR_LEFT: f64 = 350.0;
const BAR_LENGTH: f64 = 430.0;
const BAR_HEIGHT: f64 = 12.0;
const BAR_DISTANCE: f64 = 15.0;
const GROUP_GAP: f64 = 18.0;
const HEADER_HEIGHT: f64 = 56.0;
const FOOTER_HEIGHT: f64 = 40.0;

/// The plot as an SVG document.
pub(super) fn document(report: &Report) -> String {
    let cells = report.rows.iter().filter_map(|row| match row.load {
        Load::Lockstep(cell) => Some((cell, row)),
        _ => None,
    });
    let mut groups: Vec<(Cell, &Row)> = cells.collect();
    let largest = groups.iter().map(|(cell, _)| cell.buffer).max();
    groups.retain(|(cell, _)| Some(cell.buffer) == largest);
    let bars: usize = groups.iter().map(|(_, row)| row.figures.len()).sum();
    let height = HEADER_HEIGHT
        + BAR_DISTANCE * bars as f64
        + GROUP_GAP * groups.len() as f64
        + FOOTER_HEIGHT;
    let mut canvas = Canvas::new(height);
    canvas.text(
        16.0,
        28.0,
        "Broadcast hub: deliveries per second, more is better",
    );
    let mut top = HEADER_HEIGHT;
    for (cell, row) in groups {
        draw(&mut canvas, cell, row, top);
        top += BAR_DISTANCE * row.figures.len() as f64 + GROUP_GAP;
    }
    let machine = &report.machine;
    let footer = format!(
        "{} cores, {}, Linux {}; buffer {}; medians of {} rounds, each group drawn to its longest bar",
        machine.cores,
        machine.cpu,
        machine.kernel,
        largest.unwrap_or_default(),
        report.plan.rounds
    );
    canvas.text(16.0, height - 16.0, &footer);
    canvas.finish()
}

fn draw(canvas: &mut Canvas, cell: Cell, row: &Row, top: f64) {
    let consumers = format!("{} consumers", count(cell.consumers));
    canvas.text(16.0, top + 11.0, &consumers);
    let threads = match cell.threads {
        1 => "one thread".to_owned(),
        count => format!("{count} threads"),
    };
    canvas.caption(16.0, top + 26.0, &threads);
    let rates = row.figures.iter().map(|figure| figure.value.median);
    let longest = rates.fold(f64::MIN_POSITIVE, f64::max);
    for (index, figure) in row.figures.iter().enumerate() {
        let y = top + BAR_DISTANCE * index as f64;
        let rate = figure.value.median;
        let width = rate * BAR_LENGTH / longest;
        let fill = if figure.system.is_rival() {
            "#9aa5b1"
        } else {
            "#1f7a8c"
        };
        canvas.bar((BAR_LEFT, y), (width, BAR_HEIGHT), fill);
        canvas.caption(CAPTION_LEFT, y + 10.0, figure.system.name());
        let deliveries = Metric::Rate.format(rate * cell.consumers as f64);
        canvas.caption(BAR_LEFT + width + 8.0, y + 10.0, &deliveries);
    }
}
