//! Hubs, subjects, and streams in combination.

use std::sync::{Arc, Mutex};

use fanline::hub::{HubError, KillSwitch, MergeHub, broadcast, merge, partition};
use fanline::{Observer, subject, subject_with_error};
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::{FutureExt, StreamExt, poll};

/// The calls of an observer, shared by its clones.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<(Vec<u64>, Option<String>)>>);

impl Seen {
    fn get(&self) -> (Vec<u64>, Option<String>) {
        self.0.lock().unwrap().clone()
    }
}

impl Observer<u64, HubError> for Seen {
    fn next(&mut self, value: &u64) {
        self.0.lock().unwrap().0.push(*value);
    }

    fn error(&mut self, error: &HubError) {
        self.0.lock().unwrap().1 = Some(error.to_string());
    }

    fn complete(&mut self) {
        self.0.lock().unwrap().1 = Some("completed".to_owned());
    }

    fn is_closed(&self) -> bool {
        self.0.lock().unwrap().0.len() == 5
    }
}

fn ended(values: &[u64], end: &str) -> (Vec<u64>, Option<String>) {
    (values.to_vec(), Some(end.to_owned()))
}

#[test]
fn subject_error_fails_only_its_merge_producer() {
    let (hub, mut rx) = merge::<u64>(16);
    let (mut one, source_of_one) = subject::<u64>();
    let (mut two, source_of_two) = subject_with_error::<u64, String>();
    let first = hub.producer().attach_source(source_of_one);
    let second = hub.producer().attach_source(source_of_two);
    one.next(1);
    two.next(2);
    one.next_slice(&[3, 4]);
    two.error("broken".to_owned());
    assert_eq!(hub.last_failure().unwrap().to_string(), "broken");
    one.next(5);
    one.complete();
    assert_eq!(hub.producer_count(), 0);
    let all: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
    assert_eq!(all, [1, 2, 3, 4, 5]);
    drop((first, second));
}

#[test]
fn subject_error_fails_partition_hub() {
    let (tx, hub) = partition::<u64>(16, |count, value| {
        i64::try_from(*value % count as u64).unwrap()
    });
    let consumers = [hub.subscribe(), hub.subscribe()];
    let (mut subject, source) = subject_with_error::<u64, String>();
    let guard = tx.attach_source(source);
    subject.next_slice(&[1, 2, 3]);
    subject.error("broken".to_owned());
    for mut rx in consumers {
        assert_eq!(rx.blocking_recv(), None, "failure overtakes elements");
        assert_eq!(
            rx.error().unwrap().to_string(),
            "the producer failed: broken"
        );
    }
    drop(guard);
}

#[test]
fn closed_hub_unsubscribes_source() {
    let (hub, rx) = merge::<u64>(16);
    let (mut subject, source) = subject::<u64>();
    let guard = hub.producer().attach_source(source);
    subject.next(1);
    drop(rx);
    subject.next(2);
    assert_eq!(subject.observer_count(), 0);
    drop(guard);
}

#[test]
fn dropped_guard_detaches_source() {
    let (hub, mut rx) = merge::<u64>(16);
    let (mut subject, source) = subject::<u64>();
    let guard = hub.producer().attach_source(source);
    subject.next(1);
    drop(guard);
    subject.next(2);
    assert_eq!(hub.producer_count(), 0);
    assert_eq!(rx.try_recv().unwrap(), 1);
    assert!(rx.try_recv().is_err());
}

#[test]
fn attach_forwards_elements_and_end_to_observer() {
    block_on(async {
        let (hub, rx) = merge::<u64>(16);
        let seen = Seen::default();
        let mut tx = hub.producer();
        for value in 0..3 {
            tx.send(value).await.unwrap();
        }
        drop((tx, hub));
        rx.attach(seen.clone()).await;
        assert_eq!(seen.get(), ended(&[0, 1, 2], "completed"));

        let (mut tx, hub) = partition::<u64>(16, |_, _| 0);
        let (seen, rx) = (Seen::default(), hub.subscribe());
        tx.send(7).await.unwrap();
        let mut attached = Box::pin(rx.attach(seen.clone()));
        assert!(poll!(&mut attached).is_pending());
        tx.fail("broken");
        attached.await;
        assert_eq!(seen.get(), ended(&[7], "the producer failed: broken"));
    });
}

