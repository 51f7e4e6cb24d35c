//! A set of subject filters, with a cache of the subjects that they match.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashSet;

use super::segment::{BloomFilter, hash_name};
use super::subjects::{Subject, SubjectId, Subjects};
use crate::subject::trie::{Trie, Vacant};
use crate::subject::{Filter, FilterError};

/// Maximum number of cached subjects. If more match, the log is scanned in order instead.
const SUBJECTS_MAX: usize = 8192;
/// A set with too many matches counts its matches again after this number of new subjects in the store.
const ADDED_MAX: usize = 8 * SUBJECTS_MAX;

/// A set of subject filters for repeated queries of one store. It caches the subjects that match. An empty
/// set matches everything.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    filters: Vec<Box<[u8]>>,
    /// Trie of the filters; `None` for few filters.
    index: Option<Index>,
    resolved: Resolved,
}

/// Maximum number of filters that are compared one by one with a subject.
const UNINDEXED_MAX: usize = 16;

/// A trie of many filters, which compares all of them with a subject in one walk.
#[derive(Clone)]
struct Index(Arc<Trie<Ends>>);

/// Whether a filter ends at this node of the trie.
#[derive(Default)]
struct Ends(bool);

impl Vacant for Ends {
    fn is_vacant(&self) -> bool {
        !self.0
    }
}

impl Index {
    fn new(filters: &[Box<[u8]>]) -> Self {
        let mut trie = Trie::default();
        for filter in filters {
            let node = trie.insert(filter);
            *trie.value_mut(node) = Ends(true);
        }
        Index(Arc::new(trie))
    }

    fn matches(&self, subject: &[u8]) -> bool {
        let mut is_match = false;
        self.0
            .filters_matching(subject, &mut |ends: &Ends| is_match |= ends.0);
        is_match
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Index").field(&self.0.len()).finish()
    }
}

/// The matching subjects. `as_of` is the number of subjects added to the store at the time of the search.
#[derive(Clone, Debug, Default)]
enum Resolved {
    #[default]
    Nothing,
    Few {
        few: SubjectSet,
        as_of: u64,
    },
    Many {
        as_of: u64,
    },
}

/// A small set of subjects in id order, some of which may no longer exist. Takes 14 bytes for each id, at
/// most 115 KB.
#[derive(Clone, Debug)]
pub(super) struct SubjectSet {
    pub(super) ids: Vec<SubjectId>,
    /// Hashes of their names.
    pub(super) hashes: Vec<u64>,
    /// A bitmap indexed by the lowest bits of an id, which rejects most ids outside the set quickly. The
    /// number of words is a power of two.
    marks: Vec<u64>,
}

/// Minimum number of bits of the bitmap for each id.
const MARKS_PER_ID: usize = 8;
const MARK_WORDS_MIN: usize = 16;

impl SubjectSet {
    /// Creates a set of `ids`, which must be sorted.
    pub(super) fn new(ids: Vec<SubjectId>, subjects: &Subjects) -> Self {
        let hashes = ids.iter().map(|id| hash_name(subjects.name(*id)));
        let mut few = SubjectSet {
            hashes: hashes.collect(),
            ids,
            marks: Vec::new(),
        };
        few.mark_all();
        few
    }

    fn mark_all(&mut self) {
        let words = (self.ids.len() * MARKS_PER_ID).div_ceil(64);
        let words = words.next_power_of_two().max(MARK_WORDS_MIN);
        self.marks.clear();
        self.marks.resize(words, 0);
        for id in &self.ids {
            let (word, bit) = self.mark_of(*id);
            self.marks[word] |= 1 << bit;
        }
    }

    pub(super) fn contains(&self, id: SubjectId) -> bool {
        let (word, bit) = self.mark_of(id);
        self.marks[word] >> bit & 1 == 1 && self.ids.binary_search(&id).is_ok()
    }

