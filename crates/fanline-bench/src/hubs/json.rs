//! The results as JSON, for other programs and for resumed runs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::measure::Report;
use super::targets;

/// Writes every result, with the targets.
pub(super) fn save(report: &Report, path: &Path) -> Result<()> {
    let mut value = json!(report);
    let targets = targets::lines(report).into_iter().map(|line| {
        json!({
            "what": line.what,
            "measured": line.measured(),
            "target": line.target(),
            "verdict": line.verdict().label(),
        })
    });
    value["targets"] = targets.collect();
    // Write to another file first. If the write is interrupted, the old file remains.
    let unfinished = path.with_extension("part");
    let text = format!("{value:#}\n");
    fs::write(&unfinished, text).with_context(|| unfinished.display().to_string())?;
    fs::rename(&unfinished, path).with_context(|| path.display().to_string())
}
