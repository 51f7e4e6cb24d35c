//! Durations in Go's notation: `1h30m`, `1.5s`, `250ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration in nanoseconds. It may be negative in a request, but not in a checked configuration.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub i64);

/// A unit of time: its name and its nanoseconds.
type Unit = (&'static str, u64);

/// The units of Go's `time.ParseDuration`; "µ" is U+00B5 or U+03BC.
const GO_UNITS: &[Unit] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
];

/// Longer units that the `nats` command accepts and Go does not.
const CALENDAR_UNITS: &[Unit] = &[
    ("d", 86_400 * 1_000_000_000),
    ("D", 86_400 * 1_000_000_000),
    ("w", 604_800 * 1_000_000_000),
    ("W", 604_800 * 1_000_000_000),
    ("y", 31_536_000 * 1_000_000_000),
    ("Y", 31_536_000 * 1_000_000_000),
];

/// Significant digits of a fraction. No unit has more than 17 decimal places of nanoseconds.
const FRACTION_DIGITS_MAX: usize = 18;

/// The reason why a text is not a duration. The messages are those of Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text does not have the form of a duration, or the duration is out of range.
    #[error("time: invalid duration \"{0}\"")]
    Invalid(String),
    /// A number has no unit.
    #[error("time: missing unit in duration \"{0}\"")]
    MissingUnit(String),
    /// A number has a unit that does not exist.
    #[error("time: unknown unit \"{unit}\" in duration \"{text}\"")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

impl Nanos {
    /// Zero: the field is not set.
    pub const ZERO: Nanos = Nanos(0);

    /// Creates a duration from seconds.
    pub const fn from_secs(seconds: i64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// Creates a duration from milliseconds.
    pub const fn from_millis(millis: i64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// Returns whether the duration is zero, which means "not set".
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Converts to a [`Duration`]; a negative value becomes zero.
    pub fn duration(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }

    /// Parses a duration that may also use days, weeks, and years of 365 days: `1h30m`, `7d`, `1y`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the text.
    pub fn parse_with_days(text: &str) -> Result<Nanos, DurationError> {
        parse(text, &[GO_UNITS, CALENDAR_UNITS])
    }
}

/// Saturates at about 292 years.
impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Parses what Go's `time.ParseDuration` accepts.
impl FromStr for Nanos {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Nanos, DurationError> {
        parse(text, &[GO_UNITS])
    }
}

fn parse(text: &str, units: &[&[Unit]]) -> Result<Nanos, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Nanos::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanos: i64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !number.contains(|c: char| c.is_ascii_digit()) || number.matches('.').count() > 1 {
            return Err(invalid());
        }
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (name, after) = after.split_at(end.unwrap_or(after.len()));
        if name.is_empty() {
            return Err(DurationError::MissingUnit(text.to_owned()));
        }
        let mut known = units.iter().copied().flatten();
        let (_, unit) = known.find(|(unit, _)| *unit == name).ok_or_else(|| {
            let (unit, text) = (name.to_owned(), text.to_owned());
            DurationError::UnknownUnit { unit, text }
        })?;
        nanos = scaled(number, *unit)
            .and_then(|part| nanos.checked_add(part))
            .ok_or_else(invalid)?;
        rest = after;
    }
    Ok(Nanos(if is_negative { -nanos } else { nanos }))
}

/// Converts a decimal number of units to nanoseconds, rounded down.
fn scaled(number: &str, unit: u64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
    let value = |digits: &str| match digits {
        "" => Some(0),
        digits => digits.parse::<u64>().ok(),
    };
    let part = u128::from(value(fraction)?) * u128::from(unit)
        / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let nanos = u128::from(value(whole)?) * u128::from(unit) + part;
    i64::try_from(nanos).ok()
}

/// Writes what Go's `time.Duration` prints: `1h0m0s`, `1.5s`, `250ms`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let (unit, name) = match nanos {
            0 => return f.write_str("0s"),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let mut whole = nanos / unit;
        if name == "s" && whole >= 60 {
            if whole >= 3_600 {
                write!(f, "{}h", whole / 3_600)?;
            }
            write!(f, "{}m", whole / 60 % 60)?;
            whole %= 60;
        }
        write!(f, "{whole}")?;
        let fraction = format!("{:09}", nanos % unit * (1_000_000_000 / unit));
        match fraction.trim_end_matches('0') {
            "" => {}
            digits => write!(f, ".{digits}")?,
        }
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn writes_as_go_does() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (7, "7ns"),
            (1_500, "1.5µs"),
            (986_000, "986µs"),
            (1_437_743, "1.437743ms"),
            (50_000_000, "50ms"),
            (250_000_000, "250ms"),
            (1_000_000_000, "1s"),
            (5_000_000_000, "5s"),
            (6_500_000_000, "6.5s"),
            (62_500_000_000, "1m2.5s"),
            (90_000_000_000, "1m30s"),
            (120_000_000_000, "2m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (3_661_500_000_000, "1h1m1.5s"),
            (7_200_000_000_000, "2h0m0s"),
            (-1_050_000_000, "-1.05s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
        let longest = Nanos::from(Duration::MAX);
        assert_eq!(longest.to_string(), "2562047h47m16.854775807s");
    }

    #[test]
    fn reads_as_go_does() {
        for (text, nanos) in [
            ("0", 0),
            ("-0s", 0),
            ("1s", 1_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5m", 90_000_000_000),
            ("+2m0s", 120_000_000_000),
            ("1m0.25s", 60_250_000_000),
            ("100ms", 100_000_000),
            ("1000us", 1_000_000),
            ("3\u{b5}s", 3_000),
            ("3\u{3bc}s", 3_000),
            ("-1s", -1_000_000_000),
            ("0.0000000000000000000000001h", 0),
            ("2562047h47m16.854775807s", i64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
            assert_eq!(Nanos::parse_with_days(text), Ok(Nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn explains_what_is_not_a_duration() {
        for (text, why) in [
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("x", "time: invalid duration \"x\""),
            ("s", "time: invalid duration \"s\""),
            (".s", "time: invalid duration \".s\""),
            ("5", "time: missing unit in duration \"5\""),
            ("1s1", "time: missing unit in duration \"1s1\""),
            ("5y", "time: unknown unit \"y\" in duration \"5y\""),
            ("1s 2s", "time: unknown unit \"s \" in duration \"1s 2s\""),
            ("1.2.3s", "time: invalid duration \"1.2.3s\""),
            ("9999999h", "time: invalid duration \"9999999h\""),
        ] {
            let error = text.parse::<Nanos>().unwrap_err();
            assert_eq!(error.to_string(), why, "{text}");
        }
    }

    #[test]
    fn days_weeks_and_years_are_units_on_request() {
        for (text, seconds) in [
            ("7d", 604_800),
            ("2W", 1_209_600),
            ("1y", 31_536_000),
            ("1.5d12h", 172_800),
        ] {
            let expected = Ok(Nanos::from_secs(seconds));
            assert_eq!(Nanos::parse_with_days(text), expected, "{text}");
        }
        assert!(Nanos::parse_with_days("300y").is_err());
    }

    proptest! {
        #[test]
        fn every_duration_is_read_back(nanos in -i64::MAX..=i64::MAX) {
            prop_assert_eq!(Nanos(nanos).to_string().parse(), Ok(Nanos(nanos)));
        }
    }
}
