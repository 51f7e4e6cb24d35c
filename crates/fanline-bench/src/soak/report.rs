//! The report of a run: a page and a plot.

use std::fmt::Write as _;
use std::time::Duration;

use super::checks::{Check, words};
use super::director::{Record, Sample};
use super::plan::Plan;
use super::slow;
use crate::report::command_line;
use crate::report::machine::Machine;
use crate::report::svg::{Canvas, WIDTH};
use crate::servers::Program;

/// Dimensions of the plot, in its units.
const PANEL_LEFT: f64 = 110.0;
const PANEL_HEIGHT: f64 = 90.0;
const PANEL_DISTANCE: f64 = 130.0;
const HEADER_HEIGHT: f64 = 60.0;
const FOOTER_HEIGHT: f64 = 50.0;
const MIB: f64 = 1024.0 * 1024.0;

/// The page of a run.
pub(super) struct Report {
    table: String,
    notes: Vec<String>,
}

impl Report {
    pub(super) fn new(program: &Program, plan: &Plan, record: &Record, checks: &[Check]) -> Self {
        let mut table = String::from("| condition | observed | verdict |\n| --- | --- | --- |\n");
        for check in checks {
            let verdict = if check.is_passed {
                "held"
            } else {
                "**FAILED**"
            };
            // Writing to a string does not fail.
            let _ = writeln!(table, "| {} | {} | {verdict} |", check.name, check.observed);
        }
        let Machine { cores, cpu, kernel } = Machine::read();
        let mut notes = vec![
            format!("{cores} × {cpu}, Linux {kernel}; the loads run on the same cores."),
            format!(
                "Fanline {}, started with streams, MQTT and `max_pending: {}`, for {}: restarts in the first \
                 {}, memory and files observed from {} on, without restarts.",
                program.version.trim_start_matches("fanline: v"),
                slow::PENDING_MAX,
                words(plan.length),
                words(plan.trouble_until),
                words(plan.steady_from)
            ),
            format!("Command: `{}`", command_line()),
        ];
        notes.extend(plan.shortfall());
        let shown = record.faults.iter();
        notes.extend(shown.map(|fault| format!("FAILED: {}: {}", fault.load, fault.text)));
        let not_shown = record.faults_count - record.faults.len() as u64;
        notes.extend((not_shown > 0).then(|| format!("{not_shown} further errors.")));
        Self { table, notes }
    }

    pub(super) fn terminal(&self) -> String {
        format!("{}\n{}\n", self.table, self.notes.join("\n"))
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "# Soak\n\nAll kinds of load on one server at once: core messages to exact, wildcard and queue subscribers, a \
             stream with a publisher, a reader in order and a worker that acknowledges, MQTT at QoS 1, \
             permanent connections, short-lived connections, subscribers that do not read. The server is killed and \
             stopped meanwhile.\n\n\
             {}\n![Memory, files, connections and deliveries over time](soak.svg)\n\n",
            self.table
        );
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text
    }
}

/// Returns a plot of memory, open files, live connections, and deliveries over time, with a mark at each
/// restart.
pub(super) fn plot(plan: &Plan, record: &Record) -> String {
    let panels: [(&str, Vec<f64>); 4] = [
        (
            "resident memory, MiB",
            values(record, |sample| sample.resident as f64 / MIB),
        ),
        (
            "open files",
            values(record, |sample| sample.descriptors.others as f64),
        ),
        (
            "live connections",
            values(record, |sample| sample.present as f64),
        ),
        ("deliveries a second", rates(&record.samples)),
    ];
    let height = HEADER_HEIGHT + PANEL_DISTANCE * panels.len() as f64 + FOOTER_HEIGHT;
    let mut canvas = Canvas::new(height);
    canvas.text(16.0, 28.0, "Soak: one server over time");
    canvas.caption(16.0, 44.0, "red: killed; orange: stopped and started");
    for (index, (title, values)) in panels.iter().enumerate() {
        let top = HEADER_HEIGHT + PANEL_DISTANCE * index as f64;
        draw(&mut canvas, plan, record, title, values, top);
    }
    let end = words(plan.length);
    canvas.caption(PANEL_LEFT, height - FOOTER_HEIGHT, "0 s");
    canvas.caption(WIDTH - 70.0, height - FOOTER_HEIGHT, &end);
    let Machine { cores, cpu, kernel } = Machine::read();
    canvas.text(
        16.0,
        height - 16.0,
        &format!("{cores} × {cpu}, Linux {kernel}"),
    );
    canvas.finish()
}

fn values(record: &Record, value: impl Fn(&Sample) -> f64) -> Vec<f64> {
    record.samples.iter().map(value).collect()
}

/// Returns the rates between successive samples.
fn rates(samples: &[Sample]) -> Vec<f64> {
    let rate = |pair: &[Sample]| {
        let seconds = (pair[1].at - pair[0].at)
            .as_secs_f64()
            .max(f64::MIN_POSITIVE);
        (pair[1].deliveries - pair[0].deliveries) as f64 / seconds
    };
    std::iter::once(0.0)
        .chain(samples.windows(2).map(rate))
        .collect()
}

fn draw(canvas: &mut Canvas, plan: &Plan, record: &Record, title: &str, values: &[f64], top: f64) {
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bottom = top + PANEL_HEIGHT;
    let width = WIDTH - PANEL_LEFT - 30.0;
    let length = plan.length.as_secs_f64();
    let x = |at: Duration| PANEL_LEFT + width * (at.as_secs_f64() / length).min(1.0);
    canvas.text(PANEL_LEFT, top - 6.0, title);
    canvas.caption(16.0, top + 10.0, &format!("{most:.0}"));
    canvas.caption(16.0, bottom, "0");
    canvas.line(
        &[(PANEL_LEFT, bottom), (PANEL_LEFT + width, bottom)],
        "#999999",
    );
    for restart in &record.restarts {
        let stroke = if restart.is_kill {
            "#c0392b"
        } else {
            "#e69f00"
        };
        let at = x(restart.at);
        canvas.line(&[(at, top), (at, bottom)], stroke);
    }
    let points = record.samples.iter().zip(values);
    let points = points.map(|(sample, value)| (x(sample.at), bottom - PANEL_HEIGHT * value / most));
    canvas.line(&points.collect::<Vec<_>>(), "#1f7a8c");
}
