//! User code in merge and partition hubs that panics or calls back into the hub.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use fanline::hub::{
    HubError, MergeHub, OnLeave, PartitionHub, Partitioner, TryRecvError, merge, partition,
};
use futures::FutureExt;

fn panics(body: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_err()
}

struct OnWake<F>(F);

impl<F: Fn() + Send + Sync> Wake for OnWake<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Polls the future once, with a waker that calls `on_wake`.
fn park(future: impl Future, on_wake: impl Fn() + Send + Sync + 'static) {
    let waker = Waker::from(Arc::new(OnWake(on_wake)));
    let mut context = Context::from_waker(&waker);
    assert!(pin!(future).as_mut().poll(&mut context).is_pending());
}

/// An element that counts its drop. The drop of the element with number 1 panics.
struct BadDrop(u32, Arc<AtomicUsize>);

impl Drop for BadDrop {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
        assert_ne!(self.0, 1, "on purpose");
    }
}

#[test]
fn panicking_drop_loses_no_other_element_of_merge_hub() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let (hub, rx) = merge::<BadDrop>(8);
    let mut tx = hub.producer();
    for number in 0..5 {
        assert!(tx.try_send(BadDrop(number, dropped.clone())).is_ok());
    }
    assert!(panics(|| drop(rx)));
    assert_eq!(dropped.load(Ordering::Relaxed), 5);
    assert!(tx.is_closed());
}

#[test]
fn panicking_drop_loses_no_other_element_of_partition_hub() {
    for on_leave in [OnLeave::Drop, OnLeave::Reroute] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let options = PartitionHub::<BadDrop>::options().on_leave(on_leave);
        let (mut tx, hub) = options.build(Partitioner::round_robin());
        let rx = hub.subscribe();
        for number in 0..5 {
            assert!(tx.try_send(BadDrop(number, dropped.clone())).is_ok());
        }
        let drops = on_leave == OnLeave::Drop;
        assert_eq!(panics(|| drop(rx)), drops);
        assert_eq!(dropped.load(Ordering::Relaxed), if drops { 5 } else { 0 });
        // The hub still works.
        let mut rx = hub.subscribe();
        assert!(tx.try_send(BadDrop(9, dropped.clone())).is_ok());
        assert_eq!(
            rx.try_recv().ok().map(|bad| bad.0),
            Some(if drops { 9 } else { 0 })
        );
        assert_eq!(panics(|| drop((rx, tx, hub))), !drops);
        assert_eq!(dropped.load(Ordering::Relaxed), 6);
    }
}

#[test]
fn elements_are_dropped_once_at_the_expected_time() {
    let element = Arc::new(());
    let count = || Arc::strong_count(&element) - 1;
    let (hub, mut rx) = merge::<Arc<()>>(4);
    let mut tx = hub.producer();
    (0..4).for_each(|_| tx.try_send(element.clone()).unwrap());
    drop(rx.try_recv().unwrap());
    assert_eq!(count(), 3, "received");
    assert!(hub.kill_switch().fail("stop"));
    assert!(rx.try_recv().is_err());
    assert_eq!(count(), 0, "the consumer has seen the failure");

    let (hub, rx) = merge::<Arc<()>>(4);
    let mut tx = hub.producer();
    (0..4).for_each(|_| tx.try_send(element.clone()).unwrap());
    drop(rx);
    assert_eq!(count(), 0, "the consumer was dropped");

    let (mut tx, hub) = partition::<Arc<()>>(8, |_, _| 0);
    (0..4).for_each(|_| tx.try_send(element.clone()).unwrap());
    assert_eq!(count(), 4);
    tx.fail("broken");
    assert_eq!(count(), 0, "there was no consumer");
    drop(hub);

    let (mut tx, hub) = partition::<Arc<()>>(8, |_, _| 0);
    let mut rx = hub.subscribe();
    (0..4).for_each(|_| tx.try_send(element.clone()).unwrap());
    tx.fail("broken");
    assert!(rx.try_recv().is_err());
    assert_eq!(count(), 0, "the consumer has seen the failure");

    let (mut tx, hub) = partition::<Arc<()>>(8, |_, _| 0);
    let rx = hub.subscribe();
    (0..4).for_each(|_| tx.try_send(element.clone()).unwrap());
    drop(hub);
    drop(rx);
    assert_eq!(count(), 0, "no consumer can join");
    assert!(tx.is_closed());
}

#[test]
fn panicking_waker_costs_no_other_wake_up() {
    let (hub, rx) = MergeHub::<u64>::options().per_producer(1).total(2).build();
    let mut producers = [
        hub.producer(),
        hub.producer(),
        hub.producer(),
        hub.producer(),
    ];
    producers[0].try_send(0).unwrap();
    producers[1].try_send(0).unwrap();
    let woken = Arc::new(AtomicUsize::new(0));
    let mut sends = Vec::new();
    for (index, tx) in producers.iter_mut().enumerate() {
        let mut send = Box::pin(tx.send(1));
        let woken = woken.clone();
        park(&mut send, move || {
            woken.fetch_add(1, Ordering::Relaxed);
            assert_ne!(index, 0, "on purpose");
        });
        sends.push(send);
    }
    // The end of the hub wakes all producers.
    assert!(panics(|| drop(rx)));
    assert_eq!(woken.load(Ordering::Relaxed), 4);
    for send in sends {
        assert!(send.now_or_never().unwrap().is_err());
    }
}

