//! A set of filters, with what it remembers between questions.

use super::segment::hash_name;
use super::subjects::{Subject, SubjectId, Subjects};
use crate::topic::{Filter, FilterError};

/// Above this many matching subjects the log is read on in order instead of subject by subject.
const SUBJECTS_MAX: usize = 1024;
/// So many subjects are looked at for it.
const VISITS_MAX: usize = 16 * SUBJECTS_MAX;

/// A set of filters, asked of one store again and again: it remembers which subjects it matches.
/// An empty set matches everything.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    filters: Vec<Box<[u8]>>,
    known: Known,
}

/// The subjects that match, as of so many additions.
#[derive(Clone, Debug, Default)]
enum Known {
    #[default]
    Nothing,
    Few {
        few: Few,
        as_of: u64,
    },
    Many {
        as_of: u64,
    },
}

/// A few subjects, in order of ids. They may be gone.
#[derive(Clone, Debug)]
pub(super) struct Few {
    pub(super) ids: Vec<SubjectId>,
    /// Their names, hashed.
    pub(super) hashes: Vec<u64>,
    /// A bit for each id, by its lowest bits: most others are told from these in no time.
    marks: Box<[u64; MARK_WORDS]>,
}

const MARK_WORDS: usize = 128;

impl Few {
    fn new(ids: Vec<SubjectId>, subjects: &Subjects) -> Self {
        let hashes = ids.iter().map(|id| hash_name(subjects.name(*id)));
        let mut few = Few {
            hashes: hashes.collect(),
            ids: Vec::new(),
            marks: Box::new([0; MARK_WORDS]),
        };
        for id in &ids {
            few.mark(*id);
        }
        few.ids = ids;
        few
    }

    pub(super) fn contains(&self, id: SubjectId) -> bool {
        let (word, bit) = Few::mark_of(id);
        self.marks[word] >> bit & 1 == 1 && self.ids.binary_search(&id).is_ok()
    }

    fn mark(&mut self, id: SubjectId) {
        let (word, bit) = Few::mark_of(id);
        self.marks[word] |= 1 << bit;
    }

    fn mark_of(id: SubjectId) -> (usize, usize) {
        let place = id as usize % (MARK_WORDS * 64);
        (place / 64, place % 64)
    }

    /// An id that was given out since: it may be another subject's than before.
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
    /// Checks and keeps the filters. One that matches everything makes the set empty.
    ///
    /// # Errors
    /// Says what is wrong with one of them.
    pub fn new<'a>(filters: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, FilterError> {
        let mut kept: Vec<Box<[u8]>> = Vec::new();
        for filter in filters {
            kept.push(Filter::parse(filter)?.as_bytes().into());
        }
        if kept.iter().any(|filter| **filter == *b">") {
            kept.clear();
        }
        Ok(Filters {
            filters: kept,
            known: Known::Nothing,
        })
    }

    /// Whether everything matches.
    pub fn matches_all(&self) -> bool {
        self.filters.is_empty()
    }

    /// The filters as given, or none when everything matches.
    pub fn iter(&self) -> impl Iterator<Item = Filter<'_>> {
        self.filters.iter().map(|filter| Filter::parsed(filter))
    }

    /// Whether a subject matches.
    pub fn matches(&self, subject: &[u8]) -> bool {
        self.matches_all() || self.iter().any(|filter| filter.matches(subject))
    }

    /// Calls `visit` with each matching subject once.
    pub(super) fn each_subject(
        &self,
        subjects: &Subjects,
        visit: &mut dyn FnMut(SubjectId) -> bool,
    ) {
        for (number, filter) in self.iter().enumerate() {
            let mut goes_on = true;
            subjects.each_matching(filter, &mut |id, subject| {
                let is_new = !self.iter().take(number).any(|f| f.matches(subject.name()));
                goes_on = !is_new || visit(id);
                goes_on
            });
            if !goes_on {
                return;
            }
        }
    }

    /// The matching subjects when there are few.
    pub(super) fn few(&mut self, subjects: &Subjects) -> Option<&Few> {
        self.update(subjects);
        match &self.known {
            Known::Few { few, .. } => Some(few),
            _ => None,
        }
    }

    fn update(&mut self, subjects: &Subjects) {
        let mut known = std::mem::take(&mut self.known);
        let is_right = match &mut known {
            Known::Nothing => false,
            Known::Many { as_of } => subjects.added() - *as_of < VISITS_MAX as u64,
            Known::Few { few, as_of } => match subjects.added_since(*as_of) {
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
        self.known = if is_right {
            known
        } else {
            self.resolve(subjects)
        };
    }

    fn resolve(&self, subjects: &Subjects) -> Known {
        let as_of = subjects.added();
        let mut ids = Vec::new();
        let mut visits = 0;
        let mut are_few = true;
        for (number, filter) in self.iter().enumerate() {
            subjects.each_matching(filter, &mut |id, _| {
                visits += 1;
                if number == 0 || !ids.contains(&id) {
                    ids.push(id);
                }
                are_few = ids.len() <= SUBJECTS_MAX && visits <= VISITS_MAX;
                are_few
            });
            if !are_few {
                return Known::Many { as_of };
            }
        }
        ids.sort_unstable();
        let few = Few::new(ids, subjects);
        Known::Few { few, as_of }
    }
}
