//! Finds overlapping filters in long lists.

use crate::jetstream::error::ApiError;
use crate::subject::Filter;
use crate::subject::trie::{OutOfSteps, Trie, Vacant};

/// Maximum number of tokens to compare for one request. Comparing that many takes some tenths of a second. A
/// list that needs more is refused; such lists contain thousands of filters with wildcards at different
/// positions.
pub(in crate::jetstream) const OVERLAP_STEPS_MAX: usize = 8 << 20;

/// A growing set of filters. Each added filter is compared with all earlier ones.
pub(in crate::jetstream) struct Overlaps<'a> {
    filters: Vec<&'a str>,
    trie: Trie<Nth>,
    steps: usize,
}

#[derive(Default)]
struct Nth(Option<usize>);

impl Vacant for Nth {
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
}

impl Default for Overlaps<'_> {
    fn default() -> Self {
        Overlaps {
            filters: Vec::new(),
            trie: Trie::default(),
            steps: OVERLAP_STEPS_MAX,
        }
    }
}

impl<'a> Overlaps<'a> {
    /// Returns a filter of the set that overlaps this one. An invalid filter overlaps none.
    pub(in crate::jetstream) fn find(&mut self, filter: &str) -> Result<Option<&'a str>, ApiError> {
        let Ok(filter) = Filter::parse(filter.as_bytes()) else {
            return Ok(None);
        };
        let found = self.trie.overlapping(filter, &mut self.steps, |_| true);
        let nth = found.map_err(too_many_filters)?.and_then(|nth| nth.0);
        Ok(nth.and_then(|nth| self.filters.get(nth).copied()))
    }

    /// Returns the result of [`find`](Self::find), and adds the filter if it overlaps none.
    pub(in crate::jetstream) fn add(
        &mut self,
        filter: &'a str,
    ) -> Result<Option<&'a str>, ApiError> {
        let found = self.find(filter)?;
        if found.is_none() {
            let node = self.trie.insert(filter.as_bytes());
            self.trie.value_mut(node).0 = Some(self.filters.len());
            self.filters.push(filter);
        }
        Ok(found)
    }
}

/// Returns the error for a request that exceeds [`OVERLAP_STEPS_MAX`].
pub(in crate::jetstream) fn too_many_filters(_: OutOfSteps) -> ApiError {
    ApiError::stream_invalid_config("too many subjects with wildcards to compare")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_overlap_with_earlier_filter() {
        let mut overlaps = Overlaps::default();
        for (filter, expected) in [
            ("a.b", None),
            ("a.c.>", None),
            ("a.*", Some("a.b")),
            ("a.b", Some("a.b")),
            ("a.c.d", Some("a.c.>")),
            ("a.c", None),
            ("b.*.c", None),
            ("b.x.*", Some("b.*.c")),
            ("no filter", None),
        ] {
            assert_eq!(overlaps.add(filter), Ok(expected), "{filter}");
        }
    }

    /// Regression: when filters were compared pair by pair, a request with 20,000 subjects blocked all
    /// streams for seconds.
    #[test]
    fn many_filters_are_compared_or_refused() {
        let literal: Vec<String> = (0..100_000).map(|n| format!("a.{n}.*")).collect();
        let mut overlaps = Overlaps::default();
        for filter in &literal {
            assert_eq!(overlaps.add(filter), Ok(None));
        }
        let crossing = |n| [format!("a{n}.x"), format!("*.y{n}")];
        let crossing: Vec<String> = (0..10_000).flat_map(crossing).collect();
        let mut overlaps = Overlaps::default();
        let refused = crossing
            .iter()
            .find_map(|filter| overlaps.add(filter).err());
        assert_eq!(refused, Some(too_many_filters(OutOfSteps)));
    }
}
