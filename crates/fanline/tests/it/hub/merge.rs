//! The merge hub: bounds, order, and producers that join and leave.

use std::sync::Arc;

use fanline::hub::{MergeHub, MergeOptions, MergeReceiver, TryRecvError, TrySendError, merge};
use futures::executor::block_on;
use futures::{FutureExt, SinkExt, StreamExt, poll};

fn drain(rx: &mut MergeReceiver<u64>) -> Vec<u64> {
    std::iter::from_fn(|| rx.try_recv().ok()).collect()
}

fn bounded(per_producer: usize, total: usize) -> (MergeHub<u64>, MergeReceiver<u64>) {
    MergeHub::<u64>::options()
        .per_producer(per_producer)
        .total(total)
        .build()
}

#[test]
fn elements_keep_order_of_arrival() {
    let (hub, mut rx) = merge::<u64>(16);
    let (mut a, mut b) = (hub.producer(), hub.producer());
    for value in 0..10 {
        let tx = if value % 3 == 0 { &mut a } else { &mut b };
        tx.try_send(value).unwrap();
    }
    assert_eq!(drain(&mut rx), Vec::from_iter(0..10));
}

#[test]
fn per_producer_bound_is_independent() {
    block_on(async {
        let (hub, mut rx) = merge::<u64>(3);
        let (mut a, mut b) = (hub.producer(), hub.producer());
        for value in 0..3 {
            a.send(value).await.unwrap();
        }
        assert_eq!(a.try_send(3), Err(TrySendError::Full(3)));
        b.send(10).await.unwrap();
        let mut send = Box::pin(a.send(3));
        assert!(poll!(&mut send).is_pending());
        assert_eq!(rx.next().await, Some(0));
        assert!(poll!(&mut send).is_ready());
        drop(send);
        assert_eq!(drain(&mut rx), [1, 2, 10, 3]);
    });
}

#[test]
fn total_is_never_exceeded_and_permits_are_fifo() {
    block_on(async {
        let (hub, mut rx) = bounded(4, 2);
        let mut producers: Vec<_> = (0..4).map(|_| hub.producer()).collect();
        let mut sends: Vec<_> = producers
            .iter_mut()
            .zip(0..)
            .map(|(tx, value)| Box::pin(tx.send(value)))
            .collect();
        let ready: Vec<_> = sends
            .iter_mut()
            .map(|s| s.now_or_never().is_some())
            .collect();
        assert_eq!(ready, [true, true, false, false]);
        assert_eq!(hub.len(), 2);
        assert_eq!(rx.next().await, Some(0));
        // The permit belongs to the third producer. Neither the fourth nor a new producer can take it.
        assert!(poll!(&mut sends[3]).is_pending());
        assert!(hub.producer().try_send(9).is_err());
        // When the third producer drops its send, the fourth gets the permit.
        drop(sends.remove(2));
        assert!(poll!(&mut sends[2]).is_ready());
        drop(sends);
        assert_eq!(drain(&mut rx), [1, 3]);
        assert!(hub.producer().try_send(9).is_ok());
    });
}

#[test]
fn failing_producer_does_not_affect_others() {
    let (hub, mut rx) = merge::<u64>(16);
    let (mut a, mut b) = (hub.producer(), hub.producer());
    a.try_send(1).unwrap();
    a.fail("broken");
    assert_eq!(hub.last_failure().unwrap().to_string(), "broken");
    b.try_send(2).unwrap();
    assert_eq!(drain(&mut rx), [1, 2]);
    assert_eq!(hub.producer_count(), 1);
    assert!(matches!(rx.try_recv(), Err(TryRecvError::Empty)));
}

#[test]
fn drain_ends_after_current_producers() {
    block_on(async {
        let (hub, mut rx) = merge::<u64>(16);
        let mut a = hub.producer();
        a.send(1).await.unwrap();
        hub.drain();
        assert!(hub.producer().send(9).await.is_err());
        a.send(2).await.unwrap();
        assert_eq!(rx.next().await, Some(1));
        assert_eq!(rx.next().await, Some(2));
        let mut next = Box::pin(rx.next());
        assert!(poll!(&mut next).is_pending());
        drop(a);
        assert_eq!(next.await, None);
        assert!(rx.error().is_none());

        let (hub, mut rx) = merge::<u64>(16);
        let mut next = Box::pin(rx.next());
        assert!(poll!(&mut next).is_pending());
        hub.drain(); // without producers
        assert_eq!(next.await, None);
    });
}

