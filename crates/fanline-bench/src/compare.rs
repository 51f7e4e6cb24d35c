//! `fanline-bench compare`: the results of one command, measured at two times.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use comfy_table::presets;

use crate::report::behind::Better;
use crate::report::metric::{Metric, three_digits};
use crate::report::table::new_table;
use crate::report::{Kind, Report, Row, json};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Results of the earlier run
    #[arg(value_name = "OLD.json")]
    old: PathBuf,
    /// Results of the later run
    #[arg(value_name = "NEW.json")]
    new: PathBuf,
    /// List results that are worse than before by more than this ratio
    #[arg(long, value_name = "RATIO", default_value_t = 1.1)]
    slower: f64,
    /// Compare only results of this metric, such as `rate` or `server_cpu`; repeatable
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<Metric>,
    /// Compare Fanline's ratios to other systems, which depend less on the machine than the results
    #[arg(long)]
    ratios: bool,
}

/// A result that both runs have.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    what: String,
    metric: Metric,
    before: f64,
    now: f64,
}

impl Change {
    /// Returns how many times worse the result is than before. It is below 1 if the result is better, infinite
    /// if the result was zero and should be, and NaN if both are zero.
    fn worse(&self) -> f64 {
        match self.metric.better() {
            Better::More => self.before / self.now,
            Better::Less => self.now / self.before,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.slower >= 1.0,
        "--slower must be at least 1, got {}",
        arguments.slower
    );
    let (old, new) = (json::read(&arguments.old)?, json::read(&arguments.new)?);
    let (changes, format): (_, fn(Metric, f64) -> String) = match arguments.ratios {
        true => (changes(&old, &new, ratios), |_, ratio| {
            format!("{}×", three_digits(ratio))
        }),
        false => (changes(&old, &new, results), Metric::format),
    };
    let metrics = &arguments.metrics;
    let is_wanted = |change: &Change| metrics.is_empty() || metrics.contains(&change.metric);
    let changes: Vec<Change> = changes.into_iter().filter(is_wanted).collect();
    ensure!(!changes.is_empty(), "the files have no result in common");
    let worse = |change: &&Change| change.worse() > arguments.slower;
    let mut worse: Vec<&Change> = changes.iter().filter(worse).collect();
    worse.sort_by(|one, other| {
        let metric = one.metric.cmp(&other.metric);
        metric.then(other.worse().total_cmp(&one.worse()))
    });
    let header = ["metric", "result", "before", "now", "worse by"].map(str::to_owned);
    let mut table = new_table(presets::UTF8_FULL_CONDENSED, header.to_vec(), 2);
    for change in &worse {
        table.add_row(vec![
            change.metric.label().to_owned(),
            change.what.clone(),
            format(change.metric, change.before),
            format(change.metric, change.now),
            format!("{}×", three_digits(change.worse())),
        ]);
    }
    if !worse.is_empty() {
        println!("{table}\n");
    }
    println!("Before: `{}`", old.command);
    println!("Now:    `{}`", new.command);
    let ratio = arguments.slower;
    let (count, all) = (worse.len(), changes.len());
    println!("{count} of {all} results are worse by more than {ratio}×.");
    ensure!(worse.is_empty(), "some results are worse than before");
    Ok(())
}

/// A value of a row, with its metric and the name of its system or of both compared systems.
type Value = (String, Metric, f64);

fn results(report: &Report, row: &Row) -> Vec<Value> {
    let results = row.results.iter();
    let own = results.filter(|result| report.is_kind(&result.system, Kind::Own));
    own.map(|result| (result.system.clone(), result.metric, result.summary.median))
        .collect()
}

fn ratios(_: &Report, row: &Row) -> Vec<Value> {
    let ratios = row.ratios.iter();
    ratios
        .map(|ratio| {
            let systems = format!("{} to {}", ratio.system, ratio.to);
            (systems, ratio.metric, ratio.value)
        })
        .collect()
}

/// Returns the values that both reports have.
fn changes(old: &Report, new: &Report, values: fn(&Report, &Row) -> Vec<Value>) -> Vec<Change> {
    let mut changes = Vec::new();
    for row in &new.rows {
        let before = old.row(&row.name).map(|row| values(old, row));
        let before = before.unwrap_or_default();
        for (systems, metric, now) in values(new, row) {
            let is_it = |value: &&Value| (&value.0, value.1) == (&systems, metric);
            changes.extend(before.iter().find(is_it).map(|value| Change {
                what: format!("{}, {}, {systems}", row.label(), row.metric_title(metric)),
                metric,
                before: value.2,
                now,
            }));
        }
    }
    changes
}

/// Returns a summary of how many ratios are the same as before, or `None` if the reports have no ratio in
/// common.
pub(crate) fn summary(old: &Report, new: &Report) -> Option<String> {
    /// Two ratios count as equal if they differ by less than this share. A ratio is not more precise, because
    /// it is computed from the medians of only a few rounds.
    const SAME: f64 = 0.15;
    let distance = |change: &Change| (change.now / change.before).ln().abs();
    let mut changes = changes(old, new, ratios);
    changes.retain(|change| distance(change).is_finite());
    let furthest = changes
        .iter()
        .max_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    let same = changes
        .iter()
        .filter(|change| distance(change) <= SAME.ln_1p());
    Some(format!(
        "{} of {} ratios are within {:.0} % of those before; furthest: {}, {}× was {}×",
        same.count(),
        changes.len(),
        SAME * 100.0,
        furthest.what,
        three_digits(furthest.now),
        three_digits(furthest.before),
    ))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::report::behind::Rule;

    /// Returns a report with rows of the given names, rates, and CPU times of Fanline. The rival's results are
    /// 1.
    fn report(rows: &[(&str, f64, f64)]) -> Report {
        let mut report = Report::new("Title");
        report.add_system("Fanline", Kind::Own, "");
        report.add_system("rival", Kind::Rival, "");
        for (name, rate, cpu) in rows {
            let mut row = Row::new(*name, "group");
            row.title = (*name).to_owned();
            for (metric, value) in [(Metric::Rate, *rate), (Metric::ServerCpu, *cpu)] {
                row.record_value("Fanline", metric, value);
                row.record_value("rival", metric, 1.0);
                row.compare("Fanline", "rival", metric, Rule::Median);
            }
            report.rows.push(row);
        }
        report
    }

    #[test]
    fn worse_results_are_found() {
        let old = report(&[("1 to 1", 4.0, 0.5), ("gone", 2.0, 1.0), ("zero", 0.0, 0.0)]);
        let new = report(&[("1 to 1", 2.0, 0.25), ("new", 2.0, 1.0), ("zero", 1.0, 0.5)]);
        let found = changes(&old, &new, results);
        let found: Vec<_> = found
            .iter()
            .map(|change| (change.what.as_str(), change.metric, change.worse()))
            .collect();
        let (rate, cpu) = (Metric::Rate, Metric::ServerCpu);
        let expected = [
            ("1 to 1, messages/s, Fanline", rate, 2.0),
            ("1 to 1, server CPU, Fanline", cpu, 0.5),
            ("zero, messages/s, Fanline", rate, 0.0),
            ("zero, server CPU, Fanline", cpu, f64::INFINITY),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn largest_change_is_named() {
        let old = report(&[("1 to 1", 4.0, 0.5), ("gone", 2.0, 1.0)]);
        let new = report(&[("1 to 1", 4.4, 0.25), ("new", 2.0, 1.0)]);
        assert_eq!(
            summary(&old, &new).as_deref(),
            Some(
                "1 of 2 ratios are within 15 % of those before; furthest: 1 to 1, server CPU, Fanline to rival, \
                 0.25× was 0.50×"
            )
        );
        assert_eq!(summary(&report(&[]), &new), None);
    }

    #[test]
    fn metrics_have_the_names_of_json() {
        for metric in Metric::value_variants() {
            let name = metric.to_possible_value().unwrap();
            assert_eq!(serde_json::to_value(metric).unwrap(), name.get_name());
        }
    }
}
