//! Values on the command line: durations, headers, sizes.

use std::time::Duration;

use fanline_server::SyncMode;

/// `500ms`, `2s`, `1.5s`, `1m`, `1h`; a bare number counts seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds_per_unit = match &text[digits.len()..] {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a duration such as 500ms, 2s or 1m".into()),
    };
    digits
        .parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * seconds_per_unit).ok())
        .ok_or_else(|| "expected a duration such as 500ms, 2s or 1m".into())
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
    fn reads_places_to_listen() {
        assert_eq!(host_and_port("[::1]:0"), Ok(("::1".into(), 0)));
        assert_eq!(
            host_and_port("localhost:4222"),
            Ok(("localhost".into(), 4222))
        );
        for wrong in ["4222", ":4222", "::1:4222", "h:", "h:65536"] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
    }
}
