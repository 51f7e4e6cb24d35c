//! loom models of the hub: they run every interleaving of threads with a few elements.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the model")]

use super::{MergeHub, MergeReceiver};
use crate::hub::SendError;
use crate::hub::blocking::block_on;
use crate::sync::thread;

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    crate::sync::model(preemptions).check(body);
}

fn hub(per_producer: usize, total: Option<usize>) -> (MergeHub<u8>, MergeReceiver<u8>) {
    let options = MergeHub::options().per_producer(per_producer);
    match total {
        Some(total) => options.total(total).build(),
        None => options.build(),
    }
}

fn receive_all(rx: &mut MergeReceiver<u8>) -> Vec<u8> {
    std::iter::from_fn(|| rx.blocking_recv()).collect()
}

/// The consumer sleeps while the producer appends; the producer sleeps until there is room.
#[test]
fn loom_merge_push_and_park() {
    for per_producer in [1, 2] {
        model(2, move || {
            let (hub, mut rx) = hub(per_producer, None);
            let mut tx = hub.producer();
            drop(hub);
            let producer = thread::spawn(move || {
                for value in [1, 2, 3] {
                    tx.blocking_send(value).unwrap();
                }
            });
            assert_eq!(receive_all(&mut rx), [1, 2, 3]);
            producer.join().unwrap();
        });
    }
}

/// Two producers append at the same time.
#[test]
fn loom_merge_two_producers() {
    model(2, || {
        let (hub, mut rx) = hub(1, None);
        let producers = [1, 2].map(|value| {
            let mut tx = hub.producer();
            thread::spawn(move || tx.try_send(value).unwrap())
        });
        drop(hub);
        let mut all = receive_all(&mut rx);
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        for producer in producers {
            producer.join().unwrap();
        }
    });
}

/// A permit becomes free while two producers wait for it.
#[test]
fn loom_merge_permits() {
    model(2, || {
        let (hub, mut rx) = hub(2, Some(1));
        let producers = [1, 2].map(|value| {
            let mut tx = hub.producer();
            thread::spawn(move || tx.blocking_send(value).unwrap())
        });
        drop(hub);
        let mut all = receive_all(&mut rx);
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        for producer in producers {
            producer.join().unwrap();
        }
    });
}

/// A producer leaves while its last element is queued, and another takes over its lane.
#[test]
fn loom_merge_leave_and_push() {
    model(3, || {
        let (hub, mut rx) = hub(1, None);
        let mut first = hub.producer();
        let producer = thread::spawn(move || {
            first.blocking_send(1).unwrap();
            drop(first);
            let mut second = hub.producer();
            second.blocking_send(2).unwrap();
        });
        assert_eq!(receive_all(&mut rx), [1, 2]);
        producer.join().unwrap();
    });
}

/// Every element is either received or returned to the producer.
#[test]
fn loom_merge_close_and_push() {
    model(3, || {
        let (hub, mut rx) = hub(1, None);
        let mut tx = hub.producer();
        let switch = hub.kill_switch();
        let producer = thread::spawn(move || match tx.blocking_send(1) {
            Ok(()) => true,
            Err(SendError(value)) => {
                assert_eq!(value, 1);
                false
            }
        });
        let killer = thread::spawn(move || assert!(switch.complete()));
        let received = receive_all(&mut rx);
        let sent = producer.join().unwrap();
        assert_eq!(received.len(), usize::from(sent));
        killer.join().unwrap();
    });
}

/// The hub ends while both ends sleep.
#[test]
fn loom_merge_close_and_park() {
    model(2, || {
        let (hub, mut rx) = hub(1, None);
        let mut tx = hub.producer();
        tx.blocking_send(1).unwrap();
        let producer = thread::spawn(move || tx.blocking_send(2).is_ok());
        let switch = hub.kill_switch();
        let killer = thread::spawn(move || assert!(switch.fail("stop")));
        while rx.blocking_recv().is_some() {}
        assert!(rx.error().is_some());
        killer.join().unwrap();
        producer.join().unwrap();
    });
}

/// The receiver is dropped while an element is appended: the element is dropped or returned.
#[test]
fn loom_merge_drop_receiver_and_push() {
    model(3, || {
        let element = std::sync::Arc::new(());
        let (hub, rx) = super::merge::<std::sync::Arc<()>>(1);
        let mut tx = hub.producer();
        let own = element.clone();
        let producer = thread::spawn(move || {
            let _ = tx.blocking_send(own);
        });
        drop(rx);
        producer.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&element), 1);
    });
}

/// The hub ends while the producer waits for the end.
#[test]
fn loom_merge_closed() {
    model(2, || {
        let (hub, _rx) = hub(1, None);
        let mut tx = hub.producer();
        let switch = hub.kill_switch();
        let killer = thread::spawn(move || assert!(switch.complete()));
        let mut closed = Box::pin(tx.closed());
        block_on(|context| closed.as_mut().poll(context));
        killer.join().unwrap();
    });
}

/// A producer drops its permit while another waits for one.
#[test]
fn loom_merge_dropped_permit() {
    model(3, || {
        let (hub, mut rx) = hub(1, Some(1));
        let (mut first, mut second) = (hub.producer(), hub.producer());
        drop(hub);
        let permit = first.try_reserve().unwrap();
        let waiting = thread::spawn(move || second.blocking_send(1).unwrap());
        drop(permit);
        drop(first);
        assert_eq!(receive_all(&mut rx), [1]);
        waiting.join().unwrap();
    });
}
