//! User code that panics or calls back into the hub: clones, drops, wakers, and closures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use fanline::hub::{BroadcastHub, BroadcastReceiver, OnSlow, TryRecvError, broadcast};

fn panics(body: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(body)).is_err()
}

/// An element whose clone panics when the counter `clones_until` reaches 1.
#[derive(Debug)]
struct Bad {
    number: u32,
    clones_until: Arc<AtomicUsize>,
}

impl Clone for Bad {
    fn clone(&self) -> Self {
        let left = self.clones_until.fetch_sub(1, Ordering::Relaxed);
        assert_ne!(left, 1, "on purpose");
        Self {
            number: self.number,
            clones_until: self.clones_until.clone(),
        }
    }
}

#[test]
fn panicking_clone_leaves_element_unreceived() {
    let (mut tx, hub) = broadcast::<Bad>(4);
    let mut rx = hub.subscribe();
    for number in 0..3 {
        let clones_until = Arc::new(AtomicUsize::new(if number == 1 { 1 } else { 100 }));
        tx.try_send(Bad {
            number,
            clones_until,
        })
        .unwrap();
    }
    assert_eq!(rx.try_recv().unwrap().number, 0);
    assert!(panics(|| drop(rx.try_recv())));
    let remaining: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok())
        .map(|bad| bad.number)
        .collect();
    assert_eq!(remaining, [1, 2]);
}

/// After the panic the consumer releases its claim on the element, and the oldest elements are overwritten.
/// The consumer must not read an overwritten element.
#[test]
fn consumer_can_lag_after_panicking_clone() {
    let (mut tx, hub) = BroadcastHub::<Bad>::options()
        .capacity(2)
        .on_slow(OnSlow::DropOldest)
        .build();
    let mut rx = hub.subscribe();
    for number in 0..6 {
        let clones_until = Arc::new(AtomicUsize::new(if number == 0 { 1 } else { 100 }));
        let element = Bad {
            number,
            clones_until,
        };
        tx.try_send(element).unwrap();
        if number == 0 {
            assert!(panics(|| drop(rx.try_recv())));
            rx.release();
        }
    }
    assert!(matches!(rx.try_recv(), Err(TryRecvError::Lagged(4))));
    assert_eq!(rx.try_recv().unwrap().number, 4);
}

struct BadDrop(u32, Arc<AtomicUsize>);

impl Drop for BadDrop {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
        assert_ne!(self.0, 1, "on purpose");
    }
}

#[test]
fn panicking_drop_loses_no_other_element() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let (mut tx, hub) = broadcast::<BadDrop>(2);
    let mut rx = hub.subscribe();
    let mut seen = Vec::new();
    for number in 0..6 {
        let value = BadDrop(number, dropped.clone());
        assert_eq!(panics(|| drop(tx.try_send(value))), number == 3);
        let waker = Waker::noop();
        let mut context = Context::from_waker(waker);
        while let std::task::Poll::Ready(Some(value)) = rx.poll_next_ref(&mut context) {
            seen.push(value.0);
        }
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    drop((tx, rx, hub));
    assert_eq!(dropped.load(Ordering::Relaxed), 6);
}

struct OnWake<F>(F);

impl<F: Fn() + Send + Sync> Wake for OnWake<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn park(rx: &mut BroadcastReceiver<u64>, on_wake: impl Fn() + Send + Sync + 'static) {
    let waker = Waker::from(Arc::new(OnWake(on_wake)));
    let mut context = Context::from_waker(&waker);
    assert!(rx.poll_next_ref(&mut context).is_pending());
}

#[test]
fn panicking_waker_costs_no_other_wake_up() {
    let (mut tx, hub) = broadcast::<u64>(2);
    let woken = Arc::new(AtomicUsize::new(0));
    let mut consumers: Vec<_> = (0..3).map(|_| hub.subscribe()).collect();
    for (index, rx) in consumers.iter_mut().enumerate() {
        let woken = woken.clone();
        park(rx, move || {
            woken.fetch_add(1, Ordering::Relaxed);
            assert_ne!(index, 0, "on purpose");
        });
    }
    assert!(panics(|| tx.try_send(1).unwrap()));
    assert_eq!(woken.load(Ordering::Relaxed), 3);
    for rx in &mut consumers {
        assert_eq!(rx.try_recv().unwrap(), 1);
    }
    tx.try_send(2).unwrap();
}

#[test]
fn waker_may_drop_consumers_and_subscribe() {
    let (mut tx, hub) = broadcast::<u64>(2);
    let consumers: Vec<_> = (0..3).map(|_| Some(hub.subscribe())).collect();
    let consumers = Arc::new(Mutex::new(consumers));
    for index in 0..3 {
        let (all, hub) = (consumers.clone(), hub.clone());
        let mut rx = consumers.lock().unwrap()[index].take().unwrap();
        park(&mut rx, move || {
            // Drops the receiver of this waker, and the receiver that is woken next.
            for index in [index, (index + 1) % 3] {
                let gone = all.lock().unwrap()[index].take();
                drop(gone);
            }
            drop(hub.subscribe());
        });
        consumers.lock().unwrap()[index] = Some(rx);
    }
    tx.try_send(1).unwrap();
    assert_eq!(hub.receiver_count(), 0);
    drop(hub);
    // The wakers owned the last handles of the hub, and have been dropped.
    assert!(tx.is_closed());
}

#[test]
fn panicking_closure_has_received_its_element() {
    let (mut tx, hub) = broadcast::<u64>(4);
    let mut rx = hub.subscribe();
    for value in 0..4 {
        tx.try_send(value).unwrap();
    }
    assert!(panics(
        || rx.blocking_for_each_ref(|value| assert_ne!(*value, 1))
    ));
    assert_eq!(rx.try_recv().unwrap(), 2);
}

#[test]
fn large_and_unpin_types_are_delivered() {
    struct Large([u64; 512], std::marker::PhantomPinned);
    let (mut tx, hub) = broadcast::<Large>(3);
    let mut rx = hub.subscribe();
    for value in 0..10 {
        let large = Large([value; 512], std::marker::PhantomPinned);
        assert!(tx.try_send(large).is_ok());
        assert_eq!(rx.blocking_recv_ref().unwrap().0[511], value);
        rx.release();
    }
}
