//! The broadcast hub: delivery, a producer that waits, and consumers that join and leave.

use std::sync::Arc;
use std::time::Duration;

use fanline::hub::{
    BroadcastHub, BroadcastOptions, BroadcastReceiver, BroadcastSender, HubError, OnEmpty, OnSlow,
    RecvError, Start, TryRecvError, TrySendError, broadcast,
};
use fanline::scheduler::VirtualTime;
use futures::executor::block_on;
use futures::{FutureExt, StreamExt, poll};

fn options(capacity: usize) -> BroadcastOptions<u64> {
    BroadcastHub::<u64>::options().capacity(capacity)
}

fn drain(rx: &mut BroadcastReceiver<u64>) -> Vec<u64> {
    std::iter::from_fn(|| rx.try_recv().ok()).collect()
}

fn fill(tx: &mut BroadcastSender<u64>, values: std::ops::Range<u64>) {
    for value in values {
        tx.try_send(value).expect("room");
    }
}

#[test]
fn documented_example_works() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(256);
        let mut rx = hub.subscribe();
        tx.send(1).await.unwrap();
        tx.feed(2).await.unwrap();
        tx.flush();
        tx.blocking_send(3).unwrap();
        tx.feed(4).await.unwrap();
        tx.feed(5).await.unwrap();
        tx.feed(6).await.unwrap();
        tx.complete();
        assert_eq!(rx.next().await, Some(1));
        assert_eq!(rx.next_ref().await, Some(&2));
        assert_eq!(rx.blocking_recv(), Some(3));
        assert_eq!(rx.next_slice().await, Some(&[4, 5, 6][..]));
        let mut sum = 0;
        hub.subscribe().for_each_ref(|v| sum += *v).await;
        assert_eq!(rx.next().await, None);
        assert!(rx.error().is_none());
        assert!(rx.has_ended());
        assert_eq!(
            sum, 15,
            "the slice was still lent, so the late consumer got it too"
        );
    });
}

#[test]
fn capacity_is_exact() {
    for capacity in [1, 2, 3, 5, 8, 100] {
        let (mut tx, hub) = broadcast::<u64>(capacity);
        let mut rx = hub.subscribe();
        for value in 0..capacity as u64 {
            tx.try_send(value).unwrap();
        }
        assert_eq!(tx.try_send(7), Err(TrySendError::Full(7)), "{capacity}");
        assert_eq!(rx.next().now_or_never(), Some(Some(0)));
        tx.try_send(7).unwrap();
        assert_eq!(tx.try_send(8), Err(TrySendError::Full(8)), "{capacity}");
        assert_eq!(rx.lag(), capacity);
        assert_eq!(hub.lags(), [(rx.id(), capacity)]);
    }
}

#[test]
fn pending_send_completes_when_slowest_consumer_advances() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(2);
        let mut fast = hub.subscribe();
        let mut slow = hub.subscribe();
        fill(&mut tx, 0..2);
        let mut send = Box::pin(tx.send(2));
        assert!(poll!(&mut send).is_pending());
        assert_eq!(fast.next().await, Some(0));
        assert!(poll!(&mut send).is_pending());
        assert_eq!(slow.next().await, Some(0));
        assert!(poll!(&mut send).is_ready());
        drop(send);
        assert_eq!(drain(&mut fast), [1, 2]);
        assert_eq!(drain(&mut slow), [1, 2]);
    });
}

#[test]
fn dropped_send_sends_nothing() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(1);
        let mut rx = hub.subscribe();
        fill(&mut tx, 0..1);
        let mut send = Box::pin(tx.send(1));
        assert!(poll!(&mut send).is_pending());
        drop(send);
        assert_eq!(rx.next().await, Some(0));
        tx.send(2).await.unwrap();
        assert_eq!(drain(&mut rx), [2]);
    });
}

