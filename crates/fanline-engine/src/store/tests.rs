//! Compares the store with a model, which is a map of records.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::subject::Filter;

/// A minimal model of a store.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    records: BTreeMap<u64, ModelRecord>,
    pub(super) last: u64,
    pub(super) limits: StoreLimits,
    /// Whether the last sequence may have been skipped, so that it has no record.
    pub(super) was_skipped: bool,
    /// Records that limits and age have removed. After a crash they may exist again, because the log records
    /// these removals only with the next batch.
    dropped: BTreeSet<u64>,
}

#[derive(Clone, PartialEq)]
struct ModelRecord {
    unix_nanos: i64,
    subject: Vec<u8>,
    headers: Vec<u8>,
    payload: Vec<u8>,
    expires_at: Option<i64>,
    bytes: u64,
}

impl std::fmt::Debug for ModelRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let subject = String::from_utf8_lossy(&self.subject);
        let (bytes, at, expires_at) = (self.payload.len(), self.unix_nanos, self.expires_at);
        write!(f, "{subject} of {bytes} B at {at} until {expires_at:?}")
    }
}

impl Model {
    fn bytes(&self) -> u64 {
        self.records.values().map(|r| r.bytes).sum()
    }

    fn of(&self, subject: &[u8]) -> Vec<u64> {
        let of = self.records.iter().filter(|(_, r)| r.subject == subject);
        of.map(|(sequence, _)| *sequence).collect()
    }

    fn append(&mut self, sequence: u64, kept: ModelRecord) -> Result<(), StoreError> {
        let same = self.of(&kept.subject);
        let per_subject = self.limits.messages_per_subject_max;
        let replaced = per_subject
            .filter(|max| same.len() as u64 >= *max)
            .and_then(|_| same.first().copied());
        if self.limits.discard != Discard::Old {
            if replaced.is_some() && self.limits.discard == Discard::NewPerSubject {
                return Err(StoreError::MessagesPerSubjectMax);
            }
            let messages = self.records.len() as u64 - u64::from(replaced.is_some());
            let freed = replaced.map_or(0, |r| self.records[&r].bytes);
            if self.limits.messages_max.is_some_and(|max| messages >= max) {
                return Err(StoreError::MessagesMax);
            }
            let bytes = self.bytes() - freed + kept.bytes;
            if self.limits.bytes_max.is_some_and(|max| bytes > max) {
                return Err(StoreError::BytesMax);
            }
        }
        self.records.insert(sequence, kept);
        self.last = sequence;
        if let Some(replaced) = replaced {
            self.records.remove(&replaced);
        }
        self.enforce();
        Ok(())
    }

    fn enforce(&mut self) {
        while self
            .limits
            .messages_max
            .is_some_and(|max| self.records.len() as u64 > max)
            || self.limits.bytes_max.is_some_and(|max| self.bytes() > max)
        {
            let Some((sequence, _)) = self.records.pop_first() else {
                break;
            };
            self.dropped.insert(sequence);
        }
    }

    fn set_limits(&mut self, limits: StoreLimits) {
        let before = std::mem::replace(&mut self.limits, limits);
        if let Some(max) = limits.messages_per_subject_max
            && before.messages_per_subject_max.is_none_or(|was| max < was)
        {
            let subjects: BTreeSet<_> = self.records.values().map(|r| r.subject.clone()).collect();
            for subject in subjects {
                let all = self.of(&subject);
                for sequence in &all[..all.len().saturating_sub(usize::try_from(max).unwrap())] {
                    self.records.remove(sequence);
                }
            }
        }
        self.enforce();
    }

    fn expire(&mut self, now: i64) {
        if let Some(age) = self.limits.age_nanos_max {
            let aged = self
                .records
                .iter()
                .filter(|(_, r)| r.expires_at != Some(NEVER));
            let aged: Vec<_> = aged
                .take_while(|(_, r)| r.unix_nanos + age <= now)
                .map(|(s, _)| *s)
                .collect();
            for sequence in aged {
                self.records.remove(&sequence);
                self.dropped.insert(sequence);
            }
        }
        self.records
            .retain(|_, r| r.expires_at.is_none_or(|at| at > now));
    }

