//! Parsers of option values that only a server has.

use fanline_client::url::split_host_port;
use fanline_server::{Cipher, Dashboard, Secret, SyncMode};

use crate::values::duration;
pub(crate) use crate::values::{bytes, set};

/// Parses `commit`, `none`, or an interval such as `2s`.
pub(crate) fn sync_mode(text: &str) -> Result<SyncMode, String> {
    match text {
        "commit" => Ok(SyncMode::Commit),
        "none" => Ok(SyncMode::None),
        _ => duration(text)
            .map(SyncMode::Interval)
            .map_err(|_| "expected `commit`, `none`, or a duration such as 2s".into()),
    }
}

/// Reads a file, without the line break that editors leave at its end.
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

/// Parses `aes` or `chachapoly`, as in nats-server's configuration, or `chacha`.
pub(crate) fn cipher(text: &str) -> Result<Cipher, String> {
    match text.to_ascii_lowercase().as_str() {
        "aes" => Ok(Cipher::Aes),
        "chachapoly" | "chacha" => Ok(Cipher::ChaCha),
        _ => Err("expected `aes` or `chachapoly`".into()),
    }
}

/// Parses `off`, `read`, or `write`.
pub(crate) fn dashboard(text: &str) -> Result<Dashboard, String> {
    Dashboard::parse(text).ok_or_else(|| "expected `off`, `read`, or `write`".into())
}

/// Parses `host:port`; an IPv6 address needs brackets.
pub(crate) fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let expected = || "expected HOST:PORT such as 127.0.0.1:4222 or [::1]:0".to_owned();
    match split_host_port(text) {
        Ok((host, Some(port))) if !host.is_empty() => {
            let port = port.parse().map_err(|_| expected())?;
            Ok((host.to_owned(), port))
        }
        _ => Err(expected()),
    }
}

/// Parses `9222`, or `HOST:PORT`.
pub(crate) fn maybe_host_and_port(text: &str) -> Result<(Option<String>, u16), String> {
    if let Ok(port) = text.parse() {
        return Ok((None, port));
    }
    host_and_port(text)
        .map(|(host, port)| (Some(host), port))
        .map_err(|_| "expected PORT or HOST:PORT such as 9222 or 127.0.0.1:9222".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_are_parsed() {
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