#[test]
fn parked_receiver_can_be_dropped() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(1);
        let mut stays = hub.subscribe();
        for _ in 0..1000 {
            let mut goes = hub.subscribe();
            assert!(poll!(Box::pin(goes.next())).is_pending());
        }
        let mut next = Box::pin(stays.next());
        assert!(poll!(&mut next).is_pending());
        tx.send(5).await.unwrap();
        assert_eq!(next.await, Some(5));
        assert_eq!(hub.receiver_count(), 1);
    });
}

#[test]
fn next_consumer_resumes_where_last_one_left() {
    let (mut tx, hub) = broadcast::<u64>(32);
    fill(&mut tx, 0..20);
    let mut first = hub.subscribe();
    let taken: Vec<_> = std::iter::from_fn(|| first.try_recv().ok())
        .take(10)
        .collect();
    assert_eq!(taken, Vec::from_iter(0..10));
    drop(first);
    assert_eq!(drain(&mut hub.subscribe()), Vec::from_iter(10..20));
}

#[test]
fn late_consumer_starts_at_oldest_or_latest() {
    let (mut tx, hub) = broadcast::<u64>(32);
    let mut slow = hub.subscribe();
    let mut fast = hub.subscribe();
    fill(&mut tx, 0..10);
    drain(&mut fast);
    for expected in 0..3 {
        assert_eq!(slow.try_recv().unwrap(), expected);
    }
    let mut oldest = hub.subscribe_at(Start::Oldest);
    let mut latest = hub.subscribe_at(Start::Latest);
    let mut twin = slow.clone();
    fill(&mut tx, 10..12);
    assert_eq!(drain(&mut oldest), Vec::from_iter(3..12));
    assert_eq!(drain(&mut twin), Vec::from_iter(3..12));
    assert_eq!(drain(&mut latest), [10, 11]);
}

#[test]
fn start_after_holds_send_until_enough_consumers() {
    block_on(async {
        let (mut tx, hub) = options(4).start_after(2).build();
        let mut send = Box::pin(tx.send(1));
        assert!(poll!(&mut send).is_pending());
        let early = hub.subscribe();
        drop(early); // a consumer that has left does not count
        let mut a = hub.subscribe();
        assert!(poll!(&mut send).is_pending());
        let mut b = hub.subscribe();
        assert!(poll!(&mut send).is_ready());
        drop(send);
        assert_eq!((drain(&mut a), drain(&mut b)), (vec![1], vec![1]));
        drop((a, b));
        tx.send(2).await.unwrap(); // a hub stays started
    });
}

/// A clone is a separate consumer: it counts, and starts with the next element of the original.
#[test]
fn clone_is_a_separate_consumer() {
    block_on(async {
        let (mut tx, hub) = options(4).start_after(2).build();
        let mut rx = hub.subscribe();
        let mut send = Box::pin(tx.send(0));
        assert!(poll!(&mut send).is_pending());
        let mut twin = rx.clone();
        assert!(poll!(&mut send).is_ready());
        drop(send);
        fill(&mut tx, 1..3);
        assert_eq!(rx.next_ref().await, Some(&0));
        let mut after_lent = rx.clone();
        assert_eq!(drain(&mut after_lent), [1, 2]);
        assert_eq!(drain(&mut rx), [1, 2]);
        assert_eq!(drain(&mut twin), [0, 1, 2]);
    });
}

#[test]
fn release_does_not_start_the_hub() {
    let (mut tx, hub) = options(4).start_after(1).build();
    tx.release();
    assert_eq!(tx.try_send(0), Err(TrySendError::Full(0)));
    let mut rx = hub.subscribe();
    tx.try_send(0).unwrap();
    assert_eq!(drain(&mut rx), [0]);
}

