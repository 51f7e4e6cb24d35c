//! Drops of elements, wakers that call back into the hub, and futures that are dropped early.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use fanline::hub::{BroadcastHub, BroadcastReceiver, BroadcastSender, OnSlow, broadcast};
use fanline::scheduler::VirtualTime;
use futures::executor::block_on;
use futures::{FutureExt, StreamExt, poll};

/// Counts the drops of each element, including its clones.
#[derive(Clone, Default)]
struct Drops(Arc<Mutex<HashMap<u64, usize>>>);

impl Drops {
    fn element(&self, number: u64) -> Counted {
        Counted(number, self.clone())
    }

    fn of(&self, number: u64) -> usize {
        self.0.lock().unwrap().get(&number).copied().unwrap_or(0)
    }

    fn all(&self, count: u64) -> Vec<usize> {
        (0..count).map(|number| self.of(number)).collect()
    }
}

struct Counted(u64, Drops);

impl Drop for Counted {
    fn drop(&mut self) {
        *self.1.0.lock().unwrap().entry(self.0).or_insert(0) += 1;
    }
}

fn noop_poll(rx: &mut BroadcastReceiver<Counted>) -> Option<u64> {
    match rx.poll_next_ref(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value.map(|counted| counted.0),
        Poll::Pending => None,
    }
}

/// An element is dropped when its slot is reused. The remaining elements are dropped with the hub.
#[test]
fn element_is_dropped_once_when_its_slot_is_reused() {
    for capacity in [1, 2, 4] {
        let drops = Drops::default();
        let (mut tx, hub) = broadcast::<Counted>(capacity);
        let mut rx = hub.subscribe();
        for number in 0..20 {
            assert!(tx.try_send(drops.element(number)).is_ok());
            let gone = (number + 1).saturating_sub(capacity as u64);
            let expected: Vec<_> = (0..20).map(|one| usize::from(one < gone)).collect();
            assert_eq!(
                drops.all(20),
                expected,
                "after {number}, capacity {capacity}"
            );
            assert_eq!(noop_poll(&mut rx), Some(number));
            rx.release();
        }
        drop(tx);
        drop(hub);
        assert_eq!(drops.all(20).iter().sum::<usize>(), 20 - capacity);
        drop(rx);
        assert_eq!(drops.all(20), vec![1; 20]);
    }
}

#[test]
fn released_elements_are_dropped_once() {
    let drops = Drops::default();
    let (mut tx, hub) = broadcast::<Counted>(4);
    let mut fast = hub.subscribe();
    let mut slow = hub.subscribe();
    for number in 0..4 {
        assert!(tx.try_send(drops.element(number)).is_ok());
    }
    for _ in 0..3 {
        noop_poll(&mut fast);
    }
    noop_poll(&mut slow);
    tx.release();
    assert_eq!(drops.all(4), [0; 4], "lent to the slow consumer");
    noop_poll(&mut slow);
    tx.release();
    assert_eq!(drops.all(4), [1, 0, 0, 0]);
    drop(slow);
    fast.release();
    tx.release();
    assert_eq!(drops.all(4), [1, 1, 1, 0]);
    tx.release();
    drop((tx, hub, fast));
    assert_eq!(drops.all(4), [1; 4]);
}

#[test]
fn unsent_elements_are_dropped_once_or_returned() {
    let drops = Drops::default();
    let (mut tx, hub) = broadcast::<Counted>(1);
    let rx = hub.subscribe();
    tx.send(drops.element(0)).now_or_never().unwrap().unwrap();
    // The future is dropped while it waits for room.
    {
        let mut sending = Box::pin(tx.send(drops.element(1)));
        block_on(async { assert!(poll!(&mut sending).is_pending()) });
        assert_eq!(drops.of(1), 0);
    }
    assert_eq!(drops.of(1), 1);
    // The future is dropped before its first poll.
    drop(tx.send(drops.element(2)));
    assert_eq!(drops.of(2), 1);
    let back = tx.try_send(drops.element(3)).unwrap_err().into_inner();
    assert_eq!((back.0, drops.of(3)), (3, 0));
    drop((rx, hub));
    let back = tx.blocking_send(back).unwrap_err().0;
    assert_eq!((back.0, drops.of(3)), (3, 0));
    drop(back);
    drop(tx);
    assert_eq!(drops.all(4), [1; 4]);
}

#[test]
fn overwritten_elements_are_dropped_once() {
    let drops = Drops::default();
    let (mut tx, hub) = BroadcastHub::<Counted>::options()
        .capacity(4)
        .on_slow(OnSlow::DropOldest)
        .build();
    let mut rx = hub.subscribe();
    let idle = hub.subscribe();
    for number in 0..30 {
        assert!(tx.try_send(drops.element(number)).is_ok());
        if number % 7 == 0 {
            noop_poll(&mut rx);
            // `rx` still borrows the element that it received last. Without this call, the producer would
            // wait for that element.
            rx.release();
        }
    }
    drop((tx, hub, rx, idle));
    assert_eq!(drops.all(30), vec![1; 30]);
}

