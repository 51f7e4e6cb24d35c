//! Resources and closures of a subscription, and sources that a condition chooses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanline::operators::{unicast, unicast_with_error};

use super::End::{Completes, Fails, Never};
use super::*;

#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn up(&self) -> impl FnOnce() + Clone + Send + use<> {
        let count = Arc::clone(&self.0);
        move || {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn on_subscribe_runs_once_for_each_subscription() {
    let count = Count::default();
    let chain = fanline::of(1).on_subscribe(count.up());
    assert_eq!(count.get(), 0);
    check_whole(&chain, &completes_safely([1]));
    assert_eq!(count.get(), 4, "one for each limit of `check_whole`");
}

#[test]
fn on_dispose_runs_only_without_an_end() {
    for (end, limit, runs) in [
        (Completes, usize::MAX, 0),
        (Fails("no"), usize::MAX, 0),
        (Never, usize::MAX, 1),
        (Completes, 1, 1),
    ] {
        let count = Count::default();
        record(
            script(&[1, 2], end, Way::Borrowed).on_dispose(count.up()),
            limit,
        );
        assert_eq!(count.get(), runs, "{end:?}, closed after {limit}");
    }
    check(
        &[1, 2],
        Fails("no"),
        |source| source.on_dispose(|| ()),
        &fails([1, 2], "no"),
    );
}

#[test]
fn using_drops_resource_once_at_the_end() {
    struct Resource(Count);
    impl Drop for Resource {
        fn drop(&mut self) {
            self.0.up()();
        }
    }
    for (end, limit) in [
        (Completes, usize::MAX),
        (Fails("no"), usize::MAX),
        (Never, usize::MAX),
        (Completes, 1),
    ] {
        let dropped = Count::default();
        let resource = dropped.clone();
        let chain = fanline::using(
            move || Resource(resource),
            |_| script(&[1, 2], end, Way::Borrowed),
        );
        let received = Arc::default();
        let guard = chain.subscribe_with(Recorder {
            received: Arc::clone(&received),
            limit,
        });
        let open = matches!(end, Never);
        assert_eq!(dropped.get(), usize::from(!open), "{end:?}, {limit}");
        drop(guard);
        assert_eq!(dropped.get(), 1, "{end:?}, {limit}");
    }
}

#[test]
fn if_then_and_case() {
    for (condition, expected) in [(true, 1), (false, 2)] {
        let chain = fanline::if_then(move || condition, fanline::of(1), fanline::range(2..=2));
        check_whole(&chain, &completes_safely([expected]));
    }
    let sources = [("a", fanline::of(1)), ("b", fanline::of(2))];
    check_whole(
        &fanline::case(|| "b", sources.clone()),
        &completes_safely([2]),
    );
    check_whole(&fanline::case(|| "c", sources), &completes_safely([]));
}

#[test]
fn while_do_and_do_while() {
    let times = |mut left: u32| {
        move || {
            left = left.saturating_sub(1);
            left > 0
        }
    };
    check_whole(
        &fanline::while_do(times(3), fanline::from_iter([1, 2])),
        &completes_safely([1, 2, 1, 2]),
    );
    check_whole(
        &fanline::while_do(|| false, fanline::of(1)),
        &completes_safely([]),
    );
    check(
        &[1],
        Completes,
        |source| source.do_while(times(2)),
        &completes([1, 1]),
    );
    check(
        &[1],
        Fails("no"),
        |source| source.do_while(|| true),
        &fails([1], "no"),
    );
}

#[test]
fn on_error_complete() {
    check(
        &[1, 2],
        Fails("no"),
        |source| source.on_error_complete(),
        &completes_safely([1, 2]),
    );
    check(
        &[1, 2],
        Completes,
        |source| source.on_error_complete(),
        &completes_safely([1, 2]),
    );
}

#[test]
fn flat_map_iter() {
    check(
        &[2, 0, 3],
        Completes,
        |source| source.flat_map_iter(|n| 0..*n),
        &completes([0, 1, 0, 1, 2]),
    );
    check(
        &[2],
        Fails("no"),
        |source| source.flat_map_iter(|n| vec![*n; 2]),
        &fails([2, 2], "no"),
    );
    check(
        &[2],
        Never,
        |source| source.flat_map_iter(|_| 0..).take(2),
        &completes([0, 1]),
    );
}

#[test]
fn take_until_match() {
    check(
        &[1, 5, 2],
        Never,
        |source| source.take_until_match(|n| *n > 4),
        &completes([1, 5]),
    );
    check(
        &[1],
        Fails("no"),
        |source| source.take_until_match(|n| *n > 4),
        &fails([1], "no"),
    );
}

#[test]
fn sorted() {
    check(
        &[2, 3, 1],
        Completes,
        |source| source.sorted(),
        &completes([1, 2, 3]),
    );
    check(
        &[(1, 'a'), (0, 'b'), (1, 'c')],
        Completes,
        |source| source.sorted_by(|a, b| b.0.cmp(&a.0)),
        &completes([(1, 'a'), (1, 'c'), (0, 'b')]),
    );
    check(
        &[2, 1],
        Fails("no"),
        |source| source.sorted(),
        &only_fails("no"),
    );
    check(&[2, 1], Never, |source| source.sorted(), &open([]));
}

#[test]
fn to_map_and_to_multimap() {
    check(
        &[1, 2, 3],
        Completes,
        |source| source.to_map(|n| n % 2),
        &completes([HashMap::from([(1, 3), (0, 2)])]),
    );
    check(
        &[1, 2, 3],
        Completes,
        |source| source.to_multimap(|n| n % 2),
        &completes([HashMap::from([(1, vec![1, 3]), (0, vec![2])])]),
    );
    check(
        &[1],
        Fails("no"),
        |source| source.to_map(|n| *n),
        &only_fails("no"),
    );
}

#[test]
fn unicast_buffers_until_its_only_subscription() {
    let (mut tx, values) = unicast_with_error();
    tx.next(1);
    let first = Arc::default();
    let guard = values.subscribe_with(Recorder::<u32, Failure> {
        received: Arc::clone(&first),
        limit: usize::MAX,
    });
    tx.next(2);
    tx.error("no");
    assert_eq!(*first.lock().unwrap(), fails([1, 2], "no"));
    assert!(guard.is_closed());
    let later = record(values.into_observable(), usize::MAX);
    assert_eq!(later, [Notification::Complete]);
}

#[test]
fn unicast_producer_notices_unsubscription() {
    let (mut tx, values) = unicast();
    let guard = values.subscribe(|_: &u32| ());
    assert!(!tx.is_closed());
    drop(guard);
    assert!(tx.is_closed());
    tx.next(1);

    let (tx, values) = unicast::<u32>();
    drop(values);
    assert!(tx.is_closed());
}

#[test]
fn dropped_unicast_producer_drops_observer() {
    let (mut tx, values) = unicast();
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let guard = values.subscribe(move |_: &u32| drop(Arc::clone(&held)));
    tx.next(1);
    drop(tx);
    assert_eq!(Arc::strong_count(&token), 1);
    assert!(guard.is_closed());

    let (mut tx, values) = unicast();
    tx.next(1);
    drop(tx);
    assert_eq!(
        record(values.into_observable(), usize::MAX),
        open::<u32, Infallible>([1])
    );
}
