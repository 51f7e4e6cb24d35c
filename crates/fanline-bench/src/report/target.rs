//! Targets, which were set before measuring, and whether they were met.

use serde::{Deserialize, Serialize};

use super::Row;
use super::metric::{Metric, three_digits};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) what: String,
    /// Description of the cells to which the results belong, if there is more than one.
    pub(crate) cells: String,
    pub(crate) measured: Vec<Option<f64>>,
    pub(crate) bound: Bound,
    pub(crate) unit: Unit,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// A multiple of another result.
    Times,
    Share,
    Of(Metric),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// Unknown, because a system was not measured or failed.
    Unknown,
}

/// A target for a result of one of Fanline's systems.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    metric: Metric,
    /// The system by whose result Fanline's result is divided.
    to: Option<&'static str>,
    bound: Bound,
    /// Whether the target is for the worst run, instead of the median.
    is_worst: bool,
}

impl Limit {
    pub(crate) const fn at_least(metric: Metric, least: f64) -> Self {
        Self {
            metric,
            to: None,
            bound: Bound::AtLeast(least),
            is_worst: false,
        }
    }

    pub(crate) const fn at_most(metric: Metric, most: f64) -> Self {
        Self {
            bound: Bound::AtMost(most),
            ..Self::at_least(metric, 0.0)
        }
    }

    /// Returns the same target as a multiple of another system's result.
    pub(crate) const fn to(self, system: &'static str) -> Self {
        Self {
            to: Some(system),
            ..self
        }
    }

    /// Returns the same target for the largest result of all runs.
    pub(crate) const fn worst(self) -> Self {
        Self {
            is_worst: true,
            ..self
        }
    }

    fn unit(self) -> Unit {
        match self.to {
            Some(_) => Unit::Times,
            None => Unit::Of(self.metric),
        }
    }

    pub(crate) fn list(limits: &[Self]) -> String {
        let words = limits.iter().map(|limit| {
            let bound = limit.bound.words(limit.unit());
            let which = if limit.is_worst { "worst" } else { "" };
            let words = [
                which,
                limit.metric.label(),
                &bound,
                limit.to.unwrap_or_default(),
            ];
            words.join(" ").trim().to_owned()
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// Returns the target with the result of `own`. If a run of it failed, the target is missed.
    pub(crate) fn check(self, row: &Row, own: &str) -> Target {
        let measured = match self.to {
            Some(other) => row.ratio(own, other, self.metric),
            None if self.is_worst => row.summary(own, self.metric).map(|summary| summary.max),
            None => row.value(own, self.metric),
        };
        let to = self.to.map(|to| format!(", to {to}"));
        let metric = row.metric_title(self.metric);
        let which = if self.is_worst { "worst " } else { "" };
        let what = format!("{}, {which}{metric}{}", row.label(), to.unwrap_or_default());
        let mut target = Target::new(what, vec![measured], self.bound, self.unit());
        if row.has_failed(own) {
            target.verdict = Verdict::Missed;
        }
        target
    }
}

impl Bound {
    pub(crate) fn is_met(self, measured: f64) -> bool {
        match self {
            Self::AtLeast(least) => measured >= least,
            Self::AtMost(most) => measured <= most,
        }
    }

    pub(crate) fn words(self, unit: Unit) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {}", unit.format(least)),
            Self::AtMost(most) => format!("≤ {}", unit.format(most)),
        }
    }
}

impl Unit {
    pub(crate) fn format(self, value: f64) -> String {
        match self {
            Self::Times => format!("{}×", three_digits(value)),
            Self::Share => format!("{:.0} %", value * 100.0),
            Self::Of(metric) => metric.format(value),
        }
    }
}

impl Verdict {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Unknown => "unknown",
        }
    }
}

impl Target {
    /// Creates a target with the results of all its cells. It is missed if one cell misses it, and unknown if
    /// a cell has no result.
    pub(crate) fn new(
        what: impl Into<String>,
        measured: Vec<Option<f64>>,
        bound: Bound,
        unit: Unit,
    ) -> Self {
        let is_met = |value: &f64| bound.is_met(*value);
        let verdict = if !measured.iter().flatten().all(is_met) {
            Verdict::Missed
        } else if measured.is_empty() || measured.contains(&None) {
            Verdict::Unknown
        } else {
            Verdict::Met
        };
        Self {
            what: what.into(),
            cells: String::new(),
            measured,
            bound,
            unit,
            verdict,
        }
    }

