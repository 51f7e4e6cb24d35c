//! Consumers that start with the last elements, and hubs that store elements for them.

use std::collections::VecDeque;

use fanline::hub::{
    BroadcastHub, BroadcastReceiver, OnEmpty, OnSlow, Start, TryRecvError, broadcast,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn drain(rx: &mut BroadcastReceiver<u64>) -> Vec<u64> {
    std::iter::from_fn(|| rx.try_recv().ok()).collect()
}

#[test]
fn late_consumer_gets_unreceived_or_replayed_elements() {
    let check = |replay, received: usize, count, expected: &[u64]| {
        let (mut tx, hub) = BroadcastHub::<u64>::options()
            .capacity(8)
            .replay(replay)
            .build();
        let mut rx = hub.subscribe();
        for value in 0..6 {
            tx.try_send(value).unwrap();
        }
        for _ in 0..received {
            rx.try_recv().unwrap();
        }
        let mut late = hub.subscribe_at(Start::Last(count));
        assert_eq!(drain(&mut late), expected);
        tx.try_send(6).unwrap();
        assert_eq!(drain(&mut late), [6], "no gap after the start");
    };
    check(0, 0, 2, &[4, 5]);
    check(0, 0, 100, &[0, 1, 2, 3, 4, 5]);
    check(0, 5, 2, &[5]);
    check(0, 6, 2, &[]);
    check(3, 6, 2, &[4, 5]);
    check(3, 6, 100, &[3, 4, 5]);
    check(3, 2, 100, &[2, 3, 4, 5]);
    check(100, 6, 100, &[0, 1, 2, 3, 4, 5]);
    check(3, 6, 0, &[]);
}

#[test]
fn elements_are_replayed_without_consumers_and_after_completion() {
    let (mut tx, hub) = BroadcastHub::<u64>::options()
        .capacity(2)
        .replay(2)
        .on_empty(OnEmpty::Drop)
        .start(Start::Last(2))
        .build();
    for value in 0..10 {
        tx.try_send(value).unwrap();
    }
    assert_eq!(drain(&mut hub.subscribe()), [8, 9]);
    tx.release();
    tx.complete();
    let mut late = hub.subscribe();
    assert_eq!(drain(&mut late), [8, 9]);
    assert!(matches!(late.try_recv(), Err(TryRecvError::Completed)));
    drop(tx);
    assert_eq!(drain(&mut hub.subscribe()), [8, 9]);
    assert_eq!(drain(&mut hub.subscribe_at(Start::Latest)), []);
}

/// A consumer that starts late is behind by the replayed elements, and then counts like any other.
#[test]
fn producer_waits_for_late_consumer() {
    let (mut tx, hub) = BroadcastHub::<u64>::options().capacity(2).replay(4).build();
    let mut rx = hub.subscribe();
    for value in 0..8 {
        tx.try_send(value).unwrap();
        rx.try_recv().unwrap();
    }
    let mut late = hub.subscribe_at(Start::Last(4));
    assert_eq!(late.lag(), 4);
    assert!(tx.try_send(8).is_err());
    assert_eq!(drain(&mut late), [4, 5, 6, 7]);
    tx.try_send(8).unwrap();
}

/// A consumer that was revoked does not get elements twice when another has moved the head back.
#[test]
fn late_consumer_does_not_move_revoked_one_back() {
    let (mut tx, hub) = BroadcastHub::<u64>::options()
        .capacity(2)
        .replay(6)
        .on_slow(OnSlow::DropOldest)
        .build();
    let mut rx = hub.subscribe();
    for value in 0..4 {
        tx.try_send(value).unwrap();
        rx.try_recv().unwrap();
    }
    for value in 4..7 {
        tx.try_send(value).unwrap();
    }
    let mut late = hub.subscribe_at(Start::Last(6));
    assert_eq!(drain(&mut late), [1, 2, 3, 4, 5, 6]);
    assert!(!matches!(rx.try_recv(), Ok(0..4)), "received twice");
    let rest = drain(&mut rx);
    assert_eq!(rest.last(), Some(&6));
    assert!(rest.is_sorted());
}

#[test]
#[should_panic(expected = "`replay` must be at most 268435456")]
fn too_large_replay_panics() {
    let most = fanline::hub::CAPACITY_MAX;
    let _ = BroadcastHub::<u64>::options().replay(most + 1).build();
}

#[test]
fn last_needs_no_replay_option() {
    let (mut tx, hub) = broadcast::<u64>(4);
    for value in 0..4 {
        tx.try_send(value).unwrap();
    }
    assert_eq!(drain(&mut hub.subscribe_at(Start::Last(3))), [1, 2, 3]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Receive(usize),
    Join(Start),
    Leave(usize),
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    let start = prop_oneof![
        Just(Start::Oldest),
        Just(Start::Latest),
        (0..12_usize).prop_map(Start::Last),
        (0..12_usize).prop_map(Start::Last),
    ];
    prop_oneof![
        8 => Just(Step::Send),
        8 => (0..8_usize).prop_map(Step::Receive),
        2 => start.prop_map(Step::Join),
        1 => (0..8_usize).prop_map(Step::Leave),
        1 => Just(Step::Release),
    ]
}

/// The model of a hub: the position of the slowest consumer, and the cursors.
#[derive(Default)]
struct Model {
    base: u64,
    sent: u64,
    cursors: Vec<u64>,
}

impl Model {
    fn start(&mut self, start: Start, replay: u64) -> u64 {
        match start {
            Start::Oldest => self.base,
            Start::Latest => self.sent,
            Start::Last(count) => {
                let stored = (self.sent - self.base).max(replay.min(self.sent));
                self.sent - stored.min(count as u64)
            }
            _ => unreachable!("not generated"),
        }
    }

    fn update(&mut self) {
        if let Some(least) = self.cursors.iter().min() {
            self.base = *least;
        }
    }
}

fn check(capacity: usize, replay: usize, steps: &[Step]) {
    let options = BroadcastHub::<u64>::options().capacity(capacity);
    let (mut tx, hub) = options.replay(replay).build();
    let mut consumers = Vec::new();
    let mut model = Model::default();
    for step in steps {
        let count = consumers.len();
        match *step {
            Step::Send => {
                let fits = tx.try_send(model.sent).is_ok();
                let stored = usize::try_from(model.sent - model.base).unwrap();
                // The producer looks for room only after `capacity` elements, so a consumer that has joined
                // before the head may not stop it yet.
                assert!(fits || stored >= capacity);
                assert!(!fits || stored < capacity + replay);
                model.sent += u64::from(fits);
            }
            Step::Receive(index) if count > 0 => {
                let index = index % count;
                let cursor = &mut model.cursors[index];
                let rx: &mut BroadcastReceiver<u64> = &mut consumers[index];
                match rx.try_recv() {
                    Ok(value) => {
                        assert_eq!(value, *cursor);
                        *cursor += 1;
                    }
                    Err(TryRecvError::Empty) => assert_eq!(*cursor, model.sent),
                    Err(other) => panic!("{other}"),
                }
            }
            Step::Join(start) => {
                consumers.push(hub.subscribe_at(start));
                let cursor = model.start(start, replay as u64);
                model.cursors.push(cursor);
            }
            Step::Leave(index) if count > 0 => {
                consumers.swap_remove(index % count);
                let cursor = model.cursors.swap_remove(index % count);
                if model.cursors.is_empty() {
                    // The next consumer resumes here.
                    model.base = cursor;
                }
            }
            Step::Release => tx.release(),
            Step::Receive(_) | Step::Leave(_) => {}
        }
        model.update();
        let lags: Vec<_> = consumers.iter().map(|rx| rx.lag() as u64).collect();
        let expected: Vec<_> = model.cursors.iter().map(|at| model.sent - at).collect();
        assert_eq!(lags, expected);
    }
}

/// Checks that each consumer of a hub that drops elements gets a run without gaps, except where it learns of
/// them.
fn check_dropping(capacity: usize, replay: usize, steps: &[Step]) {
    let (mut tx, hub) = BroadcastHub::<u64>::options()
        .capacity(capacity)
        .replay(replay)
        .on_slow(OnSlow::DropOldest)
        .build();
    let mut consumers: VecDeque<(BroadcastReceiver<u64>, u64)> = VecDeque::new();
    let mut sent = 0;
    for step in steps {
        let count = consumers.len();
        match *step {
            Step::Send => sent += u64::from(tx.try_send(sent).is_ok()),
            Step::Receive(index) if count > 0 => {
                let (rx, next) = &mut consumers[index % count];
                match rx.try_recv() {
                    Ok(value) => {
                        assert_eq!(value, *next);
                        *next += 1;
                    }
                    Err(TryRecvError::Lagged(lost)) => *next += lost,
                    Err(TryRecvError::Empty) => assert_eq!(*next, sent),
                    Err(other) => panic!("{other}"),
                }
            }
            Step::Join(start) => {
                let rx = hub.subscribe_at(start);
                let lag = rx.lag() as u64;
                if let Start::Last(count) = start {
                    let replayed = sent.min(replay as u64).min(count as u64);
                    assert!((replayed..=count as u64).contains(&lag), "{lag}");
                }
                consumers.push_back((rx, sent - lag));
            }
            Step::Leave(index) if count > 0 => drop(consumers.swap_remove_back(index % count)),
            Step::Release => tx.release(),
            Step::Receive(_) | Step::Leave(_) => {}
        }
    }
}

proptest! {
    #[test]
    fn hub_with_replay_matches_cursor_model(
        capacity in 1..6_usize,
        replay in 0..9_usize,
        steps in vec(step(), 1..300),
    ) {
        check(capacity, replay, &steps);
    }

    #[test]
    fn dropping_hub_with_replay_reports_each_gap(
        capacity in 1..6_usize,
        replay in 0..9_usize,
        steps in vec(step(), 1..300),
    ) {
        check_dropping(capacity, replay, &steps);
    }
}
