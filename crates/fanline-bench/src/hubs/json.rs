//! The figures as JSON, for other programs and for resumed runs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::bars;
use super::measure::Report;

/// Writes every figure, with the bars.
pub(super) fn save(report: &Report, path: &Path) -> Result<()> {
    let mut value = json!(report);
    let bars = bars::lines(report).into_iter().map(|line| {
        json!({
            "what": line.what,
            "measured": line.measured(),
            "bar": line.bar(),
            "verdict": line.verdict().label(),
        })
    });
    value["bars"] = bars.collect();
    // A run that is interrupted during the write keeps the old file.
    let unfinished = path.with_extension("part");
    let text = format!("{value:#}\n");
    fs::write(&unfinished, text).with_context(|| unfinished.display().to_string())?;
    fs::rename(&unfinished, path).with_context(|| path.display().to_string())
}