    fn purge(&mut self, filter: &str, below: Option<u64>, keep: u64) -> u64 {
        let matching = self.matching(filter);
        if filter.is_empty() && keep == 0 && below.is_none_or(|below| below > self.last) {
            self.last = below.unwrap_or(0).max(self.last + 1) - 1;
            self.was_skipped = true;
        }
        let most = matching
            .len()
            .saturating_sub(usize::try_from(keep).unwrap());
        let gone: Vec<_> = matching[..most]
            .iter()
            .filter(|s| below.is_none_or(|below| **s < below))
            .collect();
        for sequence in &gone {
            self.records.remove(sequence);
        }
        gone.len() as u64
    }

    fn matching(&self, filter: &str) -> Vec<u64> {
        let filter = if filter.is_empty() { ">" } else { filter };
        let filter = Filter::parse(filter.as_bytes()).unwrap();
        let all = self
            .records
            .iter()
            .filter(|(_, r)| filter.matches(&r.subject));
        all.map(|(s, _)| *s).collect()
    }

    pub(super) fn first(&self) -> u64 {
        let first = self.records.first_key_value();
        first.map_or(self.last + 1, |(s, _)| *s)
    }
}

impl Model {
    /// Reads the content of a store.
    pub(super) fn read_from(store: &mut Store) -> Self {
        let mut model = Model {
            last: store.last_sequence(),
            was_skipped: true,
            ..Model::default()
        };
        let mut at = store.first_sequence();
        let mut all = Filters::default();
        while let Some(sequence) = store.next_matching(&mut all, at).unwrap() {
            let record = store.read(sequence).unwrap().unwrap();
            let mut kept = ModelRecord {
                unix_nanos: record.unix_nanos,
                subject: record.subject.to_vec(),
                headers: record.headers.to_vec(),
                payload: record.payload.to_vec(),
                expires_at: record.expires_at,
                bytes: 0,
            };
            let counted = NewRecord {
                unix_nanos: 0,
                subject: &kept.subject,
                headers: &kept.headers,
                payload: &kept.payload,
                ..NewRecord::default()
            };
            kept.bytes = store.record_bytes(&counted);
            model.records.insert(sequence, kept);
            at = sequence + 1;
        }
        model
    }

    /// Returns the sequences that only `self` has, those that only `other` has, and both last sequences.
    pub(super) fn difference(&self, other: &Model) -> (Vec<u64>, Vec<u64>, u64, u64) {
        let without = |a: &Model, b: &Model| {
            let alone = a
                .records
                .iter()
                .filter(|(s, r)| b.records.get(s) != Some(r));
            alone.map(|(s, _)| *s).collect()
        };
        (
            without(self, other),
            without(other, self),
            self.last,
            other.last,
        )
    }

    pub(super) fn has(&self, sequence: u64) -> bool {
        self.records.contains_key(&sequence)
    }

    pub(super) fn agrees(&self, sequence: u64, record: Option<&Record<'_>>) -> bool {
        match (self.records.get(&sequence), record) {
            (None, None) => true,
            (Some(kept), Some(record)) => {
                kept.subject == record.subject
                    && kept.payload == record.payload
                    && kept.headers == record.headers
                    && kept.unix_nanos == record.unix_nanos
            }
            _ => false,
        }
    }

    /// Returns whether a crash in the given state, or between it and `next`, may leave `self`. `limits` are
    /// the limits of the restart.
    pub(super) fn is_of(&self, state: &Model, next: Option<&Model>, limits: StoreLimits) -> bool {
        if self.is_limited(state.clone(), limits) {
            return true;
        }
        // A step may remove several records, and a crash may occur between two of them.
        let Some(next) = next else {
            return false;
        };
        let only_removes = next.records.keys().all(|sequence| state.has(*sequence));
        let mut between = next.clone();
        between.last = self.last;
        let left = state
            .records
            .iter()
            .filter(|(sequence, _)| self.has(**sequence));
        between
            .records
            .extend(left.map(|(sequence, record)| (*sequence, record.clone())));
        only_removes
            && [state.last, next.last].contains(&self.last)
            && self.is_limited(between, limits)
    }

