//! Queues between threads: order, ends, bounds, and panics.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanline::scheduler::{
    Bound, CurrentThread, EventLoop, Immediate, NewThread, ThreadPool, VirtualTime,
};
use fanline::testing::{Recorder, complete, error, hot, next};
use fanline::{
    Guard, Notification, Observable, ObservableExt, Observer, Scheduler, Subject, observer, subject,
};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A source that emits a range on the subscribing thread, one value at a time.
#[derive(Clone)]
struct Values(std::ops::Range<u32>);

impl Observable for Values {
    type Item = u32;
    type Error = Infallible;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<u32> + Send + 'static,
    {
        for value in self.0 {
            observer.next_owned(value);
            if observer.is_closed() {
                return Guard::closed();
            }
        }
        observer.complete();
        Guard::closed()
    }
}

/// Returns an observer that sends each value to `tx`, and a signal to `done` on completion.
fn sender(tx: Sender<u32>, done: Sender<()>) -> impl Observer<u32> + Send + 'static {
    observer(move |value: &u32| tx.send(*value).unwrap())
        .on_complete(move || done.send(()).unwrap())
}

fn check_order<S: Scheduler>(scheduler: S) {
    let (tx, rx) = mpsc::channel();
    let (done, end) = mpsc::channel();
    let guard = Values(0..20_000)
        .observe_on(scheduler.clone())
        .observe_on(scheduler)
        .subscribe_with(sender(tx, done));
    end.recv_timeout(TIMEOUT).expect("the end arrives");
    assert_eq!(
        rx.try_iter().collect::<Vec<_>>(),
        (0..20_000).collect::<Vec<_>>()
    );
    drop(guard);
}

#[test]
fn order_is_preserved_on_every_scheduler() {
    check_order(Immediate);
    check_order(CurrentThread);
    check_order(NewThread);
    check_order(EventLoop::new());
    check_order(ThreadPool::new(1));
    check_order(ThreadPool::new(3));
}

/// Without a bound, a range passes its values to the queue in batches. With a bound it passes them one by
/// one.
#[test]
fn range_is_delivered_completely_and_stops_when_closed() {
    for bound in [None, Some(Bound::block(3))] {
        for length in [0, 1, 2, 64, 65, 66, 5_000] {
            let (tx, rx) = mpsc::channel();
            let (done, end) = mpsc::channel();
            let range = fanline::range(0..length);
            let observed = match bound.clone() {
                None => range.observe_on(EventLoop::new()),
                Some(bound) => range.observe_on_with(EventLoop::new(), bound),
            };
            let guard = observed.subscribe_with(sender(tx, done));
            end.recv_timeout(TIMEOUT).expect("the end arrives");
            assert!(rx.try_iter().eq(0..length), "{length}");
            drop(guard);
        }
    }
    // If the range did not stop early, this test would never end.
    let (tx, rx) = mpsc::channel();
    let first = fanline::range(0..).observe_on(EventLoop::new()).take(100);
    first
        .subscribe(move |value: &i64| tx.send(*value).unwrap())
        .detach();
    assert!(rx.iter().eq(0..100));
}

#[test]
fn error_is_delivered_after_queued_values() {
    let time = VirtualTime::new();
    let source = hot(&time, [next(10, 'a'), next(10, 'b'), error(10, "gone")]);
    let slow = VirtualTime::new();
    let recorder = Recorder::new(&time);
    let guard = source
        .clone()
        .observe_on(slow.clone())
        .subscribe_with(recorder.clone());
    time.run();
    assert_eq!(recorder.events(), []);
    time.advance_by(Duration::from_nanos(5));
    slow.run();
    assert_eq!(
        recorder.events(),
        [next(15, 'a'), next(15, 'b'), error(15, "gone")]
    );
    drop(guard);
}

#[test]
fn observer_runs_on_scheduler_thread() {
    let (tx, rx) = mpsc::channel();
    let event_loop = EventLoop::options().name("the-loop").build();
    let guard = Values(0..3).observe_on(event_loop).subscribe(move |_| {
        tx.send(std::thread::current().name().map(str::to_owned))
            .unwrap()
    });
    for _ in 0..3 {
        let name = rx.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(name.as_deref(), Some("the-loop"));
    }
    drop(guard);
}

