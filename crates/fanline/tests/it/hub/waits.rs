//! Permits, timeouts, and waits for the end, which all hubs have in common.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use fanline::Scheduler;
use fanline::hub::{
    BroadcastHub, BroadcastReceiver, BroadcastSender, MergeHub, MergeReceiver, MergeSender,
    PartitionHub, PartitionReceiver, PartitionSender, Partitioner,
};

const SECOND: Duration = Duration::from_secs(1);

fn broadcast(
    capacity: usize,
    time: impl Scheduler,
) -> (
    BroadcastSender<u64>,
    BroadcastReceiver<u64>,
    BroadcastHub<u64>,
) {
    let options = BroadcastHub::options().capacity(capacity);
    let (tx, hub) = options.scheduler(time).build();
    (tx, hub.subscribe(), hub)
}

fn merge(
    capacity: usize,
    time: impl Scheduler,
) -> (MergeSender<u64>, MergeReceiver<u64>, MergeHub<u64>) {
    let options = MergeHub::options().per_producer(capacity);
    let (hub, rx) = options.scheduler(time).build();
    (hub.producer(), rx, hub)
}

fn partition(
    capacity: usize,
    time: impl Scheduler,
) -> (
    PartitionSender<u64>,
    PartitionReceiver<u64>,
    PartitionHub<u64>,
) {
    let options = PartitionHub::options().capacity(capacity).scheduler(time);
    let (tx, hub) = options.build(Partitioner::by_index(|_, _| 0));
    (tx, hub.subscribe(), hub)
}

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future, and the number of its wake-ups.
struct Counted<F> {
    future: Pin<Box<F>>,
    count: Arc<Count>,
}

impl<F: Future> Counted<F> {
    fn pending(future: F) -> Self {
        let mut counted = Self {
            future: Box::pin(future),
            count: Arc::default(),
        };
        assert!(counted.poll().is_pending());
        counted
    }

    fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(self.count.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn wake_ups(&self) -> usize {
        self.count.0.load(Ordering::Relaxed)
    }

    /// Returns the output of a future that has been woken.
    fn ready(mut self) -> F::Output {
        assert!(self.wake_ups() > 0, "not woken");
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("pending"),
        }
    }
}

