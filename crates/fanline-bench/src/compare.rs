//! `fanline-bench compare`: the results of one command, measured at two times.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use comfy_table::presets;

use crate::report::behind::Better;
use crate::report::metric::{Metric, three_digits};
use crate::report::table::new_table;
use crate::report::{Kind, Report, json};

/// Compared files.
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
    #[arg(long = "metric", value_name = "NAME", value_parser = metric)]
    metrics: Vec<Metric>,
    /// Compare Fanline's ratios to other systems, which depend less on the machine than the results
    #[arg(long)]
    ratios: bool,
}

/// A result that both runs have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) what: String,
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
        true => (ratios(&old, &new), |_, ratio| {
            format!("{}×", three_digits(ratio))
        }),
        false => (results(&old, &new), Metric::format),
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

fn metric(name: &str) -> Result<Metric, String> {
    let value = serde_json::Value::from(name);
    serde_json::from_value(value).map_err(|error| error.to_string())
}

pub(crate) fn results(old: &Report, new: &Report) -> Vec<Change> {
    let mut changes = Vec::new();
    for row in &new.rows {
        let own = row.results.iter();
        for now in own.filter(|result| new.is_kind(&result.system, Kind::Own)) {
            let before = old.row(&row.name);
            let before = before.and_then(|row| row.value(&now.system, now.metric));
            let what = format!("{}, {}", row.label(), now.system);
            changes.extend(before.map(|before| Change {
                what,
                metric: now.metric,
                before,
                now: now.summary.median,
            }));
        }
    }
    changes
}

/// Returns the ratios of Fanline to other systems that both reports have.
pub(crate) fn ratios(old: &Report, new: &Report) -> Vec<Change> {
    let mut changes = Vec::new();
    for row in &new.rows {
        for now in &row.ratios {
            let before = old.row(&row.name).and_then(|row| {
                let is_it = |before: &&crate::report::Ratio| {
                    (&before.system, &before.to, before.metric)
                        == (&now.system, &now.to, now.metric)
                };
                row.ratios.iter().find(is_it)
            });
            let metric = row.metric_title(now.metric);
            let what = format!("{}, {metric}, {} to {}", row.label(), now.system, now.to);
            changes.extend(before.map(|before| Change {
                what,
                metric: now.metric,
                before: before.value,
                now: now.value,
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
    let mut changes = ratios(old, new);
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
    use super::*;
    use crate::report::Row;
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
        let found = results(&old, &new);
        let found: Vec<_> = found
            .iter()
            .map(|change| (change.what.as_str(), change.metric, change.worse()))
            .collect();
        let (row, zero) = ("1 to 1, Fanline", "zero, Fanline");
        let expected = [
            (row, Metric::Rate, 2.0),
            (row, Metric::ServerCpu, 0.5),
            (zero, Metric::Rate, 0.0),
            (zero, Metric::ServerCpu, f64::INFINITY),
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
        assert_eq!(metric("server_cpu"), Ok(Metric::ServerCpu));
        assert!(metric("speed").is_err());
    }
}
