//! Complete runs of the broadcast hub: streams that feed it; consumers that join late, leave early, or are
//! slow; failures that overtake elements; and ends seen by late consumers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fanline::hub::{
    BroadcastHub, BroadcastOptions, BroadcastReceiver, HubError, OnEmpty, Start, broadcast, merge,
    partition,
};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use futures::{FutureExt, StreamExt, join, poll, stream};

fn starting_after(count: usize, capacity: usize) -> BroadcastOptions<u64> {
    BroadcastHub::<u64>::options()
        .capacity(capacity)
        .start_after(count)
}

fn numbers(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

/// Receives all elements until completion.
async fn all_of(mut rx: BroadcastReceiver<u64>) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(value) = rx.next().await {
        seen.push(value);
    }
    assert!(rx.error().is_none());
    seen
}

#[test]
fn stream_longer_than_capacity_reaches_all_consumers() {
    for (count, capacity) in [(10, 8), (20, 1), (16, 2), (100, 256)] {
        block_on(async {
            let (tx, hub) = broadcast::<u64>(capacity);
            let (a, b) = (hub.subscribe(), hub.subscribe());
            let (sent, a, b) = join!(tx.attach(stream::iter(0..count)), all_of(a), all_of(b));
            sent.unwrap();
            assert_eq!((&a, &b), (&numbers(0..count), &numbers(0..count)));
        });
    }
}

#[test]
fn start_after_loses_no_element() {
    for count in [1, 2, 5] {
        block_on(async {
            let (tx, hub) = starting_after(count, 4).build();
            let mut feeding = Box::pin(tx.attach(stream::iter(0..20)));
            let mut consumers = Vec::new();
            for _ in 0..count {
                assert!(poll!(&mut feeding).is_pending());
                assert_eq!(
                    consumers.iter().map(BroadcastReceiver::lag).sum::<usize>(),
                    0
                );
                consumers.push(hub.subscribe());
            }
            let seen = futures::future::join_all(consumers.into_iter().map(all_of));
            let (sent, seen) = join!(feeding, seen);
            sent.unwrap();
            assert_eq!(seen, vec![numbers(0..20); count]);
        });
    }
}

/// A subject does not wait for consumers, so the hub blocks the emitting thread.
#[test]
fn attach_source_blocks_emitting_thread_when_full() {
    let (mut subject, source) = fanline::subject::<u64>();
    let (tx, hub) = starting_after(2, 2).build();
    let guard = tx.attach_source(source);
    let emitting = std::thread::spawn(move || {
        for value in 0..50 {
            subject.next(value);
        }
        subject.complete();
    });
    // A consumer that leaves before the start does not count.
    drop(hub.subscribe());
    let consumers = [hub.subscribe(), hub.subscribe()]
        .map(|rx| std::thread::spawn(move || block_on(all_of(rx))));
    for consumer in consumers {
        assert_eq!(consumer.join().unwrap(), numbers(0..50));
    }
    emitting.join().unwrap();
    drop(guard);
}

#[test]
fn consumer_leaving_early_does_not_block_others() {
    block_on(async {
        let (tx, hub) = broadcast::<u64>(2);
        let (short, long) = (hub.subscribe(), hub.subscribe());
        let (sent, short, long) = join!(
            tx.attach(stream::iter(0..20)),
            short.take(3).collect::<Vec<_>>(),
            all_of(long)
        );
        sent.unwrap();
        assert_eq!((short, long), (numbers(0..3), numbers(0..20)));
    });
}

#[test]
fn consumer_leaving_at_once_does_not_block_others() {
    block_on(async {
        let (tx, hub) = broadcast::<u64>(1);
        let stays = hub.subscribe();
        let leaves = hub.subscribe();
        let (sent, stays, ()) = join!(tx.attach(stream::iter(0..20)), all_of(stays), async {
            drop(leaves);
        });
        sent.unwrap();
        assert_eq!(stays, numbers(0..20));
    });
}