    pub(crate) fn of_cells(self, cells: impl Into<String>) -> Self {
        Self {
            cells: cells.into(),
            ..self
        }
    }

    pub(crate) fn measured(&self) -> String {
        let words = self.measured.iter().map(|result| match result {
            Some(value) => self.unit.format(*value),
            None => "–".to_owned(),
        });
        words.collect::<Vec<_>>().join(" / ")
    }

    pub(crate) fn bound(&self) -> String {
        self.bound.words(self.unit)
    }
}

/// Returns a text such as "3 met, 2 missed, 1 unknown".
pub(crate) fn count(targets: &[Target]) -> String {
    let count = |wanted| {
        let all = targets.iter().map(|target| target.verdict);
        all.filter(|verdict| *verdict == wanted).count()
    };
    format!(
        "{} met, {} missed, {} unknown",
        count(Verdict::Met),
        count(Verdict::Missed),
        count(Verdict::Unknown)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &Target, verdict: Verdict, words: &str) {
        assert_eq!(target.verdict.label(), verdict.label());
        let text = format!("{} ({})", target.measured(), target.bound());
        assert_eq!(text, words);
    }

    #[test]
    fn target_is_met_if_all_cells_are() {
        let (met, missed, unknown) = (Verdict::Met, Verdict::Missed, Verdict::Unknown);
        for (results, verdict, words) in [
            ([Some(4.8), Some(10.0)], met, "4.80× / 10.0× (≥ 4.80×)"),
            ([Some(5.0), Some(4.7)], missed, "5.00× / 4.70× (≥ 4.80×)"),
            ([Some(5.0), None], unknown, "5.00× / – (≥ 4.80×)"),
            ([Some(4.0), None], missed, "4.00× / – (≥ 4.80×)"),
        ] {
            let target = Target::new("", results.to_vec(), Bound::AtLeast(4.8), Unit::Times);
            check(&target, verdict, words);
        }
    }

    #[test]
    fn target_reports_verdict() {
        use Bound::{AtLeast, AtMost};
        use Unit::{Share, Times};
        use Verdict::{Met, Missed, Unknown};
        let (few, pair) = (Unit::Of(Metric::Allocations), Unit::Of(Metric::Pair));
        for (measured, bound, unit, verdict, words) in [
            (Some(0.61), AtLeast(0.6), Share, Met, "61 % (≥ 60 %)"),
            (Some(5.9), AtLeast(6.0), Times, Missed, "5.90× (≥ 6.00×)"),
            (None, AtLeast(6.0), Times, Unknown, "– (≥ 6.00×)"),
            (Some(0.0), AtMost(0.0), few, Met, "0 (≤ 0)"),
            (
                Some(0.000_244),
                AtMost(0.001),
                few,
                Met,
                "0.000244 (≤ 0.001000)",
            ),
            (
                Some(151.0),
                AtMost(150.0),
                pair,
                Missed,
                "151 ns (≤ 150 ns)",
            ),
        ] {
            check(
                &Target::new("", vec![measured], bound, unit),
                verdict,
                words,
            );
        }
    }

    #[test]
    fn failed_run_misses_targets() {
        let alone = Limit::at_most(Metric::Ready, 2.0);
        let check = |limit: Limit, row: &Row| limit.check(row, "Fanline").verdict;
        let mut row = Row::new("row", "group");
        row.record_value("Fanline", Metric::Ready, 3.0);
        row.record_value("other", Metric::Ready, 2.0);
        assert_eq!(check(alone, &row), Verdict::Missed);
        assert_eq!(check(alone.to("other"), &row), Verdict::Met);
        assert_eq!(check(alone.to("absent"), &row), Verdict::Unknown);
        let mut runs = Row::new("row", "group");
        runs.record_samples("Fanline", Metric::Ready, vec![1.0, 1.0, 3.0]);
        assert_eq!(check(alone, &runs), Verdict::Met);
        assert_eq!(check(alone.worst(), &runs), Verdict::Missed);
        row.fail("Fanline", "");
        assert_eq!(check(alone.to("other"), &row), Verdict::Missed);
    }

    #[test]
    fn verdicts_are_counted() {
        let target = |measured| Target::new("", measured, Bound::AtMost(1.0), Unit::Times);
        let all = [Some(1.0), Some(1.1), None, Some(0.5)].map(|result| target(vec![result]));
        assert_eq!(count(&all), "2 met, 1 missed, 1 unknown");
    }
}
