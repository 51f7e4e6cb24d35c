//! Formatting of numbers and times for people.

use std::time::Duration;

use fanline_client::jetstream::{Nanos, Timestamp};
use serde::Serialize;

/// Units of sizes. Each unit is 1,024 times the previous one.
const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Formats a number with thousands separators: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a size: `1.5 KiB`.
pub(crate) fn bytes(number: u64) -> String {
    let mut unit = 0;
    let mut scale: u64 = 1;
    while number / scale >= 1024 && unit + 1 < UNITS.len() {
        scale *= 1024;
        unit += 1;
    }
    match unit {
        0 => format!("{number} B"),
        _ => {
            // Tenths are rounded down, so that a limit does not appear to be reached too early.
            let tenths = u128::from(number) * 10 / u128::from(scale);
            format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
        }
    }
}

/// Formats a limit on a count. A number that is not positive means unlimited.
pub(crate) fn limit(number: i64) -> String {
    positive(number).map_or_else(unlimited, count)
}

/// Formats a limit on bytes.
pub(crate) fn bytes_limit(number: i64) -> String {
    positive(number).map_or_else(unlimited, bytes)
}

/// Formats a limit on an age.
pub(crate) fn age_limit(age: Nanos) -> String {
    match age.is_zero() {
        true => unlimited(),
        false => age.to_string(),
    }
}

fn positive(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

fn unlimited() -> String {
    "unlimited".to_owned()
}

/// Formats a time in the local time zone, or `never`.
pub(crate) fn time(time: Timestamp) -> String {
    if time.is_zero() {
        return "never".to_owned();
    }
    let seconds = time.unix_nanos().div_euclid(1_000_000_000);
    match jiff::Timestamp::from_second(seconds) {
        Ok(at) => at
            .to_zoned(jiff::tz::TimeZone::system())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        Err(_) => time.to_string(),
    }
}

/// Formats the time since a moment: `3m12s ago`, or `never`.
pub(crate) fn ago(time: Timestamp) -> String {
    if time.is_zero() {
        return "never".to_owned();
    }
    let now = i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
    let nanos = now.saturating_sub(time.unix_nanos()).max(0);
    format!("{} ago", rounded(nanos))
}

/// Returns whether a time is at least this long ago, or not set.
pub(crate) fn is_older(time: Timestamp, age: Duration) -> bool {
    let now = jiff::Timestamp::now().as_nanosecond();
    let nanos = now.saturating_sub(i128::from(time.unix_nanos()));
    time.is_zero() || nanos > i128::try_from(age.as_nanos()).unwrap_or(i128::MAX)
}

/// Formats nanoseconds with the significant digits only.
pub(crate) fn rounded(nanos: i64) -> String {
    const SECOND: i64 = 1_000_000_000;
    let precision = match nanos {
        ..1_000_000 => 1_000,
        1_000_000..SECOND => 1_000_000,
        SECOND..60_000_000_000 => SECOND / 100,
        _ => SECOND,
    };
    let rounded = nanos / precision * precision;
    match rounded / SECOND / 86_400 {
        0 => Nanos(rounded).to_string(),
        days => format!("{days}d{}", Nanos(rounded - days * 86_400 * SECOND)),
    }
}

/// Formats `true` as `yes`.
pub(crate) fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Returns the JSON word of a value, such as `workqueue`.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_formatted() {
        for (number, counted, sized) in [
            (0, "0", "0 B"),
            (999, "999", "999 B"),
            (1_000, "1,000", "1000 B"),
            (1_536, "1,536", "1.5 KiB"),
            (1_234_567, "1,234,567", "1.1 MiB"),
            (u64::MAX, "18,446,744,073,709,551,615", "16383.9 PiB"),
        ] {
            assert_eq!(
                (count(number).as_str(), bytes(number).as_str()),
                (counted, sized)
            );
        }
        assert_eq!(
            [limit(-1), limit(0), limit(10)],
            ["unlimited", "unlimited", "10"]
        );
    }

    #[test]
    fn durations_are_rounded() {
        for (nanos, text) in [
            (0, "0s"),
            (1_500_000, "1ms"),
            (61_999_999_999, "1m1s"),
            (90_061_000_000_000, "1d1h1m1s"),
        ] {
            assert_eq!(rounded(nanos), text);
        }
    }
}