#[test]
fn no_consumer_hold_stores_elements() {
    let (mut tx, hub) = broadcast::<u64>(4);
    fill(&mut tx, 0..4);
    assert!(matches!(tx.try_send(4), Err(TrySendError::Full(4))));
    let mut rx = hub.subscribe();
    assert_eq!(drain(&mut rx), [0, 1, 2, 3]);
    fill(&mut tx, 4..6);
    drop(rx);
    tx.complete();
    assert_eq!(drain(&mut hub.subscribe()), [4, 5]);
}

#[test]
fn no_consumer_discard_drops_elements() {
    let (mut tx, hub) = options(4).on_empty(OnEmpty::Drop).build();
    fill(&mut tx, 0..100);
    let mut rx = hub.subscribe();
    assert_eq!(drain(&mut rx), []);
    fill(&mut tx, 100..104);
    assert!(matches!(tx.try_send(4), Err(TrySendError::Full(4))));
    assert_eq!(drain(&mut rx), [100, 101, 102, 103]);
    drop(rx);
    fill(&mut tx, 104..200);
}

#[test]
fn no_consumer_close_closes_hub_when_last_leaves() {
    block_on(async {
        let (mut tx, hub) = options(1).on_empty(OnEmpty::Complete).build();
        tx.send(0).await.unwrap();
        let rx = hub.subscribe();
        let mut send = Box::pin(tx.send(1));
        assert!(poll!(&mut send).is_pending());
        drop(rx);
        assert_eq!(send.await.unwrap_err().0, 1);
        assert!(hub.is_closed());
    });
}

#[test]
fn no_consumer_close_holds_until_first_consumer() {
    for on_slow in [OnSlow::Wait, OnSlow::DropOldest] {
        let (mut tx, hub) = options(2)
            .on_empty(OnEmpty::Complete)
            .on_slow(on_slow)
            .build();
        fill(&mut tx, 0..2);
        assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
        let mut rx = hub.subscribe();
        assert_eq!(drain(&mut rx), [0, 1]);
        assert!(!hub.is_closed());
        drop(rx);
        assert_eq!(tx.try_send(2), Err(TrySendError::Closed(2)));
    }
}

#[test]
fn hub_without_handles_and_consumers_is_closed() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(1);
        let rx = hub.subscribe();
        drop(hub);
        tx.send(0).await.unwrap();
        let mut send = Box::pin(tx.send(1));
        assert!(poll!(&mut send).is_pending());
        drop(rx);
        assert_eq!(send.await.unwrap_err().0, 1);
    });
}

#[test]
fn completion_drains_and_reaches_late_consumers() {
    let (mut tx, hub) = broadcast::<u64>(4);
    let mut rx = hub.subscribe();
    let mut late = hub.subscribe();
    fill(&mut tx, 0..4);
    tx.complete();
    assert!(matches!(tx.try_send(4), Err(TrySendError::Closed(4))));
    assert_eq!(drain(&mut rx), [0, 1, 2, 3]);
    assert!(matches!(rx.try_recv(), Err(TryRecvError::Completed)));
    assert_eq!(drain(&mut late), [0, 1, 2, 3]);
    assert_eq!(hub.subscribe().next().now_or_never(), Some(None));
    assert!(rx.error().is_none());
}

#[test]
fn failure_overtakes_elements_and_reaches_late_consumers() {
    let (mut tx, hub) = broadcast::<u64>(4);
    let mut rx = hub.subscribe();
    fill(&mut tx, 0..4);
    assert_eq!(rx.next().now_or_never(), Some(Some(0)));
    tx.fail("out of paper");
    tx.complete(); // too late
    for rx in [&mut rx, &mut hub.subscribe()] {
        assert_eq!(rx.next().now_or_never(), Some(None));
        let error = rx.error().expect("failed");
        assert_eq!(error.failure().unwrap().to_string(), "out of paper");
        assert_eq!(error.to_string(), "the producer failed: out of paper");
    }
}

#[test]
fn fail_with_custom_error_type() {
    let (mut tx, hub) = BroadcastHub::<u64, i32>::options().capacity(4).build();
    let mut rx = hub.subscribe();
    tx.fail(7);
    let received = block_on(rx.recv());
    assert!(matches!(received, Err(RecvError::Failed(HubError::Failed(e))) if *e == 7));
}

