//! Patterns of schedules: a time, an interval, or a cron expression.

use jiff::{Timestamp, tz::TimeZone};

use super::cron::Cron;
use crate::time::Nanos;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A parsed `Nats-Schedule` header.
#[derive(Clone, Debug)]
pub(in crate::jetstream::stream) enum Pattern {
    /// Once, at this time in nanoseconds since 1970 UTC.
    At(i64),
    /// Repeatedly, after this number of nanoseconds.
    Every(i64),
    /// By a cron expression in a time zone.
    Cron(Box<Cron>, TimeZone),
}

/// Reason for which a pattern was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::jetstream::stream) enum PatternError {
    /// The pattern has no known form, or never matches.
    Pattern,
    /// The time zone does not exist.
    TimeZone,
}

impl Pattern {
    /// Parses the header and the time zone. Only a cron expression may have a time zone.
    pub(in crate::jetstream::stream) fn parse(
        text: &[u8],
        time_zone: Option<&[u8]>,
        unix_nanos: i64,
    ) -> Result<Self, PatternError> {
        let pattern = Pattern::read(text).ok_or(PatternError::Pattern)?;
        let pattern = match (pattern, time_zone) {
            (pattern, None) => pattern,
            (Pattern::Cron(cron, _), Some(name)) => {
                let name = std::str::from_utf8(name).map_err(|_| PatternError::TimeZone)?;
                let zone = TimeZone::get(name).map_err(|_| PatternError::TimeZone)?;
                Pattern::Cron(cron, zone)
            }
            (_, Some(_)) => return Err(PatternError::Pattern),
        };
        // Refuses patterns such as February 31.
        match pattern.next(unix_nanos) {
            None if matches!(pattern, Pattern::Cron(..)) => Err(PatternError::Pattern),
            _ => Ok(pattern),
        }
    }

    fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        if let Some(time) = text.strip_prefix("@at ") {
            let time: Timestamp = time.trim().parse().ok()?;
            return Some(Pattern::At(i64::try_from(time.as_nanosecond()).ok()?));
        }
        if let Some(interval) = text.strip_prefix("@every ") {
            let Nanos(interval) = interval.trim().parse().ok()?;
            return (interval >= NANOS_PER_SECOND).then_some(Pattern::Every(interval));
        }
        let line = match text {
            "@yearly" | "@annually" => "0 0 0 1 1 *",
            "@monthly" => "0 0 0 1 * *",
            "@weekly" => "0 0 0 * * 0",
            "@daily" | "@midnight" => "0 0 0 * * *",
            "@hourly" => "0 0 * * * *",
            _ => text,
        };
        Some(Pattern::Cron(Box::new(Cron::parse(line)?), TimeZone::UTC))
    }

    /// Returns the first due time after a time.
    pub(in crate::jetstream::stream) fn next(&self, after_unix_nanos: i64) -> Option<i64> {
        match self {
            Pattern::At(at) => Some(*at),
            Pattern::Every(interval) => {
                let due = after_unix_nanos.checked_add(*interval)?;
                // The result is rounded to the nearest second.
                let rounded = due.checked_add(NANOS_PER_SECOND / 2)?;
                Some(rounded - rounded.rem_euclid(NANOS_PER_SECOND))
            }
            Pattern::Cron(cron, zone) => cron.next(after_unix_nanos, zone),
        }
    }

    /// Returns whether the schedule is due only once.
    pub(in crate::jetstream::stream) fn is_once(&self) -> bool {
        matches!(self, Pattern::At(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> i64 {
        let at: Timestamp = text.parse().unwrap();
        i64::try_from(at.as_nanosecond()).unwrap()
    }

    fn check(pattern: &str, zone: Option<&str>, after: &str, expected: Result<&str, PatternError>) {
        let parsed = Pattern::parse(pattern.as_bytes(), zone.map(str::as_bytes), nanos(after));
        let next = parsed.map(|p| p.next(nanos(after)));
        assert_eq!(next, expected.map(|e| Some(nanos(e))), "{pattern} {zone:?}");
    }

    #[test]
    fn patterns_are_parsed_and_due() {
        const T: &str = "2026-11-21T22:33:09.64Z";
        use PatternError::{Pattern, TimeZone};
        for (pattern, expected) in [
            ("@at 2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
            ("@at 2020-01-01T00:00:00+01:00", "2019-12-31T23:00:00Z"),
            ("@every 1s", "2026-11-21T22:33:11Z"),
            ("@every 90m", "2026-11-22T00:03:10Z"),
            ("@hourly", "2026-11-21T23:00:00Z"),
            ("@daily", "2026-11-22T00:00:00Z"),
            ("@midnight", "2026-11-22T00:00:00Z"),
            ("@weekly", "2026-11-22T00:00:00Z"),
            ("@monthly", "2026-12-01T00:00:00Z"),
            ("@yearly", "2027-01-01T00:00:00Z"),
            ("* * * * * *", "2026-11-21T22:33:10Z"),
            ("0/5 * * * * *", "2026-11-21T22:33:10Z"),
            ("30 */15 1-3/2 * jan sun", "2027-01-03T01:00:30Z"),
            ("0 0 0 ? JAN MON-FRI", "2027-01-01T00:00:00Z"),
            ("0 0 0 29 2 *", "2028-02-29T00:00:00Z"),
            // If both a day of the month and a day of the week are set, a date needs to match only one of
            // them.
            ("0 0 0 1 * mon", "2026-11-23T00:00:00Z"),
        ] {
            check(pattern, None, T, Ok(expected));
        }
        for bad in [
            "x",
            "",
            "@at x",
            "@every 500ms",
            "@every x",
            "@minutely",
            "* * * * *",
            "0 0 0 31 2 *",
            "0 0 0 * * 7",
            "60 * * * * *",
            "5-1 * * * * *",
            "1/0 * * * * *",
            "a * * * * *",
            "1,,2 * * * * *",
            "* * * 0 * *",
            "* * * * 13 *",
        ] {
            check(bad, None, T, Err(Pattern));
        }
        check("@every 1s", Some("Europe/Rome"), T, Err(Pattern));
        check("@daily", Some("x/y"), T, Err(TimeZone));
        check("@daily", Some("Europe/Rome"), T, Ok("2026-11-21T23:00:00Z"));
    }

    #[test]
    fn cron_handles_daylight_saving_changes() {
        let zone = Some("Europe/Rome");
        // On that night, 2:30 does not exist. The schedule is due an hour later.
        check(
            "0 30 2 * * *",
            zone,
            "2026-03-28T12:00:00Z",
            Ok("2026-03-29T01:30:00Z"),
        );
        // On that night, 2:30 occurs twice. The schedule is due at the first.
        check(
            "0 30 2 * * *",
            zone,
            "2026-10-24T12:00:00Z",
            Ok("2026-10-25T00:30:00Z"),
        );
        check(
            "0 30 2 * * *",
            zone,
            "2026-10-25T00:30:00Z",
            Ok("2026-10-26T01:30:00Z"),
        );
    }
}
