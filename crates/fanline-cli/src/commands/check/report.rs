//! Findings of a check, and their output formats.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

/// The severity of a finding. The variants are in increasing order, and their values are the exit codes of
/// Nagios plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[default]
    Ok,
    Warning,
    Critical,
    Unknown,
}

impl Level {
    pub(super) fn word(self) -> &'static str {
        match self {
            Level::Ok => "OK",
            Level::Warning => "WARNING",
            Level::Critical => "CRITICAL",
            Level::Unknown => "UNKNOWN",
        }
    }

    /// Returns the exit code, 0 to 3.
    pub(super) fn code(self) -> u8 {
        self as u8
    }
}

/// Output format of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One line for Nagios and compatible systems
    Nagios,
    /// A JSON object
    Json,
    /// Metrics for the textfile collector of Prometheus
    Prometheus,
}

/// Warning and critical thresholds of a number.
///
/// Usually a higher number is worse. If the critical threshold is lower than the warning threshold, a lower
/// number is worse.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) warning: Option<f64>,
    pub(super) critical: Option<f64>,
}

impl Bounds {
    pub(super) fn new(warning: Option<f64>, critical: Option<f64>) -> Self {
        Bounds { warning, critical }
    }

    /// Creates thresholds for a number of which a higher value is always worse. The operator may set a
    /// critical threshold that is lower than the default of the warning threshold. The warning threshold is
    /// then reduced to the critical one, so that the pair does not mean "lower is worse".
    pub(super) fn rising(warning: f64, critical: f64) -> Self {
        Bounds::new(Some(warning.min(critical)), Some(critical))
    }

    fn level(self, value: f64) -> Level {
        let less_is_worse = matches!(
            (self.warning, self.critical),
            (Some(warning), Some(critical)) if critical < warning
        );
        let is_reached = |bound: Option<f64>| match bound {
            Some(bound) if less_is_worse => value <= bound,
            Some(bound) => value >= bound,
            None => false,
        };
        match (is_reached(self.critical), is_reached(self.warning)) {
            (true, _) => Level::Critical,
            (_, true) => Level::Warning,
            _ => Level::Ok,
        }
    }
}

/// A measured number.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    name: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    critical: Option<f64>,
    #[serde(skip)]
    help: &'static str,
}

/// Findings of a check.
pub(super) struct Report {
    check: &'static str,
    /// The checked item, such as a stream's name.
    item: String,
    /// Findings in order.
    findings: Vec<(Level, String)>,
    measured: Vec<Measured>,
}

impl Report {
    pub(super) fn new(check: &'static str, item: &str) -> Self {
        Report {
            check,
            item: item.to_owned(),
            findings: Vec::new(),
            measured: Vec::new(),
        }
    }

    pub(super) fn found(&mut self, level: Level, text: impl Into<String>) {
        self.findings.push((level, text.into()));
    }

    /// Compares a number with its thresholds.
    pub(super) fn measure(
        &mut self,
        (name, unit, help): (&'static str, &'static str, &'static str),
        value: f64,
        bounds: Bounds,
    ) {
        self.measured.push(Measured {
            name,
            value,
            unit,
            warning: bounds.warning,
            critical: bounds.critical,
            help,
        });
        if bounds != Bounds::default() {
            let level = bounds.level(value);
            self.found(level, format!("{name} {}{unit}", number(value)));
        }
    }

    pub(super) fn level(&self) -> Level {
        let levels = self.findings.iter().map(|(level, _)| *level);
        levels.max().unwrap_or_default()
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.level().code())
    }

    pub(super) fn text(&self, format: Format) -> String {
        match format {
            Format::Nagios => self.nagios(),
            Format::Json => self.json(),
            Format::Prometheus => self.prometheus(),
        }
    }

    /// Formats the Nagios line. Problems come first, because pagers cut off long lines.
    fn nagios(&self) -> String {
        let level = self.level();
        let mut line = format!("{} {}", self.check.to_uppercase(), level.word());
        if !self.item.is_empty() {
            let _ = write!(line, " {}", self.item);
        }
        let mut findings: Vec<_> = self.findings.iter().collect();
        findings.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
        let texts: Vec<String> = (findings.iter())
            .map(|(found, text)| match found {
                Level::Ok => one_line(text),
                worse => format!("{}: {}", worse.word(), one_line(text)),
            })
            .collect();
        if !texts.is_empty() {
            let _ = write!(line, " - {}", texts.join("; "));
        }
        let measured: Vec<String> = self.measured.iter().map(performance).collect();
        if !measured.is_empty() {
            let _ = write!(line, " | {}", measured.join(" "));
        }
        line + "\n"
    }

