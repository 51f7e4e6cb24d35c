//! The results of one run and their formats.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::behind::Better;

/// Kind of a result. Files and the command line use the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Messages, requests, or other units per second; for a fan-out, deliveries per second
    Rate,
    /// The rate with permissions, divided by the rate without.
    AgainstOpen,
    /// Median time from request to reply, or from a send to its receipt, in nanoseconds.
    P50,
    /// 99th percentile of the time from request to reply, in nanoseconds.
    P99,
    /// 99.9th percentile of the time from request to reply, in nanoseconds.
    P999,
    /// Time of one run of the load, in nanoseconds.
    Time,
    /// Time of one operation, in nanoseconds.
    Operation,
    /// Time of one delivery, in nanoseconds.
    Delivery,
    /// Time of a subscription and its end, in nanoseconds.
    Pair,
    /// CPU nanoseconds of the server per message or request.
    ServerCpu,
    /// CPU nanoseconds of the generator per message or request.
    GeneratorCpu,
    /// Resident memory of the server while its idle connections are open, in bytes.
    IdleMemory,
    /// Resident memory per idle connection, in bytes.
    ConnectionMemory,
    /// Time from the start of the process to its first correct response, in nanoseconds.
    Ready,
    /// Resident memory per stored message, in bytes.
    MessageMemory,
    /// Resident memory per stored subject with one message, in bytes, without the bytes of the subject
    /// itself; or per subject of the library.
    SubjectMemory,
    /// Resident memory per item of the row, in bytes.
    ItemMemory,
    /// Disk space per stored message, in bytes.
    MessageDisk,
    /// Allocations per message, element, or operation.
    Allocations,
    /// Allocated bytes per message, consumer, or operation.
    Bytes,
    /// Peak resident memory of the server, in bytes.
    PeakMemory,
    Elements,
    /// Time of one sync of the disk, measured without a server, in nanoseconds.
    Sync,
    /// [`P50`](Self::P50), divided by two syncs and 0.3 ms.
    AgainstSyncs,
    /// Time without acknowledgements after the end of a leader, in nanoseconds.
    Outage,
    /// CPU nanoseconds of idle servers per second.
    IdleCpu,
    /// The same, divided by that without the row's items.
    IdleCpuAgainstNone,
    /// Bytes per second over the loopback interface while the servers are idle.
    IdleTraffic,
    /// The same, divided by that without the row's items.
    IdleTrafficAgainstNone,
    /// Size of a stripped program, in bytes, without that of an empty one.
    CodeSize,
    /// Time of a build without its dependencies, in nanoseconds.
    CompileTime,
}

impl Metric {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::AgainstOpen => "against open",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Time => "time",
            Self::Operation => "time per operation",
            Self::Delivery => "time per delivery",
            Self::Pair => "time per pair",
            Self::ServerCpu => "server CPU",
            Self::GeneratorCpu => "generator CPU",
            Self::IdleMemory => "memory",
            Self::ConnectionMemory => "per connection",
            Self::Ready => "ready after",
            Self::MessageMemory => "memory per message",
            Self::SubjectMemory => "memory per subject",
            Self::ItemMemory => "memory each",
            Self::MessageDisk => "disk per message",
            Self::Allocations => "allocations",
            Self::Bytes => "bytes allocated",
            Self::PeakMemory => "peak memory",
            Self::Elements => "elements",
            Self::Sync => "one sync",
            Self::AgainstSyncs => "p50 to 2 syncs + 0.3 ms",
            Self::Outage => "outage",
            Self::IdleCpu => "idle CPU",
            Self::IdleCpuAgainstNone => "idle CPU to none",
            Self::IdleTraffic => "idle traffic",
            Self::IdleTrafficAgainstNone => "idle traffic to none",
            Self::CodeSize => "code size",
            Self::CompileTime => "compile time",
        }
    }

    pub(crate) fn better(self) -> Better {
        match self {
            Self::Rate | Self::AgainstOpen | Self::Elements => Better::More,
            _ => Better::Less,
        }
    }

    pub(crate) fn format(self, value: f64) -> String {
        match self {
            Self::Rate | Self::Elements => si(value),
            Self::AgainstOpen
            | Self::AgainstSyncs
            | Self::IdleCpuAgainstNone
            | Self::IdleTrafficAgainstNone => format!("{}×", three_digits(value)),
            Self::Operation
            | Self::Delivery
            | Self::Pair
            | Self::ServerCpu
            | Self::GeneratorCpu => format!("{} ns", three_digits(value)),
            Self::P50 | Self::P99 | Self::P999 if value < 1e3 => {
                format!("{} ns", three_digits(value))
            }
            Self::P50 | Self::P99 | Self::P999 | Self::Time | Self::Sync => {
                format!("{} µs", three_digits(value / 1e3))
            }
            Self::PeakMemory | Self::IdleMemory => {
                format!("{} MiB", three_digits(value / (1024.0 * 1024.0)))
            }
            Self::ConnectionMemory | Self::CodeSize => {
                format!("{} KiB", three_digits(value / 1024.0))
            }
            Self::Allocations => small(value),
            Self::Bytes => format!("{} B", small(value)),
            Self::IdleCpu => format!("{} ms/s", three_digits(value / 1e6)),
            Self::IdleTraffic => format!("{} KiB/s", three_digits(value / 1024.0)),
            Self::Ready | Self::CompileTime | Self::Outage => {
                format!("{} ms", three_digits(value / 1e6))
            }
            Self::MessageMemory | Self::SubjectMemory | Self::ItemMemory | Self::MessageDisk => {
                format!("{} B", three_digits(value))
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(BTreeMap<Metric, f64>);

impl Sample {
    pub(crate) fn set(&mut self, metric: Metric, value: f64) {
        self.0.insert(metric, value);
    }

    pub(crate) fn set_rate(&mut self, times: u64, elapsed: Duration) {
        self.set(Metric::Rate, times as f64 / elapsed.as_secs_f64());
    }

    /// Stores percentiles of a histogram of nanoseconds, unless it is empty.
    pub(crate) fn set_latency(&mut self, nanos: &Histogram<u64>) {
        if nanos.is_empty() {
            return;
        }
        for (metric, quantile) in [
            (Metric::P50, 0.5),
            (Metric::P99, 0.99),
            (Metric::P999, 0.999),
        ] {
            self.set(metric, nanos.value_at_quantile(quantile) as f64);
        }
    }

    pub(crate) fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.0.keys().copied()
    }
}

/// One result, summarized over several runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    pub(crate) fn single(value: f64) -> Self {
        Self {
            median: value,
            min: value,
            max: value,
        }
    }

    /// Returns the summary of each value divided by `count`.
    pub(crate) fn per(self, count: f64) -> Self {
        Self {
            median: self.median / count,
            min: self.min / count,
            max: self.max / count,
        }
    }

    /// Returns the summary of `scale` divided by each value.
    pub(crate) fn inverse(self, scale: f64) -> Self {
        Self {
            median: scale / self.median,
            min: scale / self.max,
            max: scale / self.min,
        }
    }

    /// Returns the median and the extremes of values, or `None` if there are no values.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted = values.collect::<Vec<_>>();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (
            sorted.get((sorted.len().max(1) - 1) / 2)?,
            sorted.get(sorted.len() / 2)?,
        );
        Some(Self {
            median: f64::midpoint(*low, *high),
            min: *sorted.first()?,
            max: *sorted.last()?,
        })
    }
}

