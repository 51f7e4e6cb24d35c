//! Names that nobody can have chosen: of ephemeral consumers, of events, of transfers.

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const EPHEMERAL_NAME_CHARS: usize = 8;
const ID_CHARS: usize = 22;

/// A source of such names. They are unique, not secret.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A source that gives the same names for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// A name for a consumer that was given none.
    pub(super) fn consumer_name(&mut self) -> String {
        self.token(EPHEMERAL_NAME_CHARS)
    }

    /// A name for an event or a transfer.
    pub(crate) fn id(&mut self) -> String {
        self.token(ID_CHARS)
    }

    /// Any number.
    pub(super) fn number(&mut self) -> u64 {
        self.next()
    }

    fn token(&mut self, chars: usize) -> String {
        let letters = ALPHABET.len() as u64;
        let letter = |number: u64| {
            let nth = usize::try_from(number % letters).unwrap_or(0);
            char::from(ALPHABET[nth])
        };
        (0..chars).map(|_| letter(self.next())).collect()
    }

    /// SplitMix64: every number once before any comes again.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // The low bits, by which letters are chosen, are mixed once more.
        (mixed ^ (mixed >> 31)) >> 8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_differ() {
        let mut random = Random::new(7);
        let names: HashSet<String> = (0..1_000).map(|_| random.consumer_name()).collect();
        assert_eq!(names.len(), 1_000);
        assert!(names.iter().all(|name| name.len() == 8));
        assert_eq!(random.id().len(), 22);
    }
}
