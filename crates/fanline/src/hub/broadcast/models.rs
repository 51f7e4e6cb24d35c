//! loom models of the hub: they run every interleaving of threads with a few elements.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the model")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use super::{BroadcastHub, BroadcastReceiver, BroadcastSender, OnSlow, Start};
use crate::fence::Fences;
use crate::hub::blocking::block_on;
use crate::sync::thread;

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    crate::sync::model(preemptions).check(body);
}

/// Runs only the first `runs` interleavings of a model that has too many to run all.
fn model_in_part(preemptions: usize, runs: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = crate::sync::model(preemptions);
    builder.max_permutations = Some(runs);
    builder.check(body);
}

fn hub(capacity: usize, on_slow: OnSlow) -> (BroadcastSender<u8>, BroadcastHub<u8>) {
    let options = BroadcastHub::options().capacity(capacity).on_slow(on_slow);
    // Positions wrap around during each model.
    options.build_at(Fences::Symmetric, usize::MAX).unwrap()
}

fn receive(mut rx: BroadcastReceiver<u8>, expected: &[u8]) {
    for value in expected {
        assert_eq!(rx.blocking_recv(), Some(*value));
    }
    assert_eq!(rx.blocking_recv(), None);
}

/// Parking races with publishing, and the producer's sleep races with a consumer's position.
#[test]
fn loom_hub_park_and_publish() {
    for capacity in [1, 2] {
        model(2, move || {
            let (mut tx, hub) = hub(capacity, OnSlow::Wait);
            let rx = hub.subscribe();
            let consumer = thread::spawn(move || receive(rx, &[1, 2, 3]));
            for value in [1, 2, 3] {
                tx.blocking_send(value).unwrap();
            }
            drop(tx);
            consumer.join().unwrap();
        });
    }
}

/// With three threads, a single preemption makes millions of interleavings. This runs all interleavings
/// without preemption, and some of those with one.
#[test]
fn loom_hub_two_consumers() {
    for (capacity, values) in [(1, &[1, 2][..]), (2, &[1, 2, 3])] {
        model(0, move || broadcast_to_two(capacity, values));
        model_in_part(1, 50_000, move || broadcast_to_two(capacity, values));
    }
}

fn broadcast_to_two(capacity: usize, values: &'static [u8]) {
    let (mut tx, hub) = hub(capacity, OnSlow::Wait);
    let consumers =
        [hub.subscribe(), hub.subscribe()].map(|rx| thread::spawn(move || receive(rx, values)));
    for value in values {
        tx.blocking_send(*value).unwrap();
    }
    drop(tx);
    for consumer in consumers {
        consumer.join().unwrap();
    }
}

/// Two consumers leave the head in any order, while the producer waits for both. The consumer that leaves
/// last wakes the producer.
#[test]
fn loom_hub_two_leave_the_head() {
    model(2, || {
        let (mut tx, hub) = hub(1, OnSlow::Wait);
        let consumers = [hub.subscribe(), hub.subscribe()];
        tx.try_send(1).unwrap();
        let consumers = consumers.map(|mut rx| {
            thread::spawn(move || {
                assert_eq!(rx.blocking_recv(), Some(1));
                rx
            })
        });
        tx.blocking_send(2).unwrap();
        drop(consumers.map(|consumer| consumer.join().unwrap()));
    });
}

/// Two consumers are at the head, and the producer waits for both. One moves on, and the other leaves the
/// hub.
#[test]
fn loom_hub_head_and_hub_are_left() {
    model(2, || {
        let (mut tx, hub) = hub(1, OnSlow::Wait);
        let (leaves, mut stays) = (hub.subscribe(), hub.subscribe());
        tx.try_send(1).unwrap();
        let leaving = thread::spawn(move || drop(leaves));
        let staying = thread::spawn(move || {
            assert_eq!(stays.blocking_recv(), Some(1));
            stays
        });
        tx.blocking_send(2).unwrap();
        leaving.join().unwrap();
        drop(staying.join().unwrap());
    });
}

