//! Timestamps in the format of RFC 3339.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The start of Unix time.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A point in time with its original UTC offset, so that a configuration is printed as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// Date and time at that offset.
    local: DateTime,
    offset_minutes: i16,
}

impl Timestamp {
    /// nats-server's "no time" in JSON: the start of the year 1.
    pub const ZERO: Timestamp = Timestamp {
        local: DateTime::constant(1, 1, 1, 0, 0, 0, 0),
        offset_minutes: 0,
    };

    /// Creates a UTC timestamp from Unix nanoseconds.
    pub fn from_unix_nanos(unix_nanos: i64) -> Timestamp {
        const NANOS_PER_SECOND: i64 = 1_000_000_000;
        const SECONDS_PER_DAY: i64 = 24 * 60 * 60;
        let seconds = unix_nanos.div_euclid(NANOS_PER_SECOND);
        let second = seconds.rem_euclid(SECONDS_PER_DAY);
        let (year, month, day) = date_of(seconds.div_euclid(SECONDS_PER_DAY));
        let local = DateTime::new(
            narrow(year),
            narrow(month),
            narrow(day),
            narrow(second / 3600),
            narrow(second / 60 % 60),
            narrow(second % 60),
            narrow(unix_nanos.rem_euclid(NANOS_PER_SECOND)),
        );
        Timestamp {
            local: local.unwrap_or(EPOCH),
            offset_minutes: 0,
        }
    }

    /// Returns nanoseconds since 1970 in UTC, clamped to the years 1677 to 2262.
    pub fn unix_nanos(&self) -> i64 {
        let nanos = self.since_epoch().as_nanos();
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns whether the timestamp means "no time".
    pub fn is_zero(&self) -> bool {
        self.since_epoch() == Timestamp::ZERO.since_epoch()
    }

    fn since_epoch(&self) -> SignedDuration {
        self.local.duration_since(EPOCH) - SignedDuration::from_mins(self.offset_minutes.into())
    }

    /// Parses RFC 3339 as Go does: `2026-11-21T22:31:01.482609064Z`, or with an offset such as `+02:00`.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let (date_time, rest) = text.split_at_checked(19)?;
        let (fraction, offset) = rest.split_at(rest.find(['Z', '+', '-'])?);
        // jiff also accepts other formats, and leap seconds, which Go refuses.
        if !has_form(date_time, "0000-00-00T00:00:00") || date_time.ends_with("60") {
            return None;
        }
        let local: DateTime = date_time.parse().ok()?;
        let local = local.with().subsec_nanosecond(nanos(fraction)?).build();
        Some(Timestamp {
            local: local.ok()?,
            offset_minutes: offset_minutes(offset)?,
        })
    }
}

/// The start of 1970.
impl Default for Timestamp {
    fn default() -> Timestamp {
        Timestamp::from_unix_nanos(0)
    }
}

/// Returns the year, month, and day of a number of days since 1970. A year of this calculation begins in March, so
/// that the leap day is its last day, and 400 such years have the same number of days.
fn date_of(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_400_YEARS: i64 = 146_097;
    const DAYS_FROM_YEAR_0: i64 = 719_468;
    let days = days + DAYS_FROM_YEAR_0;
    let day = days.rem_euclid(DAYS_PER_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * days.div_euclid(DAYS_PER_400_YEARS);
    (year + i64::from(month <= 2), month, day)
}

/// Converts a part of a time, which fits.
fn narrow<T: TryFrom<i64> + Default>(value: i64) -> T {
    T::try_from(value).unwrap_or_default()
}

/// Writes a date and time, and returns the written text. Returns `None` for years before 0, which have another
/// form.
fn write_local<'a>(local: &DateTime, text: &'a mut [u8; 29]) -> Option<&'a str> {
    const WITHOUT_FRACTION: usize = 19;
    *text = *b"0000-00-00T00:00:00.000000000";
    let parts = [
        (0..4, i32::from(local.year())),
        (5..7, local.month().into()),
        (8..10, local.day().into()),
        (11..13, local.hour().into()),
        (14..16, local.minute().into()),
        (17..19, local.second().into()),
        (20..29, local.subsec_nanosecond()),
    ];
    for (range, value) in parts {
        let mut rest = u32::try_from(value).ok()?;
        for digit in text[range].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
    }
    let end = match local.subsec_nanosecond() {
        0 => WITHOUT_FRACTION,
        _ => text.iter().rposition(|digit| *digit != b'0')? + 1,
    };
    std::str::from_utf8(&text[..end]).ok()
}