#[test]
fn slow_observer_does_not_block_source() {
    let (mut tx, source) = subject::<u32>();
    let (open, gate) = mpsc::channel::<()>();
    let (seen, rx) = mpsc::channel();
    let guard = source.observe_on(NewThread).subscribe(move |value| {
        gate.recv_timeout(TIMEOUT).unwrap();
        seen.send(*value).unwrap();
    });
    for value in 0..1000 {
        tx.next(value);
    }
    assert!(rx.try_recv().is_err());
    for value in 0..1000 {
        open.send(()).unwrap();
        assert_eq!(rx.recv_timeout(TIMEOUT), Ok(value));
    }
    drop(guard);
}

/// Counts drops of its clones.
#[derive(Clone)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn unsubscribe_drops_queued_values_and_observer() {
    let time = VirtualTime::new();
    let (mut tx, source) = subject::<Counted>();
    let (values, observers) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let held = Counted(observers.clone());
    let guard = source.observe_on(time.clone()).subscribe(move |_| {
        let _held = &held;
        panic!("nothing is delivered");
    });
    for _ in 0..3 {
        tx.next(Counted(values.clone()));
    }
    assert_eq!(values.load(Ordering::SeqCst), 3, "the subject's own values");
    assert!(tx.has_observers());
    drop(guard);
    assert_eq!(observers.load(Ordering::SeqCst), 1);
    assert!(!tx.has_observers(), "the source is unsubscribed");
    time.run();
    drop(tx);
    assert_eq!(
        values.load(Ordering::SeqCst),
        6,
        "the queued clones are dropped too"
    );
}

#[test]
fn closed_observer_unsubscribes_source() {
    struct One(Recorder<u32>, bool);
    impl Observer<u32> for One {
        fn next(&mut self, value: &u32) {
            self.0.next(value);
            self.0.complete();
            self.1 = true;
        }
        fn error(&mut self, _: &Infallible) {}
        fn complete(&mut self) {
            panic!("called after the end");
        }
        fn is_closed(&self) -> bool {
            self.1
        }
    }
    let time = VirtualTime::new();
    let (mut tx, source) = subject::<u32>();
    let recorder = Recorder::new(&time);
    let guard = source
        .observe_on(time.clone())
        .subscribe_with(One(recorder.clone(), false));
    tx.next(1);
    tx.next(2);
    time.run();
    assert_eq!(recorder.events(), [next(0, 1), complete(0)]);
    assert!(
        !tx.has_observers(),
        "the source is unsubscribed without another value"
    );
    assert!(guard.is_closed());
    tx.complete();
}

#[test]
fn panic_ends_one_subscription_and_worker_continues() {
    let (panicked, panics) = mpsc::channel();
    let event_loop = EventLoop::options()
        .on_panic(move |_| panicked.send(()).unwrap())
        .build();
    let (mut tx, source) = subject::<u32>();
    let (seen, rx) = mpsc::channel();
    let bad = source
        .clone()
        .observe_on(event_loop.clone())
        .subscribe(|value| assert!(*value < 2, "not that one"));
    let good = source
        .observe_on(event_loop)
        .subscribe(move |value| seen.send(*value).unwrap());
    for value in 0..5 {
        tx.next(value);
    }
    let received: Vec<_> = (0..5).map(|_| rx.recv_timeout(TIMEOUT).unwrap()).collect();
    assert_eq!(received, [0, 1, 2, 3, 4]);
    // The other subscription may receive all values before this one receives the value that it rejects.
    panics.recv_timeout(TIMEOUT).unwrap();
    assert!(bad.is_closed());
    assert_eq!(tx.observer_count(), 1);
    drop(good);
    assert!(panics.try_recv().is_err());
}

