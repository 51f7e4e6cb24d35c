//! Random cases of the partition hub, compared with plain queues.

use std::collections::VecDeque;

use fanline::hub::{
    OnFull, OnLeave, PartitionHub, PartitionOptions, PartitionReceiver, Partitioner, TryRecvError,
    TrySendError,
};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Join,
    Send,
    Feed,
    Receive(usize),
    Leave(usize),
    Complete,
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => Just(Step::Join),
        120 => Just(Step::Send),
        80 => Just(Step::Feed),
        160 => (0..8_usize).prop_map(Step::Receive),
        20 => (0..8_usize).prop_map(Step::Leave),
        1 => Just(Step::Complete),
        1 => Just(Step::Fail),
    ]
}

/// The options of the hub and of its model.
#[derive(Clone, Copy, Debug)]
struct Limits {
    capacity: usize,
    per_consumer: Option<usize>,
    on_full: OnFull,
    on_leave: OnLeave,
    start_after: Option<usize>,
}

impl Limits {
    fn options(self) -> PartitionOptions<u64> {
        let mut options = PartitionHub::options()
            .capacity(self.capacity)
            .on_full(self.on_full)
            .on_leave(self.on_leave);
        if let Some(count) = self.per_consumer {
            options = options.per_consumer(count);
        }
        if let Some(count) = self.start_after {
            options = options.start_after(count);
        }
        options
    }
}

fn limits() -> impl Strategy<Value = Limits> {
    let full = prop_oneof![
        Just(OnFull::Wait),
        Just(OnFull::Reroute),
        Just(OnFull::DropNewest)
    ];
    let left = prop_oneof![Just(OnLeave::Reroute), Just(OnLeave::Drop)];
    let start = prop::option::of(1..4_usize);
    (1..9_usize, prop::option::of(1..4_usize), full, left, start).prop_map(
        |(capacity, per_consumer, on_full, on_leave, start_after)| Limits {
            capacity,
            per_consumer,
            on_full,
            on_leave,
            start_after,
        },
    )
}

/// Chooses a consumer from the element alone, so that the hub and the model make the same choice.
fn choose(count: usize, value: u64) -> i64 {
    if value.is_multiple_of(7) {
        -1
    } else {
        i64::try_from(value / 3 % count as u64).expect("small")
    }
}

/// The model of a partition hub.
struct Model {
    limits: Limits,
    pending: VecDeque<u64>,
    /// The element that waits for room, and the id of its consumer, or `None` for any consumer with room.
    stuck: Option<(u64, Option<i64>)>,
    queues: Vec<(i64, VecDeque<u64>)>,
    has_started: bool,
    is_closed: bool,
    has_failed: bool,
}

impl Model {
    fn len(&self) -> usize {
        let queued: usize = self.queues.iter().map(|(_, queue)| queue.len()).sum();
        self.pending.len() + usize::from(self.stuck.is_some()) + queued
    }

    fn has_room(&self, index: usize) -> bool {
        let most = self.limits.per_consumer.unwrap_or(usize::MAX);
        self.queues[index].1.len() < most
    }

    fn least(&self) -> usize {
        let by_load = (0..self.queues.len()).min_by_key(|index| self.queues[*index].1.len());
        by_load.expect("there is a consumer")
    }

    fn update(&mut self) {
        self.has_started |= self.queues.len() >= self.limits.start_after.unwrap_or(1);
        if self.has_failed {
            self.pending.clear();
            self.stuck = None;
        }
        while self.has_started && !self.queues.is_empty() {
            if let Some((value, target)) = self.stuck {
                let index = match target {
                    Some(id) => self.queues.iter().position(|(own, _)| *own == id),
                    None => Some(self.least()),
                };
                let index = index.expect("the consumer exists");
                if !self.has_room(index) {
                    return;
                }
                self.stuck = None;
                self.queues[index].1.push_back(value);
                continue;
            }
            let Some(value) = self.pending.pop_front() else {
                return;
            };
            let Ok(index) = usize::try_from(choose(self.queues.len(), value)) else {
                continue;
            };
            if self.has_room(index) {
                self.queues[index].1.push_back(value);
                continue;
            }
            match self.limits.on_full {
                OnFull::DropNewest => {}
                OnFull::Wait => self.stuck = Some((value, Some(self.queues[index].0))),
                OnFull::Reroute if self.has_room(self.least()) => {
                    let least = self.least();
                    self.queues[least].1.push_back(value);
                }
                _ => self.stuck = Some((value, None)),
            }
        }
    }

