//! Writing and parsing of decimal numbers without allocation.

/// Appends a decimal number.
pub(super) fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Adds one to the decimal number at the end of `text`. Returns `false` if the number needs one more digit; its
/// digits are then undefined.
pub(super) fn increment(text: &mut [u8]) -> bool {
    for digit in text.iter_mut().rev() {
        match digit {
            b'9' => *digit = b'0',
            b'0'..=b'8' => {
                *digit += 1;
                return true;
            }
            _ => return false,
        }
    }
    false
}

/// Subtracts one from the decimal number at the end of `text`, which follows another byte. Returns `false` if
/// the number needs fewer digits, or is 0; its digits are then undefined.
pub(super) fn decrement(text: &mut [u8]) -> bool {
    for at in (1..text.len()).rev() {
        match text[at] {
            b'0' => text[at] = b'9',
            b'1'..=b'9' => {
                text[at] -= 1;
                let is_first = !text[at - 1].is_ascii_digit();
                return text[at] != b'0' || !is_first || at + 1 == text.len();
            }
            _ => return false,
        }
    }
    false
}

/// Replaces a decimal number by another one. Returns `false`, without an effect, if the lengths differ.
pub(super) fn overwrite(text: &mut [u8], number: u64) -> bool {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    let fits = digits.len() == text.len();
    if fits {
        text.copy_from_slice(digits);
    }
    fits
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

/// Parses decimal numbers with dots between them. Returns `None` if they are not as many as `numbers`, if one
/// of them has more than 19 digits, or if `text` contains anything else.
pub(super) fn parse_dotted(text: &[u8], numbers: &mut [u64]) -> Option<()> {
    const DIGITS_MAX: usize = 19;
    let mut rest = text;
    let (last, others) = numbers.split_last_mut()?;
    for number in others {
        let digits;
        (digits, *number) = leading_number(rest);
        let (b'.', after) = rest.get(digits..)?.split_first()? else {
            return None;
        };
        if digits == 0 || digits > DIGITS_MAX {
            return None;
        }
        rest = after;
    }
    let digits;
    (digits, *last) = leading_number(rest);
    (digits == rest.len() && digits > 0 && digits <= DIGITS_MAX).then_some(())
}

/// Returns the number of digits at the start, and their value unless they are too many.
fn leading_number(text: &[u8]) -> (usize, u64) {
    let mut value = 0_u64;
    for (at, byte) in text.iter().enumerate() {
        if !byte.is_ascii_digit() {
            return (at, value);
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
    }
    (text.len(), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_numbers_are_parsed() {
        let parse = |text: &str| {
            let mut numbers = [0; 3];
            parse_dotted(text.as_bytes(), &mut numbers).map(|()| numbers)
        };
        let largest = "9999999999999999999";
        assert_eq!(parse("1.20.0"), Some([1, 20, 0]));
        assert_eq!(
            parse(&format!("0.{largest}.7")),
            Some([0, largest.parse().unwrap(), 7])
        );
        for bad in [
            "", "1.2", "1.2.", ".1.2", "1..2", "1.2.3.4", "1.2.3.", "a.2.3", "1.2.x",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&format!("1.1{largest}.2")), None);
        assert_eq!(parse(&format!("1.2.1{largest}")), None);
    }

    #[test]
    fn numbers_change_in_place() {
        let check = |change: fn(&mut [u8]) -> bool, text: &str, expected: Option<&str>| {
            let mut changed = text.as_bytes().to_vec();
            let done = change(&mut changed);
            assert_eq!(done, expected.is_some(), "{text}");
            if let Some(expected) = expected {
                assert_eq!(String::from_utf8(changed).unwrap(), expected);
            }
        };
        check(increment, "a.0", Some("a.1"));
        check(increment, "a.1299", Some("a.1300"));
        check(increment, "a.99", None);
        check(decrement, "a.1", Some("a.0"));
        check(decrement, "a.1300", Some("a.1299"));
        check(decrement, "a.100", None);
        check(decrement, "a.10", None);
        check(decrement, "a.0", None);
    }

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
