//! The results as JSON, for other programs.

use serde_json::{Value, json};

use super::measure::{Report, Row};

/// Returns every result, with ratios and verdicts. Times are in nanoseconds.
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
    let systems = row.results.iter().map(|(label, results)| {
        json!({
            "system": label,
            "results": results,
            "fanline_takes_times": row.times_as_long_as(label),
        })
    });
    json!({
        "case": row.case.name,
        "items": row.case.items,
        "systems": systems.collect::<Value>(),
        "target": {
            "against": row.case.target.against,
            "measured": row.measured(),
            "target": row.case.target.describe(),
            "verdict": row.verdict().label(),
        },
        "quoted": {
            "rx_2011": quoted.rx_2011,
            "rx_net": quoted.rx_net,
            "rxjava": quoted.rxjava,
        },
    })
}