#[test]
fn dropped_producer_completes_and_panicking_one_abandons() {
    let (tx, hub) = broadcast::<u64>(4);
    drop(tx);
    let mut rx = hub.subscribe();
    assert_eq!(rx.blocking_recv(), None);
    assert!(rx.error().is_none());

    let (tx, hub) = broadcast::<u64>(4);
    let mut rx = hub.subscribe();
    let thread = std::thread::spawn(move || {
        let _tx = tx;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert_eq!(rx.blocking_recv(), None);
    assert!(matches!(rx.error(), Some(HubError::Abandoned)));
    thread.join().unwrap_err();
}

#[test]
fn kill_switch_completes_or_fails_hub() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(1);
        let (done, dead) = (hub.kill_switch(), hub.kill_switch());
        let mut rx = hub.subscribe();
        tx.send(0).await.unwrap();
        let mut send = Box::pin(tx.send(1));
        assert!(poll!(&mut send).is_pending());
        assert!(done.complete());
        assert!(!dead.fail("late"));
        assert!(send.await.is_err());
        assert_eq!(rx.next().await, Some(0));
        assert_eq!(rx.next().await, None);

        let (tx, hub) = broadcast::<u64>(1);
        let mut rx = hub.subscribe();
        let mut next = Box::pin(rx.next());
        assert!(poll!(&mut next).is_pending());
        assert!(hub.kill_switch().fail("stop"));
        assert_eq!(next.await, None);
        assert!(rx.error().unwrap().failure().is_some());
        drop((tx, rx, hub));
        assert!(dead.is_closed());
    });
}

#[test]
fn slow_consumer_is_disconnected_after_timeout() {
    block_on(async {
        let time = VirtualTime::new();
        let (mut tx, hub) = options(2)
            .on_slow(OnSlow::Disconnect {
                after: Duration::from_secs(3),
            })
            .scheduler(time.clone())
            .build();
        let mut slow = hub.subscribe();
        let mut fast = hub.subscribe();
        fill(&mut tx, 0..2);
        drain(&mut fast);
        let mut send = Box::pin(tx.send(2));
        assert!(poll!(&mut send).is_pending());
        time.advance_by(Duration::from_secs(2));
        assert!(poll!(&mut send).is_pending());
        time.advance_by(Duration::from_secs(1));
        assert!(poll!(&mut send).is_ready());
        drop(send);
        assert_eq!(drain(&mut fast), [2]);
        assert_eq!(slow.next().await, None);
        assert!(matches!(slow.error(), Some(HubError::TooSlow)));
        let mut again = slow.clone();
        fill(&mut tx, 3..4);
        assert_eq!(drain(&mut again).last(), Some(&3));
    });
}

fn disconnecting(capacity: usize, time: &VirtualTime) -> BroadcastOptions<u64> {
    options(capacity)
        .on_slow(OnSlow::Disconnect {
            after: Duration::from_secs(3),
        })
        .scheduler(time.clone())
}

/// While the hub waits for more consumers, those that have subscribed do not count as slow.
#[test]
fn consumer_is_not_slow_while_start_after_waits() {
    block_on(async {
        let time = VirtualTime::new();
        let (mut tx, hub) = disconnecting(2, &time).start_after(2).build();
        let mut early = hub.subscribe();
        let mut send = Box::pin(tx.send(0));
        for _ in 0..3 {
            assert!(poll!(&mut send).is_pending());
            time.advance_by(Duration::from_secs(2));
        }
        let mut second = hub.subscribe();
        assert!(poll!(&mut send).is_ready());
        drop(send);
        assert_eq!((drain(&mut early), drain(&mut second)), (vec![0], vec![0]));
        assert!(!early.has_ended());
    });
}

