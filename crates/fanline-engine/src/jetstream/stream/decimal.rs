//! Integers of any length, which can be parsed, added, and printed.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub};

/// An integer as decimal digits. The time of an operation is proportional to the number of digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    /// Digits from 0 to 9, lowest first, without leading zeros; zero has no digits and no sign.
    digits: Vec<u8>,
}

impl Decimal {
    /// Parses decimal digits with an optional sign. Other forms are refused.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+"));
        let digits = digits.unwrap_or(text);
        let are_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let values = || digits.iter().rev().map(|digit| digit - b'0').collect();
        are_digits.then(|| Decimal::new(text.starts_with(b"-"), values()))
    }

    /// Returns the number of digits.
    pub(super) fn len(&self) -> usize {
        self.digits.len()
    }

    fn new(is_negative: bool, mut digits: Vec<u8>) -> Self {
        let used = digits.iter().rposition(|digit| *digit != 0);
        digits.truncate(used.map_or(0, |last| last + 1));
        Decimal {
            is_negative: is_negative && !digits.is_empty(),
            digits,
        }
    }

    fn cmp_digits(&self, other: &Self) -> Ordering {
        let by_length = self.digits.len().cmp(&other.digits.len());
        by_length.then_with(|| self.digits.iter().rev().cmp(other.digits.iter().rev()))
    }
}

impl Add<&Decimal> for &Decimal {
    type Output = Decimal;

    fn add(self, other: &Decimal) -> Decimal {
        let (large, small) = match self.cmp_digits(other) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        let have_one_sign = self.is_negative == other.is_negative;
        let mut digits = large.digits.clone();
        let mut carry = 0;
        let smaller = small.digits.iter().copied().chain(std::iter::repeat(0));
        for (digit, other) in digits.iter_mut().zip(smaller) {
            let taken = other + carry;
            (*digit, carry) = match have_one_sign {
                true => ((*digit + taken) % 10, (*digit + taken) / 10),
                false => ((*digit + 10 - taken) % 10, u8::from(*digit < taken)),
            };
        }
        digits.push(carry);
        Decimal::new(large.is_negative, digits)
    }
}

impl AddAssign<&Decimal> for Decimal {
    fn add_assign(&mut self, other: &Decimal) {
        *self = &*self + other;
    }
}

impl Neg for Decimal {
    type Output = Decimal;

    fn neg(self) -> Decimal {
        Decimal::new(!self.is_negative, self.digits)
    }
}

impl Sub for Decimal {
    type Output = Decimal;

    fn sub(self, other: Decimal) -> Decimal {
        &self + &-other
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits.iter().rev();
        let digits: String = digits.map(|digit| char::from(b'0' + digit)).collect();
        let digits = if digits.is_empty() { "0" } else { &digits };
        f.pad_integral(!self.is_negative, "", digits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decimal(number: i128) -> Decimal {
        Decimal::parse(number.to_string().as_bytes()).unwrap()
    }

    /// Numbers of all lengths, some of them close to powers of ten, to test carries.
    fn number() -> impl Strategy<Value = i128> {
        let near = (0..37_u32, -2..=2_i128).prop_map(|(power, by)| 10_i128.pow(power) + by);
        let long = (any::<i128>(), 2..120_u32).prop_map(|(number, by)| number >> by);
        (prop_oneof![near, long], any::<bool>()).prop_map(|(n, sign)| if sign { -n } else { n })
    }

    #[test]
    fn parse_accepts_only_digits_with_sign() {
        for (text, number) in [("+5", 5), ("-0", 0), ("007", 7), ("-10", -10)] {
            assert_eq!(Decimal::parse(text.as_bytes()), Some(decimal(number)));
        }
        for text in ["", "+", "-", "x", "1.5", "7 ", "0x10", "1_0", "--1", "+-1"] {
            assert_eq!(Decimal::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!((decimal(0).len(), decimal(-105).len()), (0, 3));
    }

    proptest! {
        #[test]
        fn arithmetic_agrees_with_integers(a in number(), b in number()) {
            prop_assert_eq!(decimal(a).to_string(), a.to_string());
            prop_assert_eq!(&decimal(a) + &decimal(b), decimal(a + b));
            prop_assert_eq!(decimal(a) - decimal(b), decimal(a - b));
            let mut sum = decimal(a);
            sum += &decimal(b);
            prop_assert_eq!(sum.to_string(), (a + b).to_string());
        }
    }
}
