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

/// What is kept for one connection, as long as its permissions are the same.
#[derive(Default)]
pub(super) struct Verdicts {
    /// A power of two of them, or none. A topic's place is told by its hash.
    places: Vec<Place>,
    /// Topics that took the place of others since there are so many places.
    replaced: usize,
    hash_builder: DefaultHashBuilder,
}

#[derive(Clone)]
struct Place {
    topic: ShortBytes,
    /// Of the last topic that was looked for here and not found: one that comes for the second time in a
    /// row is kept. Those that come once, as replies do, take nobody's place.
    wanted: u64,
}

impl Verdicts {
    /// Whether a topic is allowed; `rules` say so if it is not known.
    pub(super) fn allow(&mut self, topic: &[u8], rules: impl FnOnce() -> bool) -> bool {
        if topic.is_empty() {
            // It would be found in every empty place.
            return rules();
        }
        let hash = self.hash(topic);
        let at = self.at(hash);
        let place = self.places.get_mut(at);
        if place
            .as_ref()
            .is_some_and(|place| place.topic.as_slice() == topic)
        {
            return true;
        }
        let is_allowed = rules();
        match place {
            None if is_allowed => self.resize(PLACES_MIN),
            Some(place) if is_allowed => {
                if std::mem::replace(&mut place.wanted, hash) == hash {
                    self.keep(at, topic);
                }
            }
            _ => {}
        }
        is_allowed
    }

    fn keep(&mut self, at: usize, topic: &[u8]) {
        let Some(place) = self.places.get_mut(at) else {
            return;
        };
        let was_empty = place.topic.as_slice().is_empty();
        place.topic = ShortBytes::from(topic);
        self.replaced += usize::from(!was_empty);
        let len = self.places.len();
        if self.replaced > len / 2 && len < PLACES_MAX {
            self.resize(len * 2);
        }
    }

    /// Has so many places, all empty.
    #[cold]
    fn resize(&mut self, len: usize) {
        let empty = Place {
            topic: ShortBytes::from(&b""[..]),
            wanted: 0,
        };
        self.places = vec![empty; len];
        self.replaced = 0;
    }

    fn hash(&self, topic: &[u8]) -> u64 {
        let mut hasher = self.hash_builder.build_hasher();
        hasher.write(topic);
        hasher.finish()
    }

    fn at(&self, hash: u64) -> usize {
        // The low bits alone count, and there may be no places at all.
        let low = usize::try_from(hash & 0xffff).unwrap_or(0);
        low & self.places.len().wrapping_sub(1)
    }
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
        assert!(asked(50, 1000) < 15_000, "{}", asked(50, 1000));
        assert_eq!(asked(1, 1000), 3);
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
        assert!(verdicts.allow(b"a", || unreachable!("it is known")));
        assert!(!verdicts.allow(b"b", || false));
        assert!(!verdicts.allow(b"", || false));
    }
}
