//! Relays: shards of a broadcast hub for consumers on several threads.

use std::task::{Context, Poll, Waker};

use fanline::hub::{
    BroadcastHub, BroadcastOptions, BroadcastReceiver, HubError, OnEmpty, OnSlow, Relay, broadcast,
};
use futures::FutureExt;
use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;
use proptest::collection::vec;
use proptest::prelude::*;

fn shard(capacity: usize) -> BroadcastOptions<u64> {
    BroadcastHub::options().capacity(capacity)
}

fn poll(relay: &mut Relay<u64>) -> Poll<u64> {
    relay.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

fn drain(rx: &mut BroadcastReceiver<u64>) -> Vec<u64> {
    std::iter::from_fn(|| rx.try_recv().ok()).collect()
}

#[test]
fn all_consumers_of_all_shards_get_all_elements() {
    for (capacity, shard_capacity) in [(1, 1), (2, 16), (64, 3), (256, 256)] {
        let (mut tx, hub) = broadcast::<u64>(capacity);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (relay, shard) = hub.relay(shard(shard_capacity));
                let consumers: Vec<_> = (0..4).map(|_| shard.subscribe()).collect();
                std::thread::spawn(move || {
                    let mut pool = LocalPool::new();
                    for mut rx in consumers {
                        let check = async move {
                            for value in 0..2_000 {
                                assert_eq!(rx.next().await, Some(value));
                            }
                            assert_eq!(rx.next().await, None);
                            assert!(rx.error().is_none());
                        };
                        pool.spawner().spawn_local(check).unwrap();
                    }
                    assert_eq!(pool.run_until(relay), 0);
                    pool.run();
                })
            })
            .collect();
        drop(hub);
        for value in 0..2_000 {
            tx.blocking_send(value).unwrap();
        }
        drop(tx);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn slowest_consumer_of_any_shard_stops_the_producer() {
    let (mut tx, hub) = broadcast::<u64>(2);
    let (mut quick, quick_shard) = hub.relay(shard(3));
    let (mut slow, slow_shard) = hub.relay(shard(3));
    let mut consumers = [quick_shard.subscribe(), slow_shard.subscribe()];
    let mut sent = 0;
    let mut send_all = |relays: &mut [&mut Relay<u64>]| {
        loop {
            for relay in relays.iter_mut() {
                assert!(poll(relay).is_pending());
            }
            if tx.try_send(sent).is_err() {
                return sent;
            }
            sent += 1;
        }
    };
    assert_eq!(send_all(&mut [&mut quick, &mut slow]), 5);
    assert_eq!(drain(&mut consumers[0]), [0, 1, 2]);
    assert_eq!(send_all(&mut [&mut quick, &mut slow]), 5);
    assert_eq!(drain(&mut consumers[1]), [0, 1, 2]);
    assert_eq!(send_all(&mut [&mut quick, &mut slow]), 8);
}

#[test]
fn relay_passes_on_completion_and_failure() {
    let (mut tx, hub) = broadcast::<u64>(4);
    let (mut relay, shard_hub) = hub.relay(shard(4));
    let mut rx = shard_hub.subscribe();
    tx.try_send(1).unwrap();
    tx.complete();
    assert_eq!(poll(&mut relay), Poll::Ready(0));
    assert_eq!(rx.blocking_recv(), Some(1));
    assert_eq!(rx.blocking_recv(), None);
    assert!(rx.error().is_none());

    let (mut tx, hub) = BroadcastHub::<u64, i32>::options().build();
    let (relay, shard_hub) = hub.relay(BroadcastHub::options());
    let (mut direct, mut rx) = (hub.subscribe(), shard_hub.subscribe());
    tx.fail(7);
    assert_eq!(relay.blocking_run(), 0);
    assert_eq!(direct.blocking_recv(), None);
    assert_eq!(rx.blocking_recv(), None);
    assert_eq!(rx.error().and_then(HubError::failure), Some(&7));
}

#[test]
fn dropped_relay_fails_shard_and_leaves_hub() {
    let (mut tx, hub) = broadcast::<u64>(4);
    let (mut relay, shard_hub) = hub.relay(shard(4));
    let mut rx = shard_hub.subscribe();
    tx.try_send(1).unwrap();
    assert!(poll(&mut relay).is_pending());
    assert_eq!(hub.receiver_count(), 1);
    drop(relay);
    assert_eq!(hub.receiver_count(), 0);
    assert_eq!(rx.blocking_recv(), None);
    assert!(matches!(rx.error(), Some(HubError::Abandoned)));
    assert!(!hub.is_closed());
}

#[test]
fn relay_ends_when_its_shard_is_closed() {
    let (tx, hub) = broadcast::<u64>(4);
    let (mut first, shard_hub) = hub.relay(shard(4));
    assert!(poll(&mut first).is_pending());
    drop(shard_hub);
    assert_eq!(poll(&mut first), Poll::Ready(0));
    let (mut second, shard_hub) = hub.relay(shard(4));
    assert!(shard_hub.kill_switch().fail("stop"));
    assert_eq!(poll(&mut second), Poll::Ready(0));
    assert_eq!(hub.receiver_count(), 0, "a finished relay has left");
    assert!(!tx.is_closed());
}

#[test]
fn shard_without_consumers_waits_or_drops() {
    let check = |on_empty, expected: usize| {
        let (mut tx, hub) = broadcast::<u64>(2);
        let (mut relay, _shard) = hub.relay(shard(3).on_empty(on_empty));
        let sent = (0..20).take_while(|value| {
            assert!(poll(&mut relay).is_pending());
            tx.try_send(*value).is_ok()
        });
        assert_eq!(sent.count(), expected);
    };
    check(OnEmpty::Store, 5);
    check(OnEmpty::Drop, 20);
}

#[test]
fn relay_returns_the_number_of_lost_elements() {
    let (mut tx, hub) = BroadcastHub::<u64>::options()
        .capacity(2)
        .on_slow(OnSlow::DropOldest)
        .build();
    let (relay, shard_hub) = hub.relay(shard(4));
    let mut rx = shard_hub.subscribe();
    for value in 0..5 {
        tx.try_send(value).unwrap();
    }
    drop(tx);
    assert_eq!(relay.blocking_run(), 3);
    assert_eq!(drain(&mut rx), [3, 4]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Run(usize),
    Join(usize),
    Receive(usize),
    Leave(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Send),
        3 => (0..2_usize).prop_map(Step::Run),
        1 => (0..2_usize).prop_map(Step::Join),
        8 => (0..8_usize).prop_map(Step::Receive),
        1 => (0..8_usize).prop_map(Step::Leave),
    ]
}

proptest! {
    /// Whatever the order of steps, each consumer gets a run of elements without gaps, up to the last.
    #[test]
    fn consumers_of_shards_see_no_gap(
        capacity in 1..5_usize,
        shard_capacity in 1..5_usize,
        steps in vec(step(), 1..200),
    ) {
        let (mut tx, hub) = broadcast::<u64>(capacity);
        let (mut relays, shards): (Vec<_>, Vec<_>) =
            (0..2).map(|_| hub.relay(shard(shard_capacity))).unzip();
        let mut consumers: Vec<(BroadcastReceiver<u64>, Option<u64>)> = Vec::new();
        let mut sent = 0;
        let receive = |(rx, next): &mut (BroadcastReceiver<u64>, Option<u64>)| {
            if let Ok(value) = rx.try_recv() {
                assert_eq!(value, next.unwrap_or(value));
                *next = Some(value + 1);
            }
        };
        for step in steps {
            let count = consumers.len();
            match step {
                Step::Send => sent += u64::from(tx.try_send(sent).is_ok()),
                Step::Run(index) => assert!(poll(&mut relays[index]).is_pending()),
                Step::Join(index) => consumers.push((shards[index].subscribe(), None)),
                Step::Receive(index) if count > 0 => receive(&mut consumers[index % count]),
                Step::Leave(index) if count > 0 => drop(consumers.swap_remove(index % count)),
                Step::Receive(_) | Step::Leave(_) => {}
            }
        }
        tx.complete();
        consumers.extend(shards.iter().map(|shard| (shard.subscribe(), None)));
        while consumers.iter().any(|(rx, _)| !rx.has_ended()) {
            for relay in &mut relays {
                let _ = poll(relay);
            }
            for consumer in &mut consumers {
                receive(consumer);
            }
        }
        for (_, next) in consumers {
            assert!(next.is_none_or(|next| next == sent));
        }
    }
}
