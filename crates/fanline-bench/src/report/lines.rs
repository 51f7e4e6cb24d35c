//! Plots of bars with long labels, in sections with headings.

use super::svg::Canvas;

const BAR_LEFT: f64 = 400.0;
const BAR_LENGTH: f64 = 360.0;
const BAR_HEIGHT: f64 = 12.0;
const LINE_DISTANCE: f64 = 17.0;
const HEADING_HEIGHT: f64 = 30.0;
const HEADER_HEIGHT: f64 = 56.0;
const FOOTER_HEIGHT: f64 = 40.0;
/// The color of Fanline's bars, and that of the others.
pub(crate) const OWN: &str = "#1f7a8c";
pub(crate) const OTHER: &str = "#9aa5b1";

/// A section of lines.
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) lines: Vec<Line>,
}

/// A line with a bar.
pub(crate) struct Line {
    pub(crate) name: String,
    /// Length of the bar as a share of the longest possible bar, from 0 to 1.
    pub(crate) share: f64,
    /// The value as text.
    pub(crate) words: String,
    pub(crate) fill: &'static str,
}

/// Returns the plot as an SVG document.
pub(crate) fn document(title: &str, caption: &str, sections: &[Section], footer: &str) -> String {
    let lines: usize = sections.iter().map(|section| section.lines.len()).sum();
    let height = HEADER_HEIGHT
        + HEADING_HEIGHT * sections.len() as f64
        + LINE_DISTANCE * lines as f64
        + FOOTER_HEIGHT;
    let mut canvas = Canvas::new(height);
    canvas.text(16.0, 28.0, title);
    canvas.caption(16.0, 44.0, caption);
    let mut y = HEADER_HEIGHT;
    for section in sections {
        canvas.text(16.0, y + 20.0, &section.heading);
        y += HEADING_HEIGHT;
        for line in &section.lines {
            let width = BAR_LENGTH * line.share.clamp(0.0, 1.0);
            canvas.caption(32.0, y + 10.0, &line.name);
            canvas.bar((BAR_LEFT, y), (width, BAR_HEIGHT), line.fill);
            canvas.caption(BAR_LEFT + width + 8.0, y + 10.0, &line.words);
            y += LINE_DISTANCE;
        }
    }
    canvas.text(16.0, height - 16.0, footer);
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_are_drawn() {
        let line = |name: &str, share| Line {
            name: name.to_owned(),
            share,
            words: "9 ns".to_owned(),
            fill: OWN,
        };
        let section = Section {
            heading: "parts".to_owned(),
            lines: vec![line("one", 0.5), line("a & b", 7.0)],
        };
        let text = document("Title", "less is better", &[section], "here");
        // The third rectangle is the page itself.
        assert_eq!(text.matches("<rect").count(), 3);
        assert!(text.contains("width=\"180.0\"") && text.contains("width=\"360.0\""));
        assert!(text.contains("a &amp; b") && text.ends_with("</svg>\n"));
    }
}
