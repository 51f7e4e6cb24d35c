//! The headline figure of each shape as a plot: two bars per shape, drawn to the larger of them,
//! with the spread of the rounds as a whisker.

use std::fmt::Write;

use super::metric::{Metric, Summary, three_digits};
use super::{Report, Row};
use crate::core_nats::shapes::Work;
use crate::servers::System;

const WIDTH: f64 = 920.0;
/// Where the bars begin, and how long the longest is.
const BAR_LEFT: f64 = 300.0;
const BAR_LENGTH: f64 = 430.0;
const BAR_HEIGHT: f64 = 14.0;
const ROW_HEIGHT: f64 = 46.0;
const HEADER_HEIGHT: f64 = 64.0;
const FOOTER_HEIGHT: f64 = 44.0;

/// The plot as an SVG document.
pub(crate) fn document(report: &Report) -> String {
    let height = HEADER_HEIGHT + ROW_HEIGHT * report.rows.len() as f64 + FOOTER_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    text(
        &mut svg,
        16.0,
        28.0,
        "Core NATS: Fanline beside nats-server",
    );
    for (index, system) in System::ALL.into_iter().enumerate() {
        let x = BAR_LEFT + 130.0 * index as f64;
        bar(&mut svg, x, 40.0, 12.0, 12.0, system);
        text(&mut svg, x + 18.0, 51.0, system.label());
    }
    for (index, row) in report.rows.iter().enumerate() {
        let top = HEADER_HEIGHT + ROW_HEIGHT * index as f64;
        draw_row(&mut svg, row, top);
    }
    let machine = &report.machine;
    let footer = format!(
        "{} cores, {}, Linux {}; medians of {} rounds, whiskers: least and most",
        machine.cores, machine.cpu, machine.kernel, report.pairs
    );
    text(&mut svg, 16.0, height - 16.0, &footer);
    svg.push_str("</svg>\n");
    svg
}

fn headline(row: &Row) -> Metric {
    match row.shape.work {
        Work::Requests(party) if party.clients == 1 => Metric::P50,
        Work::Throughput(_) | Work::Requests(_) => Metric::Rate,
        Work::Idle { .. } => Metric::IdleMemory,
    }
}

fn draw_row(svg: &mut String, row: &Row, top: f64) {
    let metric = headline(row);
    let sense = if metric == Metric::Rate {
        "more"
    } else {
        "less"
    };
    let summaries = System::ALL.map(|system| row.summary(system, metric));
    text(svg, 16.0, top + 18.0, row.shape.title);
    let caption = format!("{}, {sense} is better", row.figure(metric));
    let _ = writeln!(
        svg,
        "<text x=\"16\" y=\"{}\" font-size=\"11\" fill=\"#666666\">{}</text>",
        top + 33.0,
        escape(&caption)
    );
    let longest = summaries.iter().flatten().map(|summary| summary.max);
    let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
    for (index, system) in System::ALL.into_iter().enumerate() {
        let y = top + 4.0 + (BAR_HEIGHT + 3.0) * index as f64;
        let Some(summary) = summaries[index] else {
            text(svg, BAR_LEFT, y + 11.0, "no figure");
            continue;
        };
        let scale = BAR_LENGTH / longest;
        bar(svg, BAR_LEFT, y, summary.median * scale, BAR_HEIGHT, system);
        whisker(svg, summary, scale, y + BAR_HEIGHT / 2.0);
        let ratio = row.ratio(metric).filter(|_| system == System::Fanline);
        let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({}×)", three_digits(ratio)));
        let label = format!("{}{ratio}", metric.format(summary.median));
        text(svg, BAR_LEFT + summary.max * scale + 8.0, y + 11.5, &label);
    }
}

fn bar(svg: &mut String, x: f64, y: f64, width: f64, height: f64, system: System) {
    let fill = match system {
        System::Nats => "#9aa5b1",
        System::Fanline => "#1f7a8c",
    };
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{fill}\"/>"
    );
}

fn whisker(svg: &mut String, summary: Summary, scale: f64, y: f64) {
    let (left, right) = (
        BAR_LEFT + summary.min * scale,
        BAR_LEFT + summary.max * scale,
    );
    let _ = writeln!(
        svg,
        "<path d=\"M{left:.1} {y}H{right:.1}M{left:.1} {0}v6M{right:.1} {0}v6\" stroke=\"#222222\"/>",
        y - 3.0
    );
}

fn text(svg: &mut String, x: f64, y: f64, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\">{}</text>", escape(text));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
