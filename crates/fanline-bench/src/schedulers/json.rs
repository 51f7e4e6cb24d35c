//! The figures as JSON for other programs.

use serde_json::{Value, json};

use super::measure::{Report, Row};

/// Returns every figure, with ratios and verdicts. Times are in nanoseconds.
pub(super) fn value(report: &Report) -> Value {
    json!({
        "machine": report.machine,
        "command": report.command,
        "plan": report.plan,
        "rxjava": report.rxjava,
        "cases": report.rows.iter().map(row).collect::<Value>(),
    })
}

fn row(row: &Row) -> Value {
    let quoted = &row.case.quoted;
    let systems = row.figures.iter().map(|(label, figures)| {
        json!({
            "system": label,
            "figures": figures,
            "fanline_takes_times": row.times_as_long_as(label),
        })
    });
    json!({
        "case": row.case.name,
        "items": row.case.items,
        "systems": systems.collect::<Value>(),
        "bar": {
            "against": row.case.bar.against,
            "measured": row.measured(),
            "bar": row.case.bar.describe(),
            "verdict": row.verdict().label(),
        },
        "quoted": {
            "rx_2011": quoted.rx_2011,
            "rx_net": quoted.rx_net,
            "rxjava": quoted.rxjava,
        },
    })
}