    /// Returns whether a restart with these limits turns the state into `self`. Records in `dropped` may
    /// exist again.
    fn is_limited(&self, mut state: Model, limits: StoreLimits) -> bool {
        let dropped = std::mem::take(&mut state.dropped);
        state.limits = StoreLimits::default();
        state.set_limits(limits);
        let records = &self.records;
        let agrees = |(sequence, record): (&u64, &ModelRecord)| {
            state.records.get(sequence) == Some(record) || dropped.contains(sequence)
        };
        self.last == state.last
            && state
                .records
                .iter()
                .all(|(sequence, record)| records.get(sequence) == Some(record))
            && records.iter().all(agrees)
    }
}

/// An operation on the store and the model.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Append {
        subject: String,
        payload_bytes: usize,
        has_headers: bool,
        live_for: Option<i64>,
    },
    /// Records of one atomic batch.
    Batch(Vec<Step>),
    Skip {
        gap: u64,
    },
    Remove {
        back: u64,
        erase: bool,
    },
    Purge {
        filter: &'static str,
        back: Option<i64>,
        keep: u64,
    },
    Limits(StoreLimits),
    Expire,
}

pub(super) const FILTERS: &[&str] = &["", "a.b", "a.*", "b.>", "*.a", "a.a.b", "c.1", "c.>"];

pub(super) fn subject() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec!["a", "b"]);
    prop_oneof![
        4 => prop::collection::vec(token, 1..4).prop_map(|t| t.join(".")),
        1 => (0..5000u32).prop_map(|n| format!("c.{n}")),
    ]
}

fn limits() -> impl Strategy<Value = StoreLimits> {
    let discard = prop::sample::select(vec![
        Discard::Old,
        Discard::Old,
        Discard::New,
        Discard::NewPerSubject,
    ]);
    (
        prop::option::of(1..60u64),
        prop::option::of(100..20_000u64),
        prop::option::of(1..60i64),
        prop::option::of(1..4u64),
        discard,
    )
        .prop_map(|(messages, bytes, age, per_subject, discard)| StoreLimits {
            messages_max: messages,
            bytes_max: bytes,
            age_nanos_max: age,
            messages_per_subject_max: per_subject,
            discard,
        })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let live_for =
        prop_oneof![6 => Just(None), 1 => (1..50i64).prop_map(Some), 1 => Just(Some(NEVER))]
            .boxed();
    let append = || {
        (subject(), 0..300usize, any::<bool>(), live_for.clone()).prop_map(
            |(subject, payload_bytes, has_headers, live_for)| Step::Append {
                subject,
                payload_bytes,
                has_headers,
                live_for,
            },
        )
    };
    let filter = prop::sample::select(FILTERS);
    let batch = prop::collection::vec(append(), 1..6).prop_map(Step::Batch);
    prop_oneof![
        40 => append(),
        2 => batch,
        1 => (1..200u64).prop_map(|gap| Step::Skip { gap }),
        8 => (0..80u64, any::<bool>()).prop_map(|(back, erase)| Step::Remove { back, erase }),
        1 => (filter, prop::option::of(-5..60i64), 0..5u64)
            .prop_map(|(filter, back, keep)| Step::Purge { filter, back, keep }),
        1 => limits().prop_map(Step::Limits),
        1 => Just(Step::Limits(StoreLimits::default())),
        3 => Just(Step::Expire),
    ]
}