/// A consumer that joins late receives elements without gaps from its start on.
#[test]
fn loom_hub_join_and_head() {
    model(1, || {
        let (mut tx, hub) = hub(1, OnSlow::Wait);
        let rx = hub.subscribe();
        let consumer = thread::spawn(move || receive(rx, &[1, 2]));
        let add_consumer = thread::spawn(move || {
            let mut rx = hub.subscribe();
            let seen: Vec<_> = std::iter::from_fn(|| rx.blocking_recv()).collect();
            assert!([&[1, 2][..], &[2], &[]].contains(&&seen[..]), "{seen:?}");
        });
        tx.blocking_send(1).unwrap();
        tx.blocking_send(2).unwrap();
        drop(tx);
        consumer.join().unwrap();
        add_consumer.join().unwrap();
    });
}

/// A consumer joins before the head, while the producer overwrites elements.
#[test]
fn loom_hub_join_before_head() {
    for replay in [1, 2] {
        model(0, move || join_before_head(replay));
        model_in_part(1, 50_000, move || join_before_head(replay));
    }
}

fn join_before_head(replay: usize) {
    let options = BroadcastHub::<u8>::options().capacity(1).replay(replay);
    let (mut tx, hub) = options.build_at(Fences::Symmetric, usize::MAX).unwrap();
    let rx = hub.subscribe();
    let consumer = thread::spawn(move || receive(rx, &[1, 2, 3]));
    let add_consumer = thread::spawn(move || {
        let mut rx = hub.subscribe_at(Start::Last(replay));
        let seen: Vec<_> = std::iter::from_fn(|| rx.blocking_recv()).collect();
        assert!([1, 2, 3].ends_with(&seen), "{seen:?}");
        assert!(seen.len() >= replay, "{seen:?}");
    });
    for value in [1, 2, 3] {
        tx.blocking_send(value).unwrap();
    }
    drop(tx);
    consumer.join().unwrap();
    add_consumer.join().unwrap();
}

/// A relay moves elements to a consumer on another thread, while all of them wait for each other.
#[test]
fn loom_hub_relay() {
    model(0, relay_to_one);
    model_in_part(1, 50_000, relay_to_one);
}

fn relay_to_one() {
    let (mut tx, hub) = hub(1, OnSlow::Wait);
    let (relay, shard) = hub.relay(BroadcastHub::options().capacity(1));
    let rx = shard.subscribe();
    let relaying = thread::spawn(move || assert_eq!(relay.blocking_run(), 0));
    let consumer = thread::spawn(move || receive(rx, &[1, 2]));
    for value in [1, 2] {
        tx.blocking_send(value).unwrap();
    }
    drop(tx);
    relaying.join().unwrap();
    consumer.join().unwrap();
}

/// The last consumer of a shard leaves while the relay has no elements, so nothing else wakes the relay.
#[test]
fn loom_hub_relay_and_leave() {
    model(2, || {
        let (tx, hub) = hub(1, OnSlow::Wait);
        let (relay, shard) = hub.relay(BroadcastHub::options().capacity(1));
        let rx = shard.subscribe();
        drop(shard);
        let leaving = thread::spawn(move || drop(rx));
        assert_eq!(relay.blocking_run(), 0);
        leaving.join().unwrap();
        assert_eq!(hub.receiver_count(), 0);
        drop(tx);
    });
}

/// The consumer that the producer waits for leaves the hub.
#[test]
fn loom_hub_leave_and_watch() {
    model(3, || {
        let (mut tx, hub) = hub(1, OnSlow::Wait);
        let leaves = hub.subscribe();
        let mut stays = hub.subscribe();
        let consumer = thread::spawn(move || drop(leaves));
        tx.blocking_send(1).unwrap();
        assert_eq!(stays.blocking_recv(), Some(1));
        tx.blocking_send(2).unwrap();
        assert_eq!(stays.blocking_recv(), Some(2));
        consumer.join().unwrap();
    });
}

