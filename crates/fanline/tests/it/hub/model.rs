//! Random cases of the broadcast hub, compared with a queue and cursors.

use std::collections::VecDeque;

use fanline::hub::{BroadcastHub, BroadcastReceiver, OnSlow, Start, TryRecvError, broadcast};
use futures::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Receive(usize),
    Slice(usize),
    Join(bool),
    Twin(usize),
    Leave(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Send),
        6 => (0..8_usize).prop_map(Step::Receive),
        2 => (0..8_usize).prop_map(Step::Slice),
        1 => any::<bool>().prop_map(Step::Join),
        1 => (0..8_usize).prop_map(Step::Twin),
        1 => (0..8_usize).prop_map(Step::Leave),
    ]
}

/// The model of a hub: the stored elements, and the cursor of each consumer.
#[derive(Default)]
struct Model {
    kept: VecDeque<u64>,
    /// Number of elements that were sent before the stored ones.
    base: u64,
    sent: u64,
    cursors: Vec<u64>,
}

impl Model {
    fn update(&mut self) {
        if let Some(least) = self.cursors.iter().min() {
            while self.base < *least {
                self.kept.pop_front();
                self.base += 1;
            }
        }
    }
}

fn check(capacity: usize, steps: &[Step]) {
    let (mut tx, hub) = broadcast::<u64>(capacity);
    let mut consumers: Vec<BroadcastReceiver<u64>> = Vec::new();
    let mut model = Model::default();
    for step in steps {
        let count = consumers.len();
        match *step {
            Step::Send => {
                let fits = model.kept.len() < capacity;
                assert_eq!(tx.try_send(model.sent).is_ok(), fits);
                if fits {
                    model.kept.push_back(model.sent);
                    model.sent += 1;
                }
            }
            Step::Receive(index) if count > 0 => {
                let index = index % count;
                let cursor = &mut model.cursors[index];
                let received = consumers[index].try_recv();
                if *cursor < model.sent {
                    assert_eq!(received.expect("the model has an element"), *cursor);
                    *cursor += 1;
                } else {
                    assert!(matches!(received, Err(TryRecvError::Empty)));
                }
            }
            Step::Slice(index) if count > 0 => {
                let index = index % count;
                let slice = consumers[index].next_slice().now_or_never();
                for value in slice.flatten().unwrap_or_default() {
                    assert_eq!(*value, model.cursors[index]);
                    model.cursors[index] += 1;
                }
                consumers[index].release();
            }
            Step::Join(oldest) => {
                let start = if oldest { Start::Oldest } else { Start::Latest };
                consumers.push(hub.subscribe_at(start));
                let cursor = if oldest { model.base } else { model.sent };
                model.cursors.push(cursor);
            }
            Step::Twin(index) if count > 0 => {
                consumers.push(consumers[index % count].clone());
                model.cursors.push(model.cursors[index % count]);
            }
            Step::Leave(index) if count > 0 => {
                consumers.swap_remove(index % count);
                let cursor = model.cursors.swap_remove(index % count);
                if model.cursors.is_empty() {
                    // Keep the elements from here on, because the next consumer resumes here.
                    model.cursors.push(cursor);
                    model.update();
                    model.cursors.clear();
                }
            }
            Step::Receive(_) | Step::Slice(_) | Step::Twin(_) | Step::Leave(_) => {}
        }
        model.update();
        let lags: Vec<_> = consumers.iter().map(|rx| rx.lag() as u64).collect();
        let expected: Vec<_> = model.cursors.iter().map(|at| model.sent - at).collect();
        assert_eq!(lags, expected);
    }
}

/// The model of a hub that overwrites: the position of the oldest stored element, and the cursors.
#[derive(Default)]
struct Lagging {
    base: u64,
    sent: u64,
    cursors: Vec<Cursor>,
}

#[derive(Clone, Copy)]
struct Cursor {
    at: u64,
    /// Number of missed elements that were not reported yet.
    unreported: u64,
}

impl Cursor {
    fn new(at: u64) -> Self {
        Self { at, unreported: 0 }
    }

