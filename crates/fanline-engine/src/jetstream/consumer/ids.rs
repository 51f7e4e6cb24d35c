//! Ids that nobody else has given out: of events, pins and flow control requests.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// As long as the ids of nats-server.
const ID_CHARS: usize = 22;

/// A source of ids. They are told apart from others' by chance, and are not secret.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Seeded anew in every process.
    hash_builder: DefaultHashBuilder,
    given: u64,
}

impl Ids {
    /// An id of 22 letters and digits.
    pub(super) fn next(&mut self) -> String {
        self.letters(ID_CHARS)
    }

    /// An id of so many letters and digits, at most 22.
    pub(super) fn letters(&mut self, count: usize) -> String {
        self.given += 1;
        let high = self.hash_builder.hash_one((self.given, 0_u8));
        let low = self.hash_builder.hash_one((self.given, 1_u8));
        let mut rest = u128::from(high) << 64 | u128::from(low);
        let mut id = String::with_capacity(count);
        for _ in 0..count {
            // The remainder is below 62.
            id.push(char::from(DIGITS[usize::try_from(rest % 62).unwrap_or(0)]));
            rest /= 62;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ() {
        let mut ids = Ids::default();
        let (a, b) = (ids.next(), ids.next());
        assert_ne!(a, b);
        assert_eq!(a.len(), 22);
        assert_ne!(Ids::default().next(), Ids::default().next());
    }
}
