//! The plot of a report: a bar for the headline result of each system in each row. The longest bar of a row
//! has the full length, and a whisker shows the range of the runs.

use std::fmt::Write;

use super::behind::Better;
use super::metric::three_digits;
use super::{Kind, Report, Row};

const WIDTH: f64 = 920.0;
const LEFT: f64 = 16.0;
const LABEL_LEFT: f64 = 310.0;
const BAR_LEFT: f64 = 520.0;
/// Left end of the bars if only one system was measured, so that the bars need no labels.
const BAR_LEFT_ALONE: f64 = 360.0;
const BAR_LENGTH: f64 = 240.0;
const BAR_HEIGHT: f64 = 12.0;
const LINE_DISTANCE: f64 = 15.0;
const ROW_GAP: f64 = 6.0;
const HEADING_HEIGHT: f64 = 34.0;
const HEADER_HEIGHT: f64 = 48.0;
const FOOTER_HEIGHT: f64 = 40.0;

struct Section<'a> {
    heading: String,
    rows: Vec<&'a Row>,
    /// Whether the rows have different metrics, so that each row needs a caption.
    has_captions: bool,
}

pub(crate) fn document(report: &Report) -> String {
    let sections = sections(report);
    let rows = sections.iter().flat_map(|section| {
        let rows = section.rows.iter();
        rows.map(|row| row_height(row, section.has_captions))
    });
    let height =
        HEADER_HEIGHT + HEADING_HEIGHT * sections.len() as f64 + rows.sum::<f64>() + FOOTER_HEIGHT;
    let mut canvas = Canvas::new(height);
    canvas.text(LEFT, 28.0, &report.title);
    let longest = report.rows.iter().map(longest).fold(1.0, f64::max);
    let mut y = HEADER_HEIGHT;
    for section in &sections {
        canvas.text(LEFT, y + 20.0, &section.heading);
        y += HEADING_HEIGHT;
        for row in &section.rows {
            canvas.caption(LEFT, y + 10.0, &title(row));
            if section.has_captions {
                canvas.caption(LEFT, y + 10.0 + LINE_DISTANCE, &caption(row));
            }
            bars(&mut canvas, report, row, longest, y);
            y += row_height(row, section.has_captions);
        }
    }
    let scale = match report.is_logarithmic {
        true => "one logarithmic scale",
        false => "each row drawn to its longest bar; whiskers: least and most",
    };
    let footer = format!("{}; medians, {scale}", report.machine);
    canvas.text(LEFT, height - 16.0, &footer);
    canvas.finish()
}

fn sections(report: &Report) -> Vec<Section<'_>> {
    let mut sections: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in report.rows.iter().filter(|row| is_plotted(row)) {
        match sections.last_mut() {
            Some((group, rows)) if *group == row.group => rows.push(row),
            _ => sections.push((&row.group, vec![row])),
        }
    }
    let sections = sections.into_iter().map(|(group, rows)| {
        let first = caption(rows[0]);
        let has_captions = rows.iter().any(|row| caption(row) != first);
        Section {
            heading: match has_captions {
                true => group.to_owned(),
                false => format!("{group}: {first}"),
            },
            rows,
            has_captions,
        }
    });
    sections.collect()
}

fn is_plotted(row: &Row) -> bool {
    row.is_plotted && systems(row) > 0
}

/// Returns the number of systems with a bar.
fn systems(row: &Row) -> usize {
    let results = row.results.iter();
    results
        .filter(|result| result.metric == row.headline)
        .count()
}

fn row_height(row: &Row, has_caption: bool) -> f64 {
    let lines = systems(row).max(1 + usize::from(has_caption));
    LINE_DISTANCE * lines as f64 + ROW_GAP
}

fn title(row: &Row) -> String {
    match (row.title.as_str(), row.column.as_str()) {
        ("", column) => column.to_owned(),
        (title, "") => title.to_owned(),
        (title, column) => format!("{title}, {column}"),
    }
}

fn caption(row: &Row) -> String {
    let sense = match row.headline.better() {
        Better::More => "more",
        Better::Less => "less",
    };
    format!("{}, {sense} is better", row.metric_title(row.headline))
}

fn longest(row: &Row) -> f64 {
    let results = row.results.iter();
    let results = results.filter(|result| result.metric == row.headline);
    let largest = results.map(|result| result.summary.max);
    largest.fold(f64::MIN_POSITIVE, f64::max)
}