fn counting(woken: &Arc<AtomicUsize>) -> impl Fn() + Send + Sync + 'static {
    let woken = woken.clone();
    move || {
        woken.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn panicking_waker_does_not_hide_end_of_partition_hub() {
    let woken = Arc::new(AtomicUsize::new(0));
    let (mut tx, hub) = partition::<u64>(4, |_, _| 0);
    let (mut bad, mut fine) = (hub.subscribe(), hub.subscribe());
    park(bad.next(), || panic!("on purpose"));
    park(fine.next(), counting(&woken));
    assert!(tx.feed(1).now_or_never().unwrap().is_ok());
    assert!(panics(|| drop(tx)));
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert_eq!(fine.next().now_or_never(), Some(None));
    assert_eq!(bad.next().now_or_never(), Some(Some(1)));
    assert_eq!(bad.next().now_or_never(), Some(None));
}

#[test]
fn panicking_waker_costs_no_other_consumer_its_element() {
    let woken = Arc::new(AtomicUsize::new(0));
    let (mut tx, hub) = partition::<u64>(8, |count, value| {
        i64::try_from(*value % count as u64).unwrap()
    });
    let mut consumers = [hub.subscribe(), hub.subscribe(), hub.subscribe()];
    for (index, rx) in consumers.iter_mut().enumerate() {
        let woken = woken.clone();
        park(rx.next(), move || {
            woken.fetch_add(1, Ordering::Relaxed);
            assert_ne!(index, 1, "on purpose");
        });
    }
    for value in 0..3 {
        assert!(tx.feed(value).now_or_never().unwrap().is_ok());
    }
    assert!(panics(|| tx.flush()));
    assert_eq!(woken.load(Ordering::Relaxed), 3);
}

/// The producer waits for room, and its waker panics when a kill switch ends the hub.
#[test]
fn panicking_producer_waker_does_not_hide_end_of_partition_hub() {
    let woken = Arc::new(AtomicUsize::new(0));
    let (mut tx, hub) = partition::<u64>(1, |_, _| 0);
    let (mut first, mut second) = (hub.subscribe(), hub.subscribe());
    tx.try_send(1).unwrap();
    park(second.next(), counting(&woken));
    let mut sending = Box::pin(tx.send(2));
    park(&mut sending, || panic!("on purpose"));
    let switch = hub.kill_switch();
    assert!(panics(|| assert!(switch.complete())));
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert_eq!(second.next().now_or_never(), Some(None));
    assert_eq!(first.next().now_or_never(), Some(Some(1)));
    assert_eq!(first.next().now_or_never(), Some(None));
    assert!(sending.now_or_never().unwrap().is_err());
}

#[test]
fn waker_may_drop_its_consumer_and_subscribe() {
    let (mut tx, hub) = partition::<u64>(4, |_, _| 0);
    let consumer = Arc::new(Mutex::new(None));
    let mut rx = hub.subscribe();
    let (own, again) = (consumer.clone(), hub.clone());
    let newcomer = Arc::new(Mutex::new(None));
    let new = newcomer.clone();
    park(rx.next(), move || {
        drop(own.lock().unwrap().take());
        *new.lock().unwrap() = Some(again.subscribe());
    });
    *consumer.lock().unwrap() = Some(rx);
    tx.try_send(1).unwrap();
    assert_eq!(hub.receiver_count(), 1);
    // Elements of the dropped consumer go to the new one.
    let mut rx = newcomer.lock().unwrap().take().unwrap();
    assert_eq!(rx.try_recv().unwrap(), 1);
}

#[test]
fn partitioner_may_call_the_hub() {
    let hub_of_partitioner: Arc<Mutex<Option<PartitionHub<u64>>>> = Arc::default();
    let own = hub_of_partitioner.clone();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let consumers_kept = kept.clone();
    let (mut tx, hub) = PartitionHub::<u64>::options()
        .capacity(8)
        .build(Partitioner::by_id(move |consumers, _| {
            if let Some(hub) = &*own.lock().unwrap() {
                consumers_kept.lock().unwrap().push(hub.subscribe());
                assert_eq!(hub.consumers().len(), consumers.len() + 1);
                assert!(!hub.is_empty());
            }
            consumers.id_at(consumers.len() - 1)
        }));
    let mut first = hub.subscribe();
    *hub_of_partitioner.lock().unwrap() = Some(hub);
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!(
        first.try_recv().unwrap(),
        1,
        "the later consumer joined during the choice"
    );
    assert_eq!(kept.lock().unwrap()[0].try_recv().unwrap(), 2);
    // Removes the hub from its own partitioner, because otherwise the hub would own itself.
    hub_of_partitioner.lock().unwrap().take();
}

#[test]
fn panicking_partitioner_frees_room() {
    let (mut tx, hub) = partition::<u64>(2, |_, value| {
        assert_ne!(*value, 1, "on purpose");
        0
    });
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert!(tx.try_send(3).is_err());
    // The partitioner runs when the first consumer joins, and panics in that call.
    assert!(panics(|| drop(hub.subscribe())));
    tx.try_send(3).unwrap();
    let mut rx = hub.subscribe();
    assert_eq!(rx.try_recv().unwrap(), 2);
    assert_eq!(rx.try_recv().unwrap(), 3);
    assert!(hub.is_empty());
}

/// A consumer leaves after the end, and the partitioner panics for one of its elements. The other consumer gets
/// the others and the end.
#[test]
fn panicking_partitioner_does_not_hide_end() {
    let (mut tx, hub) = partition::<u64>(8, |count, value| {
        assert!(count == 2 || *value != 1, "on purpose");
        0
    });
    let (leaves, mut stays) = (hub.subscribe(), hub.subscribe());
    for value in 1..=3 {
        tx.try_send(value).unwrap();
    }
    drop(tx);
    assert!(panics(|| drop(leaves)));
    assert_eq!(stays.try_recv().unwrap(), 2);
    assert_eq!(stays.try_recv().unwrap(), 3);
    assert!(matches!(stays.try_recv(), Err(TryRecvError::Completed)));
}

#[test]
fn panicking_producer_abandons_partition_hub() {
    let (tx, hub) = partition::<u64>(2, |_, _| 0);
    let mut rx = hub.subscribe();
    assert!(panics(move || {
        let _tx = tx;
        panic!("on purpose");
    }));
    assert_eq!(rx.next().now_or_never(), Some(None));
    assert!(matches!(rx.error(), Some(HubError::Abandoned)));
}

#[test]
fn dropped_pending_send_or_receiver_loses_no_element() {
    let element = Arc::new(());
    let (mut tx, hub) = partition::<Arc<()>>(1, |_, _| 0);
    let mut rx = hub.subscribe();
    tx.try_send(element.clone()).unwrap();
    let woken = Arc::new(AtomicUsize::new(0));
    let count = woken.clone();
    park(tx.send(element.clone()), move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(Arc::strong_count(&element), 2);
    drop(rx.try_recv().unwrap());
    assert_eq!(
        woken.load(Ordering::Relaxed),
        0,
        "no producer waits any more"
    );
    tx.try_send(element.clone()).unwrap();
    // A receiver that waits for an element and is dropped loses no element either.
    drop(rx.try_recv().unwrap());
    park(rx.next(), || {});
    drop(rx);
    tx.try_send(element.clone()).unwrap();
    assert_eq!(hub.len(), 1);
}

#[test]
fn large_and_unpin_types_are_delivered() {
    struct Large([u64; 512], std::marker::PhantomPinned);
    let large = |value| Large([value; 512], std::marker::PhantomPinned);
    let (hub, mut merged) = merge::<Large>(3);
    let mut producer = hub.producer();
    let (mut tx, hub) = partition::<Large>(3, |_, _| 0);
    let mut rx = hub.subscribe();
    for value in 0..10 {
        assert!(producer.try_send(large(value)).is_ok());
        assert_eq!(merged.try_recv().ok().unwrap().0[511], value);
        assert!(tx.try_send(large(value)).is_ok());
        assert_eq!(rx.try_recv().ok().unwrap().0[511], value);
    }
}

/// Several elements sent in a row wake the receiver once. Several fed elements wake it once, at the flush.
#[test]
fn burst_causes_one_wake_up() {
    let woken = Arc::new(AtomicUsize::new(0));
    let counted = || {
        let woken = woken.clone();
        move || {
            woken.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (hub, mut rx) = merge::<u64>(16);
    let mut tx = hub.producer();
    park(rx.next(), counted());
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!(woken.swap(0, Ordering::Relaxed), 1);
    while rx.try_recv().is_ok() {}
    park(rx.next(), counted());
    tx.blocking_feed(1).unwrap();
    tx.blocking_feed(2).unwrap();
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    tx.flush();
    assert_eq!(woken.swap(0, Ordering::Relaxed), 1);

    let (mut tx, hub) = partition::<u64>(16, |_, _| 0);
    let mut rx = hub.subscribe();
    park(rx.next(), counted());
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!(woken.swap(0, Ordering::Relaxed), 1);
    while rx.try_recv().is_ok() {}
    park(rx.next(), counted());
    tx.blocking_feed(1).unwrap();
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    tx.flush();
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert_eq!(rx.next().now_or_never(), Some(Some(1)));
    let waker = Waker::noop();
    let next = pin!(rx.next());
    assert!(matches!(
        next.poll(&mut Context::from_waker(waker)),
        Poll::Pending
    ));
}
