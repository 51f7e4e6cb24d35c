//! The report as text. The lines are the same for a terminal and in Markdown.
//!
//! Rows with the same group are one table. It has a line for each title and system, and a line for each
//! ratio. Its columns are those of the rows, with their headline results. Rows without a column have a column
//! for each metric.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, TableStyle, presets};

use super::metric::{Metric, spread, three_digits};
use super::target::{self, Target};
use super::{Kind, Ratio, Report, Row, behind};

pub(crate) fn terminal(report: &Report) -> String {
    page(report, presets::UTF8_FULL_CONDENSED, "", "")
}

pub(crate) fn markdown(report: &Report) -> String {
    let page = page(report, presets::ASCII_MARKDOWN, "## ", "- ");
    format!("# {}\n\n{page}", report.title)
}

/// Returns an empty table. The first `words` columns are for text, and the other columns for results.
pub(crate) fn new_table(style: TableStyle, header: Vec<String>, words: usize) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(header);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn page(report: &Report, style: TableStyle, heading: &str, bullet: &str) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    if !report.targets.is_empty() {
        let table = targets(&report.targets, style);
        let _ = writeln!(text, "{heading}Targets\n\n{table}\n");
    }
    for group in groups(report) {
        let title = group.heading();
        let _ = writeln!(text, "{heading}{title}\n\n{}\n", group.table(style));
    }
    for note in notes(report) {
        let _ = writeln!(text, "{bullet}{note}");
    }
    text
}

fn targets(targets: &[Target], style: TableStyle) -> Table {
    let header = ["what", "cells", "measured", "target", "verdict"].map(str::to_owned);
    let has_cells = targets.iter().any(|target| !target.cells.is_empty());
    let is_shown = |column: usize| column != 1 || has_cells;
    let line = |cells: [String; 5]| {
        let cells = cells.into_iter().enumerate();
        let cells = cells.filter(|(column, _)| is_shown(*column));
        cells.map(|(_, cell)| cell).collect::<Vec<_>>()
    };
    let mut table = new_table(style, line(header), 5);
    for target in targets {
        table.add_row(line([
            target.what.clone(),
            target.cells.clone(),
            target.measured(),
            target.bound(),
            target.verdict.label().to_owned(),
        ]));
    }
    table
}

struct Group<'a> {
    report: &'a Report,
    rows: Vec<&'a Row>,
    /// Whether the rows have columns.
    is_grid: bool,
    /// The columns of the table. In a grid the metric is the rows' headline.
    columns: Vec<(&'a str, Metric)>,
}

/// Returns the groups that have results, in the order of their first rows.
fn groups(report: &Report) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &report.rows {
        if row.results.is_empty() && row.failures.is_empty() {
            continue;
        }
        match groups
            .iter_mut()
            .find(|group| group.rows[0].group == row.group)
        {
            Some(group) => group.rows.push(row),
            None => groups.push(Group {
                report,
                rows: vec![row],
                is_grid: !row.column.is_empty(),
                columns: Vec::new(),
            }),
        }
    }
    for group in &mut groups {
        group.columns = group.find_columns();
    }
    groups
}

impl<'a> Group<'a> {
    fn find_columns(&self) -> Vec<(&'a str, Metric)> {
        let mut columns = Vec::new();
        let mut metrics = Vec::new();
        for row in &self.rows {
            let column = (row.column.as_str(), row.headline);
            if self.is_grid && !columns.contains(&column) {
                columns.push(column);
            }
            metrics.extend(row.results.iter().map(|result| result.metric));
        }
        if !self.is_grid {
            metrics.sort_unstable();
            metrics.dedup();
            columns.extend(metrics.into_iter().map(|metric| ("", metric)));
        }
        columns
    }

    fn heading(&self) -> String {
        let first = self.rows[0];
        match self.is_grid {
            true => format!("{}: {}", first.group, first.metric_title(first.headline)),
            false => first.group.clone(),
        }
    }

    /// Returns the unit of the rate that all rows have, if they have the same.
    fn rate(&self) -> Option<&str> {
        let mut rates = self.rows.iter().map(|row| row.rate.as_str());
        let first = rates.next()?;
        rates.all(|rate| rate == first).then_some(first)
    }

