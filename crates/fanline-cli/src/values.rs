//! Parsers of option values: durations, headers, sizes.

use std::time::Duration;

use fanline_client::jetstream::{Nanos, Timestamp};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::de::DeserializeOwned;

/// Parses `500ms`, `2s`, `1.5s`, `1h30m`; a number without a unit is in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let unit = if text.ends_with(|c: char| c.is_ascii_digit()) {
        "s"
    } else {
        ""
    };
    let time = format!("{text}{unit}").parse::<SignedDuration>().ok();
    time.and_then(|time| Duration::try_from(time).ok())
        .ok_or_else(|| "expected a duration such as 500ms, 2s, or 1m".into())
}

/// Parses a duration that is not zero.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be greater than zero".into()),
        time => Ok(time),
    }
}

/// Parses `Name: value` or `Name:value`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("expected a header such as \"Content-Type: text/plain\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Parses `1000`, `64k`, `1MB`, `1MiB`: k, M, and G are powers of 1024, as in nats-server's configuration.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let expected = || "expected a size such as 128, 64k, or 1MB".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(expected()),
    };
    let number: usize = digits.parse().map_err(|_| expected())?;
    number.checked_mul(1 << shift).ok_or_else(expected)
}

/// Parses `1000`, `1_000`, `10k`, `1M`: k and M are powers of 1000, as usual for message counts.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let expected = || "expected a number such as 1000, 10k, or 1M".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        _ => return Err(expected()),
    };
    let number: u64 = digits.replace('_', "").parse().map_err(|_| expected())?;
    number.checked_mul(factor).ok_or_else(expected)
}

/// Parses a storage time: `90s`, `1h30m`, `7d`, `2w`, `1y`; `0`, `-1`, or `never` is unlimited.
pub(crate) fn span(text: &str) -> Result<Nanos, String> {
    if matches!(text, "0" | "-1" | "never") {
        return Ok(Nanos::ZERO);
    }
    fixed_span(text).ok_or_else(|| "expected a time such as 90s, 1h30m, 7d, or 1y".to_owned())
}

/// Parses a positive time, in which a day has 24 hours and a year has 365 days.
fn fixed_span(text: &str) -> Option<Nanos> {
    // `M` would be ambiguous, so only these units may be in capitals.
    let text: String = text
        .chars()
        .map(|c| match c {
            'D' | 'W' | 'Y' => c.to_ascii_lowercase(),
            other => other,
        })
        .collect();
    let span: Span = text.parse().ok()?;
    let years = SignedDuration::from_hours(24 * 365).checked_mul(span.get_years().into())?;
    let rest = span.try_years(0).ok()?;
    let rest = rest.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    let nanos = i64::try_from(rest.checked_add(years)?.as_nanos()).ok()?;
    (nanos > 0).then_some(Nanos(nanos))
}

/// Parses a [`span`]; zero means unlimited.
pub(crate) fn finite_span(text: &str) -> Result<Duration, String> {
    span(text).map(Nanos::duration)
}

/// Parses a count, or `-1` or `unlimited`.
pub(crate) fn limit(text: &str) -> Result<i64, String> {
    match text {
        "-1" | "unlimited" => Ok(-1),
        _ => i64::try_from(count(text)?).map_err(|error| error.to_string()),
    }
}

/// Parses a size, or `-1` or `unlimited`.
pub(crate) fn bytes_limit(text: &str) -> Result<i64, String> {
    match text {
        "-1" | "unlimited" => Ok(-1),
        _ => i64::try_from(bytes(text)?).map_err(|error| error.to_string()),
    }
}

/// Parses a word of a setting as in JSON; the error lists the valid words.
pub(crate) fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// Parses `key=value` or `key:value`.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once(['=', ':'])
        .ok_or("expected a label such as team=orders")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Parses `2026-11-22T10:00:00Z`, `2026-11-22 10:00:00` in the local time zone, or a time from now: `1h`.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    if let Some(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    let at = match span(text) {
        Ok(from_now) => jiff::Timestamp::now().checked_add(from_now.duration()).ok(),
        Err(_) => text
            .parse::<jiff::civil::DateTime>()
            .and_then(|local| local.to_zoned(jiff::tz::TimeZone::system()))
            .ok()
            .map(|zoned| zoned.timestamp()),
    };
    at.and_then(|at| i64::try_from(at.as_nanosecond()).ok())
        .map(Timestamp::from_unix_nanos)
        .ok_or_else(|| "expected a time such as 2026-11-22T10:00:00Z, or 1h from now".to_owned())
}

/// Sets a field if its option is set.
pub(crate) fn set<T: Clone>(field: &mut T, named: &Option<T>) {
    if let Some(value) = named {
        field.clone_from(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, expected) in [
            ("2s", Some(Duration::from_secs(2))),
            ("2", Some(Duration::from_secs(2))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("250ms", Some(Duration::from_millis(250))),
            ("1m", Some(Duration::from_secs(60))),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1 s", Some(Duration::from_secs(1))),
            ("1d", None),
            ("infs", None),
        ] {
            assert_eq!(duration(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn sizes_and_counts_are_parsed() {
        assert_eq!(bytes("128"), Ok(128));
        assert_eq!(bytes("64k"), Ok(65_536));
        assert_eq!(bytes("1MB"), Ok(1 << 20));
        assert!(bytes("1x").is_err());
        assert!(bytes("99999999999999999999").is_err());
        assert_eq!(count("10k"), Ok(10_000));
        assert_eq!(count("1_000"), Ok(1_000));
        assert!(count("k").is_err());
    }

    #[test]
    fn spans_are_parsed() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("1h30m", Some(5_400)),
            ("7d", Some(604_800)),
            ("1.5h", Some(5_400)),
            ("1W", Some(604_800)),
            ("1y1d", Some(366 * 86_400)),
            ("never", Some(0)),
            ("-1", Some(0)),
            ("", None),
            ("5", None),
            ("d", None),
            ("1x", None),
            ("1mo", None),
            ("-5s", None),
            ("0s", None),
            ("300y", None),
        ] {
            assert_eq!(span(text).ok(), seconds.map(Nanos::from_secs), "{text:?}");
        }
    }

    #[test]
    fn limits_are_parsed() {
        assert_eq!([limit("-1"), limit("10k")], [Ok(-1), Ok(10_000)]);
        assert_eq!(
            [bytes_limit("unlimited"), bytes_limit("1k")],
            [Ok(-1), Ok(1_024)]
        );
        assert_eq!(label("a=b:c"), Ok(("a".into(), "b:c".into())));
    }
}
