//! The partition hub: routing, bounds, and consumers that join and leave.

use fanline::hub::{
    OnFull, OnLeave, PartitionHub, PartitionOptions, PartitionReceiver, Partitioner, TryRecvError,
    TrySendError, partition,
};
use futures::executor::block_on;
use futures::{StreamExt, poll};

fn drain(rx: &mut PartitionReceiver<u64>) -> Vec<u64> {
    std::iter::from_fn(|| rx.try_recv().ok()).collect()
}

fn modulo(count: usize, value: &u64) -> i64 {
    i64::try_from(*value % count as u64).expect("small")
}

#[test]
fn each_element_goes_to_one_consumer() {
    let (mut tx, hub) = partition(16, modulo);
    let mut consumers = [hub.subscribe(), hub.subscribe(), hub.subscribe()];
    for value in 0..9 {
        tx.try_send(value).unwrap();
    }
    tx.complete();
    let received = consumers.each_mut().map(drain);
    assert_eq!(received, [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5, 8]]);
    assert!(matches!(
        consumers[0].try_recv(),
        Err(TryRecvError::Completed)
    ));
}

#[test]
fn elements_pending_for_start_after_count_toward_capacity() {
    let options = PartitionHub::<u64>::options().capacity(4).start_after(2);
    let (mut tx, hub) = options.build(Partitioner::by_index(modulo));
    let mut a = hub.subscribe();
    for value in 0..4 {
        tx.try_send(value).unwrap();
    }
    assert_eq!(tx.try_send(4), Err(TrySendError::Full(4)));
    assert_eq!(drain(&mut a), []);
    let mut b = hub.subscribe();
    assert_eq!((drain(&mut a), drain(&mut b)), (vec![0, 2], vec![1, 3]));
    tx.try_send(4).unwrap();
}

#[test]
fn negative_index_drops_element() {
    let (mut tx, hub) = partition::<u64>(2, |_, value| if *value < 10 { -1 } else { 0 });
    let mut rx = hub.subscribe();
    for value in 0..12 {
        tx.try_send(value).unwrap();
    }
    assert_eq!(drain(&mut rx), [10, 11]);
    assert!(hub.is_empty());
}

#[test]
fn round_robin_and_least_loaded_choose_as_documented() {
    let check = |partitioner, expected: [Vec<u64>; 2]| {
        let (mut tx, hub) = PartitionHub::<u64>::options().build(partitioner);
        let mut consumers = [hub.subscribe(), hub.subscribe()];
        for value in 0..4 {
            tx.try_send(value).unwrap();
            if value == 2 {
                consumers[0].try_recv().unwrap();
            }
        }
        assert_eq!(consumers.each_mut().map(drain), expected);
    };
    check(Partitioner::round_robin(), [vec![2], vec![1, 3]]);
    check(Partitioner::least_loaded(), [vec![2, 3], vec![1]]);
}

#[test]
fn stateful_partitioner_keeps_sessions_together() {
    let mut sessions = std::collections::HashMap::new();
    let (mut tx, hub) = PartitionHub::<u64>::options()
        .capacity(16)
        .build(Partitioner::by_id(move |consumers, value| {
            let next = sessions.len();
            *sessions
                .entry(value % 10)
                .or_insert_with(|| consumers.id_at(next))
        }));
    let (mut a, mut b) = (hub.subscribe(), hub.subscribe());
    for value in [7, 8, 17, 18, 28, 27] {
        tx.try_send(value).unwrap();
    }
    assert_eq!(drain(&mut a), [7, 17, 27]);
    assert_eq!(drain(&mut b), [8, 18, 28]);
}

