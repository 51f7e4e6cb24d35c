//! Operators that handle errors or subscribe again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fanline::{CombineExt, Observable, ObservableExt, Observer};

use crate::manual_source::{Cold, Log, ManualSource, check};

#[test]
fn catch() {
    check(
        |[a, b, ..]| a.catch(move |_| b).boxed(),
        &[
            ("a1 b9 a# b2 b|", "1 2 |"),
            ("a1 a|", "1 |"),
            ("a# b#", "#b"),
            ("a1 !", "1"),
            ("a# b1 ! b2", "1"),
        ],
    );
}

#[test]
fn on_error_return() {
    check(
        |[a, ..]| {
            a.on_error_return(|error| u32::from(error.as_bytes()[0]))
                .catch(|never| -> ManualSource<u32> { match *never {} })
                .boxed()
        },
        &[("a1 a#", "1 97 |"), ("a1 a|", "1 |"), ("a1 !", "1")],
    );
}

#[test]
fn retry() {
    check(
        |[a, ..]| a.retry(2).boxed(),
        &[
            ("a1 a# a2 a# a3 a#", "1 2 3 #a"),
            ("a1 a# a2 a|", "1 2 |"),
            ("a# a1 !", "1"),
        ],
    );
    check(|[a, ..]| a.retry(0).boxed(), &[("a1 a#", "1 #a")]);
}

#[test]
fn repeat() {
    check(
        |[a, ..]| a.repeat(2).boxed(),
        &[
            ("a1 a| a2 a|", "1 2 |"),
            ("a1 a| a#", "1 #a"),
            ("a| a1 !", "1"),
        ],
    );
    check(|[a, ..]| a.repeat(0).boxed(), &[("", "|")]);
}

#[test]
fn immediate_source_is_resubscribed_in_a_loop() {
    const TIMES: usize = 100_000;
    let failing = Cold::<u32>::new([], Some(Err("no")));
    let log = Log::default();
    let guard = failing.clone().retry(TIMES).subscribe_with(log.clone());
    assert!(guard.is_closed());
    assert_eq!(log.text(), "#no");
    assert_eq!(failing.subscriptions.load(Ordering::SeqCst), TIMES + 1);

    let empty = Cold::<u32>::new([], Some(Ok(())));
    let log = Log::default();
    let guard = empty.clone().repeat(TIMES).subscribe_with(log.clone());
    assert!(guard.is_closed());
    assert_eq!(log.text(), "|");
    assert_eq!(empty.subscriptions.load(Ordering::SeqCst), TIMES);
}

#[test]
fn endless_retry_ends_with_closed_observer() {
    struct Three(usize, Log);
    impl Observer<u32, &'static str> for Three {
        fn next(&mut self, value: &u32) {
            self.0 += 1;
            Observer::<u32, &str>::next(&mut self.1, value);
        }
        fn error(&mut self, _error: &&'static str) {}
        fn complete(&mut self) {}
        fn is_closed(&self) -> bool {
            self.0 == 3
        }
    }
    let log = Log::default();
    let source = Cold::new([5], Some(Err("no")));
    let guard = source
        .retry(usize::MAX)
        .subscribe_with(Three(0, log.clone()));
    assert_eq!(log.text(), "5 5 5");
    assert_eq!(log.handles(), 1);
    drop(guard);
}

#[test]
fn source_stored_for_retry_is_dropped_at_end() {
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let source = ManualSource::<u32>::new();
    let guard = source
        .clone()
        .map(move |value| {
            let _held = &held;
            *value
        })
        .retry(5)
        .subscribe(|_| ());
    source.error("once");
    assert!(Arc::strong_count(&token) > 1);
    source.complete();
    assert_eq!(Arc::strong_count(&token), 1);
    drop(guard);
}

/// An operator that subscribes again stores a clone of its source, and here that clone also stores the
/// subscription. Dropping the last handle must drop the clone and the subscription, even if the guard was
/// detached.
#[test]
fn dropped_subject_drops_resubscribing_chains() {
    let token = Arc::new(());
    let held = || {
        let held = Arc::clone(&token);
        move |_: &u32| drop(Arc::clone(&held))
    };
    let subject = fanline::Subject::<u32, &str>::with_error();
    subject.clone().retry(5).subscribe(held()).detach();
    subject.source().repeat(5).subscribe(held()).detach();
    let shared = subject.source().share();
    shared.clone().retry(5).subscribe(held()).detach();
    shared.repeat(5).subscribe(held()).detach();
    subject.next(1);
    assert_eq!(Arc::strong_count(&token), 5);
    drop(subject);
    assert_eq!(Arc::strong_count(&token), 1);

    let (tx, source) = fanline::subject::<u32>();
    source.retry(5).subscribe(held()).detach();
    drop(tx);
    assert_eq!(Arc::strong_count(&token), 1);
}
