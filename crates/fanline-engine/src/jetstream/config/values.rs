//! Durations, points in time and metadata, as configurations write them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Free labels of a stream or consumer, in the order in which they are printed.
pub type Metadata = BTreeMap<String, String>;

/// A duration in nanoseconds. A request may hold a negative one; a checked configuration does not.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    /// Nothing: the field is not set.
    pub const ZERO: Nanos = Nanos(0);

    /// So many seconds.
    pub const fn from_secs(seconds: i64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: i64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// Whether it is not set.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The same as a [`Duration`]; a negative one is none at all.
    pub fn duration(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

/// As `1h0m0s`, `1.5s` or `250ms`: the way in which nats-server writes durations in its texts.
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

/// A point in time with the offset from UTC in which it was written, so that a configuration is
/// printed as it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp {
    unix_seconds: i64,
    nanos: u32,
    offset_minutes: i16,
}

/// The year 1, which stands for "no time" in nats-server's JSON.
const ZERO_UNIX_SECONDS: i64 = -62_135_596_800;
const SECONDS_PER_DAY: i64 = 86_400;

impl Timestamp {
    /// "No time": printed as `0001-01-01T00:00:00Z`.
    pub const ZERO: Timestamp = Timestamp {
        unix_seconds: ZERO_UNIX_SECONDS,
        nanos: 0,
        offset_minutes: 0,
    };

    /// A time in UTC.
    pub fn from_unix_nanos(unix_nanos: i64) -> Timestamp {
        Timestamp {
            unix_seconds: unix_nanos.div_euclid(1_000_000_000),
            nanos: u32::try_from(unix_nanos.rem_euclid(1_000_000_000)).unwrap_or(0),
            offset_minutes: 0,
        }
    }

    /// Nanoseconds since 1970 UTC. What lies outside of the years 1677 to 2262 is moved to their ends.
    pub fn unix_nanos(&self) -> i64 {
        let nanos = i128::from(self.unix_seconds) * 1_000_000_000 + i128::from(self.nanos);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// Whether it is "no time".
    pub fn is_zero(&self) -> bool {
        self.unix_seconds == ZERO_UNIX_SECONDS && self.nanos == 0
    }

    /// Reads RFC 3339: `2026-11-21T22:31:01.482609064Z`, or with an offset such as `+02:00`.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let mut rest = text.as_bytes();
        let year = digits(&mut rest, 4)?;
        let month = literal(&mut rest, b'-').and_then(|()| digits(&mut rest, 2))?;
        let day = literal(&mut rest, b'-').and_then(|()| digits(&mut rest, 2))?;
        let hour = literal(&mut rest, b'T').and_then(|()| digits(&mut rest, 2))?;
        let minute = literal(&mut rest, b':').and_then(|()| digits(&mut rest, 2))?;
        let second = literal(&mut rest, b':').and_then(|()| digits(&mut rest, 2))?;
        let in_range = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !in_range {
            return None;
        }
        let nanos = fraction(&mut rest)?;
        let offset_minutes = offset(rest)?;
        let unix_seconds = days_from_civil(year, month, day) * SECONDS_PER_DAY
            + hour * 3_600
            + minute * 60
            + second
            - i64::from(offset_minutes) * 60;
        Some(Timestamp {
            unix_seconds,
            nanos,
            offset_minutes,
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.unix_seconds + i64::from(self.offset_minutes) * 60;
        let (year, month, day) = civil_from_days(local.div_euclid(SECONDS_PER_DAY));
        let seconds = local.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        if self.nanos != 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        if self.offset_minutes == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        let minutes = self.offset_minutes.unsigned_abs();
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

fn literal(rest: &mut &[u8], wanted: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[wanted])?;
    Some(())
}

fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (digits, after) = rest.split_at_checked(count)?;
    *rest = after;
    digits.iter().try_fold(0, |value: i64, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + i64::from(digit - b'0'))
    })
}

/// `.` or `,` and at least one digit; what comes after the ninth is cut off.
fn fraction(rest: &mut &[u8]) -> Option<u32> {
    let Some(after) = rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) else {
        return Some(0);
    };
    let count = after.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut nanos = 0;
    for place in 0..9 {
        let digit = after[..count].get(place).map_or(0, |digit| digit - b'0');
        nanos = nanos * 10 + u32::from(digit);
    }
    *rest = &after[count..];
    (count > 0).then_some(nanos)
}

fn offset(mut rest: &[u8]) -> Option<i16> {
    if rest == b"Z" {
        return Some(0);
    }
    let (sign, after) = rest.split_first()?;
    rest = after;
    let hours = digits(&mut rest, 2)?;
    literal(&mut rest, b':')?;
    let minutes = digits(&mut rest, 2)?;
    if !rest.is_empty() || hours > 24 || minutes > 60 {
        return None;
    }
    let offset = i16::try_from(hours * 60 + minutes).ok()?;
    match sign {
        b'+' => Some(offset),
        b'-' => Some(-offset),
        _ => None,
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that the leap
/// day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times() {
        for (text, unix_nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T22:31:01.482609064Z", 1_795_300_261_482_609_064),
            ("2024-01-02T03:04:05.678+02:00", 1_704_157_445_678_000_000),
            ("2024-02-29T00:00:00-00:30", 1_709_166_600_000_000_000),
            ("1969-12-31T23:59:59.5Z", -500_000_000),
        ] {
            let time = Timestamp::parse(text).unwrap();
            assert_eq!(time.unix_nanos(), unix_nanos, "{text}");
            assert_eq!(time.to_string(), text);
        }
        assert_eq!(Timestamp::ZERO.to_string(), "0001-01-01T00:00:00Z");
        assert!(Timestamp::parse("0001-01-01T00:00:00Z").unwrap().is_zero());
    }

    #[test]
    fn durations() {
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

    #[test]
    fn no_times() {
        for text in [
            "",
            "2024",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01 00:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+0200",
            "2024-01-01T00:00:00Zz",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_comes_back(unix_nanos: i64) {
            let time = Timestamp::from_unix_nanos(unix_nanos);
            prop_assert_eq!(time.unix_nanos(), unix_nanos);
            prop_assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
        }
    }
}
