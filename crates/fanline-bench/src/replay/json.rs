//! The figures as JSON for other programs.

use serde_json::{Value, json};

use super::bars;
use super::outcome::{Cell, Report};

/// Returns every figure, with shares and verdicts. Times are in nanoseconds. Times, allocations, and bytes of
/// a cell are per repetition.
pub(super) fn value(report: &Report) -> Value {
    let bars = bars::lines(report).into_iter().map(|line| {
        let verdicts = line.checks.iter().map(|check| check.verdict().label());
        let verdicts: Vec<&str> = verdicts.collect();
        json!({"bar": line, "verdicts": verdicts})
    });
    json!({
        "machine": report.machine,
        "command": report.command,
        "plan": report.plan,
        "rivals": report.rivals,
        "cells": report.cells.iter().map(cell).collect::<Value>(),
        "churn": report.churn,
        "bars": bars.collect::<Value>(),
    })
}

fn cell(cell: &Cell) -> Value {
    let systems = cell.figures.iter().map(|(system, figures)| {
        let share = system.limit().and_then(|limit| cell.ratio(*system, limit));
        json!({
            "system": system.label(),
            "messages_per_second": figures.rate(cell.load.messages),
            "share_of_limit": share,
            "figures": figures,
        })
    });
    json!({"load": cell.load, "systems": systems.collect::<Value>()})
}
