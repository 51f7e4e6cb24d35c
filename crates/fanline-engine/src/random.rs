//! Random numbers: unpredictable ones for identifiers, fast ones for choices.

use std::fmt;

use salsa20::Salsa20;
use salsa20::cipher::generic_array::GenericArray;
use salsa20::cipher::{KeyIvInit as _, StreamCipher as _};

use crate::ids::{self, ID_CHARS};

const SEED_BYTES: usize = 32;
const EPHEMERAL_NAME_CHARS: usize = 8;

/// The secret from which all random identifiers of a process are derived. A server reads 32 bytes from the
/// operating system; tests use a `u64` to get the same identifiers each time.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Default))]
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

// The seed is secret, so its debug output is empty.
impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").finish_non_exhaustive()
    }
}

/// The purpose of generated identifiers. Each purpose has a key stream of its own.
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
    /// Ids of consumers' advisories, pins, and flow control subjects.
    Consumers,
}

/// A cryptographic generator: the key stream of Salsa20 under the seed.
pub(crate) struct Random(Salsa20);

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Random").finish_non_exhaustive()
    }
}

impl Random {
    /// Returns a generator. The same seed and purpose give the same numbers; another seed or purpose gives
    /// unrelated numbers.
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

    /// Returns a token of `chars` letters and digits.
    pub(crate) fn token(&mut self, chars: usize) -> String {
        ids::from_numbers((0..chars).map(|_| self.number()))
    }
}

/// A fast generator (xorshift64*) that distributes messages over a queue group. A peer that sees some of its
/// numbers can compute the others, so identifiers come from [`Random`].
#[derive(Clone, Debug)]
pub(crate) struct FastRandom(u64);

impl FastRandom {
    pub(crate) fn new(seed: u64) -> Self {
        // A state of zero would stay zero.
        FastRandom(seed | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number below `end`, or 0 when `end` is 0.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        let high = self.next() >> 32;
        u32::try_from((high * u64::from(end)) >> 32).unwrap_or(0)
    }

    /// Draws a random ticket, to choose an item with a probability in proportion to its weight. `weights` is
    /// the sum of all weights.
    pub(crate) fn ticket(&mut self, weights: u32) -> Ticket {
        Ticket(self.below(weights))
    }
}

/// A lottery ticket. Each item holds as many tickets as its weight.
pub(crate) struct Ticket(u32);

impl Ticket {
    /// Returns whether the next item, with this weight, holds the ticket.
    pub(crate) fn is_held_by(&mut self, weight: u32) -> bool {
        match self.0.checked_sub(weight) {
            Some(rest) => {
                self.0 = rest;
                false
            }
            None => true,
        }
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
    fn tickets_are_held_by_weight() {
        let weights = [3, 0, 2];
        let holder = |ticket| {
            let mut ticket = Ticket(ticket);
            weights.iter().position(|weight| ticket.is_held_by(*weight))
        };
        let holders: Vec<_> = (0..6).map(holder).collect();
        assert_eq!(holders, [Some(0), Some(0), Some(0), Some(2), Some(2), None]);
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
            of(7, Purpose::Consumers),
        ];
        assert_eq!(HashSet::from(numbers).len(), numbers.len());
        assert_eq!(numbers[0], of(7, Purpose::Streams));
    }
}
