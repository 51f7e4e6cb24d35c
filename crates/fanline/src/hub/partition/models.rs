//! loom models of the hub: they run every interleaving of threads with a few elements.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the model")]

use super::{OnFull, OnLeave, PartitionHub, PartitionReceiver, PartitionSender, Partitioner};
use crate::hub::blocking::block_on;
use crate::sync::thread;

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    crate::sync::model(preemptions).check(body);
}

fn hub(
    capacity: usize,
    per_consumer: Option<usize>,
    on_full: OnFull,
) -> (PartitionSender<u8>, PartitionHub<u8>) {
    let mut options = PartitionHub::options()
        .capacity(capacity)
        .on_full(on_full)
        .on_leave(OnLeave::Reroute);
    if let Some(count) = per_consumer {
        options = options.per_consumer(count);
    }
    options.build(Partitioner::by_index(|count, value: &u8| {
        i64::from(*value) % count as i64
    }))
}

fn receive_all(rx: &mut PartitionReceiver<u8>) -> Vec<u8> {
    std::iter::from_fn(|| rx.blocking_recv()).collect()
}

/// The consumer sleeps while the producer sends; the producer sleeps until there is room.
#[test]
fn loom_partition_push_and_park() {
    for capacity in [1, 2] {
        model(2, move || {
            let (mut tx, hub) = hub(capacity, None, OnFull::Wait);
            let mut rx = hub.subscribe();
            let consumer = thread::spawn(move || assert_eq!(receive_all(&mut rx), [1, 2, 3]));
            for value in [1, 2, 3] {
                tx.blocking_send(value).unwrap();
            }
            drop(tx);
            consumer.join().unwrap();
        });
    }
}

/// An element waits for room in its consumer's queue, and the consumer makes room.
#[test]
fn loom_partition_stuck_and_room() {
    model(3, || {
        let (mut tx, hub) = hub(3, Some(1), OnFull::Wait);
        let mut rx = hub.subscribe();
        let consumer = thread::spawn(move || assert_eq!(receive_all(&mut rx), [1, 2, 3]));
        for value in [1, 2, 3] {
            tx.blocking_send(value).unwrap();
        }
        drop(tx);
        consumer.join().unwrap();
    });
}

/// A consumer leaves while the producer sends to it. The other consumers get every element.
#[test]
fn loom_partition_leave_and_push() {
    model(3, || {
        let (mut tx, hub) = hub(2, None, OnFull::Wait);
        let (mut stays, leaves) = (hub.subscribe(), hub.subscribe());
        let consumer = thread::spawn(move || drop(leaves));
        tx.blocking_send(1).unwrap();
        tx.blocking_send(2).unwrap();
        drop(tx);
        let mut all = receive_all(&mut stays);
        consumer.join().unwrap();
        // The elements may have been rerouted after the other consumer had seen the completion.
        all.extend(receive_all(&mut hub.subscribe()));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// After the end, a consumer with an element leaves and subscribes again, in either order. Meanwhile the other
/// consumer receives its own element and the end. Together they get every element.
#[test]
fn loom_partition_replace_at_the_end() {
    for subscribes_first in [true, false] {
        model(3, move || {
            let (mut tx, hub) = hub(2, None, OnFull::Wait);
            let (leaves, mut stays) = (hub.subscribe(), hub.subscribe());
            tx.blocking_send(1).unwrap();
            tx.blocking_send(2).unwrap();
            drop(tx);
            let consumer = thread::spawn(move || receive_all(&mut stays));
            let mut last = if subscribes_first {
                let last = hub.subscribe();
                drop(leaves);
                last
            } else {
                drop(leaves);
                hub.subscribe()
            };
            let mut all = receive_all(&mut last);
            all.extend(consumer.join().unwrap());
            all.sort_unstable();
            assert_eq!(all, [1, 2]);
        });
    }
}

/// The first consumer subscribes while the producer sends.
#[test]
fn loom_partition_join_and_push() {
    model(3, || {
        let (mut tx, hub) = hub(2, None, OnFull::Wait);
        let consumer = thread::spawn(move || {
            let mut rx = hub.subscribe();
            assert_eq!(receive_all(&mut rx), [1, 2]);
        });
        tx.blocking_send(1).unwrap();
        tx.blocking_send(2).unwrap();
        drop(tx);
        consumer.join().unwrap();
    });
}

/// Every element is either received or returned to the producer.
#[test]
fn loom_partition_close_and_push() {
    model(3, || {
        let (mut tx, hub) = hub(1, None, OnFull::Wait);
        let mut rx = hub.subscribe();
        let switch = hub.kill_switch();
        let producer = thread::spawn(move || tx.blocking_send(1).is_ok());
        let killer = thread::spawn(move || switch.complete());
        let received = receive_all(&mut rx);
        assert_eq!(received.len(), usize::from(producer.join().unwrap()));
        killer.join().unwrap();
    });
}

/// The hub fails while both ends sleep.
#[test]
fn loom_partition_close_and_park() {
    model(2, || {
        let (mut tx, hub) = hub(1, None, OnFull::Wait);
        let mut rx = hub.subscribe();
        tx.blocking_send(1).unwrap();
        let producer = thread::spawn(move || {
            let _ = tx.blocking_send(2);
            tx
        });
        let switch = hub.kill_switch();
        let killer = thread::spawn(move || assert!(switch.fail("stop")));
        while rx.blocking_recv().is_some() {}
        assert!(rx.error().is_some());
        killer.join().unwrap();
        drop(producer.join().unwrap());
    });
}

/// The hub ends while the producer waits for the end.
#[test]
fn loom_partition_closed() {
    model(2, || {
        let (mut tx, hub) = hub(1, None, OnFull::Wait);
        let switch = hub.kill_switch();
        let killer = thread::spawn(move || assert!(switch.complete()));
        let mut closed = Box::pin(tx.closed());
        block_on(|context| closed.as_mut().poll(context));
        killer.join().unwrap();
    });
}
