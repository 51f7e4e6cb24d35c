//! Merge and partition hubs on two or more threads with small bounds: elements stay in order, and none is
//! lost.

use std::sync::Arc;

use fanline::hub::{MergeHub, OnFull, OnLeave, PartitionHub, PartitionOptions, Partitioner};

const BOUNDS: [usize; 3] = [1, 2, 16];
/// Number of elements, and number of rounds. Miri executes a program 1,000 times slower.
const ELEMENTS: u64 = if cfg!(miri) { 40 } else { 20_000 };
const ROUNDS: u64 = if cfg!(miri) { 5 } else { 200 };

fn merged(per_producer: usize, total: Option<usize>, producers: u64, feeds: bool) {
    let mut options = MergeHub::<u64>::options().per_producer(per_producer);
    if let Some(total) = total {
        options = options.total(total);
    }
    let (hub, mut rx) = options.build();
    let each = ELEMENTS / producers;
    let threads: Vec<_> = (0..producers)
        .map(|id| {
            let mut tx = hub.producer();
            std::thread::spawn(move || {
                for value in 0..each {
                    let value = id * 1_000_000 + value;
                    if feeds && value % 3 != 0 {
                        tx.blocking_feed(value).unwrap();
                    } else {
                        tx.blocking_send(value).unwrap();
                    }
                }
            })
        })
        .collect();
    drop(hub);
    let mut next = vec![0; threads.len()];
    while let Some(value) = rx.blocking_recv() {
        let id = usize::try_from(value / 1_000_000).unwrap();
        assert_eq!(value % 1_000_000, next[id]);
        next[id] += 1;
    }
    assert!(next.iter().all(|count| *count == each));
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn merge_keeps_order_per_producer_on_threads() {
    for bound in BOUNDS {
        for producers in [1, 2, 4] {
            merged(bound, None, producers, false);
            merged(bound, Some(bound), producers, true);
        }
    }
}

/// Producers join and leave all the time. Each sends a few consecutive elements.
#[test]
fn merge_loses_nothing_when_producers_join_and_leave() {
    for bound in BOUNDS {
        let (hub, mut rx) = MergeHub::<(u64, u64)>::options()
            .per_producer(bound)
            .total(4)
            .build();
        let threads = [0, 1].map(|id| {
            let hub = hub.clone();
            std::thread::spawn(move || {
                for run in 0..ELEMENTS / 40 {
                    let mut tx = hub.producer();
                    for value in 0..5 {
                        tx.blocking_feed((id, run * 5 + value)).unwrap();
                    }
                }
            })
        });
        drop(hub);
        let mut next = [0; 2];
        while let Some((id, value)) = rx.blocking_recv() {
            let next = &mut next[usize::try_from(id).unwrap()];
            // The producers of one thread existed one after the other, so their values arrive in order.
            assert_eq!(value, *next);
            *next += 1;
        }
        assert_eq!(next, [ELEMENTS / 8; 2]);
        let _ = threads.map(|thread| thread.join().unwrap());
    }
}

/// The receiver is dropped, or the hub is killed, while producers send. Every element is dropped once.
#[test]
fn merge_end_during_sends_drops_each_element_once() {
    for kills in [false, true] {
        for round in 0..ROUNDS {
            let element = Arc::new(());
            let (hub, mut rx) = MergeHub::<Arc<()>>::options()
                .per_producer(2)
                .total(3)
                .build();
            let threads = [0, 1].map(|_| {
                let (mut tx, element) = (hub.producer(), element.clone());
                std::thread::spawn(move || while tx.blocking_send(element.clone()).is_ok() {})
            });
            for _ in 0..round {
                rx.blocking_recv().unwrap();
            }
            if kills {
                assert!(hub.kill_switch().fail("stop"));
                assert!(rx.blocking_recv().is_none());
            }
            drop(rx);
            let _ = threads.map(|thread| thread.join().unwrap());
            assert_eq!(Arc::strong_count(&element), 1);
        }
    }
}

fn partitioned(options: PartitionOptions<u64>, on_full: OnFull, consumers: usize, feeds: bool) {
    let count = ELEMENTS;
    let partitioner = Partitioner::by_index(|count, value: &u64| {
        i64::try_from(*value % count as u64).expect("small")
    });
    let expects_own_only = on_full == OnFull::Wait;
    let (mut tx, hub) = options.on_full(on_full).build(partitioner);
    let threads: Vec<_> = (0..consumers)
        .map(|_| {
            let mut rx = hub.subscribe();
            std::thread::spawn(move || Vec::from_iter(std::iter::from_fn(|| rx.blocking_recv())))
        })
        .collect();
    drop(hub);
    for value in 0..count {
        if feeds && value % 5 != 0 {
            tx.blocking_feed(value).unwrap();
        } else {
            tx.blocking_send(value).unwrap();
        }
    }
    drop(tx);
    let mut all = Vec::new();
    for (index, thread) in threads.into_iter().enumerate() {
        let received = thread.join().unwrap();
        assert!(received.is_sorted(), "in order");
        if expects_own_only {
            let own = |value: &u64| value % consumers as u64 == index as u64;
            assert!(received.iter().all(own));
        }
        all.extend(received);
    }
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..count), "{} of {count}", all.len());
}