#[test]
fn elements_of_leaving_consumer_are_rerouted_or_dropped() {
    let check = |on_leave, expected: &[u64]| {
        let options = PartitionHub::<u64>::options().on_leave(on_leave);
        let (mut tx, hub) = options.build(Partitioner::by_index(modulo));
        let (mut stays, mut leaves) = (hub.subscribe(), hub.subscribe());
        for value in 0..6 {
            tx.try_send(value).unwrap();
        }
        assert_eq!(leaves.try_recv().unwrap(), 1);
        drop(leaves);
        assert_eq!(hub.len(), expected.len());
        assert_eq!(drain(&mut stays), expected);
    };
    check(OnLeave::Reroute, &[0, 2, 4, 3, 5]);
    check(OnLeave::Drop, &[0, 2, 4]);
}

#[test]
fn full_consumer_waits_reroutes_or_drops() {
    let check = |on_full, taken: usize, expected: [&[u64]; 2]| {
        let options = PartitionHub::<u64>::options()
            .capacity(6)
            .per_consumer(2)
            .on_full(on_full);
        // The partitioner chooses the first consumer for all elements.
        let (mut tx, hub) = options.build(Partitioner::by_index(|_, _: &u64| 0));
        let mut consumers = [hub.subscribe(), hub.subscribe()];
        let sent = (0..20)
            .take_while(|value| tx.try_send(*value).is_ok())
            .count();
        assert_eq!(sent, taken, "{on_full:?}");
        assert_eq!(
            consumers.each_ref().map(|rx| rx.lag().min(2)),
            expected.map(<[u64]>::len)
        );
        let second = drain(&mut consumers[1]);
        assert!(second.starts_with(expected[1]), "{second:?}");
        assert_eq!(consumers[0].try_recv().unwrap(), 0);
    };
    check(OnFull::Wait, 6, [&[0, 1], &[]]);
    check(OnFull::Reroute, 6, [&[0, 1], &[2, 3]]);
    check(OnFull::DropNewest, 20, [&[0, 1], &[]]);
}

#[test]
fn hub_starts_early_when_last_handle_is_dropped() {
    let options = PartitionHub::<u64>::options().start_after(2);
    let (mut tx, hub) = options.build(Partitioner::by_index(modulo));
    let mut rx = hub.subscribe();
    tx.try_send(1).unwrap();
    assert!(matches!(rx.try_recv(), Err(TryRecvError::Empty)));
    drop(hub);
    assert_eq!(rx.try_recv().unwrap(), 1);
    tx.complete();
    assert!(matches!(rx.try_recv(), Err(TryRecvError::Completed)));
}

#[test]
fn partitioner_by_id_sees_queue_lengths() {
    let (mut tx, hub) = PartitionHub::<u64>::options()
        .capacity(16)
        .build(Partitioner::by_id(|consumers, value| {
            assert_eq!(consumers.len(), consumers.iter().len());
            let wanted = i64::try_from(*value % 10).expect("small");
            match consumers.queued(wanted) {
                Some(..2) => wanted,
                Some(_) => consumers.id_at(0),
                None => -1,
            }
        }));
    let mut consumers: Vec<_> = (0..4).map(|_| hub.subscribe()).collect();
    drop(consumers.remove(2)); // number 2
    for value in [1, 2, 3, 11, 21, 33, 43] {
        tx.try_send(value).unwrap();
    }
    let received: Vec<_> = consumers.iter_mut().map(drain).collect();
    assert_eq!(received, [vec![21, 43], vec![1, 11], vec![3, 33]]);
}

#[test]
fn element_waiting_for_room_is_delivered_later() {
    block_on(async {
        let options = PartitionHub::<u64>::options().capacity(3).per_consumer(1);
        let (mut tx, hub) = options.build(Partitioner::by_index(modulo));
        let (mut even, mut odd) = (hub.subscribe(), hub.subscribe());
        for value in [0, 2, 1] {
            tx.send(value).await.unwrap();
        }
        let mut send = Box::pin(tx.send(3));
        assert!(poll!(&mut send).is_pending());
        let mut next = Box::pin(odd.next());
        assert!(poll!(&mut next).is_pending(), "waits behind 2");
        assert_eq!(even.next().await, Some(0));
        assert_eq!(next.await, Some(1));
        send.await.unwrap();
        drop(even); // its element 2 goes to the other consumer
        assert_eq!(odd.next().await, Some(3));
        assert_eq!(odd.next().await, Some(2));
    });
}