fn bars(canvas: &mut Canvas, report: &Report, row: &Row, longest_of_all: f64, mut y: f64) {
    let is_alone = report.systems.len() == 1;
    let (left, length) = match is_alone {
        true => (BAR_LEFT_ALONE, BAR_LENGTH + BAR_LEFT - BAR_LEFT_ALONE),
        false => (BAR_LEFT, BAR_LENGTH),
    };
    let (logarithm, longest) = (|value: f64| value.max(1.0).log10(), longest(row));
    let width = |value: f64| match report.is_logarithmic {
        true => length * logarithm(value) / logarithm(longest_of_all).max(f64::MIN_POSITIVE),
        false => length * value / longest,
    };
    for system in &report.systems {
        let Some(summary) = row.summary(&system.name, row.headline) else {
            continue;
        };
        let fill = match system.kind {
            Kind::Own => "#1f7a8c",
            Kind::Reference => "#d9dee3",
            Kind::Rival => "#9aa5b1",
        };
        if !is_alone {
            canvas.caption(LABEL_LEFT, y + 10.0, &system.name);
        }
        canvas.bar((left, y), (width(summary.median), BAR_HEIGHT), fill);
        let mut end = width(summary.median);
        if !report.is_logarithmic && summary.min < summary.max {
            end = width(summary.max);
            canvas.whisker(
                (left + width(summary.min), left + end),
                y + BAR_HEIGHT / 2.0,
            );
        }
        let words = row.headline.format(summary.median) + &ratio(report, row, &system.name);
        canvas.caption(left + end + 8.0, y + 10.0, &words);
        y += LINE_DISTANCE;
    }
}

/// Returns the first ratio of a system's headline result, in parentheses.
fn ratio(report: &Report, row: &Row, system: &str) -> String {
    let is_of = |ratio: &&super::Ratio| ratio.system == system && ratio.metric == row.headline;
    let words = row.ratios.iter().find(is_of).map(|ratio| {
        match report.is_kind(&ratio.to, Kind::Reference) {
            true => format!(" ({:.0} %)", ratio.value * 100.0),
            false => format!(" ({}×)", three_digits(ratio.value)),
        }
    });
    words.unwrap_or_default()
}

/// The document. Writing to it cannot fail.
struct Canvas {
    svg: String,
}

impl Canvas {
    fn new(height: f64) -> Self {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        Self { svg }
    }

    /// Draws text. `y` is the position of its base line.
    fn text(&mut self, x: f64, y: f64, text: &str) {
        let text = escape(text);
        let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{y}\">{text}</text>");
    }

    fn caption(&mut self, x: f64, y: f64, text: &str) {
        let text = escape(text);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y}\" font-size=\"11\" fill=\"#666666\">{text}</text>"
        );
    }

    /// Draws a filled rectangle, given its upper left corner and its size.
    fn bar(&mut self, corner: (f64, f64), size: (f64, f64), fill: &str) {
        let ((x, y), (width, height)) = (corner, size);
        let _ = writeln!(
            self.svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{fill}\"/>"
        );
    }

    /// Draws a horizontal line with a mark at each end, for the range of a result.
    fn whisker(&mut self, (left, right): (f64, f64), y: f64) {
        let _ = writeln!(
            self.svg,
            "<path d=\"M{left:.1} {y}H{right:.1}M{left:.1} {0}v6M{right:.1} {0}v6\" stroke=\"#222222\"/>",
            y - 3.0
        );
    }

    fn finish(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::metric::{Metric, Summary};
    use super::*;

    #[test]
    fn all_lines_are_drawn() {
        let mut report = Report::new("Title");
        report.add_system("own", Kind::Own, "");
        report.add_system("a & b", Kind::Rival, "");
        let mut row = Row::new("row", "parts");
        row.record_value("own", Metric::Rate, 60.0);
        let (min, median, max) = (100.0, 120.0, 120.0);
        row.record("a & b", Metric::Rate, Summary { median, min, max });
        report.rows.push(row);
        report.rows.push(Row {
            is_plotted: false,
            ..report.rows[0].clone()
        });
        let text = document(&report);
        // The third rectangle is the page itself.
        assert_eq!(text.matches("<rect").count(), 3);
        assert!(text.contains("width=\"120.0\"") && text.contains("width=\"240.0\""));
        assert_eq!(text.matches("<path").count(), 1);
        assert!(text.contains("a &amp; b") && text.ends_with("</svg>\n"));
        assert!(text.contains("parts: messages/s, more is better"));
    }

    #[test]
    fn logarithmic_plot_has_one_scale() {
        let mut report = Report::new("Title");
        report.is_logarithmic = true;
        report.add_system("own", Kind::Own, "");
        for (name, nanos) in [("one", 100.0), ("two", 10_000.0)] {
            let mut row = Row::new(name, "parts");
            row.headline = Metric::Operation;
            row.record_value("own", Metric::Operation, nanos);
            report.rows.push(row);
        }
        let text = document(&report);
        assert!(text.contains("width=\"200.0\"") && text.contains("width=\"400.0\""));
    }
}
