//! The log on a failing disk.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::simulated_disk::{Dice, Reach, SimulatedDisk};
use super::tests::{Model, Step, apply, compare, compiled, step};
use super::*;

/// The default seeds of random runs. `FANLINE_SEEDS=from..to` selects other ones.
#[expect(clippy::disallowed_methods, reason = "a long run is started by hand")]
pub(crate) fn seeds() -> Range<u64> {
    let given = std::env::var("FANLINE_SEEDS").ok();
    let range = given.as_deref().and_then(|given| given.split_once(".."));
    let number = |text: &str| text.parse().expect("FANLINE_SEEDS=from..to");
    range.map_or(0..1500, |(from, to)| number(from)..number(to))
}

pub(super) fn options() -> FileOptions {
    FileOptions {
        segment_bytes: 3000,
        seed: 7,
        ..FileOptions::default()
    }
}

/// Half of all seeds encode record bodies.
fn encoding(seed: u64) -> FileOptions {
    FileOptions {
        compression: match seed % 8 {
            1 | 3 => Compression::Lz4,
            _ => Compression::None,
        },
        key: matches!(seed % 8, 3 | 5).then(|| Key::new([7; 32])),
        seed,
        ..options()
    }
}

fn open(disk: &SimulatedDisk, limits: &StoreLimits) -> (Store, Recovery) {
    open_with(disk, limits, &options())
}

fn open_with(
    disk: &SimulatedDisk,
    limits: &StoreLimits,
    options: &FileOptions,
) -> (Store, Recovery) {
    Store::file(Box::new(disk.clone()), options, limits).unwrap()
}

/// Syncs until nothing is left to sync.
pub(super) fn settle(store: &mut Store, disk: &mut SimulatedDisk, dice: &mut Dice) {
    store.request_sync();
    let mut now = Duration::ZERO;
    loop {
        if let Some(request) = store.poll_sync(now) {
            let result = disk.perform(&request, dice);
            store.handle_synced(request.id, result);
        } else if let Some(at) = store.next_sync_at() {
            now = now.max(at);
        } else {
            return;
        }
    }
}

fn steps(seed: u64) -> impl FnMut() -> Step {
    let bytes = seed.to_le_bytes().repeat(4);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = step();
    move || strategy.new_tree(&mut runner).unwrap().current()
}

/// Simulated time of a step. Five steps take longer than `UNAWAITED_MAX`.
const MILLIS_PER_STEP: u64 = 60;

/// A store under random steps, and the states that may exist after a crash: those since the last sync.
struct Rounds {
    seed: u64,
    disk: SimulatedDisk,
    dice: Dice,
    store: Store,
    model: Model,
    /// States of the model after each step since the request of the last good sync.
    states: VecDeque<Model>,
    /// The current sync request, what the sync covers, and the number of states before the request.
    in_flight: Option<(SyncRequest, Reach, usize)>,
    now: i64,
}