    fn table(&self, style: TableStyle) -> Table {
        let has_titles = self.rows.iter().any(|row| !row.title.is_empty());
        let has_failures = self.rows.iter().any(|row| !row.failures.is_empty());
        let has_systems = has_failures || self.report.systems.len() > 1;
        let mut header = Vec::new();
        header.extend(has_titles.then(|| "load".to_owned()));
        header.extend(has_systems.then(|| "system".to_owned()));
        header.extend(self.columns.iter().map(|(column, metric)| {
            let title = match (metric, self.rate()) {
                (Metric::Rate, Some(rate)) => rate,
                _ => metric.label(),
            };
            if self.is_grid { column } else { title }.to_owned()
        }));
        let words = usize::from(has_systems) + usize::from(has_titles);
        let mut table = new_table(style, header, words);
        let mut titles: Vec<&str> = Vec::new();
        for row in &self.rows {
            if titles.contains(&row.title.as_str()) {
                continue;
            }
            titles.push(&row.title);
            let mut title = row.title.clone();
            for (label, cells) in self.lines(&row.title) {
                let mut line = Vec::new();
                line.extend(has_titles.then(|| std::mem::take(&mut title)));
                line.extend(has_systems.then_some(label));
                line.extend(cells);
                table.add_row(line);
            }
        }
        table
    }

    /// Returns the lines of the rows with one title: a line for each system, then the ratios.
    fn lines(&self, title: &str) -> Vec<(String, Vec<String>)> {
        let rows = self.rows.iter().filter(|row| row.title == title).copied();
        let rows: Vec<&Row> = rows.collect();
        let mut lines = Vec::new();
        for system in &self.report.systems {
            let name = system.name.as_str();
            let failed = rows.iter().flat_map(|row| &row.failures);
            let failed = failed.filter(|failure| failure.system == name).count();
            let cells = self.cells(&rows, |row, metric| self.result(row, name, metric));
            if failed > 0 {
                let label = format!("{name}, FAILED runs: {failed}");
                lines.push((label, cells));
            } else if cells.iter().any(|cell| !cell.is_empty()) {
                lines.push((name.to_owned(), cells));
            }
        }
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for ratio in rows.iter().flat_map(|row| &row.ratios) {
            let pair = (ratio.system.as_str(), ratio.to.as_str());
            if !pairs.contains(&pair) && !self.is_in_parentheses(ratio) {
                pairs.push(pair);
            }
        }
        for (system, to) in pairs {
            let cells = self.cells(&rows, |row, metric| {
                let ratio = self.ratio(row, metric, |ratio| {
                    ratio.system == system && ratio.to == to
                })?;
                Some(format!("{}×", three_digits(ratio.value)))
            });
            lines.push((format!("{system} to {to}"), cells));
        }
        lines
    }

    fn cells(&self, rows: &[&Row], text: impl Fn(&Row, Metric) -> Option<String>) -> Vec<String> {
        let cells = self.columns.iter().map(|(column, metric)| {
            let row = rows.iter().find(|row| row.column == *column)?;
            text(row, *metric)
        });
        cells.map(Option::unwrap_or_default).collect()
    }

    /// Returns a median. In parentheses follow its range, or in a grid its share of the reference.
    fn result(&self, row: &Row, system: &str, metric: Metric) -> Option<String> {
        let summary = row.summary(system, metric)?;
        let is_mixed = metric == Metric::Rate && self.rate().is_none() && !self.is_grid;
        let unit = if is_mixed {
            format!(" {}", row.rate)
        } else {
            String::new()
        };
        let median = metric.format(summary.median);
        let is_share = |ratio: &Ratio| ratio.system == system && self.is_in_parentheses(ratio);
        let share = self.ratio(row, metric, is_share);
        Some(match share {
            Some(share) => format!("{median} ({:.0} %)", share.value * 100.0),
            None if !self.is_grid && summary.min < summary.max => {
                let (min, max) = (metric.format(summary.min), metric.format(summary.max));
                format!("{median}{unit} ({min}..{max})")
            }
            None => median + &unit,
        })
    }

    fn ratio<'r>(
        &self,
        row: &'r Row,
        metric: Metric,
        is_wanted: impl Fn(&Ratio) -> bool,
    ) -> Option<&'r Ratio> {
        let mut ratios = row.ratios.iter();
        ratios.find(|ratio| ratio.metric == metric && is_wanted(ratio))
    }

    /// Returns whether a cell of the system contains the ratio, instead of a line of its own.
    fn is_in_parentheses(&self, ratio: &Ratio) -> bool {
        self.is_grid && self.report.is_kind(&ratio.to, Kind::Reference)
    }
}

fn notes(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if !report.targets.is_empty() {
        lines.push(format!("Targets: {}.", target::count(&report.targets)));
    }
    lines.push(format!("Machine: {}.", report.machine));
    let systems = report.systems.iter();
    let systems = systems.filter(|system| !system.version.is_empty());
    lines.extend(systems.map(|system| format!("{}: {}.", system.name, system.version)));
    lines.extend(report.notes.iter().cloned());
    let results = report.rows.iter().flat_map(|row| &row.results);
    let ranges = results.map(|result| result.summary);
    lines.extend(spread(ranges.filter(|range| range.min < range.max)));
    lines.push(format!("Command: `{}`", report.command));
    lines.extend(losses(report));
    lines
}