#[test]
fn hub_with_handle_stays_open_without_producers() {
    block_on(async {
        let (hub, mut rx) = merge::<u64>(16);
        drop(hub.producer());
        let mut next = Box::pin(rx.next());
        assert!(poll!(&mut next).is_pending());
        let mut tx = hub.producer();
        drop(hub);
        tx.send(1).await.unwrap();
        drop(tx);
        assert_eq!(next.await, Some(1));
        assert_eq!(rx.next().await, None);
    });
}

#[test]
fn dropped_receiver_closes_producers() {
    block_on(async {
        let element = Arc::new(());
        let (hub, rx) = merge::<Arc<()>>(1);
        let (mut here, mut late) = (hub.producer(), hub.clone());
        here.send(element.clone()).await.unwrap();
        let mut send = Box::pin(here.send(element.clone()));
        assert!(poll!(&mut send).is_pending());
        drop(rx);
        assert!(send.await.is_err());
        assert_eq!(
            Arc::strong_count(&element),
            1,
            "queued elements are dropped"
        );
        assert!(late.producer().is_closed());
        late = hub.clone();
        assert!(late.is_closed());
    });
}

#[test]
fn producer_created_after_receiver_dropped_is_closed() {
    let (hub, rx) = merge::<u64>(4);
    drop(rx);
    let mut tx = hub.producer();
    assert!(tx.is_closed());
    assert_eq!(tx.try_send(1), Err(TrySendError::Closed(1)));
    assert_eq!(hub.producer_count(), 0);
}

/// Producers leave while their elements are queued. New producers have as much room as the first ones had.
#[test]
fn new_producer_has_full_room() {
    let (hub, mut rx) = merge::<u64>(2);
    for round in 0..3 {
        let mut tx = hub.producer();
        for value in 0..2 {
            tx.try_send(10 * round + value).unwrap();
        }
        assert!(tx.try_send(9).is_err());
    }
    assert_eq!(drain(&mut rx), [0, 1, 10, 11, 20, 21]);
    let mut tx = hub.producer();
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert!(tx.try_send(3).is_err());
    assert_eq!(drain(&mut rx), [1, 2]);
}

#[test]
fn kill_switch_completes_or_fails_merge_hub() {
    block_on(async {
        let (hub, mut rx) = merge::<u64>(4);
        let mut tx = hub.producer();
        tx.send(1).await.unwrap();
        assert!(hub.kill_switch().complete());
        assert!(tx.send(2).await.is_err());
        assert_eq!(rx.next().await, Some(1));
        assert_eq!(rx.next().await, None);

        let (hub, mut rx) = merge::<u64>(4);
        let mut tx = hub.producer();
        tx.send(1).await.unwrap();
        assert!(hub.kill_switch().fail("stop"));
        assert_eq!(rx.next().await, None);
        assert!(rx.error().unwrap().failure().is_some());
    });
}

#[test]
fn producer_is_a_sink_and_accepts_streams() {
    block_on(async {
        let (hub, rx) = merge::<u64>(2);
        let mut sink = hub.producer();
        let stream = hub.producer().attach(futures::stream::iter(100..120));
        let fed = async move {
            let mut values = futures::stream::iter(0..20).map(Ok);
            sink.send_all(&mut values).await.unwrap();
        };
        hub.drain();
        let (attached, (), all) = futures::join!(stream, fed, rx.collect::<Vec<_>>());
        attached.unwrap();
        let (low, high): (Vec<_>, Vec<_>) = all.into_iter().partition(|value| *value < 100);
        assert_eq!(low, Vec::from_iter(0..20));
        assert_eq!(high, Vec::from_iter(100..120));
    });
}

#[test]
fn producers_on_threads_lose_nothing() {
    let (hub, mut rx) = bounded(3, 5);
    let threads: Vec<_> = (0..4_u64)
        .map(|id| {
            let mut tx = hub.producer();
            std::thread::spawn(move || {
                for value in 0..2_000 {
                    tx.blocking_send(id * 10_000 + value).unwrap();
                }
            })
        })
        .collect();
    drop(hub);
    let mut next = [0; 4];
    while let Some(value) = rx.blocking_recv() {
        let id = usize::try_from(value / 10_000).unwrap();
        assert_eq!(value % 10_000, next[id]);
        next[id] += 1;
        assert!(rx.lag() <= 5);
    }
    assert_eq!(next, [2_000; 4]);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn invalid_options_are_named_in_error() {
    let check = |options: MergeOptions<u64>, message: &str| {
        let error = options.try_build().expect_err(message);
        assert_eq!(error.to_string(), message);
    };
    check(
        MergeHub::options().per_producer(0),
        "`per_producer` must be at least 1",
    );
    check(MergeHub::options().total(0), "`total` must be at least 1");
}