#[test]
fn late_consumers_see_completion_or_failure() {
    block_on(async {
        let (mut tx, hub) = partition(4, modulo);
        tx.send(5).await.unwrap();
        tx.complete();
        let mut late = hub.subscribe();
        assert_eq!(late.next().await, Some(5), "pending elements are not lost");
        assert_eq!(late.next().await, None);
        assert_eq!(hub.subscribe().next().await, None);

        let (mut tx, hub) = partition(4, modulo);
        let mut rx = hub.subscribe();
        tx.send(5).await.unwrap();
        tx.fail("broken");
        for rx in [&mut rx, &mut hub.subscribe()] {
            assert_eq!(rx.next().await, None);
            assert_eq!(
                rx.error().unwrap().to_string(),
                "the producer failed: broken"
            );
        }
    });
}

#[test]
fn panicking_partitioner_loses_only_its_element() {
    let (mut tx, hub) = partition::<u64>(4, |_, value| {
        assert_ne!(*value, 1, "on purpose");
        if *value == 2 { 7 } else { 0 }
    });
    let mut rx = hub.subscribe();
    for value in 0..4 {
        let send = std::panic::AssertUnwindSafe(|| tx.try_send(value));
        let panicked = std::panic::catch_unwind(send).is_err();
        assert_eq!(panicked, value == 1 || value == 2);
    }
    assert_eq!(drain(&mut rx), [0, 3]);
    assert!(hub.is_empty());
}

#[test]
fn consumers_on_threads_lose_nothing() {
    let options = PartitionHub::<u64>::options()
        .capacity(8)
        .per_consumer(2)
        .on_full(OnFull::Reroute);
    let (mut tx, hub) = options.build(Partitioner::round_robin());
    let threads = [0, 1, 2].map(|index| {
        let (mut rx, hub) = (hub.subscribe(), hub.clone());
        std::thread::spawn(move || {
            let mut received = Vec::new();
            while let Some(value) = rx.blocking_recv() {
                received.push(value);
                if index == 0 && value % 50 == 0 {
                    rx = hub.subscribe();
                }
            }
            received
        })
    });
    drop(hub);
    for value in 0..3_000 {
        tx.blocking_send(value).unwrap();
    }
    drop(tx);
    let mut all: Vec<u64> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    all.sort_unstable();
    assert_eq!(all, Vec::from_iter(0..3_000));
}

#[test]
fn sender_accepts_stream_and_receivers_are_streams() {
    block_on(async {
        let (tx, hub) = partition(2, modulo);
        let (even, odd) = (hub.subscribe(), hub.subscribe());
        let (sent, even, odd) = futures::join!(
            tx.attach(futures::stream::iter(0..10)),
            even.collect::<Vec<_>>(),
            odd.collect::<Vec<_>>()
        );
        sent.unwrap();
        assert_eq!((even, odd), (vec![0, 2, 4, 6, 8], vec![1, 3, 5, 7, 9]));
    });
}

#[test]
fn invalid_options_are_named_in_error() {
    let check = |options: PartitionOptions<u64>, message: &str| {
        let partitioner = Partitioner::<u64>::round_robin();
        let error = options.try_build(partitioner).expect_err(message);
        assert_eq!(error.to_string(), message);
    };
    check(
        PartitionHub::<u64>::options().capacity(0),
        "`capacity` must be at least 1",
    );
    check(
        PartitionHub::<u64>::options().per_consumer(0),
        "`per_consumer` must be at least 1",
    );
    check(
        PartitionHub::<u64>::options().start_after(0),
        "`start_after` must be at least 1",
    );
}