#[test]
fn consecutive_consumers_share_stream_without_gap() {
    block_on(async {
        let (tx, hub) = broadcast::<u64>(8);
        let consuming = async move {
            let first: Vec<_> = hub.subscribe().take(10).collect().await;
            let second: Vec<_> = hub.subscribe().take(10).collect().await;
            // With the last handle dropped, the sender sees that the hub is closed.
            drop(hub);
            (first, second)
        };
        let (sent, (first, second)) = join!(tx.attach(stream::iter(0..)), consuming);
        assert!(sent.is_err());
        assert_eq!((first, second), (numbers(0..10), numbers(10..20)));
    });
}

/// Receives all elements, and yields `turns` times before each.
async fn receive_slowly(mut rx: BroadcastReceiver<u64>, turns: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        match rx.next().await {
            Some(value) => seen.push(value),
            None => return seen,
        }
    }
}

#[test]
fn slowest_consumer_sets_the_rate() {
    for capacity in [1, 2, 8] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (mut tx, hub) = broadcast::<u64>(capacity);
            let slow = hub.subscribe();
            let id = slow.id();
            let tasks = [
                tokio::spawn(receive_slowly(slow, 5)),
                tokio::spawn(receive_slowly(hub.subscribe(), 0)),
                tokio::spawn(receive_slowly(hub.subscribe(), 1)),
            ];
            for value in 0..200 {
                tx.send(value).await.unwrap();
                let lags = tx.lags();
                let of_slow = lags.iter().find(|(one, _)| *one == id).unwrap().1;
                assert!(of_slow <= capacity);
                assert!(lags.iter().all(|(_, lag)| *lag <= of_slow), "{lags:?}");
            }
            drop(tx);
            for task in tasks {
                assert_eq!(task.await.unwrap(), numbers(0..200));
            }
        });
    }
}

#[test]
fn consumers_wait_for_slow_producer() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (mut tx, hub) = broadcast::<u64>(4);
        let tasks = [(); 3].map(|()| tokio::spawn(all_of(hub.subscribe())));
        for value in 0..200 {
            for _ in 0..value % 7 {
                tokio::task::yield_now().await;
            }
            tx.send(value).await.unwrap();
        }
        drop(tx);
        for task in tasks {
            assert_eq!(task.await.unwrap(), numbers(0..200));
        }
    });
}

#[test]
fn discard_stops_at_first_consumer_and_resumes_after_last() {
    let (mut tx, hub) = BroadcastHub::<u64>::options()
        .capacity(2)
        .on_empty(OnEmpty::Drop)
        .build();
    for value in 0..100 {
        tx.blocking_send(value).unwrap();
    }
    let mut rx = hub.subscribe();
    tx.try_send(100).unwrap();
    tx.try_send(101).unwrap();
    assert!(tx.try_send(102).is_err());
    assert_eq!(rx.blocking_recv(), Some(100));
    drop(rx);
    for value in 102..200 {
        tx.blocking_send(value).unwrap();
    }
}

/// Elements are discarded while the hub has no consumers. Consumers that join after the hub has completed do
/// not get them either.
#[test]
fn discarded_elements_stay_discarded_after_the_end() {
    let (mut tx, hub) = BroadcastHub::<u64>::options()
        .capacity(4)
        .on_empty(OnEmpty::Drop)
        .build();
    for value in 0..10 {
        tx.try_send(value).unwrap();
    }
    drop(tx);
    assert_eq!(block_on(all_of(hub.subscribe())), []);
}

/// A producer can complete a full hub, because the completion occupies no room.
#[test]
fn end_follows_elements_and_needs_no_room() {
    let (mut tx, hub) = broadcast::<u64>(2);
    let rx = hub.subscribe();
    tx.try_send(0).unwrap();
    tx.try_send(1).unwrap();
    tx.complete();
    assert_eq!(block_on(all_of(rx)), [0, 1]);
}

/// Unlike in Pekko, where the elements are lost, the elements of a stream that completes without consumers
/// remain.
#[test]
fn unreceived_elements_remain_after_completion() {
    let (mut tx, hub) = broadcast::<u64>(4);
    for value in 0..3 {
        tx.try_send(value).unwrap();
    }
    drop(tx);
    assert_eq!(block_on(all_of(hub.subscribe())), [0, 1, 2]);
    // The previous consumer has received all elements, so the next one gets nothing.
    assert_eq!(block_on(all_of(hub.subscribe())), []);
}