/// All earlier consumers were disconnected for being slow. A consumer that joins later is disconnected only
/// after the full timeout of its own.
#[test]
fn late_consumer_gets_full_timeout() {
    block_on(async {
        let time = VirtualTime::new();
        let (mut tx, hub) = disconnecting(1, &time).build();
        let slow = hub.subscribe();
        fill(&mut tx, 0..1);
        let mut send = Box::pin(tx.send(1));
        for _ in 0..5 {
            assert!(poll!(&mut send).is_pending());
            time.advance_by(Duration::from_secs(3));
        }
        let mut rx = hub.subscribe();
        assert!(poll!(&mut send).is_pending());
        time.advance_by(Duration::from_secs(2));
        assert!(poll!(&mut send).is_pending());
        assert_eq!(rx.next().await, Some(0));
        assert!(poll!(&mut send).is_ready());
        drop((send, slow));
    });
}

/// A receiver that was disconnected but not dropped does not count as a consumer.
#[test]
fn disconnected_receiver_does_not_count_as_consumer() {
    block_on(async {
        for on_empty in [OnEmpty::Store, OnEmpty::Drop, OnEmpty::Complete] {
            let time = VirtualTime::new();
            let (mut tx, hub) = disconnecting(2, &time).on_empty(on_empty).build();
            let mut slow = hub.subscribe();
            let mut quick = hub.subscribe();
            fill(&mut tx, 0..2);
            assert_eq!(drain(&mut quick), [0, 1]);
            let mut send = Box::pin(tx.send(2));
            assert!(poll!(&mut send).is_pending());
            time.advance_by(Duration::from_secs(3));
            assert!(poll!(&mut send).is_ready());
            drop(send);
            assert_eq!(quick.next().await, Some(2));
            tx.try_send(3).unwrap();
            drop(quick);
            assert_eq!(
                hub.is_closed(),
                on_empty == OnEmpty::Complete,
                "the last connected consumer has left"
            );
            let expected: &[u64] = match on_empty {
                OnEmpty::Drop => &[],
                _ => &[3],
            };
            assert_eq!(drain(&mut hub.subscribe()), expected);
            assert_eq!(slow.next().await, None);
            assert!(matches!(slow.error(), Some(HubError::TooSlow)));
        }
    });
}

/// The only consumer is disconnected, so a hub with `Close` ends.
#[test]
fn no_consumer_close_closes_hub_when_last_is_disconnected() {
    block_on(async {
        let time = VirtualTime::new();
        let (mut tx, hub) = disconnecting(1, &time).on_empty(OnEmpty::Complete).build();
        let mut slow = hub.subscribe();
        fill(&mut tx, 0..1);
        let mut send = Box::pin(tx.send(1));
        assert!(poll!(&mut send).is_pending());
        time.advance_by(Duration::from_secs(3));
        assert_eq!(send.await.unwrap_err().0, 1);
        assert_eq!(slow.next().await, None);
        assert!(matches!(slow.error(), Some(HubError::TooSlow)));
    });
}

/// The producer's first wait is dropped, and then the hub has room until the next wait. The duration of the
/// first wait does not count toward the timeout of the next.
#[test]
fn room_in_between_resets_the_timeout() {
    block_on(async {
        let time = VirtualTime::new();
        let (mut tx, hub) = disconnecting(1, &time).build();
        let mut rx = hub.subscribe();
        fill(&mut tx, 0..1);
        assert!(poll!(Box::pin(tx.send(1))).is_pending());
        assert_eq!(drain(&mut rx), [0]);
        tx.release();
        fill(&mut tx, 2..3);
        time.advance_by(Duration::from_secs(4));
        assert!(matches!(tx.try_send(3), Err(TrySendError::Full(3))));
        assert_eq!(drain(&mut rx), [2]);
    });
}