/// Returns the events that pass a queue of two values, if 1 to 6 are sent before the queue is emptied.
fn events_through_bound(bound: Bound<&'static str>) -> Vec<Notification<u32, &'static str>> {
    let (time, lane) = (VirtualTime::new(), VirtualTime::new());
    let events = (1..=6).map(|n| next(n, u32::try_from(n).unwrap()));
    let source = hot(&time, events.chain([complete(7)]));
    let recorder = Recorder::new(&time);
    let guard = source
        .observe_on_with(lane.clone(), bound)
        .subscribe_with(recorder.clone());
    time.run();
    lane.run();
    drop(guard);
    recorder
        .events()
        .into_iter()
        .map(|recorded| recorded.event)
        .collect()
}

#[test]
fn full_queue_follows_overflow_policy() {
    use Notification::{Complete, Error, Next};
    assert_eq!(
        events_through_bound(Bound::drop_oldest(2)),
        [Next(5), Next(6), Complete]
    );
    assert_eq!(
        events_through_bound(Bound::drop_newest(2)),
        [Next(1), Next(2), Complete]
    );
    assert_eq!(
        events_through_bound(Bound::fail(2, || "too many")),
        [Next(1), Next(2), Error("too many")]
    );
    let all: Vec<_> = (1..=6).map(Next).chain([Complete]).collect();
    assert_eq!(
        events_through_bound(Bound::block(2)),
        all,
        "the sender emptied the queue itself"
    );
}

#[test]
fn full_queue_blocks_source() {
    for capacity in [1, 2, 7] {
        let (tx, rx) = mpsc::channel();
        let (done, end) = mpsc::channel();
        let guard = Values(0..2000)
            .observe_on_with(NewThread, Bound::block(capacity))
            .subscribe_with(sender(tx, done));
        end.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(
            rx.try_iter().collect::<Vec<_>>(),
            (0..2000).collect::<Vec<_>>()
        );
        drop(guard);
    }
}

#[test]
fn source_on_observing_thread_does_not_deadlock() {
    fn check<S: Scheduler>(scheduler: &S) {
        let (tx, rx) = mpsc::channel();
        let (done, end) = mpsc::channel();
        let guard = Values(0..100)
            .observe_on_with(scheduler.clone(), Bound::block(3))
            .subscribe_on(scheduler.clone())
            .subscribe_with(sender(tx, done));
        end.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(
            rx.try_iter().collect::<Vec<_>>(),
            (0..100).collect::<Vec<_>>()
        );
        drop(guard);
    }
    check(&Immediate);
    check(&CurrentThread);
    check(&EventLoop::new());
    check(&ThreadPool::new(1));
}

#[test]
fn unsubscribe_unblocks_source() {
    let (mut tx, source) = subject::<u32>();
    let (open, gate) = mpsc::channel::<()>();
    let guard = source
        .observe_on_with(NewThread, Bound::block(1))
        .subscribe(move |_| {
            let _ = gate.recv_timeout(TIMEOUT);
        });
    let sent = Arc::new(AtomicBool::new(false));
    let flag = sent.clone();
    let emitter = std::thread::spawn(move || {
        for value in 0..10 {
            tx.next(value);
        }
        flag.store(true, Ordering::SeqCst);
    });
    drop(guard);
    emitter.join().unwrap();
    assert!(sent.load(Ordering::SeqCst));
    drop(open);
}

#[test]
fn scheduler_shutdown_ends_subscription() {
    let event_loop = EventLoop::new();
    let (mut tx, source) = subject::<u32>();
    let guard = source.observe_on(event_loop.clone()).subscribe(|_| {});
    event_loop.shut_down();
    tx.next(1);
    assert!(guard.is_closed());
    assert!(!tx.has_observers());
}

#[test]
fn unsubscribe_and_wait_waits_for_call_in_progress() {
    let (mut tx, source) = subject::<u32>();
    let (began, begun) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    let flag = over.clone();
    let guard = source.observe_on(NewThread).subscribe(move |_| {
        began.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        flag.store(true, Ordering::SeqCst);
    });
    tx.next(1);
    begun.recv_timeout(TIMEOUT).unwrap();
    guard.unsubscribe_and_wait();
    assert!(over.load(Ordering::SeqCst));
}

#[test]
fn subscribe_on_subscribes_on_scheduler() {
    let time = VirtualTime::new();
    let source = hot(&time, [next(10, 1), next(20, 2), complete(30)]);
    let recorder = Recorder::<u32>::new(&time);
    let guard = source
        .clone()
        .subscribe_on(time.clone())
        .subscribe_with(recorder.clone());
    assert_eq!(source.subscriptions().len(), 0);
    time.run();
    assert_eq!(recorder.events(), [next(10, 1), next(20, 2), complete(30)]);
    drop(guard);
}

#[test]
fn subscribe_on_cancelled_early_never_subscribes() {
    let time = VirtualTime::new();
    let source = hot::<u32, Infallible>(&time, []);
    let held = Arc::new(AtomicUsize::new(0));
    let counted = Counted(held.clone());
    let guard = source
        .clone()
        .subscribe_on(time.clone())
        .subscribe(move |_| drop(counted.clone()));
    drop(guard);
    assert_eq!(
        held.load(Ordering::SeqCst),
        1,
        "the observer is dropped at once"
    );
    time.run();
    assert_eq!(source.subscriptions(), []);
}

#[test]
fn and_unsubscribe_unsubscribes_on_scheduler() {
    let time = VirtualTime::new();
    let source = hot::<u32, Infallible>(&time, []);
    let here = source.clone().subscribe_on(time.clone()).subscribe(|_| {});
    let there = source
        .clone()
        .subscribe_on(time.clone())
        .and_unsubscribe()
        .subscribe(|_| {});
    time.run();
    drop((here, there));
    let open = || {
        source
            .subscriptions()
            .iter()
            .filter(|s| s.1.is_none())
            .count()
    };
    assert_eq!(open(), 1);
    time.run();
    assert_eq!(open(), 0);
}

#[test]
fn unsubscribe_stops_endless_source_on_new_thread() {
    let (tx, rx) = mpsc::channel();
    let (done, end) = mpsc::channel();
    let held = Done(done);
    let guard = Values(0..u32::MAX)
        .subscribe_on(NewThread)
        .subscribe(move |value| {
            let _held = &held;
            let _ = tx.send(*value);
        });
    assert_eq!(rx.recv_timeout(TIMEOUT), Ok(0));
    guard.unsubscribe_and_wait();
    end.recv_timeout(TIMEOUT)
        .expect("the observer was not dropped");
}

struct Done(Sender<()>);

impl Drop for Done {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn chained_observe_on_loses_nothing() {
    for _ in 0..200 {
        let sum = Arc::new(Mutex::new(0_u64));
        let (done, end) = mpsc::channel();
        let into = sum.clone();
        let total = observer(move |value: &u32| *into.lock().unwrap() += u64::from(*value))
            .on_complete(move || done.send(()).unwrap());
        let guard = Values(0..500)
            .observe_on(ThreadPool::global())
            .observe_on_with(ThreadPool::global(), Bound::block(5))
            .observe_on(EventLoop::new())
            .subscribe_with(total);
        end.recv_timeout(TIMEOUT).expect("no wake-up is lost");
        assert_eq!(*sum.lock().unwrap(), 499 * 500 / 2);
        drop(guard);
    }
}

/// State that is not atomic can move with the values from thread to thread.
#[test]
fn effects_of_one_action_are_visible_to_the_next() {
    let (done, end) = mpsc::channel();
    let mut log = Vec::new();
    let guard = Values(0..5000)
        .observe_on_with(ThreadPool::new(4), Bound::block(16))
        .subscribe_with(
            observer(move |value: &u32| {
                assert_eq!(log.len(), usize::try_from(*value).unwrap());
                log.push(*value);
            })
            .on_complete(move || done.send(()).unwrap()),
        );
    end.recv_timeout(TIMEOUT)
        .expect("all values arrived in order");
    drop(guard);
}

#[test]
fn take_before_observe_on_delivers_values_and_end() {
    let (tx, rx) = mpsc::channel();
    let (done, end) = mpsc::channel();
    let guard = Values(0..u32::MAX)
        .take(5)
        .observe_on(ThreadPool::global())
        .subscribe_with(sender(tx, done));
    end.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    drop(guard);
}

/// The bound does not count values that the observer has received, including the one that it is processing.
#[test]
fn current_value_does_not_count_toward_bound() {
    let time = VirtualTime::new();
    let tx = Subject::<u32>::new();
    let (again, seen) = (tx.clone(), Arc::new(Mutex::new(Vec::new())));
    let log = seen.clone();
    let guard = tx
        .clone()
        .observe_on_with(time.clone(), Bound::drop_newest(2))
        .subscribe(move |value| {
            log.lock().unwrap().push(*value);
            if *value == 1 {
                again.next(10);
                again.next(11);
            }
        });
    tx.next(1);
    tx.next(2);
    tx.next(3);
    time.run();
    assert_eq!(
        *seen.lock().unwrap(),
        [1, 2, 10],
        "3 and 11 found the queue full"
    );
    drop(guard);
}

/// Unsubscribes while values flow. No value is delivered after that, and each value is dropped once.
#[test]
fn unsubscribe_during_delivery_drops_each_value_once() {
    for round in 0..200_u32 {
        let value = Arc::new(());
        let (mut tx, source) = subject::<Arc<()>>();
        let over = Arc::new(AtomicBool::new(false));
        let flag = over.clone();
        let check =
            move |_: &Arc<()>| assert!(!flag.load(Ordering::SeqCst), "called after unsubscribing");
        let guard = if round % 2 == 0 {
            source.observe_on(ThreadPool::global()).subscribe(check)
        } else {
            source
                .observe_on_with(ThreadPool::global(), Bound::block(3))
                .subscribe(check)
        };
        let sent = value.clone();
        let emitter = std::thread::spawn(move || {
            for _ in 0..500 {
                tx.next(sent.clone());
            }
        });
        for _ in 0..round * 20 {
            std::hint::spin_loop();
        }
        guard.unsubscribe_and_wait();
        over.store(true, Ordering::SeqCst);
        emitter.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