    /// Returns whether a segment may contain one of the subjects. Returns `true` for very large sets, where
    /// the check takes longer than a scan.
    pub(super) fn may_be_in(&self, bloom: &BloomFilter) -> bool {
        self.ids.len() > SUBJECTS_MAX || self.hashes.iter().any(|hash| bloom.may_contain(*hash))
    }

    fn mark(&mut self, id: SubjectId) {
        // Doubles the bitmap when it has only half the minimum number of bits for each id.
        if self.ids.len() * MARKS_PER_ID > 2 * 64 * self.marks.len() {
            self.mark_all();
        }
        let (word, bit) = self.mark_of(id);
        self.marks[word] |= 1 << bit;
    }

    fn mark_of(&self, id: SubjectId) -> (usize, usize) {
        let place = id as usize % (self.marks.len() * 64);
        (place / 64, place % 64)
    }

    /// Returns a lower bound for the first live record of these subjects at or after `from`; `None` if there
    /// is no such record.
    pub(super) fn next_at_least(&self, subjects: &Subjects, from: u64) -> Option<u64> {
        let known = self.ids.iter().filter_map(|id| subjects.get(*id));
        let ahead = known.filter(|subject| subject.last >= from);
        let nexts = ahead.map(|subject| match subject.messages {
            1 => subject.last,
            _ => subject.first_at_least.max(from),
        });
        nexts.min()
    }

    /// Updates the set for a newly assigned id, which may have belonged to another subject before. `hash` is
    /// `None` if the new subject does not match.
    fn note(&mut self, id: SubjectId, hash: Option<u64>) {
        match (self.ids.binary_search(&id), hash) {
            (Err(place), Some(hash)) => {
                self.ids.insert(place, id);
                self.hashes.insert(place, hash);
                self.mark(id);
            }
            (Ok(place), Some(hash)) => self.hashes[place] = hash,
            (Ok(place), None) => {
                self.ids.remove(place);
                self.hashes.remove(place);
            }
            (Err(_), None) => {}
        }
    }
}