/// A dropped `send` leaves its waker behind. That waker affects no other `send`, and the next `send` is
/// woken.
#[test]
fn dropped_send_costs_no_wake_up() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(1);
        let mut rx = hub.subscribe();
        tx.send(0).await.unwrap();
        for _ in 0..3 {
            let mut sending = Box::pin(tx.send(1));
            assert!(poll!(&mut sending).is_pending());
        }
        let sending = async {
            tx.send(2).await.unwrap();
            tx.send(3).await.unwrap();
        };
        let receiving = async {
            for expected in [0, 2, 3] {
                assert_eq!(rx.next().await, Some(expected));
            }
        };
        futures::join!(sending, receiving);
    });
}

/// A dropped `next` receives nothing, and the following `next` gets the element.
#[test]
fn dropped_next_receives_nothing() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(4);
        let mut rx = hub.subscribe();
        {
            let mut next = Box::pin(rx.next());
            assert!(poll!(&mut next).is_pending());
            tx.send(1).await.unwrap();
        }
        assert_eq!(rx.lag(), 1);
        assert_eq!(rx.next().await, Some(1));
        {
            let mut slice = Box::pin(rx.next_slice());
            assert!(poll!(&mut slice).is_pending());
        }
        tx.send(2).await.unwrap();
        assert_eq!(rx.next_slice().await, Some(&[2][..]));
    });
}

/// A waker that counts wake-ups, and calls `act` at each one.
struct OnWake<F> {
    count: AtomicUsize,
    act: F,
}

impl<F: Fn() + Send + Sync> Wake for OnWake<F> {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        (self.act)();
    }
}

fn on_wake<F: Fn() + Send + Sync>(act: F) -> Arc<OnWake<F>> {
    Arc::new(OnWake {
        count: AtomicUsize::new(0),
        act,
    })
}

fn wakes<F>(waker: &OnWake<F>) -> usize {
    waker.count.load(Ordering::Relaxed)
}

fn park<F: Fn() + Send + Sync + 'static>(rx: &mut BroadcastReceiver<u64>, waker: &Arc<OnWake<F>>) {
    let waker = Waker::from(waker.clone());
    let pending = rx.poll_next_ref(&mut Context::from_waker(&waker));
    assert!(pending.is_pending());
}

#[test]
fn consumer_is_woken_once_by_its_last_waker() {
    let (mut tx, hub) = broadcast::<u64>(4);
    let mut rx = hub.subscribe();
    let (old, new) = (on_wake(|| {}), on_wake(|| {}));
    park(&mut rx, &old);
    park(&mut rx, &new);
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!((wakes(&old), wakes(&new)), (0, 1));
    assert_eq!(Arc::strong_count(&old), 1, "the waker was dropped");
    assert_eq!(Arc::strong_count(&new), 1, "the waker was dropped");
    assert_eq!((rx.blocking_recv(), rx.blocking_recv()), (Some(1), Some(2)));
    park(&mut rx, &old);
    drop(rx);
    assert_eq!(Arc::strong_count(&old), 1, "dropped with its consumer");
    tx.try_send(3).unwrap();
    assert_eq!(wakes(&old), 0);
}

/// A producer that often has to wait for room yields before it waits. It yields at most 64 times in a row,
/// and seldom if yields have not helped.
#[test]
fn producer_without_room_yields_a_bounded_number_of_times() {
    const YIELDS_MAX: usize = 64;
    let (mut tx, hub) = broadcast::<u64>(1);
    let mut rx = hub.subscribe();
    let counter = on_wake(|| {});
    let waker = Waker::from(counter.clone());
    let mut context = Context::from_waker(&waker);
    tx.try_send(0).unwrap();
    let mut waits_without_yield = 0;
    for value in 1..200 {
        let mut send = Box::pin(tx.send(value));
        let mut yields = 0;
        loop {
            assert!(send.as_mut().poll(&mut context).is_pending());
            if wakes(&counter) == yields {
                break;
            }
            yields += 1;
            assert!(yields <= YIELDS_MAX, "{value}");
        }
        waits_without_yield += usize::from(yields == 0);
        assert_eq!(rx.try_recv().unwrap(), value - 1);
        assert_eq!(wakes(&counter), yields + 1, "woken when there is room");
        assert!(send.as_mut().poll(&mut context).is_ready());
        counter.count.store(0, Ordering::Relaxed);
    }
    assert!(waits_without_yield > 180, "{waits_without_yield}");
}

