//! The merge hub and the partition hub, compared with tokio's mpsc channel. That channel has many producers
//! with one shared bound. It has one consumer, so a partition uses several channels.

use std::time::Duration;

use fanline::hub::{PartitionHub, Partitioner, merge};
use tokio::sync::mpsc;

use super::load::System;
use super::lockstep::{join, timed};

/// Number of buffered elements per producer or consumer.
const BUFFER: usize = 256;

/// Number of low bits of an element that contain its index. The higher bits contain the number of its
/// producer.
const PRODUCER_SHIFT: u32 = 40;

/// Measures many producers that send one element at a time to one consumer.
pub(super) fn run_merge(
    system: System,
    threads: usize,
    producers: usize,
    elements: u64,
) -> Duration {
    let share = elements / producers as u64;
    match system {
        System::TokioMpsc => timed(threads, async move {
            let (tx, mut rx) = mpsc::channel(BUFFER * producers);
            let tasks = (0..producers as u64).map(|producer| {
                let tx = tx.clone();
                tokio::spawn(async move {
                    for index in 0..share {
                        let sent = tx.send(producer << PRODUCER_SHIFT | index).await;
                        sent.expect("open");
                    }
                })
            });
            let tasks = tasks.collect();
            drop(tx);
            let mut order = Order::new(producers);
            while let Some(value) = rx.recv().await {
                order.take(value);
            }
            order.finish(share);
            join(tasks).await;
        }),
        _ => timed(threads, async move {
            let (hub, mut rx) = merge(BUFFER);
            let tasks = (0..producers as u64).map(|producer| {
                let mut tx = hub.producer();
                tokio::spawn(async move {
                    for index in 0..share {
                        let sent = tx.send(producer << PRODUCER_SHIFT | index).await;
                        sent.expect("open");
                    }
                })
            });
            let tasks = tasks.collect();
            drop(hub);
            let mut order = Order::new(producers);
            while let Some(value) = rx.next().await {
                order.take(value);
            }
            order.finish(share);
            join(tasks).await;
        }),
    }
}

/// A check that the elements of each producer are 0, 1, 2, and so on.
struct Order {
    next: Vec<u64>,
}

impl Order {
    fn new(producers: usize) -> Self {
        Self {
            next: vec![0; producers],
        }
    }

    #[inline]
    fn take(&mut self, value: u64) {
        let producer = usize::try_from(value >> PRODUCER_SHIFT).expect("few producers");
        let next = &mut self.next[producer];
        assert_eq!(value & ((1 << PRODUCER_SHIFT) - 1), *next);
        *next += 1;
    }

    fn finish(&self, share: u64) {
        assert!(self.next.iter().all(|next| *next == share));
    }
}

/// Measures one producer whose elements go to each consumer in turn.
pub(super) fn run_partition(
    system: System,
    threads: usize,
    consumers: usize,
    elements: u64,
) -> Duration {
    match system {
        System::TokioMpsc => timed(threads, async move {
            let (senders, receivers): (Vec<_>, Vec<_>) =
                (0..consumers).map(|_| mpsc::channel(BUFFER)).unzip();
            let tasks = receivers.into_iter().zip(0..).map(|(mut rx, first)| {
                tokio::spawn(async move {
                    let mut turn = Turn::new(first, consumers);
                    while let Some(value) = rx.recv().await {
                        turn.take(value);
                    }
                    turn.finish(elements);
                })
            });
            let tasks = tasks.collect();
            for (value, tx) in (0..elements).zip(senders.iter().cycle()) {
                tx.send(value).await.expect("open");
            }
            drop(senders);
            join(tasks).await;
        }),
        _ => timed(threads, async move {
            let options = PartitionHub::<u64>::options()
                .capacity(BUFFER * consumers)
                .per_consumer(BUFFER);
            let in_turn = |count, value: &u64| (*value % count as u64).cast_signed();
            let (mut tx, hub) = options.build(Partitioner::by_index(in_turn));
            let tasks = (0..consumers as u64).map(|first| {
                let mut rx = hub.subscribe();
                tokio::spawn(async move {
                    let mut turn = Turn::new(first, consumers);
                    while let Some(value) = rx.next().await {
                        turn.take(value);
                    }
                    turn.finish(elements);
                })
            });
            let tasks = tasks.collect();
            for value in 0..elements {
                tx.send(value).await.expect("open");
            }
            drop(tx);
            join(tasks).await;
        }),
    }
}

/// A check that a consumer receives its own elements in order: every n-th element if there are n consumers.
struct Turn {
    next: u64,
    consumers: u64,
}

impl Turn {
    fn new(first: u64, consumers: usize) -> Self {
        Self {
            next: first,
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
