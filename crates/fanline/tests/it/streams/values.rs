use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use fanline::ObservableExt;

use super::manual::{ManualSource, Wakes};

/// Runs `script`: numbers are emitted, `.` completes, and `x` disposes.
fn play<E: Clone>(source: &ManualSource<u32, E>, script: &str) {
    for word in script.split_whitespace() {
        match word {
            "." => source.complete(),
            "x" => source.dispose(),
            number => source.next(number.parse().unwrap()),
        }
    }
}

/// Runs `script`, and returns the first and the last value. `!` fails, and [`play`]
/// runs the rest.
fn run(script: &str) -> [Result<Option<u32>, &'static str>; 2] {
    [true, false].map(|first| {
        let source = ManualSource::<u32, &str>::new();
        let play = |source: &ManualSource<u32, &'static str>| {
            for word in script.split_whitespace() {
                match word {
                    "!" => source.error("gone"),
                    word => play(source, word),
                }
            }
        };
        if first {
            let value = source.clone().first_value();
            play(&source);
            value.blocking_wait()
        } else {
            let value = source.clone().last_value();
            play(&source);
            futures::executor::block_on(value)
        }
    })
}

#[test]
fn first_value_and_last_value_of_scripts() {
    for (script, first, last) in [
        (".", Ok(None), Ok(None)),
        ("x", Ok(None), Ok(None)),
        ("!", Err("gone"), Err("gone")),
        ("1 2 3 .", Ok(Some(1)), Ok(Some(3))),
        ("1 2 3 x", Ok(Some(1)), Ok(Some(3))),
        ("1 2 !", Ok(Some(1)), Err("gone")),
        ("1 .", Ok(Some(1)), Ok(Some(1))),
    ] {
        assert_eq!(run(script), [first, last], "{script}");
    }
}

#[test]
fn first_value_unsubscribes_after_value() {
    let source = ManualSource::<u32>::new();
    let first = source.clone().first_value();
    assert!(source.has_observer());
    source.next(1);
    assert!(!source.has_observer());
    assert_eq!(first.blocking_wait(), Ok(Some(1)));
}

#[test]
fn dropped_last_value_unsubscribes() {
    let source = ManualSource::<Arc<u32>>::new();
    let value = Arc::new(1);
    let last = source.clone().last_value();
    source.next(value.clone());
    assert_eq!(Arc::strong_count(&value), 2);
    drop(last);
    assert!(!source.has_observer());
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn last_value_wakes_only_at_end() {
    let source = ManualSource::<u32>::new();
    let mut last = source.clone().last_value();
    let (wakes, waker) = Wakes::new();
    let mut context = Context::from_waker(&waker);
    let mut poll = || Future::poll(std::pin::Pin::new(&mut last), &mut context);
    assert_eq!(poll(), Poll::Pending);
    source.next_slice(&[1, 2]);
    assert_eq!(wakes.count(), 0);
    assert_eq!(poll(), Poll::Pending);
    source.complete();
    assert_eq!(wakes.count(), 1);
    assert_eq!(poll(), Poll::Ready(Ok(Some(2))));
}

#[test]
fn values_from_another_thread_wake_waiters() {
    for _ in 0..200 {
        let source = ManualSource::<u32>::new();
        let (first, last) = (ManualSource::<u32>::new(), source.clone().last_value());
        let first_value = first.clone().first_value();
        let producer = std::thread::spawn(move || {
            first.next(1);
            source.next(2);
            source.complete();
        });
        assert_eq!(first_value.blocking_wait(), Ok(Some(1)));
        assert_eq!(last.blocking_wait(), Ok(Some(2)));
        producer.join().unwrap();
    }
}

#[test]
fn most_recent_repeats_the_newest_value_until_the_end() {
    for (before, after, first, last) in [
        ("", ".", [Some(0), Some(0)], [None, None]),
        ("1 2", "", [Some(2), Some(2)], [Some(2), Some(2)]),
        ("1", "2 3", [Some(1), Some(1)], [Some(3), Some(3)]),
        // The value that was not read yet comes before the end.
        ("1", "2 .", [Some(1), Some(1)], [Some(2), None]),
        ("1", "2 x", [Some(1), Some(1)], [Some(2), None]),
        ("1 .", "", [Some(1), None], [None, None]),
    ] {
        let source = ManualSource::<u32, Infallible>::new();
        let mut recent = source.clone().most_recent(0);
        play(&source, before);
        assert_eq!([recent.next(), recent.next()], first, "{before} / {after}");
        play(&source, after);
        assert_eq!([recent.next(), recent.next()], last, "{before} / {after}");
    }
}

#[test]
fn most_recent_unsubscribes_when_dropped() {
    let (mut tx, source) = fanline::subject::<Arc<u32>>();
    let value = Arc::new(1);
    let mut recent = source.most_recent(Arc::clone(&value));
    tx.next(Arc::new(2));
    assert_eq!(**recent.value(), 2);
    assert_eq!(
        Arc::strong_count(&value),
        1,
        "the replaced value is dropped"
    );
    drop(recent);
    assert!(!tx.has_observers());
}
