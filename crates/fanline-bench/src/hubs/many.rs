//! The merge hub and the partition hub, compared with tokio's mpsc channel. That channel has many producers
//! with one shared bound. It has one consumer, so a partition uses several channels.

use std::time::Duration;

use fanline::hub::{PartitionHub, Partitioner, merge};
use tokio::sync::mpsc;

use super::channel::{Inlet, Outlet};
use super::load::{Load, System};
use super::lockstep::{Check, drive, join, timed};

/// Number of buffered elements per producer or consumer.
const BUFFER: usize = 256;

/// Number of low bits of an element that contain its index. The higher bits contain the number of its
/// producer.
const PRODUCER_SHIFT: u32 = 40;

/// Measures many producers that send one element at a time to one consumer.
pub(super) fn run_merge(system: System, load: Load, elements: u64) -> Duration {
    let producers = load.peers;
    let share = elements / producers as u64;
    timed(load.threads, async move {
        if system == System::TokioMpsc {
            let (tx, rx) = mpsc::channel(BUFFER * producers);
            merge_into(vec![tx; producers], rx, share).await;
        } else {
            let (hub, rx) = merge(BUFFER);
            let senders = (0..producers).map(|_| hub.producer()).collect();
            drop(hub);
            merge_into(senders, rx, share).await;
        }
    })
}

fn merge_into<S: Inlet>(
    senders: Vec<S>,
    mut rx: impl Outlet,
    share: u64,
) -> impl Future<Output = ()> + Send {
    // The elements of each producer are 0, 1, 2, and so on.
    let mut checks: Vec<Check> = senders.iter().map(|_| Check::default()).collect();
    async move {
        let tasks = (0..).zip(senders).map(|(producer, mut tx): (u64, S)| {
            tokio::spawn(async move {
                for index in 0..share {
                    let sent = tx.put(producer << PRODUCER_SHIFT | index).await;
                    sent.expect("open");
                }
            })
        });
        let tasks = tasks.collect();
        while let Some(value) = rx.take().await {
            let producer = usize::try_from(value >> PRODUCER_SHIFT).expect("few producers");
            checks[producer].take(value & ((1 << PRODUCER_SHIFT) - 1));
        }
        checks.iter().for_each(|check| check.finish(share));
        join(tasks).await;
    }
}

/// Measures one producer whose elements go to each consumer in turn.
pub(super) fn run_partition(system: System, load: Load, elements: u64) -> Duration {
    let consumers = load.peers;
    timed(load.threads, async move {
        if system == System::TokioMpsc {
            let (senders, receivers): (_, Vec<_>) =
                (0..consumers).map(|_| mpsc::channel(BUFFER)).unzip();
            partition((InTurn { senders, next: 0 }, receivers), elements).await;
        } else {
            let options = PartitionHub::<u64>::options()
                .capacity(BUFFER * consumers)
                .per_consumer(BUFFER);
            let in_turn = |count, value: &u64| (*value % count as u64).cast_signed();
            let (tx, hub) = options.build(Partitioner::by_index(in_turn));
            let receivers = (0..consumers).map(|_| hub.subscribe()).collect();
            partition((tx, receivers), elements).await;
        }
    })
}

fn partition<S: Inlet, R: Outlet>(
    ends: (S, Vec<R>),
    elements: u64,
) -> impl Future<Output = ()> + Send {
    let consumers = ends.1.len();
    let consume = move |first, mut rx: R| async move {
        let mut turn = Turn::new(first, consumers);
        while let Some(value) = rx.take().await {
            turn.take(value);
        }
        turn.finish(elements);
    };
    drive(ends, elements, consume)
}

struct InTurn {
    senders: Vec<mpsc::Sender<u64>>,
    next: usize,
}

impl Inlet for InTurn {
    type Error = mpsc::error::SendError<u64>;

    fn put(&mut self, value: u64) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let at = self.next;
        self.next += 1;
        if self.next == self.senders.len() {
            self.next = 0;
        }
        self.senders[at].put(value)
    }
}

/// A check that a consumer receives its own elements in order: every n-th element if there are n consumers.
struct Turn {
    next: u64,
    consumers: u64,
}

impl Turn {
    fn new(first: usize, consumers: usize) -> Self {
        Self {
            next: first as u64,
            consumers: consumers as u64,
        }
    }

    #[inline]
    fn take(&mut self, value: u64) {
        assert_eq!(value, self.next);
        self.next += self.consumers;
    }

    fn finish(&self, elements: u64) {
        assert!((elements..elements + self.consumers).contains(&self.next));
    }
}
