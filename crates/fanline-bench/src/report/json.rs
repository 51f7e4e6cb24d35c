//! The results as JSON, for other programs.

use serde_json::{Value, json};

use super::metric::{Metric, Sample};
use super::{Bound, Report, Row};
use crate::servers::System;

/// Returns every sample, with medians, ratios, and verdicts. Times are in nanoseconds, and memory is in
/// bytes.
pub(crate) fn value(report: &Report) -> Value {
    let programs = report.programs.iter().map(|program| {
        json!({
            "system": program.system,
            "version": program.version,
            "command": program.command_line(),
        })
    });
    json!({
        "machine": report.machine,
        "command": report.command,
        "programs": programs.collect::<Value>(),
        "rounds": report.pairs,
        "seconds": report.duration.as_secs_f64(),
        "remarks": report.remarks,
        "rows": report.rows.iter().map(row).collect::<Value>(),
    })
}

fn row(row: &Row) -> Value {
    let failures = row.failures.iter();
    let failures = failures.map(|(system, why)| json!({"system": system, "why": why}));
    let ratios = Metric::ALL.iter().filter_map(|metric| {
        let ratio = row.ratio(*metric)?;
        Some(json!({"metric": metric, "ratio": ratio}))
    });
    let targets = row.case.targets.iter().map(|target| {
        let (bound, limit) = match target.bound {
            Bound::AtLeast(limit) => ("at_least", limit),
            Bound::AtMost(limit) => ("at_most", limit),
        };
        json!({
            "metric": target.metric,
            "of": target.of,
            bound: limit,
            "verdict": row.verdict(*target).label(),
        })
    });
    let mut value = json!({
        "shape": row.case.name,
        "title": row.case.title,
        "nats": system(row, System::Nats),
        "fanline": system(row, System::Fanline),
        "ratios": ratios.collect::<Value>(),
        "targets": targets.collect::<Value>(),
        "failures": failures.collect::<Value>(),
    });
    if row.samples(System::Mosquitto).next().is_some() {
        value["mosquitto"] = system(row, System::Mosquitto);
    }
    value
}

fn system(row: &Row, system: System) -> Value {
    let summaries = Metric::ALL.iter().filter_map(|metric| {
        let summary = row.summary(system, *metric)?;
        Some(json!({"metric": metric, "summary": summary}))
    });
    let samples: Vec<&Sample> = row.samples(system).collect();
    json!({"summaries": summaries.collect::<Value>(), "samples": samples})
}