/// Returns a text that describes how far single runs are from the medians of their results. Returns `None`
/// without results.
pub(crate) fn spread(results: impl Iterator<Item = Summary>) -> Option<String> {
    let mut furthest: Vec<f64> = results
        .filter(|result| result.median > 0.0)
        .map(|result| {
            let distance = (result.max - result.median).max(result.median - result.min);
            distance / result.median
        })
        .collect();
    furthest.sort_by(f64::total_cmp);
    let half = furthest.get(furthest.len() / 2)? * 100.0;
    let most = furthest.get(furthest.len() * 9 / 10)? * 100.0;
    Some(format!(
        "Spread: no run was further from the median than {half:.0} % in half of the results, than {most:.0} % in \
         nine of ten."
    ))
}

/// Formats a value with at least three significant digits, and with all digits before the decimal point.
pub(crate) fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Formats an amount. The text "0" means exactly zero. Small amounts have enough digits not to be rounded to
/// zero.
fn small(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value.abs() < 0.01 => format!("{value:.6}"),
        value => three_digits(value),
    }
}

fn si(value: f64) -> String {
    match value {
        value if value >= 999_500.0 => format!("{} M", three_digits(value / 1e6)),
        value if value >= 999.5 => format!("{} K", three_digits(value / 1e3)),
        value => three_digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_formatted_briefly() {
        let check = |metric: Metric, value, text| assert_eq!(metric.format(value), text);
        check(Metric::Rate, 2_412_000.0, "2.41 M");
        check(Metric::Rate, 999_700.0, "1.00 M");
        check(Metric::Rate, 73_960.0, "74.0 K");
        check(Metric::Rate, 12.0, "12.0");
        check(Metric::ServerCpu, 412.3, "412 ns");
        check(Metric::PeakMemory, 18.5 * 1024.0 * 1024.0, "18.5 MiB");
    }

    #[test]
    fn median_of_an_even_number_is_the_mean_of_two() {
        let summary = Summary::of([4.0, 1.0, 3.0, 2.0].into_iter()).unwrap();
        assert_eq!((summary.min, summary.median, summary.max), (1.0, 2.5, 4.0));
        assert!(Summary::of(std::iter::empty()).is_none());
    }

    #[test]
    fn spread_is_distance_of_furthest_run() {
        let result = |min, median, max| Summary { median, min, max };
        let results = [
            result(90.0, 100.0, 101.0),
            result(1.0, 1.0, 1.02),
            result(2.0, 4.0, 5.0),
            result(0.0, 0.0, 0.0),
        ];
        let text = spread(results.into_iter()).unwrap();
        assert_eq!(
            text,
            "Spread: no run was further from the median than 10 % in half of the results, than 50 % in nine of ten."
        );
        assert!(spread(std::iter::empty()).is_none());
    }
}