/// Applies a step to the store and the model at time `now`. Their results must be equal.
pub(super) fn apply(step: &Step, now: i64, store: &mut Store, model: &mut Model) {
    match step {
        Step::Append { .. } => append(step, false, now, store, model),
        // If a limit refused a record in the middle of a batch, the batch would not be atomic.
        Step::Batch(_) if model.limits.discard != Discard::Old => {}
        Step::Batch(steps) => {
            for (number, step) in steps.iter().enumerate() {
                append(step, number + 1 < steps.len(), now, store, model);
            }
        }
        Step::Skip { gap } => {
            model.last += gap;
            model.was_skipped = true;
            store.skip_to(model.last + 1).unwrap();
        }
        Step::Remove { back, erase } => {
            let sequence = model.last.saturating_sub(*back);
            let expected = model.records.remove(&sequence).is_some();
            assert_eq!(store.remove(sequence, *erase), Ok(expected));
        }
        Step::Purge { filter, back, keep } => {
            let below = back.map(|back| model.last.saturating_add_signed(-back));
            let expected = model.purge(filter, below, *keep);
            assert_eq!(store.purge(filter.as_bytes(), below, *keep), Ok(expected));
        }
        Step::Limits(limits) => {
            model.set_limits(*limits);
            store.set_limits(limits).unwrap();
        }
        Step::Expire => {
            model.expire(now);
            store.expire(now).unwrap();
        }
    }
}

fn append(step: &Step, more_in_batch: bool, now: i64, store: &mut Store, model: &mut Model) {
    let Step::Append {
        subject,
        payload_bytes,
        has_headers,
        live_for,
    } = step
    else {
        return;
    };
    let payload = vec![b'p'; *payload_bytes];
    let headers: &[u8] = if *has_headers {
        b"NATS/1.0\r\nA: b\r\n\r\n"
    } else {
        b""
    };
    let record = NewRecord {
        unix_nanos: now,
        subject: subject.as_bytes(),
        headers,
        payload: &payload,
        expires_at: live_for.map(|live_for| live_for.saturating_add(now)),
        more_in_batch,
    };
    let kept = ModelRecord {
        unix_nanos: now,
        subject: subject.clone().into_bytes(),
        headers: headers.to_vec(),
        payload: payload.clone(),
        expires_at: record.expires_at,
        bytes: store.record_bytes(&record),
    };
    let expected = model.append(model.last + 1, kept);
    let sequence = store.append(&record);
    assert_eq!(sequence, expected.map(|()| model.last));
}

/// Runs all queries on the store and the model. Their results must be equal.
pub(super) fn compare(store: &mut Store, model: &Model, filters: &mut [Filters]) {
    let state = store.state();
    assert_eq!(state.messages, model.records.len() as u64);
    assert_eq!(state.bytes, model.bytes());
    assert_eq!(state.last_sequence, model.last);
    if model.last > 0 {
        assert_eq!(state.first_sequence, model.first());
    }
    let first = model.records.values().next();
    assert_eq!(state.first_unix_nanos, first.map(|r| r.unix_nanos));
    let subjects: BTreeSet<_> = model.records.values().map(|r| &r.subject).collect();
    assert_eq!(state.subjects, subjects.len() as u64);
    for sequence in model.first().saturating_sub(2)..=model.last + 1 {
        compare_record(store, model, sequence);
    }
    for (filter, compiled) in FILTERS.iter().zip(filters) {
        compare_filter(store, model, filter, compiled);
    }
    compare_deleted(store, model);
}

fn compare_record(store: &mut Store, model: &Model, sequence: u64) {
    let record = store.read(sequence).unwrap();
    let expected = model.records.get(&sequence).map(|kept| Record {
        sequence,
        unix_nanos: kept.unix_nanos,
        subject: &kept.subject,
        headers: &kept.headers,
        payload: &kept.payload,
        expires_at: kept.expires_at,
    });
    assert_eq!(record, expected);
    let Some(kept) = model.records.get(&sequence) else {
        return;
    };
    let of = model.of(&kept.subject);
    let state = store.subject(&kept.subject).unwrap();
    assert_eq!(
        (state.messages, Some(&state.last)),
        (of.len() as u64, of.last())
    );
    let earliest = model
        .records
        .iter()
        .find(|(_, r)| r.unix_nanos >= kept.unix_nanos);
    assert_eq!(store.sequence_at(kept.unix_nanos), Ok(*earliest.unwrap().0));
}

