//! Queries of the log.

use std::ops::RangeInclusive;

use super::filters::SubjectSet;
use super::segment::{BloomFilter, Body, Segment, hash_name};
use super::subjects::SubjectId;
use super::types::{StoreError, StoreState, SubjectState};
use super::{Filters, Store};
use crate::subject::Filter;

/// Number of newest records to check before a search by subject.
const NEWEST_LOOKED_AT: usize = 256;
/// Approximate maximum of records to scan in one search. The scan ends after the segment that reaches it.
const SEARCHED_MAX: u64 = 64 << 10;
/// Number of bytes whose reading from the disk costs as much as the scan of one record.
const SEARCHED_BYTES: u64 = 256;

/// Result of [`search`](Store::search).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Sequence of the first match.
    Found(u64),
    /// No live record matches.
    Nothing,
    /// No live record below this sequence matches. The search can continue from it.
    NotBelow(u64),
}

impl Segment {
    /// Returns the cost of scanning the whole segment, as a number of records.
    fn search_cost(&self) -> u64 {
        let read = match &self.body {
            Body::File(file) if self.slots.is_none() => file.bytes / SEARCHED_BYTES,
            _ => 0,
        };
        u64::from(self.records) + read
    }
}

impl Store {
    /// Returns the totals of the store.
    pub fn state(&mut self) -> StoreState {
        let is_new = self.last == 0 && self.messages == 0;
        let first_unix_nanos = match self.messages {
            0 => None,
            _ => self.first_time(),
        };
        StoreState {
            first_sequence: if is_new { 0 } else { self.first },
            first_unix_nanos,
            last_sequence: self.last,
            last_unix_nanos: self.last_unix_nanos,
            messages: self.messages,
            bytes: self.bytes,
            subjects: self.subjects.len() as u64,
            deleted: (self.last + 1)
                .saturating_sub(self.first)
                .saturating_sub(self.messages),
            lost: self.lost,
        }
    }

    fn first_time(&mut self) -> Option<i64> {
        if let Some((sequence, at)) = self.first_time
            && sequence == self.first
        {
            return Some(at);
        }
        let first = self.first;
        let at = self.read(first).ok()??.unix_nanos;
        self.first_time = Some((first, at));
        Some(at)
    }

    /// Returns the number of live records.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns the size of all live records, as in [`StoreState::bytes`].
    pub fn total_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the first live sequence; one above the last sequence if no record is live.
    pub fn first_sequence(&self) -> u64 {
        self.first
    }

    /// Returns the highest assigned sequence.
    pub fn last_sequence(&self) -> u64 {
        self.last
    }

    /// Returns the totals of one subject, in constant time; `None` if it has no live record.
    pub fn subject(&self, subject: &[u8]) -> Option<SubjectState> {
        let known = self.subjects.get(self.subjects.find(subject)?)?;
        Some(SubjectState {
            messages: known.messages,
            last: known.last,
        })
    }

    /// Calls `found` for all subjects that a filter matches, in any order. An empty filter matches all. The
    /// cost is proportional to the number of subjects that begin with the filter's tokens before its first
    /// wildcard.
    pub fn subjects(&self, filter: &[u8], found: &mut dyn FnMut(&[u8], SubjectState)) {
        let filter = if filter.is_empty() { b">" } else { filter };
        let Ok(filter) = Filter::parse(filter) else {
            return;
        };
        self.subjects.each_matching(filter, &mut |_, subject| {
            let state = SubjectState {
                messages: subject.messages,
                last: subject.last,
            };
            found(subject.name(), state);
            true
        });
    }

    /// Calls `found` once for each subject that one of the filters matches, in any order, until it returns
    /// `false`. Costs at most one walk over all subjects.
    pub fn subjects_matching(
        &self,
        filters: &Filters,
        found: &mut dyn FnMut(&[u8], SubjectState) -> bool,
    ) {
        filters.each_subject(&self.subjects, &mut |id| {
            self.subjects.get(id).is_none_or(|subject| {
                let state = SubjectState {
                    messages: subject.messages,
                    last: subject.last,
                };
                found(subject.name(), state)
            })
        });
    }

