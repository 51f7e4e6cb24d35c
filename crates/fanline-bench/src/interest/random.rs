//! Pseudorandom numbers, which are the same for the same seed on every platform.

/// A generator (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a uniform number of `0..bound`. The bias for bounds of 32 bits is negligible here.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Returns true with a probability of `chances` in 100.
    pub(super) fn percent(&mut self, chances: u32) -> bool {
        self.below(100) < chances as usize
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Ranks, of which the n-th is drawn with a probability proportional to 1/n.
pub(super) struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    pub(super) fn new(ranks: usize) -> Self {
        let mut sum = 0.0;
        let chances = (1..=ranks).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self {
            cumulated: chances.collect(),
        }
    }

    /// Draws a rank, counted from 0.
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let all = self.cumulated.last().copied().unwrap_or(1.0);
        let at = random.unit() * all;
        let rank = self.cumulated.partition_point(|sum| *sum <= at);
        rank.min(self.cumulated.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_repeats_numbers_and_another_differs() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            std::array::from_fn::<_, 8, _>(|_| random.below(1000))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn first_rank_is_drawn_twice_as_often_as_second() {
        let (zipf, mut random) = (Zipf::new(10), Random::new(7));
        let mut drawn = [0_u32; 10];
        for _ in 0..100_000 {
            drawn[zipf.draw(&mut random)] += 1;
        }
        let ratio = f64::from(drawn[0]) / f64::from(drawn[1]);
        assert!((1.9..2.1).contains(&ratio), "{drawn:?}");
    }
}