/// A parked consumer leaves while the producer wakes it.
#[test]
fn loom_hub_leave_and_wake() {
    model(3, || {
        let (mut tx, hub) = hub(1, OnSlow::Wait);
        let mut rx = hub.subscribe();
        let mut context = Context::from_waker(Waker::noop());
        assert!(rx.poll_next_ref(&mut context).is_pending());
        let consumer = thread::spawn(move || drop(rx));
        tx.blocking_send(1).unwrap();
        consumer.join().unwrap();
    });
}

/// A sweep of the list, caused by receivers that left, races with the end of the hub. The remaining consumer
/// is woken.
#[test]
fn loom_hub_sweep_and_end() {
    struct WakeFlag(AtomicBool);

    impl Wake for WakeFlag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    model(3, || {
        let (tx, hub) = hub(1, OnSlow::Wait);
        let woken = Arc::new(WakeFlag(AtomicBool::new(false)));
        let wakers = [
            Waker::from(woken.clone()),
            Waker::noop().clone(),
            Waker::noop().clone(),
        ];
        let [stays, first, second] = wakers.map(|waker| {
            let mut rx = hub.subscribe();
            let mut context = Context::from_waker(&waker);
            assert!(rx.poll_next_ref(&mut context).is_pending());
            rx
        });
        let ending = thread::spawn(move || drop(tx));
        drop((first, second));
        ending.join().unwrap();
        assert!(woken.0.load(Ordering::SeqCst));
        drop(stays);
    });
}

#[test]
fn loom_hub_close_and_park() {
    model(3, || {
        let (tx, hub) = hub(1, OnSlow::Wait);
        let consumers =
            [hub.subscribe(), hub.subscribe()].map(|rx| thread::spawn(move || receive(rx, &[])));
        drop(tx);
        for consumer in consumers {
            consumer.join().unwrap();
        }
    });
}

/// Another thread fails the hub while a consumer reads or goes to sleep, and while the producer goes to
/// sleep.
#[test]
fn loom_hub_fail_and_sleep() {
    model(2, || {
        let (mut tx, hub) = hub(1, OnSlow::Wait);
        let mut rx = hub.subscribe();
        let switch = hub.kill_switch();
        let consumer = thread::spawn(move || {
            while rx.blocking_recv().is_some() {}
            assert!(rx.error().is_some());
        });
        let killer = thread::spawn(move || assert!(switch.fail("stop")));
        for _ in 0..2 {
            // The send may succeed or fail; the model checks only that it returns.
            let _ = tx.blocking_send(1);
        }
        consumer.join().unwrap();
        killer.join().unwrap();
        drop(tx);
    });
}

/// A consumer in the list polls again, with another waker, while the producer wakes it.
#[test]
fn loom_hub_wake_and_poll_again() {
    model(3, || {
        let (mut tx, hub) = hub(1, OnSlow::Wait);
        let mut rx = hub.subscribe();
        let mut context = Context::from_waker(Waker::noop());
        assert!(rx.poll_next_ref(&mut context).is_pending());
        let consumer = thread::spawn(move || receive(rx, &[1]));
        tx.blocking_send(1).unwrap();
        drop(tx);
        consumer.join().unwrap();
    });
}

/// The producer revokes a consumer before or while the consumer reads.
#[test]
fn loom_hub_revoke_and_read() {
    model(2, || {
        let (mut tx, hub) = hub(1, OnSlow::DropOldest);
        let mut rx = hub.subscribe();
        let consumer = thread::spawn(move || {
            let mut last = 0;
            while let Some(value) = rx.blocking_recv() {
                assert!(value > last);
                last = value;
            }
            assert_eq!(last, 3);
        });
        for value in [1, 2, 3] {
            tx.blocking_send(value).unwrap();
        }
        drop(tx);
        consumer.join().unwrap();
    });
}

/// The hub ends while the producer waits for the end.
#[test]
fn loom_hub_closed() {
    model(2, || {
        let (mut tx, hub) = hub(1, OnSlow::Wait);
        let switch = hub.kill_switch();
        let killer = thread::spawn(move || assert!(switch.complete()));
        let mut closed = Box::pin(tx.closed());
        block_on(|context| closed.as_mut().poll(context));
        killer.join().unwrap();
    });
}