    /// Returns the sequence of the newest live record that a filter matches. An empty filter matches all.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn last_matching(&mut self, filter: &[u8]) -> Result<Option<u64>, StoreError> {
        if filter.is_empty() || filter == b">" {
            return self.previous_live(self.last + 1);
        }
        if let Some(newest) = self.last_of_newest(filter) {
            return Ok(Some(newest));
        }
        let mut last = None;
        self.subjects(filter, &mut |_, subject| {
            last = last.max(Some(subject.last));
        });
        Ok(last)
    }

    /// Searches only the newest records, because a filter that matches very many subjects usually matches one
    /// of them.
    fn last_of_newest(&self, filter: &[u8]) -> Option<u64> {
        let filter = Filter::parse(filter).ok().filter(|f| !f.is_literal())?;
        let segment = self.segments.back()?;
        let slots = segment.slots.as_ref()?;
        let mut end = slots.len();
        for _ in 0..NEWEST_LOOKED_AT {
            end = segment.previous_live(end)?;
            if filter.matches(self.subjects.name(slots.entries[end].subject)) {
                return Some(slots.sequence(end));
            }
        }
        None
    }

    /// Returns the sequence of the first live record at or after `from` that the filters match. Segments
    /// without a matching subject are skipped, unless very many subjects match.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn next_matching(
        &mut self,
        filters: &mut Filters,
        from: u64,
    ) -> Result<Option<u64>, StoreError> {
        let mut from = from;
        loop {
            match self.search(filters, from)? {
                Search::Found(sequence) => return Ok(Some(sequence)),
                Search::Nothing => return Ok(None),
                Search::NotBelow(sequence) => from = sequence,
            }
        }
    }

    /// Does the same as [`next_matching`](Self::next_matching), but stops after a bounded number of records,
    /// for callers that must not block.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn search(&mut self, filters: &mut Filters, from: u64) -> Result<Search, StoreError> {
        let from = from.max(self.first);
        if from > self.last || self.messages == 0 {
            return Ok(Search::Nothing);
        }
        if filters.matches_all() {
            let found = self.next_live(from)?;
            return Ok(found.map_or(Search::Nothing, Search::Found));
        }
        let Some(few) = filters.few(&self.subjects) else {
            let filters = &*filters;
            return self.search_where(
                from,
                |_| true,
                |store, id| filters.matches(store.subjects.name(id)),
            );
        };
        match *few.ids {
            [] => Ok(Search::Nothing),
            [only] => self.search_one(only, from),
            _ => self.search_few(few, from),
        }
    }

    fn next_live(&mut self, from: u64) -> Result<Option<u64>, StoreError> {
        for at in self.segment_at_or_after(from)..self.segments.len() {
            let segment = &self.segments[at];
            if segment.live() == 0 {
                continue;
            }
            if segment.is_whole() {
                return Ok(Some(from.max(segment.first)));
            }
            if self.lives_unloaded(at, from)? {
                return Ok(Some(from));
            }
            if let Some(found) = self.next_in(at, from, &|_, _| true)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns whether this record is live, if that can be determined without loading the segment's slots.
    fn lives_unloaded(&mut self, at: usize, sequence: u64) -> Result<bool, StoreError> {
        if self.segments[at].slots.is_some() || sequence < self.segments[at].first {
            return Ok(false);
        }
        let location = self.find(sequence)?;
        Ok(location.is_some_and(|location| location.sequence == sequence))
    }

    fn search_few(&mut self, few: &SubjectSet, from: u64) -> Result<Search, StoreError> {
        let is_wanted = |_: &Store, id| few.contains(id);
        // Tries the segment of `from` first, because the next match is often close.
        let at = self.segment_at_or_after(from);
        let Some(near) = self.segments.get(at) else {
            return Ok(Search::Nothing);
        };
        let (near_last, is_loaded) = (near.last, near.slots.is_some());
        if is_loaded
            && near.live() > 0
            && let Some(found) = self.next_in(at, from, &is_wanted)?
        {
            return Ok(Search::Found(found));
        }
        let from = if is_loaded { near_last + 1 } else { from };
        let Some(from) = few.next_at_least(&self.subjects, from) else {
            return Ok(Search::Nothing);
        };
        self.search_where(from, |bloom| few.may_be_in(bloom), is_wanted)
    }

    /// Returns the number of live records at or after a sequence that the filters match. Most subjects have
    /// all their records on one side of the sequence, so their totals suffice. Records of the other subjects
    /// are counted on the side with fewer sequences.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn count_matching(&mut self, filters: &Filters, from: u64) -> Result<u64, StoreError> {
        if from > self.last {
            return Ok(0);
        }
        if filters.matches_all() {
            return self.count_all(from);
        }
        let mut count = 0;
        let (mut on_both_sides, mut messages) = (Vec::new(), 0);
        filters.each_subject(&self.subjects, &mut |id| {
            if let Some(subject) = self.subjects.get(id).filter(|s| s.last >= from) {
                let is_ahead = subject.first_at_least >= from || subject.messages == 1;
                if is_ahead || from <= self.first {
                    count += subject.messages;
                } else {
                    on_both_sides.push(id);
                    messages += subject.messages;
                }
            }
            true
        });
        if on_both_sides.is_empty() {
            return Ok(count);
        }
        on_both_sides.sort_unstable();
        let few = SubjectSet::new(on_both_sides, &self.subjects);
        if from - self.first < self.last - from {
            let behind = self.count_between(&few, self.first, from - 1)?;
            Ok(count + messages.saturating_sub(behind))
        } else {
            Ok(count + self.count_between(&few, from, self.last)?)
        }
    }

    /// Returns the number of live records at or after a sequence, using the totals of whole segments.
    fn count_all(&mut self, from: u64) -> Result<u64, StoreError> {
        if from <= self.first {
            return Ok(self.messages);
        }
        let mut count = 0;
        for at in self.segment_at_or_after(from)..self.segments.len() {
            let segment = &self.segments[at];
            count += match segment.first < from {
                true => self.count_in(at, from, self.last, |_| true)?,
                false => u64::from(segment.live()),
            };
        }
        Ok(count)
    }

    fn count_between(&mut self, few: &SubjectSet, from: u64, to: u64) -> Result<u64, StoreError> {
        let mut count = 0;
        for at in self.segment_at_or_after(from)..self.segments.len() {
            let segment = &self.segments[at];
            if segment.first > to {
                break;
            }
            if segment.live() > 0
                && segment
                    .bloom
                    .as_ref()
                    .is_none_or(|bloom| few.may_be_in(bloom))
            {
                count += self.count_in(at, from, to, |id| few.contains(id))?;
            }
        }
        Ok(count)
    }

    /// Returns the number of matching records in one segment.
    fn count_in(
        &mut self,
        at: usize,
        from: u64,
        to: u64,
        is_wanted: impl Fn(SubjectId) -> bool,
    ) -> Result<u64, StoreError> {
        let slots = self.load(at)?;
        let (from, end) = (
            slots.at_or_after(from),
            slots.at_or_after(to.saturating_add(1)),
        );
        let segment = &self.segments[at];
        let Some(slots) = &segment.slots else {
            return Ok(0);
        };
        let live = (from..end).filter(|slot| !segment.is_dead(*slot));
        Ok(live
            .filter(|slot| is_wanted(slots.entries[*slot].subject))
            .count() as u64)
    }

    /// Returns the sequence of the first live record stored at this time or later; one above the last
    /// sequence if there is none.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn sequence_at(&mut self, unix_nanos: i64) -> Result<u64, StoreError> {
        let mut at = 0;
        while at < self.segments.len() {
            let segment = &self.segments[at];
            if segment.latest >= unix_nanos
                && segment.live() > 0
                && let Some(found) = self.sequence_at_in(at, unix_nanos)?
            {
                return Ok(found);
            }
            at += 1;
        }
        Ok(self.last + 1)
    }

    fn sequence_at_in(&mut self, at: usize, unix_nanos: i64) -> Result<Option<u64>, StoreError> {
        self.load(at)?;
        let mut from = 0;
        if self.segments[at].earliest < unix_nanos && self.segments[at].is_in_order_of_time {
            let mut end = self.segments[at].records as usize;
            while from < end {
                let middle = from.midpoint(end);
                if self.time_of(at, middle)? < unix_nanos {
                    from = middle + 1;
                } else {
                    end = middle;
                }
            }
        }
        while let Some(slot) = self.segments[at].next_live(from) {
            if self.time_of(at, slot)? >= unix_nanos {
                return Ok(Some(self.load(at)?.sequence(slot)));
            }
            from = slot + 1;
        }
        Ok(None)
    }

    /// Calls `found` for each range of sequences between the first and the last that has no live record.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn deleted(
        &mut self,
        found: &mut dyn FnMut(RangeInclusive<u64>),
    ) -> Result<(), StoreError> {
        let mut next = self.first;
        for at in 0..self.segments.len() {
            let segment = &self.segments[at];
            let span = (segment.last + 1).saturating_sub(segment.first);
            if span == u64::from(segment.live()) && span > 0 && segment.first >= next {
                if segment.first > next {
                    found(next..=segment.first - 1);
                }
                next = segment.last + 1;
                continue;
            }
            self.load(at)?;
            let segment = &self.segments[at];
            let Some(slots) = &segment.slots else {
                continue;
            };
            let mut slot = slots.at_or_after(next);
            while let Some(live) = segment.next_live(slot) {
                let sequence = slots.sequence(live);
                if sequence > next {
                    found(next..=sequence - 1);
                }
                next = sequence + 1;
                slot = live + 1;
            }
        }
        if next <= self.last {
            found(next..=self.last);
        }
        Ok(())
    }

    /// Returns the sequence of the first live record of a subject.
    pub(super) fn first_of(&mut self, id: SubjectId) -> Result<Option<u64>, StoreError> {
        let Some(subject) = self.subjects.get(id) else {
            return Ok(None);
        };
        if subject.messages == 1 {
            return Ok(Some(subject.last));
        }
        let from = subject.first_at_least;
        let first = self.next_of(id, from.max(self.first))?;
        if let Some(first) = first {
            self.subjects.get_mut(id).first_at_least = first;
        }
        Ok(first)
    }

    fn next_of(&mut self, id: SubjectId, from: u64) -> Result<Option<u64>, StoreError> {
        let mut from = from;
        loop {
            match self.search_one(id, from)? {
                Search::Found(sequence) => return Ok(Some(sequence)),
                Search::Nothing => return Ok(None),
                Search::NotBelow(sequence) => from = sequence,
            }
        }
    }

    fn search_one(&mut self, id: SubjectId, from: u64) -> Result<Search, StoreError> {
        let Some(subject) = self.subjects.get(id).filter(|s| s.last >= from) else {
            return Ok(Search::Nothing);
        };
        let from = from.max(subject.first_at_least);
        if subject.messages == 1 {
            return Ok(Search::Found(subject.last));
        }
        let hash = hash_name(subject.name());
        self.search_where(
            from,
            |bloom| bloom.may_contain(hash),
            |_, other| other == id,
        )
    }

    /// Searches for the first live record at or after `from` with a wanted subject. Skips segments for which
    /// `may_contain` returns `false`.
    fn search_where(
        &mut self,
        from: u64,
        may_contain: impl Fn(&BloomFilter) -> bool,
        is_wanted: impl Fn(&Store, SubjectId) -> bool,
    ) -> Result<Search, StoreError> {
        let mut searched = 0;
        for at in self.segment_at_or_after(from)..self.segments.len() {
            let segment = &self.segments[at];
            if segment.live() == 0 {
                continue;
            }
            if segment
                .bloom
                .as_ref()
                .is_some_and(|bloom| !may_contain(bloom))
            {
                continue;
            }
            if searched >= SEARCHED_MAX {
                return Ok(Search::NotBelow(segment.first.max(from)));
            }
            searched += segment.search_cost();
            if let Some(found) = self.next_in(at, from, &is_wanted)? {
                return Ok(Search::Found(found));
            }
        }
        Ok(Search::Nothing)
    }

    /// Returns the sequence of the first live record with a wanted subject in one segment.
    fn next_in(
        &mut self,
        at: usize,
        from: u64,
        is_wanted: &impl Fn(&Store, SubjectId) -> bool,
    ) -> Result<Option<u64>, StoreError> {
        self.load(at)?;
        let segment = &self.segments[at];
        let Some(slots) = &segment.slots else {
            return Ok(None);
        };
        let mut slot = slots.at_or_after(from);
        while let Some(live) = segment.next_live(slot) {
            if is_wanted(self, slots.entries[live].subject) {
                return Ok(Some(slots.sequence(live)));
            }
            slot = live + 1;
        }
        Ok(None)
    }

    /// Returns the sequence of the last live record of a subject below a sequence.
    pub(super) fn last_before(
        &mut self,
        id: SubjectId,
        below: u64,
    ) -> Result<Option<u64>, StoreError> {
        let hash = hash_name(self.subjects.name(id));
        let least = self.subjects.get(id).map_or(0, |s| s.first_at_least);
        self.previous_where(below, least, hash, |other| other == id)
    }

    fn previous_live(&mut self, below: u64) -> Result<Option<u64>, StoreError> {
        for at in (0..self.segments.len()).rev() {
            if self.segments[at].first >= below || self.segments[at].live() == 0 {
                continue;
            }
            let end = self.load(at)?.at_or_after(below);
            if let Some(slot) = self.segments[at].previous_live(end) {
                return Ok(Some(self.load(at)?.sequence(slot)));
            }
        }
        Ok(None)
    }

    fn previous_where(
        &mut self,
        below: u64,
        least: u64,
        hash: u64,
        is_wanted: impl Fn(SubjectId) -> bool,
    ) -> Result<Option<u64>, StoreError> {
        for at in (0..self.segments.len()).rev() {
            let segment = &self.segments[at];
            if segment.last < least {
                break;
            }
            let bloom = segment.bloom.as_ref();
            let is_out = segment.first >= below || segment.live() == 0;
            if is_out || bloom.is_some_and(|bloom| !bloom.may_contain(hash)) {
                continue;
            }
            let mut end = self.load(at)?.at_or_after(below);
            let segment = &self.segments[at];
            let Some(slots) = &segment.slots else {
                continue;
            };
            while let Some(slot) = segment.previous_live(end) {
                if is_wanted(slots.entries[slot].subject) {
                    return Ok(Some(slots.sequence(slot)));
                }
                end = slot;
            }
        }
        Ok(None)
    }
}