fn is_failed(hub: &BroadcastHub<u64>, text: &str) {
    let mut rx = hub.subscribe();
    assert_eq!(rx.next().now_or_never(), Some(None));
    assert_eq!(rx.error().unwrap().failure().unwrap().to_string(), text);
}

#[test]
fn failure_reaches_waiting_reading_and_late_consumers() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(8);
        let mut reads = hub.subscribe();
        tx.send(0).await.unwrap();
        tx.send(1).await.unwrap();
        let mut waits = hub.subscribe_at(Start::Latest);
        let mut next = Box::pin(waits.next());
        assert!(poll!(&mut next).is_pending());
        assert_eq!(reads.next().await, Some(0));
        tx.fail("broken");
        assert_eq!(next.await, None);
        assert_eq!(reads.next().await, None);
        assert_eq!(reads.next().await, None, "the end is permanent");
        is_failed(&hub, "broken");
        is_failed(&hub, "broken");
        drop(tx);
        is_failed(&hub, "broken");
    });
}

#[test]
fn failure_overtakes_elements_in_every_receive_method() {
    let failed = || {
        let (mut tx, hub) = broadcast::<u64>(8);
        let mut rx = hub.subscribe();
        for value in 0..4 {
            tx.try_send(value).unwrap();
        }
        assert_eq!(rx.try_recv().unwrap(), 0);
        tx.fail("broken");
        rx
    };
    let failure = |rx: &BroadcastReceiver<u64>| {
        assert!(matches!(rx.error(), Some(HubError::Failed(_))));
    };
    let mut rx = failed();
    assert_eq!(rx.next_ref().now_or_never(), Some(None));
    failure(&rx);
    let mut rx = failed();
    assert_eq!(rx.next_slice().now_or_never(), Some(None));
    failure(&rx);
    let mut rx = failed();
    rx.for_each_ref(|value| panic!("{value}"))
        .now_or_never()
        .unwrap();
    failure(&rx);
    let mut rx = failed();
    assert_eq!(rx.blocking_recv(), None);
    failure(&rx);
    let mut rx = failed();
    rx.recv().now_or_never().unwrap().unwrap_err();
    failure(&rx);
}

#[test]
fn producer_runtime_shutdown_completes_hub() {
    let (mut tx, hub) = broadcast::<u64>(4);
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

#[test]
fn consumer_runtime_shutdown_closes_hub() {
    let (mut tx, hub) = broadcast::<u64>(1);
    let rx = hub.subscribe();
    drop(hub);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    runtime.spawn(async move {
        let _rx = rx;
        std::future::pending::<()>().await;
    });
    tx.blocking_send(1).unwrap();
    let producer = std::thread::spawn(move || tx.blocking_send(2));
    drop(runtime);
    assert_eq!(producer.join().unwrap().unwrap_err().0, 2);
}

/// One consumer stays subscribed while others join and immediately leave. The first one loses no element.
#[test]
fn joining_and_leaving_costs_no_consumer_an_element() {
    for _ in 0..50 {
        let (mut tx, hub) = broadcast::<u64>(2);
        let stays = hub.subscribe();
        let done = Arc::new(AtomicBool::new(false));
        let restless = std::thread::spawn({
            let (hub, done) = (hub.clone(), done.clone());
            move || {
                while !done.load(Ordering::Relaxed) {
                    drop(hub.subscribe());
                    drop(hub.subscribe_at(Start::Latest));
                }
            }
        });
        let stays = std::thread::spawn(move || block_on(all_of(stays)));
        for value in 0..16 {
            tx.blocking_send(value).unwrap();
        }
        drop(tx);
        assert_eq!(stays.join().unwrap(), numbers(0..16));
        done.store(true, Ordering::Relaxed);
        restless.join().unwrap();
    }
}

/// Hundreds of consumers join while elements are sent. Each receives all later elements without gaps, until
/// the hub completes.
#[test]
fn many_late_consumers_see_no_gap() {
    const COUNT: u64 = 3_000;
    for capacity in [1, 2, 16] {
        let (mut tx, hub) = broadcast::<u64>(capacity);
        let steady = hub.subscribe();
        let steady = std::thread::spawn(move || block_on(all_of(steady)));
        let joining = [Start::Oldest, Start::Latest].map(|start| {
            let hub = hub.clone();
            std::thread::spawn(move || {
                let mut joined = 0_u64;
                while !hub.is_closed() {
                    let mut rx = hub.subscribe_at(start);
                    let mut last = None;
                    for _ in 0..joined % 4 {
                        let value = rx.blocking_recv();
                        if let (Some(last), Some(value)) = (last, value) {
                            assert_eq!(value, last + 1);
                        }
                        last = value;
                        if value.is_none() {
                            break;
                        }
                    }
                    joined += 1;
                }
                joined
            })
        });
        for value in 0..COUNT {
            tx.blocking_send(value).unwrap();
        }
        drop(tx);
        assert_eq!(steady.join().unwrap(), numbers(0..COUNT));
        for thread in joining {
            assert!(thread.join().unwrap() > 0);
        }
    }
}

#[test]
fn two_hundred_consumers_get_two_thousand_elements_in_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (tx, hub) = broadcast::<u64>(64);
        let tasks: Vec<_> = (0..200)
            .map(|_| tokio::spawn(all_of(hub.subscribe())))
            .collect();
        tx.attach(stream::iter(0..2_000)).await.unwrap();
        for task in tasks {
            assert_eq!(task.await.unwrap(), numbers(0..2_000));
        }
    });
}

