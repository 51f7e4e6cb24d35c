//! Writing and parsing of decimal numbers without allocation.

/// Appends a decimal number.
pub(super) fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Parses `text` as a decimal number.
pub(super) fn parse_number(text: &[u8]) -> Option<u64> {
    /// Number of digits that cannot overflow.
    const SAFE_DIGITS: usize = 19;
    if text.is_empty() {
        return None;
    }
    let digit = |digit: &u8| digit.is_ascii_digit().then(|| u64::from(digit - b'0'));
    let (safe, rest) = text.split_at(text.len().min(SAFE_DIGITS));
    let value = (safe.iter()).try_fold(0_u64, |value, next| Some(value * 10 + digit(next)?))?;
    rest.iter().try_fold(value, |value, next| {
        value.checked_mul(10)?.checked_add(digit(next)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for value in [0, 1, 9, 10, 99, 1_795_300_481, u64::MAX] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
            assert_eq!(parse_number(&out), Some(value));
        }
        for bad in ["", "a", "1a", "-1", "18446744073709551616"] {
            assert_eq!(parse_number(bad.as_bytes()), None, "{bad}");
        }
    }
}
