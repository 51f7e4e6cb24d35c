//! The value of a `Nats-TTL` header.

use crate::time::Nanos;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Time to live of a record, from its `Nats-TTL` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ttl {
    /// Never expires, even if the stream has an age limit.
    Never,
    /// Expires after this number of nanoseconds, which is at least one second.
    After(i64),
}

/// Parses the value of `Nats-TTL`: a number of seconds, a duration of at least one second, or `never`.
pub(super) fn parse_ttl(text: &[u8]) -> Option<Ttl> {
    if text.eq_ignore_ascii_case(b"never") {
        return Some(Ttl::Never);
    }
    let text = std::str::from_utf8(text).ok()?;
    let nanos = match text.parse::<i64>() {
        // A number too large for a clock becomes the largest possible time.
        Ok(seconds) => seconds.saturating_mul(NANOS_PER_SECOND),
        Err(_) => text.parse::<Nanos>().ok()?.0,
    };
    (nanos >= NANOS_PER_SECOND).then_some(Ttl::After(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttl_values_are_parsed() {
        let seconds = |n: i64| Some(Ttl::After(n * NANOS_PER_SECOND));
        for (text, expected) in [
            ("1", seconds(1)),
            ("0", None),
            ("-1", None),
            ("never", Some(Ttl::Never)),
            ("Never", Some(Ttl::Never)),
            ("1s", seconds(1)),
            ("0s", None),
            ("999ms", None),
            ("1h30m", seconds(5_400)),
            ("1.5s", Some(Ttl::After(1_500_000_000))),
            ("1.5", None),
            ("99999999999999", Some(Ttl::After(i64::MAX))),
            ("x", None),
            ("", None),
            ("5 ", None),
            ("1s1", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("9999999h", None),
        ] {
            assert_eq!(parse_ttl(text.as_bytes()), expected, "{text}");
        }
    }
}