impl Filters {
    /// Parses and stores the filters. If one of them matches everything, the set is empty.
    ///
    /// # Errors
    /// The reason for which a filter is invalid.
    pub fn new<'a>(filters: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, FilterError> {
        let mut kept: Vec<Box<[u8]>> = Vec::new();
        for filter in filters {
            kept.push(Filter::parse(filter)?.as_bytes().into());
        }
        if kept.iter().any(|filter| **filter == *b">") {
            kept.clear();
        }
        let index = (kept.len() > UNINDEXED_MAX).then(|| Index::new(&kept));
        Ok(Filters {
            filters: kept,
            index,
            resolved: Resolved::Nothing,
        })
    }

    /// Returns whether the set matches everything.
    pub fn matches_all(&self) -> bool {
        self.filters.is_empty()
    }

    /// Returns the filters; none if the set matches everything.
    pub fn iter(&self) -> impl Iterator<Item = Filter<'_>> {
        self.filters.iter().map(|filter| Filter::parsed(filter))
    }

    /// Returns whether a subject matches.
    pub fn matches(&self, subject: &[u8]) -> bool {
        match &self.index {
            Some(index) => index.matches(subject),
            None => self.matches_all() || self.iter().any(|filter| filter.matches(subject)),
        }
    }

    /// Calls `visit` once for each matching subject, until it returns `false`. Costs at most one walk over
    /// all subjects, regardless of the number of filters.
    pub(super) fn each_subject(
        &self,
        subjects: &Subjects,
        visit: &mut dyn FnMut(SubjectId) -> bool,
    ) {
        let is_one = self.filters.len() == 1;
        let cost: usize = self.iter().map(|filter| subjects.cost(filter)).sum();
        if self.matches_all() || (!is_one && cost > subjects.len()) {
            let mut matching = subjects.iter().filter(|(_, s)| self.matches(s.name()));
            // Ends at the last match or when `visit` returns `false`.
            let _ = matching.all(|(id, _)| visit(id));
            return;
        }
        let mut seen = HashSet::new();
        for filter in self.iter() {
            let mut goes_on = true;
            subjects.each_matching(filter, &mut |id, _| {
                let is_new = is_one || seen.insert(id);
                goes_on = !is_new || visit(id);
                goes_on
            });
            if !goes_on {
                return;
            }
        }
    }

    /// Returns the matching subjects if there are at most `SUBJECTS_MAX`.
    pub(super) fn few(&mut self, subjects: &Subjects) -> Option<&SubjectSet> {
        self.update(subjects);
        match &self.resolved {
            Resolved::Few { few, .. } => Some(few),
            _ => None,
        }
    }

    fn update(&mut self, subjects: &Subjects) {
        let mut resolved = std::mem::take(&mut self.resolved);
        let is_right = match &mut resolved {
            Resolved::Nothing => false,
            Resolved::Many { as_of } => subjects.added() - *as_of < ADDED_MAX as u64,
            Resolved::Few { few, as_of } => match subjects.added_since(*as_of) {
                None => false,
                Some(added) => {
                    for id in added {
                        let subject = subjects.get(id).map(Subject::name);
                        let matching = subject.filter(|name| self.matches(name));
                        few.note(id, matching.map(hash_name));
                    }
                    *as_of = subjects.added();
                    few.ids.len() <= SUBJECTS_MAX
                }
            },
        };
        self.resolved = if is_right {
            resolved
        } else {
            self.resolve(subjects)
        };
    }

    fn resolve(&self, subjects: &Subjects) -> Resolved {
        let as_of = subjects.added();
        let mut ids = Vec::new();
        self.each_subject(subjects, &mut |id| {
            ids.push(id);
            ids.len() <= SUBJECTS_MAX
        });
        if ids.len() > SUBJECTS_MAX {
            return Resolved::Many { as_of };
        }
        ids.sort_unstable();
        let few = SubjectSet::new(ids, subjects);
        Resolved::Few { few, as_of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a request with a thousand filters, repeated thousands of times, took minutes, because each
    /// filter was compared with all earlier ones.
    #[test]
    fn filter_set_matches_what_its_filters_match() {
        let mut subjects = Subjects::default();
        for n in 0..2_000 {
            let id = subjects.find_or_add(format!("a.{}.{n}", n % 50).as_bytes());
            subjects.get_mut(id).messages = 1;
        }
        let few = ["a.3.*", "a.*.7", "a.3.>"].map(str::to_owned).to_vec();
        // Filters whose first tokens are literal, and filters that begin with wildcards.
        let narrow = (0..30).map(|n| format!("a.{n}.*"));
        let wide = (0..60).map(|n| format!("*.*.{n}"));
        let literal = (0..3_000).map(|n| format!("a.{}.{n}", n % 50));
        for texts in [few, narrow.collect(), wide.collect(), literal.collect()] {
            let each: Vec<_> = texts
                .iter()
                .map(|t| Filter::parse(t.as_bytes()).unwrap())
                .collect();
            let matching = |name: &[u8]| each.iter().any(|filter| filter.matches(name));
            let mut filters = Filters::new(texts.iter().map(|text| text.as_bytes())).unwrap();
            let mut expected: Vec<_> = subjects
                .iter()
                .filter(|(_, subject)| matching(subject.name()))
                .map(|(id, _)| id)
                .collect();
            expected.sort_unstable();
            let mut found = Vec::new();
            filters.each_subject(&subjects, &mut |id| {
                found.push(id);
                true
            });
            found.sort_unstable();
            assert_eq!(found, expected, "{texts:?}");
            for (_, subject) in subjects.iter() {
                assert_eq!(filters.matches(subject.name()), matching(subject.name()));
            }
            let resolved = filters.few(&subjects).map(|few| few.ids.clone());
            assert_eq!(resolved, Some(expected));
        }
    }
}