    fn send(&mut self, value: u64) -> Result<(), TrySendError<u64>> {
        if self.is_closed {
            return Err(TrySendError::Closed(value));
        }
        if self.len() == self.limits.capacity {
            return Err(TrySendError::Full(value));
        }
        self.pending.push_back(value);
        Ok(())
    }

    /// Checks a received result. Returns whether the consumer has reached the end.
    fn receive(&mut self, index: usize, received: Result<u64, TryRecvError>) -> bool {
        let expected = self.queues[index].1.pop_front();
        match received {
            Ok(value) => {
                assert!(!self.has_failed);
                assert_eq!(Some(value), expected);
                return false;
            }
            Err(TryRecvError::Empty) => {
                assert_eq!((expected, self.is_over()), (None, false));
                return false;
            }
            Err(TryRecvError::Failed(_)) => assert!(self.has_failed),
            Err(TryRecvError::Completed) => {
                assert_eq!((expected, self.is_over()), (None, true));
            }
            other => panic!("{other:?}"),
        }
        self.leave(index);
        true
    }

    fn leave(&mut self, index: usize) {
        let (id, queue) = self.queues.remove(index);
        if let Some((value, _)) = self.stuck.take_if(|(_, target)| *target == Some(id)) {
            self.pending.push_front(value);
        }
        if self.limits.on_leave == OnLeave::Reroute {
            for value in queue.into_iter().rev() {
                self.pending.push_front(value);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_closed && self.pending.is_empty() && self.stuck.is_none()
    }
}

fn check(limits: Limits, steps: &[Step]) {
    let partitioner = Partitioner::by_index(|count, value: &u64| choose(count, *value));
    let (mut tx, hub) = limits.options().build(partitioner);
    let mut consumers: Vec<PartitionReceiver<u64>> = Vec::new();
    let mut model = Model {
        limits,
        pending: VecDeque::new(),
        stuck: None,
        queues: Vec::new(),
        has_started: false,
        is_closed: false,
        has_failed: false,
    };
    let mut last_value = 0;
    for step in steps {
        let count = consumers.len();
        match *step {
            Step::Join => {
                let rx = hub.subscribe();
                model.queues.push((rx.id(), VecDeque::new()));
                consumers.push(rx);
            }
            Step::Send | Step::Feed => {
                last_value += 1;
                // `blocking_feed` waits for room, so call it only if there is room.
                let sent = if matches!(step, Step::Feed) && model.len() < model.limits.capacity {
                    let fed = tx.blocking_feed(last_value);
                    fed.map_err(|error| TrySendError::Closed(error.0))
                } else {
                    tx.try_send(last_value)
                };
                assert_eq!(sent, model.send(last_value));
            }
            Step::Receive(index) if count > 0 => {
                let index = index % count;
                if model.receive(index, consumers[index].try_recv()) {
                    consumers.remove(index);
                }
            }
            Step::Leave(index) if count > 0 => {
                drop(consumers.remove(index % count));
                model.leave(index % count);
            }
            Step::Complete => {
                tx.complete();
                model.is_closed = true;
            }
            Step::Fail => {
                tx.fail("broken");
                model.has_failed |= !model.is_closed;
                model.is_closed = true;
            }
            Step::Receive(_) | Step::Leave(_) => {}
        }
        model.update();
        assert_eq!(hub.len(), model.len());
        let lags: Vec<_> = consumers.iter().map(|rx| (rx.id(), rx.lag())).collect();
        let queues = model.queues.iter().map(|(id, queue)| (*id, queue.len()));
        assert_eq!(lags, Vec::from_iter(queues));
        let seen = hub.consumers();
        let seen = seen.iter().map(|consumer| (consumer.id, consumer.queued));
        assert_eq!(Vec::from_iter(seen), lags);
    }
}

proptest! {
    #[test]
    fn partition_hub_matches_queue_model(limits in limits(), steps in vec(step(), 1..300)) {
        check(limits, &steps);
    }
}
