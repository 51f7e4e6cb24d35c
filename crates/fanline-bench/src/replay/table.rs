//! The results as text. The tables are the same for a terminal and in Markdown.

use std::fmt::Write;

use clap::ValueEnum;
use comfy_table::{Table, TableStyle, presets};

use super::behind;
use super::churn::PRESENT;
use super::grid::{Calls, Flavor, Form, System};
use super::outcome::{Cell, Load, Report};
use super::targets::{self, Line, small};
use crate::report;
use crate::report::metric::{Metric, spread, thousands, three_digits};
use crate::report::table::new_table;

/// Returns the report for a terminal.
pub(super) fn terminal(report: &Report) -> String {
    page(report, presets::UTF8_FULL_CONDENSED, "")
}

/// Returns the report as a page.
pub(super) fn markdown(report: &Report) -> String {
    let text = page(report, presets::ASCII_MARKDOWN, "## ");
    format!("# Subjects and replay: Fanline beside its reference loops and its rivals\n\n{text}")
}

/// Returns a list of the flavors, and the targets for speed.
pub(super) fn list() -> String {
    let mut text = String::from("Flavours:");
    for flavor in Flavor::value_variants() {
        let value = flavor.to_possible_value();
        let name = value.as_ref().map_or("", |value| value.get_name());
        // Writing to a String cannot fail.
        let _ = write!(text, " {name}");
    }
    let targets = targets::describe();
    let _ = write!(text, "\n\nTargets, 1 / 16 subscribers:\n{targets}");
    text
}

fn page(report: &Report, style: TableStyle, heading: &str) -> String {
    let mut text = String::new();
    for flavor in report.flavors() {
        let title = flavor.title();
        let speeds = speeds(report, flavor, style);
        let _ = writeln!(text, "{heading}{title}: messages per second\n\n{speeds}\n");
    }
    let tables = [
        ("Allocations per message", allocations(report, style)),
        (
            "Subscribe and unsubscribe, ns a pair: the newest leaves / the oldest leaves",
            churn(report, style),
        ),
        ("Targets", targets(report, style)),
    ];
    for (title, table) in tables {
        let _ = writeln!(text, "{heading}{title}\n\n{table}\n");
    }
    for note in notes(report) {
        let sign = if heading.is_empty() { "" } else { "- " };
        let _ = writeln!(text, "{sign}{note}");
    }
    text
}

/// Returns the table of one flavor's speeds.
fn speeds(report: &Report, flavor: Flavor, style: TableStyle) -> Table {
    let subscribers = report.subscribers();
    let mut header = vec!["messages".to_owned(), "system".to_owned()];
    header.extend(subscribers.iter().map(|count| match count {
        1 => "1 subscriber".to_owned(),
        count => count.to_string(),
    }));
    let mut table = new_table(style, header, 2);
    let each = report.messages().into_iter();
    let each = each.map(|messages| (Calls::Next, messages));
    let most = report.messages().into_iter().max();
    let slices = most.map(|messages| (Calls::NextSlice, messages));
    for (calls, messages) in each.chain(slices) {
        let cells = subscribers.iter().map(|subscribers| {
            report.cell(Load {
                flavor,
                calls,
                messages,
                subscribers: *subscribers,
            })
        });
        let cells: Vec<Option<&Cell>> = cells.collect();
        let mut title = match calls {
            Calls::Next => thousands(messages.into()),
            Calls::NextSlice => format!("{} in slices of 64", thousands(messages.into())),
        };
        for (label, results) in lines(&cells) {
            let mut row = vec![std::mem::take(&mut title), label];
            row.extend(results);
            table.add_row(row);
        }
    }
    table
}

/// Returns a line for each system, and below it a line with Fanline's ratio to RxJava.
fn lines(cells: &[Option<&Cell>]) -> Vec<(String, Vec<String>)> {
    let mut lines = Vec::new();
    for system in System::ALL {
        let results = of_each(cells, |cell| rate(cell, system));
        if let Some(results) = results {
            lines.push((system.label().to_owned(), results));
        }
        if matches!(system, System::Fanline(_)) {
            let times = |cell: &Cell| {
                let ratio = cell.ratio(system, System::RxJava)?;
                Some(format!("{}×", three_digits(ratio)))
            };
            if let Some(times) = of_each(cells, times) {
                lines.push(("    to RxJava".to_owned(), times));
            }
        }
    }
    lines
}

/// Returns the results of all cells, or `None` if no cell has a result.
fn of_each(
    cells: &[Option<&Cell>],
    result: impl Fn(&Cell) -> Option<String>,
) -> Option<Vec<String>> {
    let all = cells.iter().map(|cell| cell.and_then(&result));
    let all: Vec<Option<String>> = all.collect();
    let any = all.iter().any(Option::is_some);
    any.then(|| all.into_iter().map(Option::unwrap_or_default).collect())
}

/// Returns a rate, with its share of the reference loop's rate if there is such a loop.
fn rate(cell: &Cell, system: System) -> Option<String> {
    let rate = Metric::Rate.format(cell.rate(system)?);
    let share = system
        .reference()
        .and_then(|reference| cell.ratio(system, reference));
    Some(match share {
        Some(share) => format!("{rate} ({:.0} %)", share * 100.0),
        None => rate,
    })
}

