//! Which member of a queue group gets a message.

/// Enough randomness to spread messages over a queue group (xorshift64*). A peer that sees some numbers can compute
/// the others: identifiers come from [`crate::random::Random`].
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`, or 0 when `end` is 0.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        let high = self.next() >> 32;
        u32::try_from((high * u64::from(end)) >> 32).unwrap_or(0)
    }
}
