//! The longest runs as a plot: a group of bars for each flavour and number of subscribers, drawn to
//! the longest of the group.

use super::grid::{Calls, System};
use super::outcome::{Cell, Report};
use crate::report::metric::Metric;
use crate::report::svg::Canvas;

const LABEL_LEFT: f64 = 200.0;
const BAR_LEFT: f64 = 380.0;
const BAR_LENGTH: f64 = 350.0;
const BAR_HEIGHT: f64 = 12.0;
const BAR_DISTANCE: f64 = 15.0;
const GROUP_GAP: f64 = 18.0;
const HEADER_HEIGHT: f64 = 56.0;
const FOOTER_HEIGHT: f64 = 40.0;

/// The plot as an SVG document.
pub(super) fn document(report: &Report) -> String {
    let most = report.messages().into_iter().max();
    let subscribers = report.subscribers();
    let ends = [subscribers.first(), subscribers.last()];
    let is_drawn = |cell: &&Cell| {
        let load = cell.load;
        let is_longest = Some(load.messages) == most;
        is_longest && ends.contains(&Some(&load.subscribers)) && !cell.figures.is_empty()
    };
    let groups: Vec<&Cell> = report.cells.iter().filter(is_drawn).collect();
    let bars: usize = groups.iter().map(|cell| cell.figures.len()).sum();
    let height = HEADER_HEIGHT
        + BAR_DISTANCE * bars as f64
        + GROUP_GAP * groups.len() as f64
        + FOOTER_HEIGHT;
    let mut canvas = Canvas::new(height);
    canvas.text(
        16.0,
        28.0,
        "Subjects and replay: messages per second, more is better",
    );
    let mut top = HEADER_HEIGHT;
    for cell in groups {
        draw(&mut canvas, cell, top);
        top += BAR_DISTANCE * cell.figures.len() as f64 + GROUP_GAP;
    }
    let machine = &report.machine;
    let footer = format!(
        "{} cores, {}, Linux {}; {} messages of u32; medians, each group drawn to its longest bar",
        machine.cores,
        machine.cpu,
        machine.kernel,
        most.unwrap_or_default()
    );
    canvas.text(16.0, height - 16.0, &footer);
    canvas.finish()
}

fn draw(canvas: &mut Canvas, cell: &Cell, top: f64) {
    let load = cell.load;
    canvas.text(16.0, top + 11.0, load.flavour.title());
    let subscribers = match load.subscribers {
        1 => "1 subscriber".to_owned(),
        count => format!("{count} subscribers"),
    };
    let caption = match load.calls {
        Calls::Next => subscribers,
        Calls::NextSlice => format!("{subscribers}, slices of 64"),
    };
    canvas.caption(16.0, top + 26.0, &caption);
    let rates = cell
        .figures
        .iter()
        .filter_map(|(system, _)| cell.rate(*system));
    let longest = rates.fold(f64::MIN_POSITIVE, f64::max);
    for (index, (system, _)) in cell.figures.iter().enumerate() {
        let rate = cell.rate(*system).unwrap_or_default();
        let y = top + BAR_DISTANCE * index as f64;
        let width = rate * BAR_LENGTH / longest;
        canvas.bar((BAR_LEFT, y), (width, BAR_HEIGHT), fill(*system));
        let share = system.limit().and_then(|limit| cell.ratio(*system, limit));
        let share = share.map_or_else(String::new, |share| {
            format!(", {:.0} % of the limit", share * 100.0)
        });
        let rate = Metric::Rate.format(rate);
        canvas.caption(LABEL_LEFT, y + 10.0, system.label());
        let figure = format!("{rate}{share}");
        canvas.caption(BAR_LEFT + width + 8.0, y + 10.0, &figure);
    }
}

fn fill(system: System) -> &'static str {
    match system {
        System::Fanline(_) | System::FanlineOneType | System::FanlineLocal => "#1f7a8c",
        System::Limit(_) | System::LimitOneType => "#d9dee3",
        _ => "#9aa5b1",
    }
}
