//! Identifiers of letters and digits, in nats-server's format.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Number of characters of a unique identifier.
pub const ID_CHARS: usize = 22;

/// Returns an identifier with one letter or digit for each number.
pub fn from_numbers(numbers: impl IntoIterator<Item = u64>) -> String {
    let digit = |number| char::from(DIGITS[usize::try_from(number % 62).unwrap_or(0)]);
    numbers.into_iter().map(digit).collect()
}

/// Returns the last `count` digits of a number in base 62, the last one first.
pub fn from_number(number: u128, count: usize) -> String {
    let rests = std::iter::successors(Some(number), |rest| Some(rest / 62));
    let digits = rests.map(|rest| u64::try_from(rest % 62).unwrap_or(0));
    from_numbers(digits.take(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_base_62() {
        assert_eq!(from_numbers([0, 10, 36, 61, 62]), "0Aaz0");
        assert_eq!(from_number(62 * 62 + 61, 4), "z010");
        let id = from_number(u128::MAX, ID_CHARS);
        assert_eq!(id, "7chF7tm8n9klfT5MGD24n7");
    }
}
