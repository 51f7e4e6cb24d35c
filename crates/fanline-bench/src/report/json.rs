//! Reports in files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Report, SCHEMA};

/// Writes a report, one row per line. Writes to another file first, so an interrupted write leaves the old
/// file.
pub(crate) fn save(report: &Report, path: &Path) -> Result<()> {
    let unfinished = path.with_extension("part");
    fs::write(&unfinished, text(report)?).with_context(|| unfinished.display().to_string())?;
    fs::rename(&unfinished, path).with_context(|| path.display().to_string())
}

fn text(report: &Report) -> Result<String> {
    let rows = report.rows.iter().map(serde_json::to_string);
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let head = Report {
        rows: Vec::new(),
        ..report.clone()
    };
    let head = serde_json::to_string_pretty(&head)?;
    // The first occurrence is the field: no field before it contains quotation marks without a backslash.
    let rows = format!("\"rows\": [\n{}\n]", rows.join(",\n"));
    Ok(head.replacen("\"rows\": []", &rows, 1) + "\n")
}

/// Reads a report, which must have this version's schema.
pub(crate) fn read(path: &Path) -> Result<Report> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: Option<u32>,
    }
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| name.to_string())?;
    let head: Head = serde_json::from_str(&text).with_context(|| name.to_string())?;
    ensure!(
        head.schema == Some(SCHEMA),
        "{name}: schema must be {SCHEMA}; measure again with this version"
    );
    serde_json::from_str(&text).with_context(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::behind::Rule;
    use super::super::metric::Metric;
    use super::super::target::{Bound, Target, Unit};
    use super::super::{Kind, Row};
    use super::*;

    #[test]
    fn report_is_read_as_it_was_written() {
        let mut report = Report::new("A \"title\"");
        report.add_system("Fanline", Kind::Own, "1.0");
        report.set("rounds", 5.0);
        for name in ["one", "two"] {
            let mut row = Row::new(name, "\"rows\": []");
            row.record_samples("Fanline", Metric::Rate, vec![1.0, 2.5]);
            row.record_value("other", Metric::Rate, 0.5);
            row.compare("Fanline", "other", Metric::Rate, Rule::Median);
            report.rows.push(row);
        }
        let unit = Unit::Of(Metric::Rate);
        let measured = vec![Some(1.0), None];
        report
            .targets
            .push(Target::new("", measured, Bound::AtMost(2.0), unit));
        let name = format!("fanline-bench-json-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        save(&report, &path).unwrap();
        let again = read(&path);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("\"schema\": 1", "\"schema\": 0", 1)).unwrap();
        let other = read(&path);
        fs::remove_file(&path).unwrap();
        let again = serde_json::to_value(again.unwrap()).unwrap();
        assert_eq!(again, serde_json::to_value(&report).unwrap());
        assert!(other.unwrap_err().to_string().contains("schema must be 1"));
    }
}
