//! Short hashes for hash tables of indices.

use std::hash::Hasher;

/// A hash of 32 bits. A table that stores it beside an index grows without reading what the index refers to, and
/// reads that only if the hashes are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortHash(u32);

/// An index with the hash of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashed<T> {
    pub(crate) index: T,
    pub(crate) hash: ShortHash,
}

impl ShortHash {
    /// Returns the result of a hasher, shortened.
    #[inline]
    pub(crate) fn of(hasher: &impl Hasher) -> Self {
        let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
        ShortHash(u32::from_le_bytes([a, b, c, d]))
    }

    /// Returns the hash in the form for a table, which uses the lowest and the highest bits.
    #[inline]
    pub(crate) fn spread(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}

impl<T> Hashed<T> {
    /// Returns the hash in the form for a table.
    #[inline]
    pub(crate) fn spread(&self) -> u64 {
        self.hash.spread()
    }
}