fn compare_filter(store: &mut Store, model: &Model, filter: &str, compiled: &mut Filters) {
    let matching = model.matching(filter);
    let newest = store.last_matching(filter.as_bytes());
    assert_eq!(newest, Ok(matching.last().copied()), "{filter}");
    let mut at = 0;
    for expected in matching.iter().map(|s| Some(*s)).chain([None]) {
        let found = store.next_matching(compiled, at).unwrap();
        assert_eq!(found, expected, "{filter} from {at}");
        at = expected.unwrap_or(0) + 1;
    }
    for from in [
        0,
        model.first(),
        model.last.saturating_sub(10),
        model.first() + 5,
    ] {
        let expected = matching.iter().filter(|s| **s >= from).count() as u64;
        assert_eq!(
            store.count_matching(compiled, from),
            Ok(expected),
            "{filter} {from}"
        );
    }
    let mut subjects = BTreeMap::new();
    store.subjects(filter.as_bytes(), &mut |subject, state| {
        assert!(subjects.insert(subject.to_vec(), state.messages).is_none());
    });
    let mut expected = BTreeMap::new();
    for sequence in matching {
        *expected
            .entry(model.records[&sequence].subject.clone())
            .or_insert(0) += 1;
    }
    assert_eq!(subjects, expected);
}

fn compare_deleted(store: &mut Store, model: &Model) {
    let mut deleted = Vec::new();
    store.deleted(&mut |range| deleted.extend(range)).unwrap();
    let span = model.first()..=model.last;
    let expected: Vec<_> = span.filter(|s| !model.records.contains_key(s)).collect();
    assert_eq!(deleted, expected);
    assert_eq!(store.state().deleted, expected.len() as u64);
}

pub(super) fn compiled() -> Vec<Filters> {
    let compile = |filter: &&'static str| {
        let filter = filter.as_bytes();
        Filters::new(Some(filter).filter(|f| !f.is_empty())).unwrap()
    };
    FILTERS.iter().map(compile).collect()
}

proptest! {
    #[test]
    fn memory_store_agrees_with_model(steps in prop::collection::vec(step(), 1..400)) {
        let mut store = Store::memory(&StoreLimits::default());
        store.segment_bytes = 2000;
        let mut model = Model::default();
        let mut filters = compiled();
        for (now, step) in (0..).zip(&steps) {
            apply(step, now, &mut store, &mut model);
            if now % 40 == 0 {
                compare(&mut store, &model, &mut filters);
            }
        }
        compare(&mut store, &model, &mut filters);
        let mut reported = 0;
        store.removed(&mut |_| reported += 1);
        prop_assert!(reported <= steps.len());
    }
}

#[test]
fn removals_are_reported_with_subject_and_cause() {
    let limits = StoreLimits {
        messages_max: Some(2),
        ..StoreLimits::default()
    };
    let mut store = Store::memory(&limits);
    for subject in ["a", "b", "b", "b"] {
        let record = NewRecord {
            subject: subject.as_bytes(),
            ..NewRecord::default()
        };
        store.append(&record).unwrap();
    }
    let mut reported = Vec::new();
    store.removed(&mut |r| {
        reported.push((
            r.sequence,
            r.subject.to_vec(),
            r.was_last_of_subject,
            r.cause,
        ))
    });
    let expected = [
        (1, b"a".to_vec(), true, Cause::Limit),
        (2, b"b".to_vec(), false, Cause::Limit),
    ];
    assert_eq!(reported, expected);
    store.removed(&mut |r| panic!("reported twice: {r:?}"));
}