macro_rules! waits {
    ($hub:ident) => {
        mod $hub {
            use std::time::Duration;

            use fanline::hub::{
                HubClosed, RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError,
                TrySendError,
            };
            use fanline::scheduler::{ThreadPool, VirtualTime};
            use futures::executor::block_on;

            use super::{Counted, SECOND, $hub as hub};

            #[test]
            fn permit_sends_one_element() {
                block_on(async {
                    let (mut tx, mut rx, _hub) = hub(1, VirtualTime::new());
                    drop(tx.reserve().await.unwrap());
                    tx.reserve().await.unwrap().send(1).unwrap();
                    assert!(matches!(tx.try_reserve(), Err(TrySendError::Full(()))));
                    let reserve = Counted::pending(tx.reserve());
                    assert_eq!(rx.next().await, Some(1));
                    drop(reserve.ready().unwrap());
                    tx.try_reserve().unwrap().feed(2).unwrap();
                    drop(Counted::pending(tx.reserve()));
                    assert_eq!(rx.next().await, Some(2));
                    tx.try_send(3).unwrap();
                    assert_eq!(rx.next().await, Some(3));
                    assert!(matches!(rx.try_recv(), Err(TryRecvError::Empty)));
                });
            }

            #[test]
            fn permit_wakes_consumer_on_send_or_flush() {
                let (mut tx, mut rx, _hub) = hub(2, VirtualTime::new());
                let next = Counted::pending(rx.next());
                tx.try_reserve().unwrap().feed(1).unwrap();
                assert_eq!(next.wake_ups(), 0);
                tx.flush();
                assert_eq!(next.ready(), Some(1));
                let next = Counted::pending(rx.next());
                tx.try_reserve().unwrap().send(2).unwrap();
                assert_eq!(next.ready(), Some(2));
            }

            #[test]
            fn permit_of_closed_hub_returns_element() {
                for completes in [true, false] {
                    let (mut tx, rx, hub) = hub(1, VirtualTime::new());
                    let permit = tx.try_reserve().unwrap();
                    let switch = hub.kill_switch();
                    assert!(if completes {
                        switch.complete()
                    } else {
                        switch.fail("stop")
                    });
                    assert_eq!(permit.send(7), Err(SendError(7)));
                    assert_eq!(block_on(tx.reserve()).err(), Some(HubClosed));
                    assert!(matches!(tx.try_reserve(), Err(TrySendError::Closed(()))));
                    drop(rx);
                }
            }

            #[test]
            fn closed_waits_for_end() {
                let (mut tx, mut rx, hub) = hub(4, VirtualTime::new());
                drop(Counted::pending(tx.closed()));
                tx.try_send(1).unwrap();
                let closed = Counted::pending(tx.closed());
                assert!(hub.kill_switch().complete());
                closed.ready();
                block_on(tx.closed());
                assert_eq!(rx.blocking_recv(), Some(1));
                assert_eq!(rx.blocking_recv(), None);
            }

            #[test]
            fn closed_ends_when_no_consumer_is_possible() {
                let (mut tx, rx, hub) = hub(4, VirtualTime::new());
                let closed = Counted::pending(tx.closed());
                drop((rx, hub));
                closed.ready();
            }

            #[test]
            fn closed_wakes_consumer_of_fed_elements() {
                let (mut tx, mut rx, _hub) = hub(4, VirtualTime::new());
                let next = Counted::pending(rx.next());
                tx.try_reserve().unwrap().feed(1).unwrap();
                let closed = Counted::pending(tx.closed());
                assert_eq!(next.ready(), Some(1));
                drop(closed);
            }

            #[test]
            fn send_timeout_gives_up_at_deadline() {
                block_on(async {
                    let time = VirtualTime::new();
                    let (mut tx, mut rx, hub) = hub(1, time.clone());
                    tx.send_timeout(1, SECOND).await.unwrap();
                    let mut send = Counted::pending(tx.send_timeout(2, SECOND));
                    time.advance_by(SECOND - Duration::from_nanos(1));
                    assert!(send.poll().is_pending());
                    time.advance_by(Duration::from_nanos(1));
                    assert_eq!(send.ready(), Err(SendTimeoutError::Timeout(2)));
                    let refused = tx.send_timeout(3, Duration::ZERO).await;
                    assert_eq!(refused, Err(SendTimeoutError::Timeout(3)));
                    let send = Counted::pending(tx.send_timeout(4, SECOND));
                    assert_eq!(rx.next().await, Some(1));
                    send.ready().unwrap();
                    drop(Counted::pending(tx.send_timeout(5, SECOND)));
                    assert_eq!(rx.next().await, Some(4));
                    tx.send_timeout(6, Duration::ZERO).await.unwrap();
                    assert_eq!(rx.next().await, Some(6));
                    assert!(hub.kill_switch().complete());
                    let refused = tx.send_timeout(7, SECOND).await;
                    assert_eq!(refused, Err(SendTimeoutError::Closed(7)));
                    assert_eq!(rx.next().await, None);
                });
            }

            #[test]
            fn recv_timeout_gives_up_at_deadline() {
                block_on(async {
                    let time = VirtualTime::new();
                    let (mut tx, mut rx, hub) = hub(4, time.clone());
                    let mut recv = Counted::pending(rx.recv_timeout(SECOND));
                    time.advance_by(SECOND - Duration::from_nanos(1));
                    assert!(recv.poll().is_pending());
                    time.advance_by(Duration::from_nanos(1));
                    assert!(matches!(recv.ready(), Err(RecvTimeoutError::Timeout)));
                    tx.try_send(1).unwrap();
                    assert_eq!(rx.recv_timeout(Duration::ZERO).await.unwrap(), 1);
                    let empty = rx.recv_timeout(Duration::ZERO).await;
                    assert!(matches!(empty, Err(RecvTimeoutError::Timeout)));
                    let recv = Counted::pending(rx.recv_timeout(SECOND));
                    tx.try_send(2).unwrap();
                    assert_eq!(recv.ready().unwrap(), 2);
                    drop(Counted::pending(rx.recv_timeout(SECOND)));
                    tx.try_send(3).unwrap();
                    assert_eq!(rx.recv().await.unwrap(), 3);
                    assert!(hub.kill_switch().complete());
                    let end = rx.recv_timeout(SECOND).await;
                    assert!(matches!(end, Err(RecvTimeoutError::Completed)));
                    assert!(matches!(rx.recv().await, Err(RecvError::Completed)));
                    assert!(rx.has_ended());
                });
            }

            #[test]
            fn recv_timeout_returns_failure() {
                let (_tx, mut rx, hub) = hub(4, VirtualTime::new());
                assert!(hub.kill_switch().fail("stop"));
                let end = block_on(rx.recv_timeout(SECOND));
                assert!(matches!(end, Err(RecvTimeoutError::Failed(_))));
                assert!(matches!(block_on(rx.recv()), Err(RecvError::Failed(_))));
            }

            /// The pool's time passes by itself.
            #[test]
            fn blocking_calls_give_up_or_succeed() {
                let (mut tx, mut rx, _hub) = hub(1, ThreadPool::global());
                let (short, long) = (Duration::from_millis(1), Duration::from_secs(3600));
                let empty = rx.blocking_recv_timeout(short);
                assert!(matches!(empty, Err(RecvTimeoutError::Timeout)));
                tx.blocking_send_timeout(0, short).unwrap();
                let full = tx.blocking_send_timeout(1, short);
                assert_eq!(full, Err(SendTimeoutError::Timeout(1)));
                let consumer = std::thread::spawn(move || {
                    for value in 0..100 {
                        assert_eq!(rx.blocking_recv_timeout(long).unwrap(), value);
                    }
                });
                for value in 1..100 {
                    tx.blocking_send_timeout(value, long).unwrap();
                }
                consumer.join().unwrap();
            }
        }
    };
}

waits!(broadcast);
waits!(merge);
waits!(partition);

/// A producer that gives up, or drops a permit, does not keep the permit from the producer behind it.
#[test]
fn merge_permit_goes_to_next_waiting_producer() {
    let time = fanline::scheduler::VirtualTime::new();
    let options = MergeHub::<u64>::options().total(1).scheduler(time.clone());
    let (hub, mut rx) = options.build();
    let (mut a, mut b, mut c) = (hub.producer(), hub.producer(), hub.producer());
    let permit = a.try_reserve().unwrap();
    let gives_up = Counted::pending(b.send_timeout(2, SECOND));
    let waits = Counted::pending(c.send(3));
    time.advance_by(SECOND);
    assert!(gives_up.ready().is_err());
    assert_eq!(waits.wake_ups(), 0);
    drop(permit);
    waits.ready().unwrap();
    assert_eq!(rx.blocking_recv(), Some(3));
    a.try_reserve().unwrap().send(4).unwrap();
    assert_eq!(rx.blocking_recv(), Some(4));
}
