//! Cases of Pekko's `HubSpec` for merge and partition hubs that the other files do not cover. `hub.rs` lists
//! all cases.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fanline::hub::{
    BroadcastHub, CAPACITY_MAX, HubError, MergeHub, MergeOptions, MergeReceiver, PartitionHub,
    PartitionOptions, PartitionReceiver, Partitioner, SendError, TrySendError, broadcast, merge,
    partition,
};
use futures::executor::block_on;
use futures::future::{join, join3, poll_fn};
use futures::{FutureExt, StreamExt, poll};

/// Yields `turns` times.
async fn yield_times(turns: usize) {
    for _ in 0..turns {
        let mut rested = false;
        poll_fn(|context| {
            if std::mem::replace(&mut rested, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

fn numbers(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

// ---- Merge.

/// Checks a hub with two producers of `count` elements each. Before each element, both sides yield the given
/// number of times.
fn check_merge(per_producer: usize, count: u64, producer_yields: usize, consumer_yields: usize) {
    let (hub, mut rx) = merge::<u64>(per_producer);
    let producers = [0, count].map(|first| {
        let mut tx = hub.producer();
        async move {
            for value in first..first + count {
                yield_times(producer_yields).await;
                tx.send(value).await.unwrap();
            }
        }
    });
    drop(hub);
    let consumer = async {
        let mut received = Vec::new();
        while let Some(value) = rx.next().await {
            assert!(rx.lag() <= 2 * per_producer);
            received.push(value);
            yield_times(consumer_yields).await;
        }
        received
    };
    let [one, other] = producers;
    let (received, (), ()) = block_on(join3(consumer, one, other));
    let (low, high): (Vec<_>, Vec<_>) = received.into_iter().partition(|value| *value < count);
    assert_eq!(low, numbers(0..count));
    assert_eq!(high, numbers(count..2 * count));
}

#[test]
fn merge_handles_long_streams_of_any_speed() {
    check_merge(16, 20_000, 0, 0);
    check_merge(1, 10_000, 0, 0);
    check_merge(16, 1_000, 0, 7);
    check_merge(16, 1_000, 7, 0);
}

#[test]
fn merge_handles_producers_one_after_the_other() {
    block_on(async {
        let (hub, mut rx) = merge::<u64>(16);
        for round in 0..3 {
            let source = futures::stream::iter(round * 10..round * 10 + 5);
            hub.producer().attach(source).await.unwrap();
            assert_eq!(hub.producer_count(), 0);
            for value in round * 10..round * 10 + 5 {
                assert_eq!(rx.next().await, Some(value));
            }
            assert!(
                poll!(Box::pin(rx.next())).is_pending(),
                "the hub stays open"
            );
        }
    });
}

#[test]
fn dropped_merge_receiver_closes_current_and_later_producers() {
    block_on(async {
        let (hub, rx) = merge::<u64>(16);
        let mut endless = Box::pin(hub.producer().attach(futures::stream::iter(0..)));
        let taken = rx.take(5).collect::<Vec<_>>();
        let (sent, taken) = join(&mut endless, taken).await;
        assert_eq!(taken, numbers(0..5));
        assert!(sent.is_err());
        assert!(matches!(hub.producer().send(9).await, Err(SendError(9))));
    });
}

/// A full hub accepts exactly as many elements as were received.
#[test]
fn merge_frees_as_much_room_as_was_received() {
    let (hub, mut rx): (MergeHub<u64>, MergeReceiver<u64>) = merge(3);
    let mut tx = hub.producer();
    let mut sent = 0;
    let mut fill = |room: u64| {
        for _ in 0..room {
            tx.try_send(sent).unwrap();
            sent += 1;
        }
        assert_eq!(tx.try_send(99), Err(TrySendError::Full(99)));
    };
    fill(3);
    assert_eq!((rx.try_recv().unwrap(), rx.try_recv().unwrap()), (0, 1));
    fill(2);
    assert_eq!(rx.try_recv().unwrap(), 2);
    fill(1);
}

/// The drop of a producer by its runtime is not a failure.
#[test]
fn producer_runtime_shutdown_is_no_merge_failure() {
    let (hub, mut rx) = merge::<u64>(16);
    let mut tx = hub.producer();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    runtime.spawn(async move {
        tx.send(1).await.unwrap();
        std::future::pending::<()>().await;
    });
    assert_eq!(rx.blocking_recv(), Some(1));
    runtime.shutdown_timeout(Duration::from_secs(60));
    assert_eq!(hub.producer_count(), 0);
    assert!(hub.last_failure().is_none());
    hub.producer().try_send(2).unwrap();
    assert_eq!(rx.blocking_recv(), Some(2));
}

// ---- Partition.

fn modulo(count: usize, value: &u64) -> i64 {
    i64::try_from(*value % count as u64).expect("small")
}

async fn all_of(mut rx: PartitionReceiver<u64>, yields: usize) -> Vec<u64> {
    let mut received = Vec::new();
    while let Some(value) = rx.next().await {
        received.push(value);
        yield_times(yields).await;
    }
    received
}

#[test]
fn partition_with_one_consumer_is_a_queue() {
    let (tx, hub) = partition::<u64>(8, |_, _| 0);
    let rx = hub.subscribe();
    let sent = tx.attach(futures::stream::iter(0..1_000));
    let (sent, received) = block_on(join(sent, all_of(rx, 0)));
    sent.unwrap();
    assert_eq!(received, numbers(0..1_000));
}

#[test]
fn partition_handles_even_and_uneven_choices() {
    let check = |choose: fn(u64) -> i64, expected: [Vec<u64>; 2]| {
        let (tx, hub) = partition::<u64>(8, move |_, value| choose(*value));
        let [one, other] = [hub.subscribe(), hub.subscribe()].map(|rx| all_of(rx, 0));
        let sent = tx.attach(futures::stream::iter(0..40));
        let (sent, one, other) = block_on(join3(sent, one, other));
        sent.unwrap();
        assert_eq!([one, other], expected);
    };
    let split = |is_first: fn(&u64) -> bool| -> [Vec<u64>; 2] {
        let (one, other) = numbers(0..40).into_iter().partition(is_first);
        [one, other]
    };
    check(
        |value| i64::try_from(value % 2).unwrap(),
        split(|value| value % 2 == 0),
    );
    check(
        |value| i64::from(value % 10 == 9),
        split(|value| value % 10 != 9),
    );
    check(|_| 1, split(|_| false));
}

#[test]
fn full_partition_hub_blocks_producer() {
    block_on(async {
        let (mut tx, hub) = partition(4, modulo);
        let (mut even, odd) = (hub.subscribe(), hub.subscribe());
        for value in 0..4 {
            tx.send(value).await.unwrap();
        }
        let mut send = Box::pin(tx.send(4));
        assert!(poll!(&mut send).is_pending());
        assert_eq!(even.next().await, Some(0));
        assert!(poll!(&mut send).is_ready());
        drop(send);
        assert_eq!(hub.len(), 4);
        assert_eq!((even.lag(), odd.lag()), (2, 2));
    });
}

#[test]
fn slower_consumer_sets_rate_of_partition_with_capacity_one() {
    let (tx, hub) = partition(1, modulo);
    let (even, odd) = (all_of(hub.subscribe(), 5), all_of(hub.subscribe(), 0));
    let sent = tx.attach(futures::stream::iter(0..200));
    let (sent, even, odd) = block_on(join3(sent, even, odd));
    sent.unwrap();
    assert_eq!(even, Vec::from_iter((0..200).step_by(2)));
    assert_eq!(odd, Vec::from_iter((1..200).step_by(2)));
}

#[test]
fn partition_failure_overtakes_elements_for_all_consumers() {
    block_on(async {
        let (mut tx, hub) = partition(8, modulo);
        let (mut reads, mut waits) = (hub.subscribe(), hub.subscribe());
        for value in [0, 2, 4] {
            tx.send(value).await.unwrap();
        }
        assert_eq!(reads.next().await, Some(0));
        let mut next = Box::pin(waits.next());
        assert!(poll!(&mut next).is_pending());
        tx.fail("broken");
        assert_eq!(next.await, None);
        assert_eq!(reads.next().await, None, "the failure overtakes 2 and 4");
        for rx in [&reads, &waits] {
            assert_eq!(
                rx.error().unwrap().to_string(),
                "the producer failed: broken"
            );
        }
        assert!(hub.is_empty());
    });
}

#[test]
fn producer_runtime_shutdown_completes_partition_hub() {
    let (mut tx, hub) = PartitionHub::<u64>::options()
        .capacity(4)
        .build(Partitioner::by_id(|consumers, _| consumers.id_at(0)));
    let mut rx = hub.subscribe();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    runtime.spawn(async move {
        tx.send(1).await.unwrap();
        std::future::pending::<()>().await;
    });
    assert_eq!(rx.blocking_recv(), Some(1));
    let consumer = std::thread::spawn(move || rx.blocking_recv());
    runtime.shutdown_timeout(Duration::from_secs(60));
    assert_eq!(consumer.join().unwrap(), None);
    assert!(hub.is_closed());
}

/// A stalled consumer occupies its own share of the room and no more, provided the partitioner can choose
/// another consumer.
#[test]
fn stalled_partition_consumer_keeps_only_its_share() {
    let options = PartitionHub::<u64>::options()
        .capacity(8)
        .per_consumer(2)
        .on_full(fanline::hub::OnFull::Reroute);
    let (mut tx, hub) = options.build(Partitioner::round_robin());
    let (stalls, mut works) = (hub.subscribe(), hub.subscribe());
    for value in 0..100 {
        tx.try_send(value).unwrap();
        while works.try_recv().is_ok() {}
    }
    assert_eq!(stalls.lag(), 2);
}

// ---- All hubs.

/// A subject can follow a hub as the end of a chain.
#[test]
fn attach_hub_to_subject() {
    let (mut tx, hub) = broadcast::<u64>(8);
    let (subject, source) = fanline::subject_with_error::<u64, HubError>();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (values, failure) = (seen.clone(), seen.clone());
    let observer = fanline::observer(move |value: &u64| {
        values.lock().unwrap().push(value.to_string());
    })
    .on_error(move |error: &HubError| failure.lock().unwrap().push(error.to_string()));
    let guard = source.subscribe_with(observer);
    let attached = hub.subscribe().attach(subject);
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    let mut attached = Box::pin(attached);
    assert!(attached.as_mut().now_or_never().is_none());
    tx.fail("broken");
    attached.now_or_never().expect("ended");
    assert_eq!(
        *seen.lock().unwrap(),
        ["1", "2", "the producer failed: broken"]
    );
    drop(guard);
}

#[test]
fn too_large_option_is_named_with_its_maximum() {
    let most = CAPACITY_MAX;
    let too_many = CAPACITY_MAX + 1;
    let merge = |options: MergeOptions<u64>| options.try_build().err();
    let partition =
        |options: PartitionOptions<u64>| options.try_build(Partitioner::round_robin()).err();
    let errors = [
        (
            "per_producer",
            merge(MergeHub::<u64>::options().per_producer(too_many)),
        ),
        ("total", merge(MergeHub::<u64>::options().total(too_many))),
        (
            "capacity",
            partition(PartitionHub::<u64>::options().capacity(too_many)),
        ),
        (
            "per_consumer",
            partition(PartitionHub::<u64>::options().per_consumer(too_many)),
        ),
        (
            "capacity",
            BroadcastHub::<u64>::options()
                .capacity(too_many)
                .try_build()
                .err(),
        ),
    ];
    for (option, error) in errors {
        let error = error.expect(option);
        assert_eq!(error.option(), option);
        assert_eq!(
            error.to_string(),
            format!("`{option}` must be at most {most}")
        );
    }
}
