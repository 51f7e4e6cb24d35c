//! Topics that a client may publish to, as it was found when it did so before.
//!
//! Permissions are looked up token by token; who publishes to a few topics in turn is asked that once for
//! each. Only what is allowed is kept: what is not costs its sender a line of error anyway.

use std::hash::{BuildHasher as _, Hasher as _};

use hashbrown::DefaultHashBuilder;

use crate::short_bytes::ShortBytes;

/// How many topics are kept at first.
const PLACES_MIN: usize = 16;
/// How many at most, for each connection with permissions: about 20 KB. Of more, those that share a place
/// are asked about each time.
const PLACES_MAX: usize = 512;

/// How many topics that were not known are remembered by their hashes.
const SEEN: usize = 1024;

/// What is kept for one connection, as long as its permissions are the same.
#[derive(Default)]
pub(super) struct Verdicts {
    /// A power of two of them, or none, empty where nothing is kept. A topic's place is told by its hash, or
    /// is the one beside that.
    places: Vec<ShortBytes>,
    /// Topics that took the place of others since there are so many places.
    replaced: usize,
    /// Topics that were not known: one that comes again is kept. Those that come once, as replies do, take
    /// nobody's place.
    seen: Vec<u32>,
    hash_builder: DefaultHashBuilder,
}

impl Verdicts {
    /// Whether a topic is allowed; `rules` say so if it is not known.
    pub(super) fn allow(&mut self, topic: &[u8], rules: impl FnOnce() -> bool) -> bool {
        if topic.is_empty() {
            // It would be found in every empty place.
            return rules();
        }
        let hash = self.hash(topic);
        let first = at(hash, self.places.len());
        let mut both = [first, first ^ 1].into_iter();
        if both.any(|at| {
            self.places
                .get(at)
                .is_some_and(|known| known.as_slice() == topic)
        }) {
            return true;
        }
        let is_allowed = rules();
        if is_allowed && self.was_seen(hash) {
            self.keep(hash, topic);
        }
        is_allowed
    }

    /// Whether a topic that is not known has been here before.
    fn was_seen(&mut self, hash: u64) -> bool {
        // Other bits than those by which a place is found; 0 is nobody's.
        let [.., a, b, c, d] = (hash >> 16).to_be_bytes();
        let trace = u32::from_be_bytes([a, b, c, d]) | 1;
        if self.seen.is_empty() {
            self.seen = vec![0; SEEN];
        }
        let slot = self.seen.get_mut(at(hash >> 48, SEEN));
        slot.is_some_and(|slot| std::mem::replace(slot, trace) == trace)
    }

    fn keep(&mut self, hash: u64, topic: &[u8]) {
        if self.places.is_empty() {
            self.resize(PLACES_MIN);
        }
        let len = self.places.len();
        let first = at(hash, len);
        // Who is there moves aside, and who is there is gone.
        self.places.swap(first, first ^ 1);
        let before = std::mem::replace(&mut self.places[first], ShortBytes::from(topic));
        self.replaced += usize::from(!before.as_slice().is_empty());
        if self.replaced > len / 2 && len < PLACES_MAX {
            self.resize(len * 2);
        }
    }

    /// Has so many places, all empty.
    #[cold]
    fn resize(&mut self, len: usize) {
        self.places = vec![ShortBytes::from(&b""[..]); len];
        self.replaced = 0;
    }

    fn hash(&self, topic: &[u8]) -> u64 {
        let mut hasher = self.hash_builder.build_hasher();
        hasher.write(topic);
        // With some seeds it tells short topics apart by few of its bits, and each of three looks takes others.
        let hash = hasher.finish();
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^ (hash >> 29)
    }
}

/// Which of so many places a hash leads to: a power of two of them, or none.
fn at(hash: u64, len: usize) -> usize {
    // The low bits alone count.
    let low = usize::try_from(hash & 0xffff).unwrap_or(0);
    low & len.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is asked in whatever order, the answer is that of the rules.
        #[test]
        fn the_answer_is_that_of_the_rules(asked in prop::collection::vec(0..2000u32, 0..4000)) {
            let mut verdicts = Verdicts::default();
            for number in asked {
                let topic = format!("a.{number}");
                let rules = || !number.is_multiple_of(3);
                prop_assert_eq!(verdicts.allow(topic.as_bytes(), rules), rules());
                prop_assert!(verdicts.places.len() <= PLACES_MAX);
            }
        }
    }

    /// How often rules are asked when so many topics take turns.
    fn asked(topics: usize, rounds: usize) -> usize {
        let mut verdicts = Verdicts::default();
        let mut asked = 0;
        for _ in 0..rounds {
            for number in 0..topics {
                let topic = format!("orders.{number}.new");
                verdicts.allow(topic.as_bytes(), || {
                    asked += 1;
                    true
                });
            }
        }
        asked
    }

    #[test]
    fn topics_that_take_turns_are_asked_about_rarely() {
        // The places of some fall together, of more in a bad run.
        let asked_of_fifty = asked(50, 1000);
        assert!(asked_of_fifty < 25_000, "{asked_of_fifty}");
        assert_eq!(asked(1, 1000), 2);
    }

    #[test]
    fn those_that_come_once_take_nobodys_place() {
        let mut verdicts = Verdicts::default();
        for _ in 0..3 {
            verdicts.allow(b"a", || true);
        }
        for number in 0..10_000 {
            verdicts.allow(format!("_INBOX.{number}").as_bytes(), || true);
        }
        assert_eq!(verdicts.places.len(), PLACES_MIN);
        assert_eq!(verdicts.replaced, 0);
        assert!(verdicts.allow(b"a", || unreachable!("it is known")));
        assert!(!verdicts.allow(b"b", || false));
        assert!(!verdicts.allow(b"", || false));
    }
}