    /// Moves past the elements that were overwritten.
    fn look(&mut self, base: u64) {
        let missed = base.saturating_sub(self.at);
        self.unreported += missed;
        self.at += missed;
    }

    /// Returns the next element. Before that, returns the number of missed elements as an error, once.
    /// Returns `Err(None)` if no elements were missed and none is left.
    fn receive(&mut self, base: u64, sent: u64) -> Result<u64, Option<u64>> {
        self.look(base);
        if self.unreported > 0 {
            return Err(Some(std::mem::take(&mut self.unreported)));
        }
        if self.at == sent {
            return Err(None);
        }
        self.at += 1;
        Ok(self.at - 1)
    }
}

impl Lagging {
    /// Raises the base to the position of the slowest consumer, because elements that no consumer needs are
    /// not stored.
    fn update(&mut self) {
        if let Some(least) = self.cursors.iter().map(|cursor| cursor.at).min() {
            self.base = self.base.max(least);
        }
    }
}

fn check_lagging(capacity: usize, steps: &[Step]) {
    let (mut tx, hub) = BroadcastHub::<u64>::options()
        .capacity(capacity)
        .on_slow(OnSlow::DropOldest)
        .build();
    let mut consumers: Vec<BroadcastReceiver<u64>> = Vec::new();
    let mut model = Lagging::default();
    for step in steps {
        let count = consumers.len();
        let (base, sent) = (model.base, model.sent);
        match *step {
            Step::Send => {
                let is_full = sent - base == capacity as u64;
                let fits = !is_full || count > 0;
                assert_eq!(tx.try_send(sent).is_ok(), fits);
                model.sent += u64::from(fits);
                model.base += u64::from(fits && is_full);
            }
            Step::Receive(index) if count > 0 => {
                let index = index % count;
                let received = consumers[index].try_recv().map_err(|error| match error {
                    TryRecvError::Lagged(count) => Some(count),
                    TryRecvError::Empty => None,
                    other => panic!("{other}"),
                });
                assert_eq!(received, model.cursors[index].receive(base, sent));
            }
            Step::Slice(index) if count > 0 => {
                let index = index % count;
                let cursor = &mut model.cursors[index];
                cursor.look(base);
                let slice = consumers[index].next_slice().now_or_never();
                let slice = slice.flatten().unwrap_or_default();
                assert_eq!(slice.is_empty(), cursor.at == sent);
                for value in slice {
                    assert_eq!(*value, cursor.at);
                    cursor.at += 1;
                }
                consumers[index].release();
            }
            Step::Join(oldest) => {
                let start = if oldest { Start::Oldest } else { Start::Latest };
                consumers.push(hub.subscribe_at(start));
                model
                    .cursors
                    .push(Cursor::new(if oldest { base } else { sent }));
            }
            Step::Twin(index) if count > 0 => {
                consumers.push(consumers[index % count].clone());
                let at = model.cursors[index % count].at.max(base);
                model.cursors.push(Cursor::new(at));
            }
            Step::Leave(index) if count > 0 => {
                consumers.swap_remove(index % count);
                let cursor = model.cursors.swap_remove(index % count);
                if model.cursors.is_empty() {
                    model.base = base.max(cursor.at);
                }
            }
            Step::Receive(_) | Step::Slice(_) | Step::Twin(_) | Step::Leave(_) => {}
        }
        model.update();
        let lags: Vec<_> = consumers.iter().map(|rx| rx.lag() as u64).collect();
        let cursors = model.cursors.iter();
        let expected: Vec<_> = cursors.map(|cursor| model.sent - cursor.at).collect();
        assert_eq!(lags, expected);
    }
}

proptest! {
    #[test]
    fn lagging_hub_matches_cursor_model(
        capacity in 1..9_usize,
        steps in vec(step(), 1..200),
    ) {
        check_lagging(capacity, &steps);
    }

    #[test]
    fn broadcast_hub_matches_cursor_model(capacity in 1..9_usize, steps in vec(step(), 1..200)) {
        check(capacity, &steps);
    }
}