/// All consumers were disconnected, and the producer waits for a new one. A clone of a receiver counts as
/// new.
#[test]
fn clone_of_disconnected_receiver_wakes_producer() {
    let time = VirtualTime::new();
    let (mut tx, hub) = BroadcastHub::<u64>::options()
        .capacity(1)
        .on_slow(OnSlow::Disconnect {
            after: Duration::from_secs(1),
        })
        .scheduler(time.clone())
        .build();
    let slow = hub.subscribe();
    tx.try_send(0).unwrap();
    let counter = on_wake(|| {});
    let waker = Waker::from(counter.clone());
    let mut context = Context::from_waker(&waker);
    let mut sending = Box::pin(tx.send(1));
    assert!(sending.poll_unpin(&mut context).is_pending());
    time.advance_by(Duration::from_secs(1));
    assert!(sending.poll_unpin(&mut context).is_pending());
    let before = wakes(&counter);
    let mut twin = slow.clone();
    assert_eq!(wakes(&counter), before + 1);
    assert!(sending.poll_unpin(&mut context).is_pending());
    assert_eq!(twin.try_recv().unwrap(), 0);
    assert_eq!(wakes(&counter), before + 2);
    assert!(sending.poll_unpin(&mut context).is_ready());
}

#[test]
fn batch_wakes_each_consumer_once() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(8);
        let mut consumers: Vec<_> = (0..40).map(|_| hub.subscribe()).collect();
        let wakers: Vec<_> = (0..40).map(|_| on_wake(|| {})).collect();
        for (rx, waker) in consumers.iter_mut().zip(&wakers) {
            park(rx, waker);
        }
        for value in 0..5 {
            tx.feed(value).await.unwrap();
        }
        assert!(wakers.iter().all(|waker| wakes(waker) == 0));
        tx.flush();
        assert!(wakers.iter().all(|waker| wakes(waker) == 1));
        for rx in &mut consumers {
            assert_eq!(rx.next_slice().await, Some(&[0, 1, 2, 3, 4][..]));
        }
    });
}

#[test]
fn full_hub_wakes_consumers_without_flush() {
    let (mut tx, hub) = broadcast::<u64>(2);
    let mut rx = hub.subscribe();
    let waker = on_wake(|| {});
    park(&mut rx, &waker);
    for value in 0..2 {
        tx.feed(value).now_or_never().unwrap().unwrap();
    }
    assert_eq!(wakes(&waker), 0);
    assert!(tx.feed(2).now_or_never().is_none());
    assert_eq!(wakes(&waker), 1);
}

#[test]
fn end_wakes_all_waiting_consumers() {
    let ends: [fn(BroadcastSender<u64>); 3] =
        [drop, |mut tx| tx.complete(), |mut tx| tx.fail("broken")];
    for end in ends {
        let (tx, hub) = broadcast::<u64>(2);
        let mut consumers: Vec<_> = (0..40).map(|_| hub.subscribe()).collect();
        let waker = on_wake(|| {});
        for rx in &mut consumers {
            park(rx, &waker);
        }
        end(tx);
        assert_eq!(wakes(&waker), 40);
        for rx in &mut consumers {
            assert_eq!(rx.next().now_or_never(), Some(None));
        }
    }
}

/// There are more consumers than a batch of wake-ups has, and some of their wakers panic.
#[test]
fn panicking_wakers_cost_no_other_wake_up() {
    let (mut tx, hub) = broadcast::<u64>(2);
    let mut consumers: Vec<_> = (0..100).map(|_| hub.subscribe()).collect();
    let fine = on_wake(|| {});
    let bad = on_wake(|| panic!("on purpose"));
    for (index, rx) in consumers.iter_mut().enumerate() {
        if index % 20 == 3 {
            park(rx, &bad);
        } else {
            park(rx, &fine);
        }
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| tx.try_send(1)));
    assert!(panicked.is_err());
    assert_eq!((wakes(&bad), wakes(&fine)), (5, 95));
    for rx in &mut consumers {
        assert_eq!(rx.try_recv().unwrap(), 1);
    }
    tx.try_send(2).unwrap();
}

/// A consumer moves on and wakes the producer, whose waker panics. The consumer has received its element
/// nevertheless.
#[test]
fn panicking_producer_waker_leaves_element_received() {
    let (mut tx, hub) = broadcast::<u64>(1);
    let mut rx = hub.subscribe();
    tx.try_send(1).unwrap();
    {
        let mut sending = Box::pin(tx.send(2));
        let bad = Waker::from(on_wake(|| panic!("on purpose")));
        assert!(
            sending
                .poll_unpin(&mut Context::from_waker(&bad))
                .is_pending()
        );
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| rx.try_recv()));
    assert!(panicked.is_err());
    assert_eq!(
        rx.lag(),
        0,
        "received, although the panic lost the return value"
    );
    tx.try_send(3).unwrap();
    assert_eq!(rx.try_recv().unwrap(), 3);
}