/// Returns the failed runs, and the results in which another system is better.
pub(crate) fn losses(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &report.rows {
        let label = row.label();
        let failures = row.failures.iter();
        lines.extend(failures.map(|failure| {
            let (system, error) = (&failure.system, &failure.error);
            format!("FAILED: {label}, {system}: {error}.")
        }));
    }
    for row in &report.rows {
        for ratio in row.ratios.iter().filter(|ratio| ratio.is_behind) {
            let own = match report
                .systems
                .iter()
                .filter(|one| one.kind == Kind::Own)
                .count()
            {
                1 => String::new(),
                _ => format!("{}, ", ratio.system),
            };
            let what = format!("{own}{}, {}", row.label(), row.metric_title(ratio.metric));
            lines.push(behind::line(&ratio.to, &what, ratio.value));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::behind::Rule;
    use super::*;

    /// Returns a report with a row for each name and column. The rival's rate is half of Fanline's, and the
    /// reference loop's rate is double.
    fn report(rows: &[(&str, &str)]) -> Report {
        let mut report = Report::new("Title");
        report.add_system("rival", Kind::Rival, "2.0");
        report.add_system("Fanline", Kind::Own, "");
        report.add_system("loop", Kind::Reference, "");
        for (title, column) in rows {
            let mut row = Row::new(format!("{title} {column}"), "Group");
            row.title = (*title).to_owned();
            row.column = (*column).to_owned();
            row.record_samples("rival", Metric::Rate, vec![400.0, 500.0, 600.0]);
            row.record_samples("Fanline", Metric::Rate, vec![900.0, 1000.0, 1100.0]);
            row.record_value("loop", Metric::Rate, 2000.0);
            row.record_value("Fanline", Metric::ServerCpu, 9.0);
            for other in ["rival", "loop"] {
                row.compare("Fanline", other, Metric::Rate, Rule::Median);
            }
            report.rows.push(row);
        }
        report
    }

    /// Returns the lines of the tables, without spaces between cells.
    fn lines(report: &Report) -> Vec<String> {
        let page = markdown(report);
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let cells = |line: &str| {
            let cells = line.split('|').map(str::trim);
            cells.collect::<Vec<_>>().join("|")
        };
        rows.map(cells).collect()
    }

    #[test]
    fn metrics_are_columns_if_rows_have_none() {
        let mut report = report(&[("1 to 1", "")]);
        report.rows[0].fail("rival", "too slow");
        let expected = [
            "|load|system|messages/s|server CPU|",
            "|1 to 1|rival, FAILED runs: 1|500 (400..600)||",
            "||Fanline|1.00 K (900..1.10 K)|9.00 ns|",
            "||loop|2.00 K||",
            "||Fanline to rival|2.00×||",
            "||Fanline to loop|0.50×||",
        ];
        assert_eq!(lines(&report), expected);
        let page = markdown(&report);
        assert!(page.starts_with("# Title\n\n## Group\n\n"), "{page}");
        for note in [
            "- rival: 2.0.",
            "- FAILED: 1 to 1, rival: too slow.",
            "- Behind loop: 1 to 1, messages/s, 0.50×.",
        ] {
            assert!(page.lines().any(|line| line == note), "{note}\n{page}");
        }
    }

    #[test]
    fn rows_with_columns_are_a_grid() {
        let report = report(&[("", "1 consumer"), ("", "2 consumers")]);
        let expected = [
            "|system|1 consumer|2 consumers|",
            "|rival|500|500|",
            "|Fanline|1.00 K (50 %)|1.00 K (50 %)|",
            "|loop|2.00 K|2.00 K|",
            "|Fanline to rival|2.00×|2.00×|",
        ];
        assert_eq!(lines(&report), expected);
        assert!(markdown(&report).contains("## Group: messages/s\n"));
    }

    #[test]
    fn units_of_mixed_rates_are_in_cells() {
        let mut report = report(&[("one", ""), ("two", "")]);
        report.rows[1].rate = "deliveries/s".to_owned();
        let lines = lines(&report);
        assert_eq!(lines[0], "|load|system|rate|server CPU|");
        assert_eq!(lines[1], "|one|rival|500 messages/s (400..600)||");
        assert_eq!(lines[6], "|two|rival|500 deliveries/s (400..600)||");
    }
}
