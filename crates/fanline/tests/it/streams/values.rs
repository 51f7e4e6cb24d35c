use std::sync::Arc;
use std::task::{Context, Poll};

use fanline::ObservableExt;

use super::hand::{Hand, Wakes};

/// Runs `script` (numbers, `.` complete, `!` error, `x` dispose) and gives the first and last value.
fn run(script: &str) -> [Result<Option<u32>, &'static str>; 2] {
    [true, false].map(|first| {
        let hand = Hand::<u32, &str>::new();
        let play = |hand: &Hand<u32, &'static str>| {
            for word in script.split_whitespace() {
                match word {
                    "." => hand.complete(),
                    "!" => hand.error("gone"),
                    "x" => hand.dispose(),
                    number => hand.next(number.parse().unwrap()),
                }
            }
        };
        if first {
            let value = hand.clone().first_value();
            play(&hand);
            value.blocking_wait()
        } else {
            let value = hand.clone().last_value();
            play(&hand);
            futures::executor::block_on(value)
        }
    })
}

#[test]
fn first_and_last() {
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
fn the_first_value_unsubscribes() {
    let hand = Hand::<u32>::new();
    let first = hand.clone().first_value();
    assert!(hand.has_observer());
    hand.next(1);
    assert!(!hand.has_observer());
    assert_eq!(first.blocking_wait(), Ok(Some(1)));
}

#[test]
fn a_dropped_future_unsubscribes() {
    let hand = Hand::<Arc<u32>>::new();
    let value = Arc::new(1);
    let last = hand.clone().last_value();
    hand.next(value.clone());
    assert_eq!(Arc::strong_count(&value), 2);
    drop(last);
    assert!(!hand.has_observer());
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn the_last_value_wakes_at_the_end_alone() {
    let hand = Hand::<u32>::new();
    let mut last = hand.clone().last_value();
    let (wakes, waker) = Wakes::new();
    let mut context = Context::from_waker(&waker);
    let mut poll = || Future::poll(std::pin::Pin::new(&mut last), &mut context);
    assert_eq!(poll(), Poll::Pending);
    hand.next_slice(&[1, 2]);
    assert_eq!(wakes.count(), 0);
    assert_eq!(poll(), Poll::Pending);
    hand.complete();
    assert_eq!(wakes.count(), 1);
    assert_eq!(poll(), Poll::Ready(Ok(Some(2))));
}

#[test]
fn waits_for_another_thread() {
    for _ in 0..200 {
        let hand = Hand::<u32>::new();
        let (first, last) = (Hand::<u32>::new(), hand.clone().last_value());
        let first_value = first.clone().first_value();
        let producer = std::thread::spawn(move || {
            first.next(1);
            hand.next(2);
            hand.complete();
        });
        assert_eq!(first_value.blocking_wait(), Ok(Some(1)));
        assert_eq!(last.blocking_wait(), Ok(Some(2)));
        producer.join().unwrap();
    }
}