/// The producer waits for room, and its waker panics when a kill switch ends the hub. Waiting consumers are
/// still woken.
#[test]
fn panicking_producer_waker_does_not_hide_end_of_broadcast_hub() {
    let (mut tx, hub) = broadcast::<u64>(1);
    let mut slow = hub.subscribe();
    let mut waits = hub.subscribe();
    tx.try_send(1).unwrap();
    assert_eq!(waits.try_recv().unwrap(), 1);
    let fine = on_wake(|| {});
    park(&mut waits, &fine);
    let mut sending = Box::pin(tx.send(2));
    let bad = Waker::from(on_wake(|| panic!("on purpose")));
    let sent = sending.poll_unpin(&mut Context::from_waker(&bad));
    assert!(sent.is_pending());
    let switch = hub.kill_switch();
    let panicked = catch_unwind(AssertUnwindSafe(|| switch.fail("stop")));
    assert!(panicked.is_err());
    assert_eq!(wakes(&fine), 1);
    assert_eq!(waits.next().now_or_never(), Some(None));
    assert_eq!(slow.next().now_or_never(), Some(None));
    assert!(slow.error().is_some());
}

/// The producer's waker panics inside `subscribe`. The new consumer, which has no owner, is removed.
#[test]
fn panicking_subscribe_leaves_no_consumer() {
    let (mut tx, hub) = broadcast::<u64>(1);
    tx.try_send(0).unwrap();
    let mut sending = Box::pin(tx.send(1));
    let bad = Waker::from(on_wake(|| panic!("on purpose")));
    let sent = sending.poll_unpin(&mut Context::from_waker(&bad));
    assert!(sent.is_pending());
    let panicked = catch_unwind(AssertUnwindSafe(|| drop(hub.subscribe())));
    assert!(panicked.is_err());
    assert_eq!(hub.receiver_count(), 0);
    let mut rx = hub.subscribe();
    assert_eq!(rx.try_recv().unwrap(), 0);
}

/// A waker drops its own consumer and all others.
#[test]
fn waker_may_drop_all_consumers() {
    let (mut tx, hub) = broadcast::<u64>(2);
    let all = Arc::new(Mutex::new(Vec::new()));
    let waker = on_wake({
        let all = all.clone();
        move || {
            let gone: Vec<BroadcastReceiver<u64>> = std::mem::take(&mut *all.lock().unwrap());
            drop(gone);
        }
    });
    let mut consumers: Vec<_> = (0..100).map(|_| hub.subscribe()).collect();
    for rx in &mut consumers {
        park(rx, &waker);
    }
    *all.lock().unwrap() = consumers;
    tx.try_send(1).unwrap();
    assert_eq!(hub.receiver_count(), 0);
    // Consumers whose wakers were already taken are woken in vain. The others are not woken.
    assert!((1..100).contains(&wakes(&waker)));
    tx.try_send(2).unwrap();
    assert_eq!(hub.subscribe().next().now_or_never(), Some(Some(1)));
}

/// One thread drops consumers while another wakes them, repeatedly.
#[test]
fn parked_consumers_are_dropped_while_they_are_woken() {
    for round in 0..300 {
        let (mut tx, hub) = broadcast::<u64>(4);
        let waker = on_wake(|| {});
        let mut consumers: Vec<_> = (0..50).map(|_| hub.subscribe()).collect();
        for rx in &mut consumers {
            park(rx, &waker);
        }
        let leaving = std::thread::spawn(move || {
            for (index, rx) in consumers.into_iter().enumerate() {
                if index % 7 == round % 7 {
                    std::thread::yield_now();
                }
                drop(rx);
            }
        });
        for value in 0..4 {
            tx.try_send(value).unwrap_or_default();
        }
        leaving.join().unwrap();
        assert_eq!(hub.receiver_count(), 0);
        drop((tx, hub));
        assert_eq!(Arc::strong_count(&waker), 1);
    }
}

/// A different task may poll the receiver each time.
#[test]
fn receiver_may_move_between_tasks() {
    block_on(async {
        let (mut tx, hub) = broadcast::<u64>(1);
        let mut rx = hub.subscribe();
        for value in 0..100 {
            let mut next = Box::pin(rx.next());
            assert!(poll!(&mut next).is_pending());
            drop(next);
            let (sent, received) = futures::join!(tx.send(value), rx.next());
            sent.unwrap();
            assert_eq!(received, Some(value));
        }
        let remaining = rx.collect::<Vec<_>>();
        drop(tx);
        assert_eq!(remaining.await, []);
    });
}