/// Returns whether a text has a digit wherever the form has a zero, and the form's bytes elsewhere.
fn has_form(text: &str, form: &str) -> bool {
    let mut pairs = text.bytes().zip(form.bytes());
    text.len() == form.len()
        && pairs.all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == form,
        })
}

/// Parses an empty fraction, or `.` or `,` with at least one digit. Digits after the ninth are ignored.
fn nanos(fraction: &str) -> Option<i32> {
    if fraction.is_empty() {
        return Some(0);
    }
    let digits = fraction.strip_prefix(['.', ','])?;
    let are_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    are_digits.then(|| format!("{digits:0<9.9}").parse().ok())?
}

/// Parses `Z`, or a sign with hours and minutes, with Go's limits.
fn offset_minutes(text: &str) -> Option<i16> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, offset) = text.split_at_checked(1)?;
    if !has_form(offset, "00:00") {
        return None;
    }
    let (hours, minutes): (i16, i16) = (offset[..2].parse().ok()?, offset[3..].parse().ok()?);
    let total = hours * 60 + minutes;
    (hours <= 24 && minutes <= 60).then_some(if sign == "-" { -total } else { total })
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match write_local(&self.local, &mut [0; 29]) {
            Some(text) => f.write_str(text)?,
            None => write!(f, "{}", self.local)?,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_times_are_parsed_and_printed() {
        for (text, unix_nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T22:31:01.482609064Z", 1_795_300_261_482_609_064),
            ("2024-01-02T03:04:05.678+02:00", 1_704_157_445_678_000_000),
            ("2024-02-29T00:00:00-00:30", 1_709_166_600_000_000_000),
            ("1969-12-31T23:59:59.5Z", -500_000_000),
            ("9999-12-31T23:59:59-24:60", i64::MAX),
            ("0000-01-01T00:00:00+24:60", i64::MIN),
        ] {
            let time = Timestamp::parse(text).unwrap();
            assert_eq!(time.unix_nanos(), unix_nanos, "{text}");
            let text = text.replace("24:60", "25:00");
            assert_eq!(time.to_string(), text);
        }
        let cut = Timestamp::parse("2026-11-21T22:31:01,4826090649Z").unwrap();
        assert_eq!(cut.to_string(), "2026-11-21T22:31:01.482609064Z");
        assert_eq!(Timestamp::ZERO.to_string(), "0001-01-01T00:00:00Z");
        assert!(Timestamp::parse("0001-01-01T00:00:00Z").unwrap().is_zero());
        assert!(
            Timestamp::parse("0001-01-01T02:00:00+02:00")
                .unwrap()
                .is_zero()
        );
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2024",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01 00:00:00Z",
            "2024-01-01t00:00:00Z",
            "2024-01-01T00:00:00z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+0200",
            "2024-01-01T00:00:00+25:00",
            "2024-01-01T00:00:00Zz",
            "2024-01-01T00:00:00Z[UTC]",
            "2024-01-01T00:00:0µZ",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn unix_nanos_round_trip(unix_nanos: i64) {
            let time = Timestamp::from_unix_nanos(unix_nanos);
            prop_assert_eq!(time.unix_nanos(), unix_nanos);
            let local = EPOCH.saturating_add(SignedDuration::from_nanos(unix_nanos));
            prop_assert_eq!(time.local, local);
            prop_assert_eq!(time.to_string(), format!("{local}Z"));
            prop_assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
        }
    }
}