    fn json(&self) -> String {
        let of = |level: Level| -> Vec<&str> {
            let those = self.findings.iter().filter(|(found, _)| *found == level);
            those.map(|(_, text)| text.as_str()).collect()
        };
        let object = json!({
            "check": self.check,
            "item": self.item,
            "status": self.level().word(),
            "exit_code": self.level().code(),
            "unknown": of(Level::Unknown),
            "critical": of(Level::Critical),
            "warning": of(Level::Warning),
            "ok": of(Level::Ok),
            "measured": self.measured,
        });
        format!("{object:#}\n")
    }

    fn prometheus(&self) -> String {
        let mut text = String::new();
        let labels = format!("{{item=\"{}\"}}", escaped(&self.item));
        let mut add = |name: &str, help: &str, value: f64| {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "# HELP {name} {help}.\n# TYPE {name} gauge\n{name}{labels} {}",
                number(value)
            );
        };
        let prefix = format!("fanline_check_{}", self.check);
        let code = f64::from(self.level().code());
        let help = "0 OK, 1 warning, 2 critical, 3 unknown";
        add(&format!("{prefix}_status_code"), help, code);
        for measured in &self.measured {
            add(
                &format!("{prefix}_{}", measured.name),
                measured.help,
                measured.value,
            );
        }
        text
    }
}

/// Formats performance data of Nagios plugins: `name=value[unit];warning;critical`.
fn performance(measured: &Measured) -> String {
    let bound = |bound: Option<f64>| bound.map_or_else(String::new, number);
    let Measured {
        name,
        value,
        unit,
        warning,
        critical,
        ..
    } = measured;
    let all = format!(
        "{name}={}{unit};{};{}",
        number(*value),
        bound(*warning),
        bound(*critical)
    );
    all.trim_end_matches(';').to_owned()
}

/// Formats a number with up to six decimals, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '|'], " ")
}

fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_determine_the_level() {
        let check = |warning, critical, value, expected| {
            let bounds = Bounds::new(warning, critical);
            assert_eq!(bounds.level(value), expected, "{bounds:?} {value}");
        };
        check(None, None, 5.0, Level::Ok);
        check(Some(5.0), Some(10.0), 4.0, Level::Ok);
        check(Some(5.0), Some(10.0), 5.0, Level::Warning);
        check(Some(5.0), Some(10.0), 10.0, Level::Critical);
        check(None, Some(1.0), 1.0, Level::Critical);
        // If the critical threshold is below the warning threshold, lower numbers are worse.
        check(Some(10.0), Some(5.0), 11.0, Level::Ok);
        check(Some(10.0), Some(5.0), 10.0, Level::Warning);
        check(Some(10.0), Some(5.0), 5.0, Level::Critical);
        // A default warning threshold above an explicit critical one.
        for (value, expected) in [(4.0, Level::Ok), (5.0, Level::Critical)] {
            assert_eq!(Bounds::rising(10.0, 5.0).level(value), expected, "{value}");
        }
        assert_eq!(
            Bounds::rising(5.0, 10.0),
            Bounds::new(Some(5.0), Some(10.0))
        );
    }

    #[test]
    fn problems_come_first() {
        let mut report = Report::new("stream", "ORDERS");
        report.found(Level::Ok, "the stream exists");
        let messages = ("messages", "", "Stored messages");
        report.measure(messages, 7.0, Bounds::new(Some(5.0), Some(10.0)));
        report.measure(("lag", "s", "Lag"), 0.25, Bounds::default());
        assert_eq!(report.level(), Level::Warning);
        assert_eq!(
            report.text(Format::Nagios),
            "STREAM WARNING ORDERS - WARNING: messages 7; the stream exists | messages=7;5;10 lag=0.25s\n"
        );
        let json: serde_json::Value =
            serde_json::from_str(&report.text(Format::Json)).expect("JSON");
        assert_eq!(json["exit_code"], 1);
        assert_eq!(json["warning"][0], "messages 7");
        let metrics = report.text(Format::Prometheus);
        assert!(metrics.contains("fanline_check_stream_status_code{item=\"ORDERS\"} 1\n"));
        assert!(metrics.contains("\nfanline_check_stream_lag{item=\"ORDERS\"} 0.25\n"));
    }
}
