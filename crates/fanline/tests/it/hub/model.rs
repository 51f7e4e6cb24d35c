//! Random cases against a queue with cursors.

use std::collections::VecDeque;

use fanline::hub::{BroadcastReceiver, Start, TryRecvError, broadcast};
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

/// What a hub is meant to be: everything ever sent that somebody may still want, and who is where.
#[derive(Default)]
struct Model {
    kept: VecDeque<u64>,
    /// How many were sent before those that are kept.
    base: u64,
    sent: u64,
    cursors: Vec<u64>,
}

impl Model {
    fn settle(&mut self) {
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
                    assert_eq!(received.expect("there is one"), *cursor);
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
                    // The next one goes on there.
                    model.cursors.push(cursor);
                    model.settle();
                    model.cursors.clear();
                }
            }
            Step::Receive(_) | Step::Slice(_) | Step::Twin(_) | Step::Leave(_) => {}
        }
        model.settle();
        let lags: Vec<_> = consumers.iter().map(|rx| rx.lag() as u64).collect();
        let expected: Vec<_> = model.cursors.iter().map(|at| model.sent - at).collect();
        assert_eq!(lags, expected);
    }
}

proptest! {
    #[test]
    fn a_hub_is_a_queue_with_cursors(capacity in 1..9_usize, steps in vec(step(), 1..200)) {
        check(capacity, &steps);
    }
}
