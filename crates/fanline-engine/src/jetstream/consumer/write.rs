//! Small pieces of text, written into buffers that are used again.

/// Appends a number in decimal.
pub(super) fn number(out: &mut Vec<u8>, number: u64) {
    // 20 digits hold the largest.
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Reads a decimal number that is all of `text`.
pub(super) fn parse_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// Appends one more line to a block of headers, making the block if there is none.
pub(super) fn header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    if out.ends_with(b"\r\n\r\n") {
        out.truncate(out.len() - 2);
    } else {
        out.clear();
        out.extend_from_slice(b"NATS/1.0\r\n");
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
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

    #[test]
    fn headers() {
        let mut out = Vec::new();
        header(&mut out, "A", b"1");
        assert_eq!(out, b"NATS/1.0\r\nA: 1\r\n\r\n");
        header(&mut out, "B", b"2");
        assert_eq!(out, b"NATS/1.0\r\nA: 1\r\nB: 2\r\n\r\n");
    }
}