#[test]
fn closed_observer_ends_attach() {
    block_on(async {
        let (hub, rx) = merge::<u64>(16);
        let seen = Seen::default();
        let mut tx = hub.producer();
        for value in 0..9 {
            tx.send(value).await.unwrap();
        }
        rx.attach(seen.clone()).await;
        assert_eq!(seen.get(), (vec![0, 1, 2, 3, 4], None));
        assert!(tx.send(9).await.is_err());
    });
}

/// Checks that a kill switch ends an attachment whose stream yields no item. Returns the attachment's result.
fn check_pending_attach<F: Future>(attached: F, switch: &KillSwitch) -> F::Output {
    block_on(async {
        let mut attached = Box::pin(attached);
        assert!(poll!(&mut attached).is_pending());
        assert!(switch.fail("stop"));
        attached.now_or_never().expect("the attachment has ended")
    })
}

#[test]
fn kill_switch_ends_attach_to_pending_stream() {
    let silent = futures::stream::pending::<u64>;
    let (tx, hub) = broadcast::<u64>(16);
    assert!(check_pending_attach(tx.attach(silent()), &hub.kill_switch()).is_err());
    let (hub, rx) = merge::<u64>(16);
    assert!(check_pending_attach(hub.producer().attach(silent()), &hub.kill_switch()).is_err());
    drop(rx);
    let (tx, hub) = partition::<u64>(16, |_, _| 0);
    assert!(check_pending_attach(tx.attach(silent()), &hub.kill_switch()).is_err());
    let (hub, rx) = merge::<u64>(16);
    check_pending_attach(rx.attach(Seen::default()), &hub.kill_switch());
}

/// A producer attached to a pending stream holds no permit, so other producers can use it.
#[test]
fn pending_stream_holds_no_permit() {
    block_on(async {
        let (hub, mut rx) = MergeHub::<u64>::options().per_producer(4).total(1).build();
        let (mut source, stream) = mpsc::unbounded();
        let mut attached = Box::pin(hub.producer().attach(stream));
        assert!(poll!(&mut attached).is_pending());
        let mut tx = hub.producer();
        tx.try_send(1).unwrap();
        source.start_send(2).unwrap();
        assert!(poll!(&mut attached).is_pending(), "waits for a permit");
        assert_eq!(rx.next().await, Some(1));
        assert!(
            tx.try_send(3).is_err(),
            "the permit belongs to the attached stream"
        );
        drop(source);
        attached.await.unwrap();
        assert_eq!(rx.next().await, Some(2));
    });
}

/// Any kind of hub can feed any other.
#[test]
fn hubs_can_be_chained() {
    block_on(async {
        let (first, merged) = merge::<u64>(4);
        let (middle, hub) = broadcast::<u64>(4);
        let (last, parts) = partition::<u64>(4, |count, value| {
            i64::try_from(*value % count as u64).unwrap()
        });
        let broadcast_rx = hub.subscribe();
        let (even, odd) = (parts.subscribe(), parts.subscribe());
        let sources = [0..10, 10..20].map(|range| {
            let stream = futures::stream::iter(range);
            first.producer().attach(stream)
        });
        drop(first);
        let (sent, middle, last, even, odd) = futures::join!(
            futures::future::join_all(sources),
            middle.attach(merged),
            last.attach(broadcast_rx),
            even.collect::<Vec<_>>(),
            odd.collect::<Vec<_>>()
        );
        assert!(sent.into_iter().all(|sent| sent.is_ok()));
        assert!(middle.is_ok() && last.is_ok());
        let all = |mut values: Vec<u64>| {
            values.sort_unstable();
            values
        };
        assert_eq!(all(even), Vec::from_iter((0..20).step_by(2)));
        assert_eq!(all(odd), Vec::from_iter((1..20).step_by(2)));
    });
}

#[test]
fn fail_with_custom_error_type() {
    let (hub, rx) = MergeHub::<u64, u8>::options().build();
    hub.producer().fail(7);
    assert_eq!(hub.last_failure().as_deref(), Some(&7));
    drop(rx);
}
