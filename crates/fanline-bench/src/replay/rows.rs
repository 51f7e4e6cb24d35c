//! The results as rows of a report.

use super::Sizes;
use super::grid::{
    Calls, Flavor, Form, Load, ONE_TYPE, REFERENCE_ONE_TYPE, RXJAVA, RXJAVA_SERIALIZED,
    RXJAVA_THREE_CLASSES, RXRUST_LOCAL, RXRUST_SHARED, TOKIO,
};
use super::measure::Cell;
use crate::report::behind::Rule;
use crate::report::metric::Metric;
use crate::report::{Row, count};
use crate::subjects::{EXCLUSIVE, SHARED};
use crate::turns::{Measurements, Plan};

/// The systems with which each of Fanline's is compared. The exclusive form is compared with systems for one
/// thread, and the shared form with systems for several threads. RxJava's plain subject is in both lists: it is
/// made for one emitting thread, but programs use it for both.
const RIVALS: &[(&str, &[&str])] = &[
    (EXCLUSIVE, &[RXJAVA, RXJAVA_THREE_CLASSES, RXRUST_LOCAL]),
    (SHARED, &[RXJAVA, RXJAVA_SERIALIZED, RXRUST_SHARED, TOKIO]),
    (ONE_TYPE, &[]),
];

/// Returns the row of a cell. The plot has the longest runs, with the fewest and the most subscribers.
pub(super) fn speed(cell: &Cell, sizes: &Sizes) -> Row {
    let Load {
        flavor,
        calls,
        messages,
        subscribers,
    } = cell.load;
    let slices = match calls {
        Calls::Next => "",
        Calls::NextSlice => " in slices of 64",
    };
    let ends = [sizes.subscribers.first(), sizes.subscribers.last()];
    let is_longest = sizes.messages.last() == Some(&messages);
    let mut row = Row {
        title: format!("{} messages{slices}", count(messages as usize)),
        column: match subscribers {
            1 => "1 subscriber".to_owned(),
            subscribers => format!("{subscribers} subscribers"),
        },
        is_plotted: is_longest && ends.contains(&Some(&subscribers)),
        ..Row::new(cell.load.name(), flavor.title())
    };
    for (label, results) in &cell.results {
        row.record(label, Metric::Rate, results.rate(messages));
        if let Some(allocations) = results.allocations {
            let each = allocations / f64::from(messages);
            row.record_value(label, Metric::Allocations, each);
        }
        row.record_value(label, Metric::Bytes, results.bytes / f64::from(messages));
    }
    for (own, rivals) in RIVALS {
        let reference = match *own {
            ONE_TYPE => REFERENCE_ONE_TYPE,
            SHARED => Form::Shared.reference(),
            _ => Form::Exclusive.reference(),
        };
        row.compare(own, reference, Metric::Rate, Rule::Never);
        for rival in *rivals {
            row.compare(own, rival, Metric::Rate, Rule::Median);
        }
    }
    row
}

/// Column of the allocations for each additional message.
pub(super) const FURTHER: &str = "further message";

pub(super) fn allocations_name(flavor: Flavor, column: &str) -> String {
    format!("allocations-{}-{column}", flavor.name())
}

/// Returns the allocations of a flavor, for each number of messages and for each further message. They are the
/// maximum over all numbers of subscribers. A further message is the difference between the two longest runs, so a
/// subject's one-time allocations do not count.
pub(super) fn allocations(flavor: Flavor, cells: &[Cell], sizes: &Sizes) -> Vec<Row> {
    let row = |name: String, column: &str, metric, value: &dyn Fn(&str) -> Option<f64>| {
        let mut row = Row {
            title: flavor.title().to_owned(),
            column: column.to_owned(),
            headline: metric,
            is_plotted: false,
            ..Row::new(name, "Per message, by messages")
        };
        for form in Form::BOTH {
            for system in [form.fanline(), form.reference()] {
                if let Some(value) = value(system) {
                    row.record_value(system, metric, value);
                }
            }
        }
        row
    };
    let of = |system: &str, messages, subscribers| -> Option<Measurements> {
        let load = Load {
            flavor,
            calls: Calls::Next,
            messages,
            subscribers,
        };
        let cell = cells.iter().find(|cell| cell.load == load)?;
        let result = cell.results.iter().find(|result| result.0 == system)?;
        Some(result.1)
    };
    let mut rows = Vec::new();
    for messages in sizes.messages {
        let column = count(*messages as usize);
        let worst = |system: &str| {
            let all = sizes.subscribers.iter();
            let all =
                all.filter_map(|subscribers| of(system, *messages, *subscribers)?.allocations);
            all.max_by(f64::total_cmp)
                .map(|most| most / f64::from(*messages))
        };
        let name = allocations_name(flavor, &column);
        rows.push(row(name, &column, Metric::Allocations, &worst));
    }
    let growth = |system: &str| {
        let [.., fewer, more] = *sizes.messages else {
            return None;
        };
        let further = f64::from(more - fewer);
        let growth = sizes.subscribers.iter().filter_map(|subscribers| {
            let (short, long) = (
                of(system, fewer, *subscribers)?,
                of(system, more, *subscribers)?,
            );
            let allocations = long.allocations? - short.allocations?;
            Some((allocations / further, (long.bytes - short.bytes) / further))
        });
        growth.max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let further = |system: &str| Some(growth(system)?.0);
    let name = allocations_name(flavor, FURTHER);
    rows.push(row(name, FURTHER, Metric::Allocations, &further));
    let bytes = |system: &str| Some(growth(system)?.1);
    let name = format!("bytes-{}-bytes of it", flavor.name());
    rows.push(row(name, "bytes of it", Metric::Bytes, &bytes));
    rows
}

pub(super) fn notes(plan: &Plan) -> Vec<String> {
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