impl Rounds {
    fn new(seed: u64) -> Self {
        let disk = SimulatedDisk::new();
        let (store, _) = open_with(&disk, &StoreLimits::default(), &encoding(seed));
        Rounds {
            seed,
            disk,
            dice: Dice::new(seed),
            store,
            model: Model::default(),
            states: [Model::default()].into(),
            in_flight: None,
            now: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        self.now += 1;
        if self.store.failure().is_none() {
            apply(step, self.now, &mut self.store, &mut self.model);
            self.states.push_back(self.model.clone());
        }
        self.store.check_numbers();
        if self.dice.one_in(2) {
            self.store.unload();
        }
        if self.in_flight.is_none()
            && self.dice.one_in(3)
            && let Some(request) = self.store.poll_sync(self.since_start())
        {
            let reach = self.disk.reach(&request);
            self.in_flight = Some((request, reach, self.states.len() - 1));
        }
        if self.dice.one_in(3)
            && let Some((request, reach, before)) = self.in_flight.take()
        {
            let result = self.disk.perform_until(&request, &reach, &mut self.dice);
            if result.is_ok() {
                self.states.drain(..before);
            }
            self.store.handle_synced(request.id, result);
            let safe = &self.states[0];
            assert!(self.store.durable() >= safe.last || safe.was_skipped);
        }
    }

    fn since_start(&self) -> Duration {
        Duration::from_millis(MILLIS_PER_STEP * u64::try_from(self.now).unwrap())
    }

    fn crash(&mut self, is_power_cut: bool) {
        if is_power_cut {
            self.disk.crash(&mut self.dice);
        } else {
            self.disk.kill();
        }
        self.in_flight = None;
        // A seed that differs at each start, as encryption requires.
        let options = FileOptions {
            seed: self.seed + 1_000_000 * u64::try_from(self.now).unwrap(),
            ..encoding(self.seed)
        };
        let (store, recovery) = open_with(&self.disk, &self.model.limits, &options);
        assert!(!recovery.index_was_bad, "{recovery:?}");
        self.store = store;
        self.store.check_numbers();
        self.store.unload();
        assert_eq!(
            recovery.lost,
            Lost::default(),
            "seed {}: {recovery:?}",
            self.seed
        );
        let found = Model::read_from(&mut self.store);
        if !self.was_in(&found) {
            let against: Vec<_> = self
                .states
                .iter()
                .map(|state| found.difference(state))
                .collect();
            panic!(
                "seed {}, {:?}: found against each state {against:#?}, {recovery:?}",
                self.seed, self.model.limits
            );
        }
        self.model = found;
        self.model.limits = *self.store.limits();
        compare(&mut self.store, &self.model, &mut compiled());
        // The next crash may lose unsynced data, but must not lose synced data.
        settle(&mut self.store, &mut self.disk, &mut self.dice);
        self.states = [self.model.clone()].into();
    }
}

impl Rounds {
    /// Returns whether the model had the found state at the last sync or later.
    fn was_in(&self, found: &Model) -> bool {
        let limits = self.model.limits;
        let states = self.states.iter().enumerate();
        states
            .into_iter()
            .any(|(at, state)| found.is_of(state, self.states.get(at + 1), limits))
    }
}

/// Seeds in which a torn record looks like a record with one flipped bit, because its lost sector differs in
/// only one bit.
const ONE_BIT_TORN: [u64; 3] = [25_097, 118_507, 130_557];

#[test]
fn acknowledged_records_survive_power_cuts_and_kills() {
    for seed in ONE_BIT_TORN.into_iter().chain(seeds()) {
        let mut rounds = Rounds::new(seed);
        let mut next = steps(seed);
        for _ in 0..1 + seed % 4 {
            for _ in 0..rounds.dice.below(150) {
                rounds.step(&next());
            }
            let is_power_cut = !rounds.dice.one_in(4);
            rounds.crash(is_power_cut);
        }
    }
}

#[test]
fn acknowledged_records_survive_failing_syncs() {
    for seed in seeds().step_by(3) {
        let mut rounds = Rounds::new(seed ^ 0xABCD);
        rounds.disk.set_failing_syncs(20);
        let mut next = steps(seed);
        for _ in 0..1 + seed % 3 {
            for _ in 0..rounds.dice.below(150) {
                rounds.step(&next());
            }
            rounds.disk.set_failing_syncs(0);
            rounds.crash(true);
            rounds.disk.set_failing_syncs(20);
        }
    }
}

/// Returns a disk with the files of a store that was closed or killed, and the expected content.
fn aged(seed: u64, is_closed: bool) -> (SimulatedDisk, Model) {
    let mut rounds = Rounds::new(seed);
    let mut next = steps(seed);
    for _ in 0..200 {
        rounds.step(&next());
    }
    if let Some((request, _, _)) = rounds.in_flight.take() {
        let result = rounds.disk.perform(&request, &mut rounds.dice);
        rounds.store.handle_synced(request.id, result);
    }
    settle(&mut rounds.store, &mut rounds.disk, &mut rounds.dice);
    if is_closed {
        rounds.store.close().unwrap();
    }
    rounds.disk.kill();
    (rounds.disk, rounds.model)
}

#[test]
fn flipped_bit_loses_at_most_one_record_and_is_reported() {
    for seed in seeds() {
        let (disk, model) = aged(seed, seed % 2 == 0);
        if model.limits.messages_max.is_some() || model.limits.bytes_max.is_some() {
            // If a control record (a logged removal) is lost, the removed records reappear, and limits then
            // remove others.
            continue;
        }
        let whole =
            Model::read_from(&mut open_with(&disk.copy(), &model.limits, &encoding(seed)).0);
        let same = (vec![], vec![], model.last, model.last);
        assert_eq!(
            whole.difference(&model),
            same,
            "seed {seed}, {:?}",
            model.limits
        );
        let mut dice = Dice::new(seed);
        let (file, at) = disk.flip(&mut dice);
        let (mut store, recovery) = open_with(&disk, &model.limits, &encoding(seed));
        let mut missing = Vec::new();
        for sequence in model.first()..=model.last {
            let record = match store.read(sequence) {
                Ok(record) => record,
                Err(StoreError::Damaged(_)) => None,
                Err(error) => panic!("{error}"),
            };
            if !model.agrees(sequence, record.as_ref()) {
                // The lost record or control record had removed these sequences.
                missing.extend(model.has(sequence).then_some(sequence));
            }
        }
        let lost = store.state().lost;
        let reported = lost.messages > 0 || recovery.torn_bytes > 0;
        let limits = &model.limits;
        let context = format!("{seed}, {file} at {at}: {missing:?}, {recovery:?}, {limits:?}");
        assert!(missing.len() <= 1, "{context}");
        assert!(missing.is_empty() || reported, "{context}");
        // An erased record is unreadable, too, if its removal is lost.
        assert!(lost.messages <= 2, "{context}");
    }
}

#[test]
fn store_without_index_is_fully_recovered() {
    for seed in seeds().step_by(3) {
        let (mut disk, model) = aged(seed, true);
        disk.remove(index::NAME).unwrap();
        let (mut store, recovery) = open_with(&disk, &model.limits, &encoding(seed));
        assert_eq!(recovery.lost, Lost::default());
        let found = Model::read_from(&mut store);
        let expected = (vec![], vec![], model.last, model.last);
        let limits = model.limits;
        assert_eq!(
            found.difference(&model),
            expected,
            "seed {seed}, {limits:?}"
        );
        compare(&mut store, &model, &mut compiled());
    }
}

#[test]
fn closed_store_replays_nothing() {
    for seed in seeds().step_by(10) {
        let (disk, model) = aged(seed, true);
        let (mut store, recovery) = open_with(&disk, &model.limits, &encoding(seed));
        assert_eq!(recovery, Recovery::default());
        compare(&mut store, &model, &mut compiled());
    }
}

#[test]
fn full_disk_refuses_appends_until_space_is_free() {
    let mut disk = SimulatedDisk::new();
    let mut dice = Dice::new(1);
    let (mut store, _) = open(&disk, &StoreLimits::default());
    disk.set_room(Some(20_000));
    let record = NewRecord {
        subject: b"orders",
        payload: &[b'x'; 100],
        ..NewRecord::default()
    };
    let error = loop {
        if let Err(error) = store.append(&record) {
            break error;
        }
        settle(&mut store, &mut disk, &mut dice);
    };
    assert_eq!(error, StoreError::Disk(DiskError::Full));
    assert_eq!(error.to_string(), "no space left on the disk");
    let durable = store.durable();
    assert!(durable > 50);
    for sequence in 1..=store.last_sequence() {
        assert_eq!(
            store.read(sequence).unwrap().unwrap().payload,
            record.payload
        );
    }
    disk.set_room(None);
    settle(&mut store, &mut disk, &mut dice);
    assert_eq!(store.durable(), store.last_sequence());
    assert_eq!(store.append(&record), Ok(store.last_sequence()));
    settle(&mut store, &mut disk, &mut dice);
    disk.crash(&mut dice);
    let (store, _) = open(&disk, &StoreLimits::default());
    assert_eq!(store.messages(), store.last_sequence());
    assert!(store.last_sequence() > durable);
}

/// Story: the bytes of a removed record were overwritten while an atomic batch was incomplete. A start removed the batch
/// with the removal that followed it, took the overwritten record for the end of the log, and lost all later records.
#[test]
fn records_survive_an_erasure_during_an_incomplete_batch() {
    let mut disk = SimulatedDisk::new();
    let mut dice = Dice::new(1);
    let (mut store, _) = open(&disk, &StoreLimits::default());
    let record = NewRecord {
        subject: b"orders",
        payload: b"two teas",
        ..NewRecord::default()
    };
    for _ in 0..5 {
        store.append(&record).unwrap();
    }
    let part = NewRecord {
        more_in_batch: true,
        ..record
    };
    store.append(&part).unwrap();
    assert_eq!(store.remove(2, true), Ok(true));
    settle(&mut store, &mut disk, &mut dice);
    disk.crash(&mut dice);
    let (mut store, _) = open(&disk, &StoreLimits::default());
    for sequence in [1, 3, 4, 5] {
        assert!(store.read(sequence).unwrap().is_some(), "{sequence}");
    }
    assert_eq!(store.last_sequence(), 5);
}

#[test]
fn removal_from_full_disk_frees_space() {
    let purge: fn(&mut Store) = |store| assert!(store.purge(b"", None, 0).unwrap() > 0);
    let purge_half: fn(&mut Store) = |store| {
        let half = store.last_sequence() / 2;
        assert!(store.purge(b"orders.*", Some(half), 0).unwrap() > 0);
    };
    let lower_the_limit: fn(&mut Store) = |store| {
        let limits = StoreLimits {
            messages_max: Some(5),
            ..StoreLimits::default()
        };
        store.set_limits(&limits).unwrap();
    };
    for remove in [purge, purge_half, lower_the_limit] {
        let mut disk = SimulatedDisk::new();
        let mut dice = Dice::new(1);
        let (mut store, _) = open(&disk, &StoreLimits::default());
        disk.set_room(Some(20_000));
        let record = NewRecord {
            subject: b"orders.new",
            payload: &[b'x'; 100],
            ..NewRecord::default()
        };
        while store.append(&record).is_ok() {
            settle(&mut store, &mut disk, &mut dice);
        }
        remove(&mut store);
        settle(&mut store, &mut disk, &mut dice);
        let sequence = store.append(&record).unwrap();
        settle(&mut store, &mut disk, &mut dice);
        assert_eq!(store.durable(), sequence);
        let live = store.messages();
        disk.crash(&mut dice);
        let (store, recovery) = open(&disk, &StoreLimits::default());
        assert_eq!(store.messages(), live);
        assert_eq!(store.last_sequence(), sequence);
        assert_eq!(recovery.lost, Lost::default());
    }
}

/// Regression: acknowledgements of an interest stream remove records all the time. The store synced after
/// every few removals, which delayed the syncs that publishers waited for.
#[test]
fn removals_are_synced_with_next_record_or_after_delay_or_on_request() {
    const SOON: Duration = Duration::from_millis(250);
    let mut disk = SimulatedDisk::new();
    let mut dice = Dice::new(1);
    let (mut store, _) = open(&disk, &StoreLimits::default());
    let append = |store: &mut Store| store.append(&NewRecord::default()).unwrap();
    let mut polls = |store: &mut Store, now: Duration| {
        let request = store.poll_sync(now);
        if let Some(request) = &request {
            store.handle_synced(request.id, disk.perform(request, &mut dice));
        }
        request.is_some()
    };
    for _ in 0..4 {
        append(&mut store);
    }
    assert!(polls(&mut store, Duration::ZERO));
    // A sync point is written with the next records, and needs no sync itself.
    assert!(!polls(&mut store, Duration::ZERO));
    assert_eq!(store.next_sync_at(), Some(SOON));
    assert!(!polls(&mut store, SOON) && store.next_sync_at().is_none());

    // A removal that no client waits for is synced after a short delay.
    let began = Duration::from_secs(1);
    assert_eq!(store.remove(1, false), Ok(true));
    assert!(!polls(&mut store, began));
    assert_eq!(store.next_sync_at(), Some(began + SOON));
    assert!(!polls(&mut store, began + SOON / 2));
    assert!(polls(&mut store, began + SOON));
    assert_eq!(store.next_sync_at(), None);

    // with the next record,
    assert_eq!(store.remove(2, false), Ok(true));
    assert!(!polls(&mut store, began));
    append(&mut store);
    assert!(polls(&mut store, began) && store.next_sync_at().is_none());

    // A removal is synced immediately when a client waits for it.
    assert_eq!(store.remove(3, false), Ok(true));
    assert!(!polls(&mut store, began));
    store.request_sync();
    assert!(polls(&mut store, began));
    assert_eq!(store.remove(4, false), Ok(true));
    assert!(!polls(&mut store, began));

    // The synced removals survive a power cut.
    disk.crash(&mut dice);
    let (mut store, _) = open(&disk, &StoreLimits::default());
    for sequence in 1..=3 {
        assert_eq!(store.read(sequence), Ok(None));
    }
    assert!(store.read(5).unwrap().is_some());
}

/// Returns the number of trailing zeros of every segment's file.
fn zeros_at_the_end(disk: &mut SimulatedDisk) -> Vec<usize> {
    let segments = disk
        .names()
        .into_iter()
        .filter(|name| name.ends_with(".log"));
    let count = |name: String| {
        let file = disk.open(&name, false).unwrap();
        let mut bytes = vec![0; usize::try_from(disk.len(file).unwrap()).unwrap()];
        disk.read_at(file, 0, &mut bytes).unwrap();
        bytes.iter().rev().take_while(|byte| **byte == 0).count()
    };
    segments.map(count).collect()
}

#[test]
fn zeros_written_ahead_are_not_records() {
    // A record ends with a byte that is not zero, which separates it from the zeros behind it.
    let record = NewRecord {
        subject: b"a",
        payload: b"x",
        ..NewRecord::default()
    };
    let mut disk = SimulatedDisk::new();
    let mut dice = Dice::new(1);
    let (mut store, _) = open(&disk, &StoreLimits::default());
    while store.segments.len() < 3 {
        store.append(&record).unwrap();
        settle(&mut store, &mut disk, &mut dice);
    }
    for _ in 0..30 {
        store.append(&record).unwrap();
        settle(&mut store, &mut disk, &mut dice);
    }
    let messages = store.messages();
    // A full segment ends with its last record, or with a sync point, whose last seven bytes are zero.
    let zeros = zeros_at_the_end(&mut disk);
    assert!(zeros[0] < 8 && zeros[1] < 8 && zeros[2] > 8, "{zeros:?}");

    // Simulates a power cut before the new length of a full segment was on disk.
    let names = disk.names();
    let file = disk.open(&names[0], false).unwrap();
    let end = disk.len(file).unwrap();
    disk.write_at(file, end, &[0; 300]).unwrap();
    disk.sync_file(file).unwrap();
    disk.crash(&mut dice);
    let (mut store, recovery) = open(&disk, &StoreLimits::default());
    assert_eq!((recovery.torn_bytes, recovery.lost), (0, Lost::default()));
    assert_eq!(store.messages(), messages);
    assert!(zeros_at_the_end(&mut disk).iter().all(|zeros| *zeros < 8));

    // After closing, the file has no zeros at its end.
    for _ in 0..30 {
        store.append(&record).unwrap();
        settle(&mut store, &mut disk, &mut dice);
    }
    store.close().unwrap();
    assert!(zeros_at_the_end(&mut disk).iter().all(|zeros| *zeros < 8));
    disk.kill();
    let (store, recovery) = open(&disk, &StoreLimits::default());
    assert_eq!(recovery, Recovery::default());
    assert_eq!(store.messages(), messages + 30);
}

#[test]
fn control_records_alone_fill_segments() {
    let mut disk = SimulatedDisk::new();
    let mut dice = Dice::new(1);
    let (mut store, _) = open(&disk, &StoreLimits::default());
    for _ in 0..500 {
        store.append(&NewRecord::default()).unwrap();
    }
    settle(&mut store, &mut disk, &mut dice);
    for sequence in (2..500).rev() {
        assert_eq!(store.remove(sequence, false), Ok(true));
    }
    for segment in &store.segments {
        let Body::File(file) = &segment.body else {
            unreachable!("it is on disk");
        };
        assert!(file.bytes < 3100, "{}", file.bytes);
    }
    settle(&mut store, &mut disk, &mut dice);
    disk.crash(&mut dice);
    let (store, _) = open(&disk, &StoreLimits::default());
    assert_eq!(store.messages(), 2);
}

#[test]
fn encrypted_records_need_their_key() {
    let key = |byte| Some(Key::new([byte; 32]));
    let with = |key, compression| FileOptions {
        key,
        compression,
        ..options()
    };
    let limits = StoreLimits::default();
    let secret =
        b"meet me at the old mill, the old mill, the old mill, the old mill at noon".repeat(3);
    for compression in [Compression::None, Compression::Lz4] {
        let disk = SimulatedDisk::new();
        let append = |options: &FileOptions, subject: &[u8]| {
            let (mut store, recovery) = open_with(&disk, &limits, options);
            let record = NewRecord {
                subject,
                payload: &secret,
                ..NewRecord::default()
            };
            store.append(&record).unwrap();
            store.close().unwrap();
            recovery
        };
        // The second and third record are encrypted.
        append(&with(None, compression), b"plain");
        append(&with(key(1), compression), b"sealed.one");
        append(&with(key(1), compression), b"sealed.two");
        assert!(!disk.contains(b"sealed.") && disk.contains(b"FSea"));
        for wrong in [None, key(2)] {
            let options = with(wrong, compression);
            let opened = Store::file(Box::new(disk.copy()), &options, &limits);
            assert_eq!(opened.err(), Some(StoreError::WrongKey));
            let without_index = disk.copy();
            without_index.clone().remove(index::NAME).unwrap();
            let opened = Store::file(Box::new(without_index), &options, &limits);
            assert_eq!(opened.err(), Some(StoreError::WrongKey));
        }
        let recovery = append(&with(key(1), compression), b"sealed.three");
        assert_eq!(recovery, Recovery::default());
        let (mut store, _) = open_with(&disk, &limits, &with(key(1), compression));
        for (sequence, subject) in (1..).zip(["plain", "sealed.one", "sealed.two", "sealed.three"])
        {
            let record = store.read(sequence).unwrap().unwrap();
            assert_eq!(record.subject, subject.as_bytes());
            assert_eq!(record.payload, secret);
        }
        assert_eq!(store.last_matching(b"sealed.*"), Ok(Some(4)));
    }
}

#[test]
fn compressed_records_use_less_disk_and_count_full_size() {
    let text = b"all the same words again and again, ".repeat(100);
    let used = [Compression::None, Compression::Lz4].map(|compression| {
        let disk = SimulatedDisk::new();
        let options = FileOptions {
            compression,
            ..options()
        };
        let limits = StoreLimits::default();
        let (mut store, _) = open_with(&disk, &limits, &options);
        for _ in 0..20 {
            let record = NewRecord {
                subject: b"words",
                payload: &text,
                ..NewRecord::default()
            };
            store.append(&record).unwrap();
        }
        store.close().unwrap();
        let bytes = store.state().bytes;
        assert_eq!(bytes, 20 * (text.len() as u64 + 5 + 30));
        disk.used_bytes()
    });
    assert!(used[1] * 5 < used[0], "{used:?}");
}

#[test]
fn compaction_and_purge_free_disk_space() {
    let mut disk = SimulatedDisk::new();
    let mut dice = Dice::new(1);
    let limits = StoreLimits {
        messages_per_subject_max: Some(1),
        ..StoreLimits::default()
    };
    let options = FileOptions {
        segment_bytes: 30_000,
        ..options()
    };
    let (mut store, _) = Store::file(Box::new(disk.clone()), &options, &limits).unwrap();
    for round in 0..1000 {
        for key in 0..30 {
            // Some keys are written only once.
            let key = if key == 7 { 1000 + round } else { key };
            let subject = format!("kv.{key}");
            let record = NewRecord {
                subject: subject.as_bytes(),
                payload: &[b'v'; 50],
                ..NewRecord::default()
            };
            store.append(&record).unwrap();
        }
        settle(&mut store, &mut disk, &mut dice);
    }
    // Of the 4 MB written, 0.1 MB are live.
    assert!(disk.used_bytes() < 500_000, "{}", disk.used_bytes());
    store.purge(b"", None, 0).unwrap();
    settle(&mut store, &mut disk, &mut dice);
    settle(&mut store, &mut disk, &mut dice);
    assert!(
        disk.used_bytes() < 4000,
        "{} {:?}",
        disk.used_bytes(),
        disk.names()
    );
    assert_eq!(disk.names().len(), 2);
}

/// Regression: slots store the distance to the segment's first sequence in 32 bits. Compaction merged
/// segments whose sequences were farther apart, and their records reappeared under wrong sequences.
#[test]
fn compaction_does_not_join_segments_too_far_apart() {
    let disk = SimulatedDisk::new();
    let (mut store, _) = open(&disk, &StoreLimits::default());
    let mut kept = Vec::new();
    for _ in 0..20 {
        for _ in 0..9 {
            let record = NewRecord {
                subject: b"a",
                payload: &[b'x'; 250],
                ..NewRecord::default()
            };
            store.append(&record).unwrap();
        }
        let last = store.last_sequence();
        for sequence in last - 8..last {
            assert_eq!(store.remove(sequence, false), Ok(true));
        }
        kept.push(last);
        store.skip_to(last + (1 << 33)).unwrap();
        store.sync_now(Duration::ZERO).unwrap();
    }
    let (reopened, _) = open(&disk, &StoreLimits::default());
    for mut store in [store, reopened] {
        for sequence in &kept {
            let found = store.read(*sequence).unwrap().map(|r| r.sequence);
            assert_eq!(found, Some(*sequence));
        }
    }
}
