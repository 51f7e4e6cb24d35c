//! Random identifiers that a peer cannot predict from those it has seen.

use std::fmt;

use salsa20::Salsa20;
use salsa20::cipher::generic_array::GenericArray;
use salsa20::cipher::{KeyIvInit as _, StreamCipher as _};

const SEED_BYTES: usize = 32;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const EPHEMERAL_NAME_CHARS: usize = 8;
const ID_CHARS: usize = 22;

/// The secret that all random identifiers of a run are derived from. A server takes 32 bytes from the operating system;
/// a `u64` is for tests, which want the same identifiers each time.
#[derive(Clone, Copy)]
pub struct Seed([u8; SEED_BYTES]);

impl From<[u8; SEED_BYTES]> for Seed {
    fn from(bytes: [u8; SEED_BYTES]) -> Self {
        Seed(bytes)
    }
}

impl From<u64> for Seed {
    fn from(number: u64) -> Self {
        let mut bytes = [0; SEED_BYTES];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Seed(bytes)
    }
}

// It is secret.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").finish_non_exhaustive()
    }
}

/// What identifiers are for. Each purpose has a key stream of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Reply subjects, client identifiers, and latency reports of a shard.
    Shard,
    /// Seeds of the JetStream of each account.
    Accounts,
    /// Names of ephemeral consumers, deliver subjects, and transfers.
    Streams,
    /// Ids of advisories.
    Advisories,
}

/// A cryptographic generator: the key stream of Salsa20 under the seed.
pub(crate) struct Random(Salsa20);

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Random").finish_non_exhaustive()
    }
}

impl Random {
    /// Returns a generator that gives the same numbers for the same seed and purpose, and unrelated ones otherwise.
    pub(crate) fn new(seed: Seed, purpose: Purpose) -> Self {
        let mut nonce = [0; 8];
        nonce[0] = purpose as u8;
        let key = GenericArray::from_slice(&seed.0);
        Random(Salsa20::new(key, GenericArray::from_slice(&nonce)))
    }

    /// Returns 64 random bits.
    pub(crate) fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.apply_keystream(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Returns a seed for another generator.
    pub(crate) fn seed(&mut self) -> Seed {
        let mut bytes = [0; SEED_BYTES];
        self.0.apply_keystream(&mut bytes);
        Seed(bytes)
    }

    /// Returns a name for a consumer without one.
    pub(crate) fn consumer_name(&mut self) -> String {
        self.token(EPHEMERAL_NAME_CHARS)
    }

    /// Returns an id for an advisory, a transfer, or a deliver subject.
    pub(crate) fn id(&mut self) -> String {
        self.token(ID_CHARS)
    }

    fn token(&mut self, chars: usize) -> String {
        let letters = ALPHABET.len() as u64;
        let letter = |number: u64| {
            let nth = usize::try_from(number % letters).unwrap_or(0);
            char::from(ALPHABET[nth])
        };
        (0..chars).map(|_| letter(self.number())).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_differ() {
        let mut random = Random::new(7.into(), Purpose::Streams);
        let names: HashSet<String> = (0..1_000).map(|_| random.consumer_name()).collect();
        assert_eq!(names.len(), 1_000);
        assert!(names.iter().all(|name| name.len() == 8));
        assert_eq!(random.id().len(), 22);
    }

    #[test]
    fn key_streams_differ_by_seed_and_purpose() {
        let of = |seed: u64, purpose| Random::new(seed.into(), purpose).number();
        let numbers = [
            of(7, Purpose::Streams),
            of(8, Purpose::Streams),
            of(7, Purpose::Advisories),
            of(7, Purpose::Shard),
            of(7, Purpose::Accounts),
        ];
        assert_eq!(HashSet::from(numbers).len(), numbers.len());
        assert_eq!(numbers[0], of(7, Purpose::Streams));
    }
}
