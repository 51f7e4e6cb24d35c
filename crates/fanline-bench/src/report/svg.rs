//! A plot of the headline result of each case. Each server has a bar, and the longest bar has the full
//! length. A whisker shows the spread of the rounds.

use std::fmt::Write;

use super::metric::{Metric, Summary, three_digits};
use super::{Report, Row};
use crate::servers::System;

/// Width of every plot.
pub(crate) const WIDTH: f64 = 920.0;
/// Left end of the bars, and length of the longest bar.
const BAR_LEFT: f64 = 300.0;
const BAR_LENGTH: f64 = 430.0;
const BAR_HEIGHT: f64 = 14.0;
const BAR_GAP: f64 = 3.0;
/// Gap between rows.
const ROW_GAP: f64 = 12.0;
const HEADER_HEIGHT: f64 = 64.0;
const FOOTER_HEIGHT: f64 = 44.0;

/// Returns the plot as an SVG document.
pub(crate) fn document(report: &Report) -> String {
    let columns = report.columns();
    let row_height = ROW_GAP + (BAR_HEIGHT + BAR_GAP) * columns.len() as f64;
    let height = HEADER_HEIGHT + row_height * report.rows.len() as f64 + FOOTER_HEIGHT;
    let mut canvas = Canvas::new(height);
    canvas.text(16.0, 28.0, report.title);
    for (index, &system) in columns.iter().enumerate() {
        let x = BAR_LEFT + 130.0 * index as f64;
        canvas.bar((x, 40.0), (12.0, 12.0), fill(system));
        canvas.text(x + 18.0, 51.0, system.label());
    }
    for (index, row) in report.rows.iter().enumerate() {
        let top = HEADER_HEIGHT + row_height * index as f64;
        draw_row(&mut canvas, row, &columns, top);
    }
    let machine = &report.machine;
    let footer = format!(
        "{} cores, {}, Linux {}; medians of {} rounds, whiskers: least and most",
        machine.cores, machine.cpu, machine.kernel, report.pairs
    );
    canvas.text(16.0, height - 16.0, &footer);
    canvas.finish()
}

fn draw_row(canvas: &mut Canvas, row: &Row, columns: &[System], top: f64) {
    let metric = row.case.headline;
    let sense = if metric == Metric::Rate {
        "more"
    } else {
        "less"
    };
    let summaries = columns
        .iter()
        .map(|system| row.summary(*system, metric))
        .collect::<Vec<_>>();
    canvas.text(16.0, top + 18.0, row.case.title);
    let caption = format!("{}, {sense} is better", row.metric_title(metric));
    canvas.caption(16.0, top + 33.0, &caption);
    let longest = summaries.iter().flatten().map(|summary| summary.max);
    let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
    for (index, &system) in columns.iter().enumerate() {
        let y = top + 4.0 + (BAR_HEIGHT + BAR_GAP) * index as f64;
        let Some(summary) = summaries[index] else {
            canvas.text(BAR_LEFT, y + 11.0, "no result");
            continue;
        };
        let scale = BAR_LENGTH / longest;
        let size = (summary.median * scale, BAR_HEIGHT);
        canvas.bar((BAR_LEFT, y), size, fill(system));
        whisker(canvas, summary, scale, y + BAR_HEIGHT / 2.0);
        let ratio = row.ratio(metric).filter(|_| system == System::Fanline);
        let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({}×)", three_digits(ratio)));
        let label = format!("{}{ratio}", metric.format(summary.median));
        canvas.text(BAR_LEFT + summary.max * scale + 8.0, y + 11.5, &label);
    }
}

fn fill(system: System) -> &'static str {
    match system {
        System::Nats => "#9aa5b1",
        System::Fanline => "#1f7a8c",
        System::Mosquitto => "#c9b28f",
    }
}

fn whisker(canvas: &mut Canvas, summary: Summary, scale: f64, y: f64) {
    let (left, right) = (
        BAR_LEFT + summary.min * scale,
        BAR_LEFT + summary.max * scale,
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        canvas.svg,
        "<path d=\"M{left:.1} {y}H{right:.1}M{left:.1} {0}v6M{right:.1} {0}v6\" stroke=\"#222222\"/>",
        y - 3.0
    );
}

/// The canvas of a plot.
pub(crate) struct Canvas {
    svg: String,
}

impl Canvas {
    /// Creates a white page.
    pub(crate) fn new(height: f64) -> Self {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        Self { svg }
    }

    /// Draws text. `y` is the position of its base line.
    pub(crate) fn text(&mut self, x: f64, y: f64, text: &str) {
        let text = escape(text);
        let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{y}\">{text}</text>");
    }

    /// Draws smaller text.
    pub(crate) fn caption(&mut self, x: f64, y: f64, text: &str) {
        let text = escape(text);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y}\" font-size=\"11\" fill=\"#666666\">{text}</text>"
        );
    }

    /// Draws a filled rectangle, given its upper left corner and its size.
    pub(crate) fn bar(&mut self, corner: (f64, f64), size: (f64, f64), fill: &str) {
        let ((x, y), (width, height)) = (corner, size);
        let _ = writeln!(
            self.svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{fill}\"/>"
        );
    }

    /// Draws straight lines between points.
    pub(crate) fn line(&mut self, points: &[(f64, f64)], stroke: &str) {
        let points = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
        let points = points.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            self.svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{stroke}\"/>"
        );
    }

    /// Returns the document.
    pub(crate) fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
