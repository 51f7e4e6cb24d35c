//! Durations as headers write them: whole seconds, or numbers with units as Go prints them.

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// How long a record lives, as `Nats-TTL` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ttl {
    /// It does not expire, whatever the stream's age limit is.
    Never,
    /// It expires after so many nanoseconds, a second at least.
    After(i64),
}

/// Reads a `Nats-TTL`: seconds, a duration of a second at least, or `never`.
pub(super) fn parse_ttl(text: &[u8]) -> Option<Ttl> {
    if text.eq_ignore_ascii_case(b"never") {
        return Some(Ttl::Never);
    }
    let nanos = match parse_seconds(text) {
        // More seconds than a clock can count are as good as none.
        Some(seconds) => seconds.saturating_mul(NANOS_PER_SECOND),
        None => parse_duration(text)?,
    };
    (nanos >= NANOS_PER_SECOND).then_some(Ttl::After(nanos))
}

fn parse_seconds(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a duration such as `1h30m` or `1.5s`, in nanoseconds. None is negative.
pub(super) fn parse_duration(text: &[u8]) -> Option<i64> {
    let mut rest = text.strip_prefix(b"+").unwrap_or(text);
    if rest == b"0" {
        return Some(0);
    }
    let mut nanos: i64 = 0;
    while !rest.is_empty() || nanos == 0 {
        let number = rest
            .iter()
            .take_while(|b| b.is_ascii_digit() || **b == b'.');
        let (number, after) = rest.split_at(number.count());
        let unit = after
            .iter()
            .take_while(|b| !b.is_ascii_digit() && **b != b'.');
        let (unit, after) = after.split_at(unit.count());
        nanos = nanos.checked_add(scaled(number, unit_nanos(unit)?)?)?;
        if after.is_empty() {
            return Some(nanos);
        }
        rest = after;
    }
    None
}

fn unit_nanos(unit: &[u8]) -> Option<i64> {
    Some(match unit {
        b"ns" => 1,
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
        b"ms" => 1_000_000,
        b"s" => NANOS_PER_SECOND,
        b"m" => 60 * NANOS_PER_SECOND,
        b"h" => 3_600 * NANOS_PER_SECOND,
        _ => return None,
    })
}

/// A decimal number, with or without a fraction, of so many nanoseconds each.
fn scaled(number: &[u8], unit: i64) -> Option<i64> {
    let text = std::str::from_utf8(number).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut part = 0_i64;
    let mut place = unit;
    for digit in fraction.bytes() {
        if !digit.is_ascii_digit() {
            return None;
        }
        place /= 10;
        part += i64::from(digit - b'0') * place;
    }
    whole.checked_mul(unit)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes() {
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
        assert_eq!(parse_duration(b"1m0.25s"), Some(60_250_000_000));
        assert_eq!(parse_duration("3\u{b5}s".as_bytes()), Some(3_000));
    }
}