/// The buffer is so small that nearly every element makes a consumer or the producer sleep.
#[test]
fn small_buffers_on_two_threads() {
    for (capacity, consumers) in [(1, 1), (1, 8), (2, 2), (2, 8), (16, 3), (16, 32)] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (mut tx, hub) = broadcast::<u64>(capacity);
            let tasks: Vec<_> = (0..consumers)
                .map(|_| tokio::spawn(all_of(hub.subscribe())))
                .collect();
            for value in 0..3_000 {
                match value % 4 {
                    0 => tx.feed(value).await.unwrap(),
                    1 => tx.send(value).await.unwrap(),
                    2 => {
                        tx.feed(value).await.unwrap();
                        tx.flush();
                    }
                    _ => {
                        // If the hub is full, wait for room.
                        if let Err(error) = tx.try_send(value) {
                            tx.send(error.into_inner()).await.unwrap();
                        }
                    }
                }
            }
            drop(tx);
            for task in tasks {
                assert_eq!(task.await.unwrap(), numbers(0..3_000));
            }
        });
    }
}

/// If all ends are on one thread, hubs accept elements that are not `Send`.
#[test]
fn elements_need_not_be_send_on_one_thread() {
    block_on(async {
        let element = Rc::new(Cell::new(7));
        let (mut tx, hub) = broadcast::<Rc<Cell<u64>>>(2);
        let mut rx = hub.subscribe();
        tx.send(element.clone()).await.unwrap();
        assert_eq!(rx.next().await.unwrap().get(), 7);
        drop((tx, rx, hub));

        let (hub, mut rx) = merge::<Rc<Cell<u64>>>(2);
        let mut tx = hub.producer();
        tx.send(element.clone()).await.unwrap();
        assert_eq!(rx.next().await.unwrap().get(), 7);
        drop((tx, rx, hub));

        let (mut tx, hub) = partition::<Rc<Cell<u64>>>(2, |_, _| 0);
        let mut rx = hub.subscribe();
        tx.send(element.clone()).await.unwrap();
        assert_eq!(rx.next().await.unwrap().get(), 7);
        drop((tx, rx, hub));
        assert_eq!(Rc::strong_count(&element), 1);
    });
}

/// The hub works under an executor that is not tokio's.
#[test]
fn works_under_any_executor() {
    let mut local = LocalPool::new();
    let (tx, hub) = broadcast::<u64>(3);
    let spawner = local.spawner();
    let consumers = [hub.subscribe(), hub.subscribe()]
        .map(|rx| spawner.spawn_local_with_handle(all_of(rx)).unwrap());
    let sending = tx.attach(stream::iter(0..100));
    spawner.spawn_local(sending.map(Result::unwrap)).unwrap();
    for consumer in consumers {
        assert_eq!(local.run_until(consumer), numbers(0..100));
    }
}