#[test]
fn first_sequence_is_configurable() {
    let mut store = Store::memory(&StoreLimits::default());
    assert_eq!(
        (store.state().first_sequence, store.state().last_sequence),
        (0, 0)
    );
    store.skip_to(100).unwrap();
    assert_eq!(
        (store.state().first_sequence, store.state().last_sequence),
        (100, 99)
    );
    assert_eq!(
        store.append(&NewRecord {
            subject: b"a",
            ..NewRecord::default()
        }),
        Ok(100)
    );
    let again = store.append_at(
        100,
        &NewRecord {
            subject: b"a",
            ..NewRecord::default()
        },
    );
    assert_eq!(
        again,
        Err(StoreError::SequenceTaken {
            sequence: 100,
            last: 100
        })
    );
    store
        .append_at(
            300,
            &NewRecord {
                subject: b"a",
                ..NewRecord::default()
            },
        )
        .unwrap();
    assert_eq!(store.state().deleted, 199);
    assert_eq!(store.purge(b"", Some(1000), 0), Ok(2));
    assert_eq!(
        (store.state().first_sequence, store.state().last_sequence),
        (1000, 999)
    );
}

#[test]
fn long_search_stops_and_continues() {
    // Numbers of subjects: one, many, and more than the cache of matching subjects holds. Only with the last
    // number, a search scans all segments and must pause.
    for (subjects, must_pause) in [(1, false), (2000, false), (9000, true)] {
        let mut store = Store::memory(&StoreLimits::default());
        let append = |store: &mut Store, subject: &str| {
            let record = NewRecord {
                subject: subject.as_bytes(),
                ..NewRecord::default()
            };
            store.append(&record).unwrap()
        };
        for number in 0..subjects {
            append(&mut store, &format!("a.{number}"));
        }
        for _ in 0..120_000 {
            append(&mut store, "b");
        }
        let last = append(&mut store, "a.0");
        let mut filters = Filters::new([&b"a.*"[..]]).unwrap();
        let mut from = subjects + 1;
        let mut pauses = 0;
        loop {
            match store.search(&mut filters, from).unwrap() {
                Search::Found(found) => break assert_eq!(found, last),
                Search::NotBelow(sequence) => {
                    assert!(sequence > from && sequence <= last);
                    from = sequence;
                    pauses += 1;
                }
                Search::Nothing => panic!("there is one"),
            }
        }
        assert_eq!(pauses > 0, must_pause, "{subjects}");
        assert_eq!(
            store.next_matching(&mut filters, subjects + 1),
            Ok(Some(last))
        );
        assert_eq!(store.search(&mut filters, last + 1), Ok(Search::Nothing));
        assert_eq!(store.count_matching(&filters, subjects + 1), Ok(1));
    }
}

impl Store {
    /// Drops from memory what a restart would not load: slots and open files of sealed segments.
    pub(super) fn unload(&mut self) {
        let sealed = self.segments.len() - 1;
        for segment in self.segments.iter_mut().take(sealed) {
            if let (Body::File(file), Some(files)) = (&mut segment.body, &mut self.files)
                && files.close(file)
            {
                segment.slots = None;
            }
        }
    }

    /// Checks that the totals agree with the records.
    pub(super) fn check_numbers(&mut self) {
        let (mut messages, mut bytes) = (0, 0);
        for at in 0..self.segments.len() {
            self.load(at).unwrap();
            let segment = &self.segments[at];
            let slots = segment.slots.as_ref().unwrap();
            assert_eq!(slots.len(), segment.records as usize);
            let mut live_bytes = 0;
            let mut slot = 0;
            while let Some(live) = segment.next_live(slot) {
                let entry = slots.entries[live];
                messages += 1;
                live_bytes += u64::from(slots.stored_bytes(live));
                bytes += self.counted_bytes(entry.content_bytes(), entry.has_headers());
                slot = live + 1;
            }
            assert_eq!(live_bytes, segment.live_bytes);
        }
        assert_eq!((self.messages, self.bytes), (messages, bytes));
        let by_subject: u64 = self.subjects.iter().map(|(_, s)| s.messages).sum();
        assert_eq!(by_subject, messages);
    }
}