#[test]
fn partition_keeps_order_per_consumer_on_threads() {
    for bound in BOUNDS {
        for consumers in [1, 2, 4] {
            for on_full in [OnFull::Wait, OnFull::Reroute] {
                for per_consumer in [None, Some(bound)] {
                    let mut options = PartitionHub::options().capacity(2 * bound);
                    if let Some(count) = per_consumer {
                        options = options.per_consumer(count);
                    }
                    partitioned(options, on_full, consumers, bound == 2);
                }
            }
        }
    }
}

/// Consumers join and leave while elements flow. Elements of leaving consumers go to the others.
#[test]
fn partition_loses_nothing_when_consumers_join_and_leave() {
    for bound in BOUNDS {
        let options = PartitionHub::<u64>::options()
            .capacity(2 * bound)
            .on_leave(OnLeave::Reroute);
        let (mut tx, hub) = options.build(Partitioner::round_robin());
        let threads = [0_u64, 1].map(|index| {
            let hub = hub.clone();
            std::thread::spawn(move || {
                let mut received = Vec::new();
                let mut rx = hub.subscribe();
                while let Some(value) = rx.blocking_recv() {
                    received.push(value);
                    if value % 7 == index {
                        rx = hub.subscribe();
                    }
                }
                received
            })
        });
        drop(hub);
        for value in 0..ELEMENTS / 4 {
            tx.blocking_send(value).unwrap();
        }
        drop(tx);
        let mut all = threads.map(|thread| thread.join().unwrap()).concat();
        all.sort_unstable();
        let len = all.len();
        assert!(all.into_iter().eq(0..ELEMENTS / 4), "{len} elements");
    }
}

/// The hub is killed while elements flow. Every element is dropped once.
#[test]
fn partition_end_during_sends_drops_each_element_once() {
    for round in 0..ROUNDS {
        let element = Arc::new(());
        let options = PartitionHub::<Arc<()>>::options()
            .capacity(3)
            .per_consumer(1);
        let (mut tx, hub) = options.build(Partitioner::round_robin());
        let consumers = [0, 1].map(|_| {
            let mut rx = hub.subscribe();
            std::thread::spawn(move || while rx.blocking_recv().is_some() {})
        });
        let own = element.clone();
        let producer = std::thread::spawn(move || while tx.blocking_send(own.clone()).is_ok() {});
        for _ in 0..round {
            std::thread::yield_now();
        }
        assert!(hub.kill_switch().fail("stop"));
        let _ = consumers.map(|thread| thread.join().unwrap());
        producer.join().unwrap();
        drop(hub);
        assert_eq!(Arc::strong_count(&element), 1);
    }
}
