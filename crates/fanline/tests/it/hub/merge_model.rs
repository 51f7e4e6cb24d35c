//! Random cases of the merge hub, compared with a queue in the order of arrival.

use std::collections::VecDeque;

use fanline::hub::{MergeHub, MergeSender, TryRecvError, TrySendError};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Join,
    Send(usize),
    Receive,
    Leave(usize),
    Fail(usize),
    Drain,
    Complete,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => Just(Step::Join),
        200 => (0..8_usize).prop_map(Step::Send),
        160 => Just(Step::Receive),
        20 => (0..8_usize).prop_map(Step::Leave),
        10 => (0..8_usize).prop_map(Step::Fail),
        1 => Just(Step::Drain),
        1 => Just(Step::Complete),
        1 => Just(Step::Kill),
    ]
}

/// The model of a merge hub.
#[derive(Default)]
struct Model {
    /// Elements, each with its producer.
    queue: VecDeque<(u64, u64)>,
    drains: bool,
    is_closed: bool,
    has_failed: bool,
}

impl Model {
    fn fits(&self, producer: u64, per_producer: usize, total: Option<usize>) -> bool {
        let own = self.queue.iter().filter(|(by, _)| *by == producer).count();
        own < per_producer && total.is_none_or(|total| self.queue.len() < total)
    }

    fn receive(&mut self, received: Result<u64, TryRecvError>) {
        match (received, self.queue.front()) {
            (Err(TryRecvError::Failed(_)), _) => {
                assert!(self.has_failed);
                self.queue.clear();
            }
            (Ok(value), Some((_, expected))) => {
                assert!(!self.has_failed);
                assert_eq!(value, *expected);
                self.queue.pop_front();
            }
            (Err(TryRecvError::Empty), None) => assert!(!self.is_closed),
            (Err(TryRecvError::Completed), None) => {
                assert!(self.is_closed && !self.has_failed);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn check(per_producer: usize, total: Option<usize>, steps: &[Step]) {
    let mut options = MergeHub::<u64>::options().per_producer(per_producer);
    if let Some(total) = total {
        options = options.total(total);
    }
    let (hub, mut rx) = options.build();
    let mut producers: Vec<(u64, MergeSender<u64>)> = Vec::new();
    let mut model = Model::default();
    let (mut last_producer, mut last_value) = (0, 0);
    for step in steps {
        let count = producers.len();
        match *step {
            Step::Join => {
                last_producer += 1;
                let tx = hub.producer();
                assert_eq!(tx.is_closed(), model.is_closed || model.drains);
                if !tx.is_closed() {
                    producers.push((last_producer, tx));
                }
            }
            Step::Send(index) if count > 0 => {
                let (producer, tx) = &mut producers[index % count];
                last_value += 1;
                let expected = if model.is_closed {
                    Err(TrySendError::Closed(last_value))
                } else if model.fits(*producer, per_producer, total) {
                    model.queue.push_back((*producer, last_value));
                    Ok(())
                } else {
                    Err(TrySendError::Full(last_value))
                };
                assert_eq!(tx.try_send(last_value), expected);
            }
            Step::Receive => model.receive(rx.try_recv()),
            Step::Leave(index) if count > 0 => drop(producers.swap_remove(index % count)),
            Step::Fail(index) if count > 0 => {
                let (producer, tx) = producers.swap_remove(index % count);
                tx.fail(format!("producer {producer}"));
                assert!(hub.last_failure().is_some());
            }
            Step::Drain => {
                hub.drain();
                model.drains = true;
            }
            Step::Complete => {
                assert_eq!(hub.kill_switch().complete(), !model.is_closed);
                model.is_closed = true;
            }
            Step::Kill => {
                let killed = hub.kill_switch().fail("killed");
                assert_eq!(killed, !model.is_closed);
                model.is_closed = true;
                model.has_failed |= killed;
            }
            Step::Send(_) | Step::Leave(_) | Step::Fail(_) => {}
        }
        model.is_closed |= model.drains && producers.is_empty();
        assert_eq!(hub.is_closed(), model.is_closed);
        assert_eq!(hub.len(), model.queue.len());
        assert_eq!(hub.producer_count(), producers.len());
    }
}

proptest! {
    #[test]
    fn merge_hub_matches_queue_model(
        per_producer in 1..5_usize,
        total in prop::option::of(1..8_usize),
        steps in vec(step(), 1..400),
    ) {
        check(per_producer, total, &steps);
    }
}
