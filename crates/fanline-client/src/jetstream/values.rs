//! Durations, points in time, and labels, in the form that configurations use.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::civil::{self, DateTime};
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::Offset;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The labels of a stream, consumer, or object, sorted by name.
pub type Metadata = BTreeMap<String, String>;

/// A duration in nanoseconds. In most fields 0 means not set.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    /// A duration of zero.
    pub const ZERO: Nanos = Nanos(0);

    /// Returns a duration of whole seconds.
    pub const fn from_secs(seconds: i64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// Returns a duration of whole milliseconds.
    pub const fn from_millis(millis: i64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// Returns whether the duration is zero.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Converts the duration to a [`Duration`]. A negative duration becomes zero.
    pub fn duration(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

/// Formats the duration as nats-server does: `1h0m0s`, `1.5s`, or `250ms`.
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

/// A point in time, with its offset from UTC. The offset is preserved, so that a configuration is written as
/// it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp {
    local: DateTime,
    offset: Offset,
}

impl Timestamp {
    /// The year 1, which means "no time" in nats-server's JSON.
    pub const ZERO: Timestamp = Timestamp {
        local: civil::datetime(1, 1, 1, 0, 0, 0, 0),
        offset: Offset::UTC,
    };

    /// Converts nanoseconds since 1970 to a time in UTC.
    pub fn from_unix_nanos(unix_nanos: i64) -> Timestamp {
        let time = jiff::Timestamp::from_nanosecond(unix_nanos.into());
        Timestamp {
            // 64 bits can represent only the years 1677 to 2262.
            local: Offset::UTC.to_datetime(time.unwrap_or(jiff::Timestamp::UNIX_EPOCH)),
            offset: Offset::UTC,
        }
    }

    /// Returns the nanoseconds since 1970 in UTC, limited to the years 1677 to 2262.
    pub fn unix_nanos(&self) -> i64 {
        let past = self.local < DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        let time = self.offset.to_timestamp(self.local);
        let nanos = time
            .ok()
            .and_then(|time| i64::try_from(time.as_nanosecond()).ok());
        nanos.unwrap_or(if past { i64::MIN } else { i64::MAX })
    }

    /// Returns whether the time is [`ZERO`](Timestamp::ZERO).
    pub fn is_zero(&self) -> bool {
        *self == Timestamp::ZERO
    }

    /// Parses a time in RFC 3339: `2026-11-21T22:31:01.482609064Z`, or with an offset such as `+02:00`.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let pieces = DateTimeParser::new().parse_pieces(text).ok()?;
        Some(Timestamp {
            local: pieces.date().to_datetime(pieces.time()?),
            offset: pieces.to_numeric_offset()?,
        })
    }
}

impl Default for Timestamp {
    /// Returns [`ZERO`](Timestamp::ZERO).
    fn default() -> Self {
        Timestamp::ZERO
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.local)?;
        let minutes = self.offset.seconds() / 60;
        if minutes == 0 {
            return f.write_str("Z");
        }
        let sign = if minutes < 0 { '-' } else { '+' };
        let minutes = minutes.abs();
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::parse(&text)
            .ok_or_else(|| de::Error::custom(format_args!("cannot parse {text:?} as a time")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_written_as_rfc_3339() {
        for (text, unix_nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T22:31:01.482609064Z", 1_795_300_261_482_609_064),
            ("2024-01-02T03:04:05.678+02:00", 1_704_157_445_678_000_000),
            ("2024-02-29T00:00:00-00:30", 1_709_166_600_000_000_000),
            ("1969-12-31T23:59:59.5Z", -500_000_000),
            ("1677-01-01T00:00:00Z", i64::MIN),
            ("9999-12-31T23:59:59Z", i64::MAX),
        ] {
            let time = Timestamp::parse(text).expect(text);
            assert_eq!(time.unix_nanos(), unix_nanos, "{text}");
            assert_eq!(time.to_string(), text);
            if time.offset == Offset::UTC && unix_nanos.unsigned_abs() < u64::MAX / 2 {
                assert_eq!(Timestamp::from_unix_nanos(unix_nanos), time);
            }
        }
        assert_eq!(Timestamp::ZERO.to_string(), "0001-01-01T00:00:00Z");
        assert!(Timestamp::parse("0001-01-01T00:00:00Z").is_some_and(|time| time.is_zero()));
    }

    #[test]
    fn incomplete_times_are_rejected() {
        for text in [
            "",
            "2024",
            "2024-01-01",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00Zz",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_written_like_gos() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (250_000_000, "250ms"),
            (1_000_000_000, "1s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (-1_050_000_000, "-1.05s"),
            (3_661_500_000_000, "1h1m1.5s"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
    }
}