#[test]
fn lagging_consumer_gets_number_of_missed_elements() {
    let (mut tx, hub) = options(4).on_slow(OnSlow::DropOldest).build();
    let mut slow = hub.subscribe();
    let mut fast = hub.subscribe();
    for value in 0..10 {
        tx.try_send(value).unwrap();
        assert_eq!(fast.try_recv().unwrap(), value);
    }
    assert!(matches!(slow.try_recv(), Err(TryRecvError::Lagged(6))));
    assert_eq!(drain(&mut slow), [6, 7, 8, 9]);
    fill(&mut tx, 10..20);
    assert_eq!(
        slow.next().now_or_never(),
        Some(Some(16)),
        "`next` hides the gap and counts it"
    );
    assert_eq!(slow.lost(), 12);
    assert!(matches!(fast.try_recv(), Err(TryRecvError::Lagged(6))));
    assert_eq!(drain(&mut fast), [16, 17, 18, 19]);
}

/// A consumer that got `Lagged` and then does not poll does not make the producer wait.
#[test]
fn idle_consumer_after_lagged_does_not_block_producer() {
    let (mut tx, hub) = options(2).on_slow(OnSlow::DropOldest).build();
    let mut slow = hub.subscribe();
    fill(&mut tx, 0..5);
    assert!(matches!(slow.try_recv(), Err(TryRecvError::Lagged(3))));
    fill(&mut tx, 5..20);
    let received = block_on(slow.recv());
    assert!(matches!(received, Err(RecvError::Lagged(15))));
    fill(&mut tx, 20..23);
    assert!(matches!(slow.try_recv(), Err(TryRecvError::Lagged(3))));
    assert_eq!(drain(&mut slow), [21, 22]);
}

#[test]
fn lent_element_is_not_overwritten() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(1);
        let mut rx = hub.subscribe();
        tx.send(1).await.unwrap();
        let lent = rx.next_ref().await.unwrap();
        assert!(matches!(tx.try_send(2), Err(TrySendError::Full(2))));
        assert_eq!(*lent, 1);
        rx.release();
        tx.try_send(2).unwrap();
        assert_eq!(rx.next_ref().await, Some(&2));
    });
}

#[test]
fn slices_end_at_the_end_of_the_ring() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(4);
        let mut rx = hub.subscribe();
        fill(&mut tx, 0..3);
        assert_eq!(rx.next_slice().await, Some(&[0, 1, 2][..]));
        rx.release();
        fill(&mut tx, 3..6);
        assert_eq!(rx.next_slice().await, Some(&[3][..]));
        assert_eq!(rx.next_slice().await, Some(&[4, 5][..]));
    });
}

#[test]
fn release_drops_received_elements_at_once() {
    let element = Arc::new(());
    let (mut tx, hub) = broadcast::<Arc<()>>(4);
    let mut rx = hub.subscribe();
    for _ in 0..3 {
        tx.try_send(element.clone()).unwrap();
    }
    for _ in 0..2 {
        rx.try_recv().unwrap();
    }
    assert_eq!(Arc::strong_count(&element), 4);
    tx.release();
    assert_eq!(Arc::strong_count(&element), 2);
    for _ in 0..3 {
        tx.try_send(element.clone()).unwrap();
    }
    tx.release();
    assert_eq!(Arc::strong_count(&element), 5);
    drop((tx, rx, hub));
    assert_eq!(Arc::strong_count(&element), 1);
}

#[test]
fn invalid_options_are_named_in_error() {
    let check = |options: BroadcastOptions<u64>, message: &str| {
        let error = options.try_build().expect_err(message);
        assert_eq!(error.to_string(), message);
    };
    check(options(0), "`capacity` must be at least 1");
    check(options(usize::MAX), "`capacity` must be at most 268435456");
    check(
        options(1).start_after(0),
        "`start_after` must be at least 1",
    );
    check(
        options(1).on_slow(OnSlow::Disconnect {
            after: Duration::ZERO,
        }),
        "`on_slow: after` must be greater than zero",
    );
}

