//! Operators on subjects: closures that panic, and observers that emit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fanline::{BoxObservable, Source, Subject};

use super::*;

fn no_two(n: &u32) -> bool {
    assert!(*n != 2, "two, on purpose");
    true
}

/// Returns chains that panic when they get a 2.
fn panicking(source: &Source<u32>) -> Vec<(&'static str, BoxObservable<u32>)> {
    let s = || source.clone();
    let sum = |sum: u32, n: &u32| {
        no_two(n);
        sum + n
    };
    vec![
        ("map", s().map(|n| u32::from(no_two(n))).boxed()),
        ("filter", s().filter(no_two).boxed()),
        (
            "filter_map",
            s().filter_map(|n| no_two(n).then_some(*n)).boxed(),
        ),
        ("scan", s().scan(0, sum).boxed()),
        ("take_while", s().take_while(no_two).boxed()),
        ("skip_while", s().skip_while(no_two).boxed()),
        ("distinct", s().distinct_by_key(no_two).boxed()),
        (
            "changed",
            s().distinct_until_changed_by(|_, n| !no_two(n)).boxed(),
        ),
        (
            "changed key",
            s().distinct_until_changed_by_key(no_two).boxed(),
        ),
        ("fold", s().fold(0, sum).boxed()),
        ("reduce", s().reduce(sum).boxed()),
        ("all", s().all(no_two).map(|all| u32::from(*all)).boxed()),
        (
            "any",
            s().any(|n| !no_two(n)).map(|any| u32::from(*any)).boxed(),
        ),
        ("tap", s().tap(|n| assert!(no_two(n))).boxed()),
        ("behind take", s().take(2).filter(no_two).boxed()),
        ("before take", s().filter(no_two).take(2).boxed()),
    ]
}

#[test]
fn panicking_closure_ends_only_its_chain() {
    let (_, source) = fanline::subject::<u32>();
    for case in 0..panicking(&source).len() {
        let (mut tx, source) = fanline::subject::<u32>();
        let (name, chain) = panicking(&source).swap_remove(case);
        let received = Arc::default();
        let limit = usize::MAX;
        let before = source.clone().into_observable();
        let _before = before.subscribe(|_| {});
        let guard = chain.subscribe_with(Recorder {
            received: Arc::clone(&received),
            limit,
        });
        let after = Arc::default();
        let _after = source.into_observable().subscribe_with(Recorder {
            received: Arc::clone(&after),
            limit,
        });
        for value in 1..=3 {
            let result = catch_unwind(AssertUnwindSafe(|| tx.next(value)));
            assert_eq!(result.is_err(), value == 2, "{name}: {value}");
        }
        assert!(guard.is_closed(), "{name}");
        assert_eq!(tx.observer_count(), 2, "{name}");
        tx.complete();
        assert_eq!(
            *after.lock().unwrap(),
            completes_safely([1, 2, 3]),
            "{name}"
        );
        assert_eq!(
            Arc::strong_count(&received),
            1,
            "{name}: the observer was not dropped"
        );
        let received = received.lock().unwrap();
        assert!(
            received.iter().all(|n| matches!(n, Notification::Next(_))),
            "{name}: {received:?}"
        );
    }
}

#[test]
fn value_emitted_in_chain_follows_current_value() {
    let subject = Subject::<u32>::new();
    let received = Arc::default();
    let again = subject.clone();
    let chain = subject
        .clone()
        .take(3)
        .tap(move |n| again.next(n + 1))
        .map(|n| n * 10);
    let guard = chain.subscribe_with(Recorder {
        received: Arc::clone(&received),
        limit: usize::MAX,
    });
    subject.next(1);
    assert_eq!(*received.lock().unwrap(), completes_safely([10, 20, 30]));
    assert!(guard.is_closed());
    assert!(!subject.has_observers());
}
