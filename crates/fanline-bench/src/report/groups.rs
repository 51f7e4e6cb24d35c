//! Plots with groups of bars. The longest bar of each group has the full length.

use super::svg::Canvas;

const LABEL_LEFT: f64 = 200.0;
const BAR_LEFT: f64 = 380.0;
const BAR_LENGTH: f64 = 350.0;
const BAR_HEIGHT: f64 = 12.0;
const BAR_DISTANCE: f64 = 15.0;
const GROUP_GAP: f64 = 18.0;
const HEADER_HEIGHT: f64 = 56.0;
const FOOTER_HEIGHT: f64 = 40.0;

/// A group of bars that are compared with each other.
pub(crate) struct Group {
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) bars: Vec<Bar>,
}

/// A bar of a group.
pub(crate) struct Bar {
    pub(crate) label: &'static str,
    pub(crate) value: f64,
    /// The value as text.
    pub(crate) words: String,
    pub(crate) fill: &'static str,
}

/// Returns the plot as an SVG document.
pub(crate) fn document(title: &str, groups: &[Group], footer: &str) -> String {
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = HEADER_HEIGHT
        + BAR_DISTANCE * bars as f64
        + GROUP_GAP * groups.len() as f64
        + FOOTER_HEIGHT;
    let mut canvas = Canvas::new(height);
    canvas.text(16.0, 28.0, title);
    let mut top = HEADER_HEIGHT;
    for group in groups {
        draw(&mut canvas, group, top);
        top += BAR_DISTANCE * group.bars.len() as f64 + GROUP_GAP;
    }
    canvas.text(16.0, height - 16.0, footer);
    canvas.finish()
}

fn draw(canvas: &mut Canvas, group: &Group, top: f64) {
    canvas.text(16.0, top + 11.0, &group.title);
    canvas.caption(16.0, top + 26.0, &group.caption);
    let values = group.bars.iter().map(|bar| bar.value);
    let longest = values.fold(f64::MIN_POSITIVE, f64::max);
    for (index, bar) in group.bars.iter().enumerate() {
        let y = top + BAR_DISTANCE * index as f64;
        let width = bar.value * BAR_LENGTH / longest;
        canvas.bar((BAR_LEFT, y), (width, BAR_HEIGHT), bar.fill);
        canvas.caption(LABEL_LEFT, y + 10.0, bar.label);
        canvas.caption(BAR_LEFT + width + 8.0, y + 10.0, &bar.words);
    }
}