fn allocations(report: &Report, style: TableStyle) -> Table {
    let messages = report.messages();
    let mut header = vec!["flavor".to_owned(), "system".to_owned()];
    header.extend(messages.iter().map(|count| thousands((*count).into())));
    header.extend(["per further message", "bytes"].map(str::to_owned));
    let mut table = new_table(style, header, 2);
    for flavor in report.flavors() {
        let mut title = flavor.title().to_owned();
        for form in Form::BOTH {
            for system in [System::Fanline(form), System::Reference(form)] {
                let mut row = vec![std::mem::take(&mut title), system.label().to_owned()];
                row.extend(messages.iter().map(|messages| {
                    worst(report, flavor, *messages, system).map_or_else(String::new, small)
                }));
                let (count, bytes) = report
                    .per_message(flavor, system)
                    .map_or_else(Default::default, |(count, bytes)| {
                        (small(count), small(bytes))
                    });
                row.extend([count, bytes]);
                table.add_row(row);
            }
        }
    }
    table
}

/// Returns the allocations per message, as the maximum over all numbers of subscribers.
fn worst(report: &Report, flavor: Flavor, messages: u32, system: System) -> Option<f64> {
    let of_subscribers = report.subscribers().into_iter().filter_map(|subscribers| {
        let cell = report.cell(Load {
            flavor,
            calls: Calls::Next,
            messages,
            subscribers,
        });
        cell?.results(system)?.allocations
    });
    of_subscribers
        .max_by(f64::total_cmp)
        .map(|most| most / f64::from(messages))
}

fn churn(report: &Report, style: TableStyle) -> Table {
    let mut header = vec!["flavor".to_owned(), "form".to_owned()];
    header.extend(PRESENT.map(|present| format!("{} present", thousands(present as u64))));
    let mut table = new_table(style, header, 2);
    for churn in &report.churn {
        let mut title = churn.flavor.title().to_owned();
        for form in Form::BOTH {
            let mut row = vec![std::mem::take(&mut title), form.label().to_owned()];
            let results = churn.results.iter().filter(|result| result.form == form);
            row.extend(results.map(|result| {
                let newest = three_digits(result.newest_leaves.median);
                let oldest = three_digits(result.oldest_leaves.median);
                format!("{newest} / {oldest}")
            }));
            table.add_row(row);
        }
    }
    table
}

fn targets(report: &Report, style: TableStyle) -> Table {
    let header = [
        "what",
        "form",
        "compared with",
        "measured",
        "target",
        "verdict",
    ];
    let mut table = new_table(style, header.map(str::to_owned).to_vec(), 6);
    for line in targets::lines(report) {
        table.add_row(target(&line));
    }
    table
}

fn target(line: &Line) -> Vec<String> {
    let of_each = |result: fn(&targets::Check) -> String| {
        let all = line.checks.iter().map(result);
        all.collect::<Vec<_>>().join(" / ")
    };
    vec![
        line.what.clone(),
        line.form.label().to_owned(),
        line.compared.to_owned(),
        of_each(targets::Check::measured),
        of_each(targets::Check::target),
        of_each(|check| check.verdict().label().to_owned()),
    ]
}

fn notes(report: &Report) -> Vec<String> {
    let checks = targets::lines(report)
        .into_iter()
        .flat_map(|line| line.checks);
    let verdicts = checks.map(|check| check.verdict());
    let (machine, plan) = (&report.machine, &report.plan);
    let mut notes = vec![
        format!(
            "Targets: {} (not measured in this run).",
            report::count(verdicts)
        ),
        "In the targets on speed, and in the shares in brackets, the first result is for 1 subscriber \
         and the second for 16, of 1,000,000 messages."
            .to_owned(),
        format!(
            "Machine: {} cores, {}, Linux {}; one emitting thread.",
            machine.cores, machine.cpu, machine.kernel
        ),
        format!(
            "Medians over {} rounds in alternating order of repetitions that take about {} ms in \
             all, after a warm-up of {} ms ({} ms in a JVM, for each load, and three times that for \
             each number of subscribers when it starts). Each repetition has a fresh subject and \
             fresh subscribers, and every subscriber's count is checked.",
            plan.rounds,
            plan.turn.as_millis(),
            plan.warm_up.as_millis(),
            plan.warm_up_jvm.as_millis()
        ),
        "Percentages are shares of the reference loop in the line below; the reference loops are written by hand for \
         one load each, in src/replay/reference_loops.rs, with their omissions."
            .to_owned(),
        "Allocations are those of the emitting thread, the maximum over all numbers of subscribers. Per \
         further message: the difference between the two longest runs, without a subject's \
         one-time allocations."
            .to_owned(),
        "A pair is a subscription and its end; one message after every 10,000 pairs is timed with \
         them, so that deferred clean-up is included. The targets use the more expensive order."
            .to_owned(),
    ];
    if !report.rivals.is_empty() {
        notes.push(format!("Rivals: {}.", report.rivals.join("; ")));
        notes.push(
            "RxJava's values are boxed beforehand; one JVM for each of its columns, so it sees one \
             class of subject and, but for the line with three, one class of observer: its best \
             case. Receivers pull from tokio's channel: one thread sends 256, then each receiver reads them."
                .to_owned(),
        );
    }
    let results = report.cells.iter().flat_map(|cell| &cell.results);
    notes.extend(spread(results.map(|(_, results)| results.nanos)));
    notes.push(format!("Command: `{}`", report.command));
    notes.extend(behind::lines(report));
    notes
}
