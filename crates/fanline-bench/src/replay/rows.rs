//! The results as rows of a report.

use super::churn::Churn;
use super::grid::{Calls, Flavor, Form, System};
use super::outcome::{Cell, Load, Outcome};
use super::targets;
use crate::report::behind::Rule;
use crate::report::metric::{Metric, thousands};
use crate::report::{Report, Row, count};
use crate::turns::Plan;

const TITLE: &str = "Subjects and replay: Fanline beside its reference loops and its rivals";

/// Returns the report. `versions` are those of the other libraries, if they were measured.
pub(super) fn report(
    outcome: &Outcome,
    plan: &Plan,
    versions: impl Fn(System) -> String,
) -> Report {
    let mut report = Report::new(TITLE);
    plan.note(&mut report);
    for system in System::ALL {
        let is_measured = |cell: &Cell| cell.results(system).is_some();
        if outcome.cells.iter().any(is_measured) {
            report.add_system(system.label(), system.kind(), versions(system));
        }
    }
    report.rows = outcome
        .cells
        .iter()
        .map(|cell| speed(outcome, cell))
        .collect();
    for flavor in outcome.flavors() {
        report.rows.extend(allocations(outcome, flavor));
    }
    report.rows.extend(outcome.churn.iter().flat_map(pairs));
    report.targets = targets::all(outcome);
    report.notes = notes(plan);
    report
}

/// Returns the row of a cell. The plot has the longest runs, with the fewest and the most subscribers.
fn speed(outcome: &Outcome, cell: &Cell) -> Row {
    let Load {
        flavor,
        calls,
        messages,
        subscribers,
    } = cell.load;
    let (each, slices) = match calls {
        Calls::Next => ("each", ""),
        Calls::NextSlice => ("slices", " in slices of 64"),
    };
    let (all, is_longest) = (
        outcome.subscribers(),
        outcome.messages().last() == Some(&messages),
    );
    let is_end = [all.first(), all.last()].contains(&Some(&subscribers));
    let name = format!("{}-{each}-{messages}-{subscribers}", flavor.name());
    let mut row = Row {
        title: format!("{} messages{slices}", thousands(messages.into())),
        column: match subscribers {
            1 => "1 subscriber".to_owned(),
            subscribers => format!("{subscribers} subscribers"),
        },
        is_plotted: is_longest && is_end,
        ..Row::new(name, flavor.title())
    };
    for (system, results) in &cell.results {
        let (label, messages) = (system.label(), f64::from(messages));
        row.record(label, Metric::Rate, results.rate(cell.load.messages));
        if let Some(allocations) = results.allocations {
            row.record_value(label, Metric::Allocations, allocations / messages);
        }
        row.record_value(label, Metric::Bytes, results.bytes / messages);
    }
    for system in System::ALL {
        if let Some(reference) = system.reference() {
            row.compare(system.label(), reference.label(), Metric::Rate, Rule::Never);
        }
        for rival in system.rivals() {
            row.compare(system.label(), rival.label(), Metric::Rate, Rule::Median);
        }
    }
    row
}

/// Returns the allocations of a flavor, for each number of messages and for each further message.
fn allocations(outcome: &Outcome, flavor: Flavor) -> Vec<Row> {
    let row = |column: &str, metric, value: &dyn Fn(System) -> Option<f64>| {
        let name = format!("{}-{}-{column}", metric_name(metric), flavor.name());
        let mut row = Row {
            title: flavor.title().to_owned(),
            column: column.to_owned(),
            headline: metric,
            is_plotted: false,
            ..Row::new(name, "Per message, by messages")
        };
        for form in Form::BOTH {
            for system in [System::Fanline(form), System::Reference(form)] {
                if let Some(value) = value(system) {
                    row.record_value(system.label(), metric, value);
                }
            }
        }
        row
    };
    let mut rows = Vec::new();
    for messages in outcome.messages() {
        let worst = |system| outcome.worst(flavor, messages, system);
        let column = thousands(messages.into());
        rows.push(row(&column, Metric::Allocations, &worst));
    }
    let further = |system| Some(outcome.per_message(flavor, system)?.0);
    rows.push(row("further message", Metric::Allocations, &further));
    let bytes = |system| Some(outcome.per_message(flavor, system)?.1);
    rows.push(row("bytes of it", Metric::Bytes, &bytes));
    rows
}

fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Bytes => "bytes",
        _ => "allocations",
    }
}

/// Returns the time of a subscription and its end, for each number of other subscriptions.
fn pairs(churn: &Churn) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for result in &churn.results {
        for (order, summary) in [
            ("newest", result.newest_leaves),
            ("oldest", result.oldest_leaves),
        ] {
            let flavor = churn.flavor;
            let name = format!("churn-{order}-{}-{}", flavor.name(), result.present);
            let group = format!("Subscribe and unsubscribe, the {order} leaves");
            if rows.iter().all(|row| row.name != name) {
                rows.push(Row {
                    title: flavor.title().to_owned(),
                    column: format!("{} present", count(result.present)),
                    headline: Metric::Pair,
                    is_plotted: false,
                    ..Row::new(name.clone(), group)
                });
            }
            let row = rows.iter_mut().find(|row| row.name == name);
            if let Some(row) = row {
                let label = System::Fanline(result.form).label();
                row.record(label, Metric::Pair, summary);
            }
        }
    }
    rows
}

fn notes(plan: &Plan) -> Vec<String> {
    let measured = format!(
        "Medians over {} rounds in alternating order of repetitions that take about {} ms in \
         all, after a warm-up of {} ms ({} ms in a JVM, for each load, and three times that for \
         each number of subscribers when it starts); one emitting thread. Each repetition has a fresh subject and \
         fresh subscribers, and every subscriber's count is checked.",
        plan.rounds,
        plan.turn.as_millis(),
        plan.warm_up.as_millis(),
        plan.warm_up_jvm.as_millis()
    );
    let notes = [
        "The targets on speed are for 1,000,000 messages.",
        measured.as_str(),
        "Percentages are shares of the reference loop; the reference loops are written by hand for \
         one load each, in src/replay/reference_loops.rs, with their omissions.",
        "Allocations are those of the emitting thread, the maximum over all numbers of subscribers. Per \
         further message: the difference between the two longest runs, without a subject's \
         one-time allocations.",
        "A pair is a subscription and its end; one message after every 10,000 pairs is timed with \
         them, so that deferred clean-up is included. The targets use the more expensive order.",
        "RxJava's values are boxed beforehand; one JVM for each of its columns, so it sees one \
         class of subject and, but for the line with three, one class of observer: its best \
         case. Receivers pull from tokio's channel: one thread sends 256, then each receiver reads them.",
    ];
    notes.map(str::to_owned).to_vec()
}
