//! The canvas of plots.

use std::fmt::Write;

pub(crate) const WIDTH: f64 = 920.0;

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

    /// Draws a horizontal line with a mark at each end, for the range of a result.
    pub(crate) fn whisker(&mut self, (left, right): (f64, f64), y: f64) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.svg,
            "<path d=\"M{left:.1} {y}H{right:.1}M{left:.1} {0}v6M{right:.1} {0}v6\" stroke=\"#222222\"/>",
            y - 3.0
        );
    }

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