/// 128 TiB are within the range of the option, but cannot be allocated.
#[test]
fn too_large_capacity_returns_no_memory_error() {
    let most = BroadcastHub::<[u8; 1 << 19]>::options().capacity(fanline::hub::CAPACITY_MAX);
    let error = most.try_build().expect_err("too much");
    assert_eq!(error.option(), "capacity");
    assert_eq!(
        error.to_string(),
        "`capacity` needs more memory than is available"
    );
}

#[test]
#[should_panic(expected = "`capacity` must be at least 1")]
fn capacity_zero_panics() {
    let _ = broadcast::<u64>(0);
}

#[test]
fn attach_stream_to_hub_and_hub_to_observer() {
    block_on(async {
        let (tx, hub) = broadcast::<u64>(3);
        let rx = hub.subscribe();
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (values, end) = (seen.clone(), seen.clone());
        let observer = fanline::observer(move |value: &u64| values.lock().unwrap().push(*value))
            .on_complete(move || end.lock().unwrap().push(100));
        let (sent, ()) =
            futures::join!(tx.attach(futures::stream::iter(0..10)), rx.attach(observer));
        sent.unwrap();
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100]);
    });
}

/// Runs receivers and the producer on their own threads, and checks the order of the elements.
fn check_threads(capacity: usize, consumers: usize, count: u64) {
    let (mut tx, hub) = broadcast::<u64>(capacity);
    let threads: Vec<_> = (0..consumers)
        .map(|_| {
            let mut rx = hub.subscribe();
            std::thread::spawn(move || {
                for expected in 0..count {
                    assert_eq!(rx.blocking_recv(), Some(expected));
                }
                assert_eq!(rx.blocking_recv(), None);
            })
        })
        .collect();
    for value in 0..count {
        if value % 3 == 0 {
            tx.blocking_feed(value).expect("open");
        } else {
            tx.blocking_send(value).expect("open");
        }
    }
    tx.complete();
    for thread in threads {
        thread.join().expect("no panic");
    }
}

#[test]
fn consumers_on_threads_get_all_elements_in_order() {
    for (capacity, consumers) in [(1, 1), (1, 3), (2, 2), (16, 2), (64, 5)] {
        check_threads(capacity, consumers, if cfg!(miri) { 40 } else { 5_000 });
    }
}

#[test]
fn tasks_get_all_elements_in_order_during_joins_and_leaves() {
    for capacity in [1, 2, 16, 256] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (mut tx, hub) = broadcast::<u64>(capacity);
            let mut tasks = Vec::new();
            for index in 0..64_u64 {
                let mut rx = hub.subscribe();
                let hub = hub.clone();
                tasks.push(tokio::spawn(async move {
                    let mut expected = 0;
                    while let Some(value) = rx.next().await {
                        assert_eq!(value, expected);
                        expected += 1;
                        if index % 4 == 0 && value == 500 + index {
                            return;
                        }
                        if index % 8 == 1 && value % 16 == 0 {
                            let mut newcomer = hub.subscribe();
                            let first = newcomer.next().await;
                            assert!(first.is_none_or(|first| first <= value + capacity as u64));
                            if let (Some(first), Ok(second)) = (first, newcomer.try_recv()) {
                                assert_eq!(second, first + 1);
                            }
                        }
                    }
                    assert_eq!(expected, 2_000);
                }));
            }
            for value in 0..2_000 {
                tx.send(value).await.unwrap();
            }
            drop(tx);
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[test]
fn sender_is_a_sink_and_receiver_a_stream() {
    block_on(async {
        let (tx, hub) = broadcast::<u64>(4);
        let rx = hub.subscribe();
        let forward = futures::stream::iter(0..100).map(Ok).forward(tx);
        let (sent, received) = futures::join!(forward, rx.collect::<Vec<_>>());
        sent.unwrap();
        assert_eq!(received, Vec::from_iter(0..100));
    });
}
