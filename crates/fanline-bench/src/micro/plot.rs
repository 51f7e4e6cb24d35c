//! A plot of the medians.

use super::cases::Result;
use crate::report::lines::{Line, OWN, Section, document};
use crate::report::machine::Machine;
use crate::report::metric::three_digits;

/// Words in the names of cases, and the heading of the group for these cases. All other cases belong to the
/// matcher.
const PARTS: &[(&str, &str)] = &[
    ("match", "Matcher"),
    ("parse", "Parser"),
    ("shard", "Shard"),
    ("store", "Store"),
];

/// Returns the plot as an SVG document. The length of bars is logarithmic, because the slowest case takes a
/// million times as long as the fastest.
pub(super) fn svg(results: &[Result], machine: &Machine) -> String {
    let length = |result: &Result| result.results.nanos.median.max(1.0).log10();
    let longest = results.iter().map(length).fold(f64::MIN_POSITIVE, f64::max);
    let part_of = |result: &Result| {
        let is_of = |part: &&(&str, &str)| result.case.name.contains(part.0);
        PARTS.iter().find(is_of).map_or("Matcher", |part| part.1)
    };
    let sections = PARTS.iter().map(|(_, heading)| {
        let of_part = results.iter().filter(|result| part_of(result) == *heading);
        let lines = of_part.map(|result| Line {
            name: result.case.name.to_owned(),
            share: length(result) / longest,
            words: words(result),
            fill: OWN,
        });
        Section {
            heading: (*heading).to_owned(),
            lines: lines.collect(),
        }
    });
    let sections: Vec<_> = sections
        .filter(|section| !section.lines.is_empty())
        .collect();
    let Machine { cores, cpu, kernel } = machine;
    document(
        "The engine's parts: time and bytes allocated for each operation",
        "logarithmic, less is better",
        &sections,
        &format!("{cores} cores, {cpu}, Linux {kernel}; one thread, medians"),
    )
}

fn words(result: &Result) -> String {
    let bytes = match result.results.bytes {
        0.0 => "0".to_owned(),
        bytes => three_digits(bytes),
    };
    format!(
        "{} ns, {bytes} B",
        three_digits(result.results.nanos.median)
    )
}
