//! The results as JSON, for other programs.

use serde_json::{Value, json};

use super::outcome::{Cell, Report};
use super::targets;

/// Returns every result, with shares and verdicts. Times are in nanoseconds. The times, allocations, and
/// bytes of a cell are those of one repetition.
pub(super) fn value(report: &Report) -> Value {
    let targets = targets::lines(report).into_iter().map(|line| {
        let verdicts = line.checks.iter().map(|check| check.verdict().label());
        let verdicts: Vec<&str> = verdicts.collect();
        json!({"target": line, "verdicts": verdicts})
    });
    json!({
        "machine": report.machine,
        "command": report.command,
        "plan": report.plan,
        "rivals": report.rivals,
        "cells": report.cells.iter().map(cell).collect::<Value>(),
        "churn": report.churn,
        "targets": targets.collect::<Value>(),
    })
}

fn cell(cell: &Cell) -> Value {
    let systems = cell.results.iter().map(|(system, results)| {
        let share = system
            .reference()
            .and_then(|reference| cell.ratio(*system, reference));
        json!({
            "system": system.label(),
            "messages_per_second": results.rate(cell.load.messages),
            "share_of_reference": share,
            "results": results,
        })
    });
    json!({"load": cell.load, "systems": systems.collect::<Value>()})
}
