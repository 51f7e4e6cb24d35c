//! Values on the command line: durations, headers, sizes.

use std::time::Duration;

use fanline_server::client::jetstream::{Nanos, Timestamp};
use fanline_server::{Cipher, Dashboard, Secret, SyncMode};
use serde::de::DeserializeOwned;

/// `500ms`, `2s`, `1.5s`, `1m`, `1h30m`; a bare number counts seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    let unit = if has_unit { "" } else { "s" };
    let nanos: Option<Nanos> = format!("{text}{unit}").parse().ok();
    nanos
        .and_then(|nanos| u64::try_from(nanos.0).ok())
        .map(Duration::from_nanos)
        .ok_or_else(|| "expected a duration such as 500ms, 2s or 1m".into())
}

/// A duration that is not nothing.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it has to be more than nothing".into()),
        time => Ok(time),
    }
}

/// `commit`, `none`, or how often: `2s`.
pub(crate) fn sync_mode(text: &str) -> Result<SyncMode, String> {
    match text {
        "commit" => Ok(SyncMode::Commit),
        "none" => Ok(SyncMode::None),
        _ => duration(text)
            .map(SyncMode::Interval)
            .map_err(|_| "expected `commit`, `none`, or a duration such as 2s".into()),
    }
}

/// What a file holds, without the line break that editors leave at its end.
pub(crate) fn secret_file(path: &str) -> Result<Secret, String> {
    let mut bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    if bytes.ends_with(b"\n") {
        bytes.truncate(bytes.len() - 1);
    }
    if bytes.ends_with(b"\r") {
        bytes.truncate(bytes.len() - 1);
    }
    match bytes.is_empty() {
        true => Err("the file is empty".into()),
        false => Ok(Secret::new(bytes)),
    }
}

/// `aes` or `chachapoly`, as in nats-server's configuration; `chacha` is taken too.
pub(crate) fn cipher(text: &str) -> Result<Cipher, String> {
    match text.to_ascii_lowercase().as_str() {
        "aes" => Ok(Cipher::Aes),
        "chachapoly" | "chacha" => Ok(Cipher::ChaCha),
        _ => Err("expected `aes` or `chachapoly`".into()),
    }
}

/// `off`, `read` or `write`.
pub(crate) fn dashboard(text: &str) -> Result<Dashboard, String> {
    Dashboard::parse(text).ok_or_else(|| "expected `off`, `read` or `write`".into())
}

/// `Name: value` or `Name:value`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("expected a header such as \"Content-Type: text/plain\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// `1000`, `64k`, `1MB`, `1MiB`: k, M and G count in 1024, as nats-server's configuration does.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let expected = || "expected a size such as 128, 64k or 1MB".to_owned();
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

/// `1000`, `1_000`, `10k`, `1M`: k and M count in thousands, as message counts do.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let expected = || "expected a number such as 1000, 10k or 1M".to_owned();
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

/// How long records are kept: `90s`, `1h30m`, `7d`, `2w`, `1y`; `0`, `-1` or `never` for ever.
pub(crate) fn span(text: &str) -> Result<Nanos, String> {
    if matches!(text, "0" | "-1" | "never") {
        return Ok(Nanos::ZERO);
    }
    Nanos::parse_with_days(text)
        .ok()
        .filter(|nanos| nanos.0 > 0)
        .ok_or_else(|| "expected a time such as 90s, 1h30m, 7d or 1y".to_owned())
}

/// A [`span`] in which nothing is for ever.
pub(crate) fn finite_span(text: &str) -> Result<Duration, String> {
    span(text).map(Nanos::duration)
}

/// A count that may be without limit: `-1` or `unlimited`.
pub(crate) fn limit(text: &str) -> Result<i64, String> {
    match text {
        "-1" | "unlimited" => Ok(-1),
        _ => i64::try_from(count(text)?).map_err(|error| error.to_string()),
    }
}

/// A size that may be without limit: `-1` or `unlimited`.
pub(crate) fn bytes_limit(text: &str) -> Result<i64, String> {
    match text {
        "-1" | "unlimited" => Ok(-1),
        _ => i64::try_from(bytes(text)?).map_err(|error| error.to_string()),
    }
}

/// One of the words of a setting, as JSON has it; what is not one is answered with those that are.
pub(crate) fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// `key=value` or `key:value`.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once(['=', ':'])
        .ok_or("expected a label such as team=orders")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// `2026-11-22T10:00:00Z`, `2026-11-22 10:00:00` in the time zone of this machine, or in how long: `1h`.
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

/// `host:port`; an IPv6 address stands in brackets.
pub(crate) fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let expected = || "expected HOST:PORT such as 127.0.0.1:4222 or [::1]:0".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
    let port = port.parse().map_err(|_| expected())?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match bare {
        Some(host) => Ok((host.to_owned(), port)),
        None if host.is_empty() || host.contains(':') => Err(expected()),
        None => Ok((host.to_owned(), port)),
    }
}

/// `9222`, or `HOST:PORT`.
pub(crate) fn maybe_host_and_port(text: &str) -> Result<(Option<String>, u16), String> {
    if let Ok(port) = text.parse() {
        return Ok((None, port));
    }
    host_and_port(text)
        .map(|(host, port)| (Some(host), port))
        .map_err(|_| "expected PORT or HOST:PORT such as 9222 or 127.0.0.1:9222".into())
}

/// Sets a field that was named.
pub(crate) fn set<T: Clone>(field: &mut T, named: &Option<T>) {
    if let Some(value) = named {
        field.clone_from(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        for (text, expected) in [
            ("2s", Some(Duration::from_secs(2))),
            ("2", Some(Duration::from_secs(2))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("250ms", Some(Duration::from_millis(250))),
            ("1m", Some(Duration::from_secs(60))),
            ("1h30m", Some(Duration::from_secs(5_400))),
            ("1.5", Some(Duration::from_millis(1500))),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1 s", None),
            ("1d", None),
            ("infs", None),
        ] {
            assert_eq!(duration(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn reads_sizes_and_counts() {
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
    fn reads_spans() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("1h30m", Some(5_400)),
            ("7d", Some(604_800)),
            ("1.5h", Some(5_400)),
            ("never", Some(0)),
            ("-1", Some(0)),
            ("", None),
            ("5", None),
            ("d", None),
            ("1x", None),
        ] {
            assert_eq!(span(text).ok(), seconds.map(Nanos::from_secs), "{text:?}");
        }
    }

    #[test]
    fn reads_limits() {
        assert_eq!([limit("-1"), limit("10k")], [Ok(-1), Ok(10_000)]);
        assert_eq!(
            [bytes_limit("unlimited"), bytes_limit("1k")],
            [Ok(-1), Ok(1_024)]
        );
        assert_eq!(label("a=b:c"), Ok(("a".into(), "b:c".into())));
    }

    #[test]
    fn reads_places_to_listen() {
        assert_eq!(host_and_port("[::1]:0"), Ok(("::1".into(), 0)));
        assert_eq!(
            host_and_port("localhost:4222"),
            Ok(("localhost".into(), 4222))
        );
        for wrong in ["4222", ":4222", "::1:4222", "h:", "h:65536"] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
        assert_eq!(maybe_host_and_port("9222"), Ok((None, 9222)));
        assert_eq!(maybe_host_and_port("h:1"), Ok((Some("h".into()), 1)));
        for wrong in ["", "h", ":1", "65536", "h:"] {
            assert!(maybe_host_and_port(wrong).is_err(), "{wrong}");
        }
    }
}
