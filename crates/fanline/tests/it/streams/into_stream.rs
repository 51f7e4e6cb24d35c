use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use fanline::ObservableExt;
use fanline::stream::{Bounded, IntoStream, Lagged, Latest, Overflow, OverflowPolicy, Unbounded};
use futures::{Stream, StreamExt};
use proptest::prelude::*;

use super::manual::{ManualSource, Wakes};

/// An item of a stream as text. Each policy has an item type of its own.
trait Show {
    fn show(&self) -> String;
}

impl Show for u32 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for Result<u32, Lagged> {
    fn show(&self) -> String {
        match self {
            Ok(value) => value.show(),
            Err(Lagged(count)) => format!("lag{count}"),
        }
    }
}

impl Show for Result<u32, Overflow> {
    fn show(&self) -> String {
        match self {
            Ok(value) => value.show(),
            Err(Overflow) => "overflow".to_owned(),
        }
    }
}

fn poll<S: Stream + Unpin>(stream: &mut S, waker: &Waker) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(waker))
}

fn show<T: Show>(polled: &Poll<Option<T>>) -> String {
    match polled {
        Poll::Pending => "-".to_owned(),
        Poll::Ready(None) => "end".to_owned(),
        Poll::Ready(Some(item)) => item.show(),
    }
}

/// Runs `script` over a stream. A number is emitted, `[` and `]` enclose a slice, `?` polls, `.` completes,
/// and `x` drops the observer. Returns the results of the polls, and the number of lost values.
fn run<P: OverflowPolicy>(policy: P, script: &str) -> (String, u64)
where
    P::Item<u32>: Show,
{
    let source = ManualSource::<u32>::new();
    let mut stream = source.clone().into_stream(policy);
    let mut seen = Vec::new();
    let mut slice = None;
    for word in script.split_whitespace() {
        match word {
            "?" => seen.push(show(&poll(&mut stream, Waker::noop()))),
            "." => source.complete(),
            "x" => source.dispose(),
            "[" => slice = Some(Vec::new()),
            "]" => source.next_slice(&slice.take().unwrap()),
            number => match (&mut slice, number.parse().unwrap()) {
                (Some(slice), value) => slice.push(value),
                // The source passes even numbers as owned values, and odd numbers by reference.
                (None, value) if value % 2 == 0 => source.next_owned(value),
                (None, value) => source.next(value),
            },
        }
    }
    (seen.join(" "), stream.lost())
}

#[track_caller]
fn check<P: OverflowPolicy>(policy: P, script: &str, expected: &str, lost: u64)
where
    P::Item<u32>: Show,
{
    assert_eq!(run(policy, script), (expected.to_owned(), lost), "{script}");
}

#[test]
fn unbounded_stores_every_value() {
    for (script, expected) in [
        ("?", "-"),
        ("1 2 3 ? ? ? ?", "1 2 3 -"),
        ("1 ? 2 ? ?", "1 2 -"),
        ("1 2 ? 3 4 ? ? ? . ? ?", "1 2 3 4 end end"),
        ("[ 1 2 ] 3 [ 4 ] ? ? ? ? ?", "1 2 3 4 -"),
        ("1 2 . ? ? ? ?", "1 2 end end"),
        ("1 2 x ? ? ? ?", "1 2 end end"),
        (". ? ?", "end end"),
        ("x ? ?", "end end"),
        ("[ ] ?", "-"),
    ] {
        check(Unbounded, script, expected, 0);
    }
}

#[test]
fn latest_stores_the_last_value() {
    for (script, expected, lost) in [
        ("?", "-", 0),
        ("1 ? 2 ?", "1 2", 0),
        ("1 2 3 ? ?", "3 -", 2),
        ("1 2 . ? ?", "2 end", 1),
        ("[ 1 2 3 ] ? . ?", "3 end", 2),
    ] {
        check(Latest, script, expected, lost);
    }
    for (script, expected, lost) in [
        ("1 ? 2 ? ?", "1 2 -", 0),
        ("1 2 3 ? ? ?", "lag2 3 -", 2),
        ("1 2 ? 3 ? ?", "lag1 lag1 3", 2),
    ] {
        check(Latest.report_lag(), script, expected, lost);
    }
}

#[test]
fn drop_oldest_stores_newest_values() {
    for (script, expected, lost) in [
        ("1 2 ? ? ?", "1 2 -", 0),
        ("1 2 3 ? ? ?", "2 3 -", 1),
        ("1 2 3 ? 4 5 ? ? ?", "2 4 5 -", 2),
        ("[ 1 2 3 4 ] . ? ? ?", "3 4 end", 2),
    ] {
        check(Bounded::drop_oldest(2), script, expected, lost);
    }
    for (script, expected, lost) in [
        ("1 2 ? ? ?", "1 2 -", 0),
        ("1 2 3 ? ? ? ?", "lag1 2 3 -", 1),
        ("1 2 3 4 5 . ? ? ? ?", "lag3 4 5 end", 3),
        ("1 2 3 ? 4 ? ? ? ?", "lag1 lag1 3 4 -", 2),
        ("1 2 ? 3 4 ? ? ? ?", "1 lag1 3 4 -", 1),
    ] {
        check(Bounded::drop_oldest(2).report_lag(), script, expected, lost);
    }
}

#[test]
fn drop_newest_stores_oldest_values() {
    for (script, expected, lost) in [
        ("1 2 3 ? ? ?", "1 2 -", 1),
        ("1 2 3 ? 4 5 ? ? ?", "1 2 4 -", 2),
        ("[ 1 2 3 4 ] . ? ? ?", "1 2 end", 2),
    ] {
        check(Bounded::drop_newest(2), script, expected, lost);
    }
    for (script, expected, lost) in [
        ("1 2 3 4 ? ? ? ?", "1 2 lag2 -", 2),
        ("1 2 3 ? 4 ? ? ? ?", "1 2 lag1 4 -", 1),
        ("1 2 3 ? 4 5 ? ? ? ? ?", "1 2 lag1 4 lag1 -", 2),
        ("1 2 3 . ? ? ? ? ?", "1 2 lag1 end end", 1),
    ] {
        check(Bounded::drop_newest(2).report_lag(), script, expected, lost);
    }
}

#[test]
fn fail_ends_stream_on_overflow() {
    for (script, expected) in [
        ("1 2 . ? ? ?", "1 2 end"),
        ("1 2 3 ? ? ? ? ?", "1 2 overflow end end"),
        ("[ 1 2 3 ] . ? ? ? ?", "1 2 overflow end"),
        ("1 2 3 ? 4 ? ? ? 5 ?", "1 2 overflow end end"),
        ("1 2 ? 3 ? ? ?", "1 2 3 -"),
    ] {
        check(Bounded::fail(2), script, expected, 0);
    }
    let source = ManualSource::new();
    let _stream = source.clone().into_stream(Bounded::fail(1));
    source.next(1);
    assert!(source.has_observer());
    source.next(2);
    assert!(!source.has_observer(), "the source is unsubscribed at once");
}

#[test]
fn capacity_zero_panics() {
    for (name, make) in [
        ("block", (|| _ = Bounded::block(0)) as fn()),
        ("drop_oldest", || _ = Bounded::drop_oldest(0)),
        ("drop_newest", || _ = Bounded::drop_newest(0)),
        ("fail", || _ = Bounded::fail(0)),
    ] {
        let panic = std::panic::catch_unwind(make).unwrap_err();
        let message = panic.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(
            message.contains("`capacity` must be at least 1"),
            "{name}: {message}"
        );
    }
}

/// A naive model of a bounded queue: a list in which gaps stand for dropped values.
#[derive(Default)]
struct Model {
    items: VecDeque<Result<u32, Lagged>>,
}

impl Model {
    fn push(&mut self, value: u32, capacity: usize, drop_oldest: bool) {
        let held = self.items.iter().filter(|item| item.is_ok()).count();
        if held < capacity {
            self.items.push_back(Ok(value));
        } else if drop_oldest {
            let oldest = self.items.iter().position(Result::is_ok).unwrap();
            self.items[oldest] = Err(Lagged(1));
            self.items.push_back(Ok(value));
        } else {
            self.items.push_back(Err(Lagged(1)));
        }
        let mut merged = VecDeque::<Result<u32, Lagged>>::new();
        for item in self.items.drain(..) {
            match (merged.back_mut(), item) {
                (Some(Err(before)), Err(lagged)) => before.0 += lagged.0,
                (_, item) => merged.push_back(item),
            }
        }
        self.items = merged;
    }
}

proptest! {
    #[test]
    fn bounded_queue_matches_model(
        capacity in 1_usize..5,
        drop_oldest: bool,
        steps in prop::collection::vec(prop::option::weighted(0.6, 0_u32..1), 0..60),
    ) {
        let source = ManualSource::<u32>::new();
        let policy = if drop_oldest {
            Bounded::drop_oldest(capacity)
        } else {
            Bounded::drop_newest(capacity)
        };
        let mut stream = source.clone().into_stream(policy.report_lag());
        let mut model = Model::default();
        for (number, step) in (0..).zip(steps) {
            if step.is_some() {
                source.next(number);
                model.push(number, capacity, drop_oldest);
            } else {
                let polled = match poll(&mut stream, Waker::noop()) {
                    Poll::Pending => None,
                    Poll::Ready(item) => item,
                };
                prop_assert_eq!(polled, model.items.pop_front());
            }
        }
        source.complete();
        prop_assert_eq!(stream.blocking_iter().collect::<Vec<_>>(), Vec::from(model.items));
    }
}

#[test]
fn error_follows_values() {
    let source = ManualSource::<u32, &str>::new();
    let mut stream = source.clone().try_into_stream(Unbounded);
    source.next(1);
    source.error("gone");
    assert_eq!(stream.blocking_next(), Some(Ok(1)));
    assert_eq!(stream.blocking_next(), Some(Err("gone")));
    assert_eq!(stream.blocking_next(), None);

    let source = ManualSource::<u32, &str>::new();
    let mut stream = source
        .clone()
        .try_into_stream(Bounded::drop_oldest(1).report_lag());
    source.next_slice(&[1, 2]);
    source.error("gone");
    let items: Vec<_> = std::iter::from_fn(|| stream.blocking_next()).collect();
    assert_eq!(items, [Ok(Err(Lagged(1))), Ok(Ok(2)), Err("gone")]);
}

#[test]
fn task_is_woken_once_when_queue_becomes_non_empty() {
    let source = ManualSource::<u32>::new();
    let mut stream = source.clone().into_stream(Unbounded);
    let (wakes, waker) = Wakes::new();
    source.next(1);
    assert_eq!(poll(&mut stream, &waker), Poll::Ready(Some(1)));
    assert_eq!(poll(&mut stream, &waker), Poll::Pending);
    assert_eq!(poll(&mut stream, &waker), Poll::Pending);
    assert_eq!(wakes.count(), 0);
    for value in 2..100 {
        source.next(value);
    }
    assert_eq!(wakes.count(), 1, "once for the burst");
    for value in 2..100 {
        assert_eq!(poll(&mut stream, &waker), Poll::Ready(Some(value)));
    }
    source.next_slice(&[100, 101]);
    assert_eq!(wakes.count(), 1, "no task waits");
    assert_eq!(poll(&mut stream, &waker), Poll::Ready(Some(100)));
    assert_eq!(poll(&mut stream, &waker), Poll::Ready(Some(101)));
    assert_eq!(poll(&mut stream, &waker), Poll::Pending);
    source.complete();
    assert_eq!(wakes.count(), 2, "the end wakes");
    assert_eq!(poll(&mut stream, &waker), Poll::Ready(None));
}

#[test]
fn last_registered_waker_is_woken() {
    let source = ManualSource::<u32>::new();
    let mut stream = source.clone().into_stream(Latest);
    let (first_wakes, first) = Wakes::new();
    let (second_wakes, second) = Wakes::new();
    assert_eq!(poll(&mut stream, &first), Poll::Pending);
    assert_eq!(poll(&mut stream, &second), Poll::Pending);
    drop(first);
    assert_eq!(
        Arc::strong_count(&first_wakes),
        1,
        "the old waker was dropped"
    );
    source.dispose();
    assert_eq!((first_wakes.count(), second_wakes.count()), (0, 1));
    drop(stream);
    drop(second);
    assert_eq!(Arc::strong_count(&second_wakes), 1);
}

/// A waker that polls the stream that it wakes. If the queue were locked, the waker would block forever.
struct PollOnWake {
    stream: Mutex<Option<IntoStream<u32, Unbounded>>>,
    seen: Mutex<Vec<u32>>,
}

impl Wake for PollOnWake {
    fn wake(self: Arc<Self>) {
        let mut stream = self.stream.lock().unwrap();
        while let Poll::Ready(Some(value)) = poll(stream.as_mut().unwrap(), Waker::noop()) {
            self.seen.lock().unwrap().push(value);
        }
    }
}

#[test]
fn wakers_run_outside_the_lock() {
    let source = ManualSource::<u32>::new();
    let mut stream = source.clone().into_stream(Unbounded);
    let poll_on_wake = Arc::new(PollOnWake {
        stream: Mutex::new(None),
        seen: Mutex::new(Vec::new()),
    });
    assert_eq!(
        poll(&mut stream, &Waker::from(poll_on_wake.clone())),
        Poll::Pending
    );
    *poll_on_wake.stream.lock().unwrap() = Some(stream);
    source.next_slice(&[1, 2]);
    assert_eq!(*poll_on_wake.seen.lock().unwrap(), [1, 2]);
    *poll_on_wake.stream.lock().unwrap() = None;
}

/// A value whose drop accesses the stream that held it.
#[derive(Clone)]
struct AccessOnDrop(Slot, Arc<Mutex<Vec<usize>>>);

type Slot = Arc<Mutex<Option<IntoStream<AccessOnDrop, Latest>>>>;

impl Drop for AccessOnDrop {
    fn drop(&mut self) {
        if let Ok(stream) = self.0.try_lock()
            && let Some(stream) = &*stream
        {
            self.1.lock().unwrap().push(stream.size_hint().0);
        }
    }
}

#[test]
fn values_are_dropped_outside_the_lock() {
    let source = ManualSource::<AccessOnDrop>::new();
    let (slot, seen) = (Slot::default(), Arc::default());
    *Arc::clone(&slot).lock().unwrap() = Some(source.clone().into_stream(Latest));
    source.next_owned(AccessOnDrop(Arc::clone(&slot), Arc::clone(&seen)));
    source.next_owned(AccessOnDrop(Arc::clone(&slot), Arc::clone(&seen)));
    assert_eq!(*seen.lock().unwrap(), [1]);
    let stream = slot.lock().unwrap().take();
    drop(stream);
}

#[test]
fn dropped_stream_drops_values_and_unsubscribes() {
    let source = ManualSource::<Arc<u32>>::new();
    let value = Arc::new(1);
    let mut stream = source.clone().into_stream(Unbounded);
    for _ in 0..3 {
        source.next(value.clone());
    }
    assert!(poll(&mut stream, Waker::noop()).is_ready());
    source.next(value.clone());
    assert_eq!(stream.size_hint(), (3, None));
    assert_eq!(
        Arc::strong_count(&value),
        4,
        "two in the batch, one in the queue"
    );
    drop(stream);
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(!source.has_observer());
}

#[test]
fn end_drops_source() {
    let token = Arc::new(());
    let held = token.clone();
    let source = ManualSource::<u32>::new();
    let mut stream = source
        .clone()
        .map(move |value| {
            let _held = &held;
            *value
        })
        .into_stream(Unbounded);
    assert_eq!(Arc::strong_count(&token), 2);
    source.complete();
    assert_eq!(stream.blocking_next(), None);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn block_policy_waits_for_consumer() {
    let source = ManualSource::<u32>::new();
    let stream = source.clone().into_stream(Bounded::block(2));
    let producer = std::thread::spawn(move || {
        for value in 0..10_000 {
            source.next(value);
        }
        source.complete();
    });
    assert!(stream.blocking_iter().eq(0..10_000));
    producer.join().unwrap();
}

#[test]
fn dropped_stream_unblocks_source() {
    for taken in 0..3 {
        let source = ManualSource::<u32>::new();
        let mut stream = source.clone().into_stream(Bounded::block(1));
        let producer = std::thread::spawn(move || {
            while source.has_observer() {
                source.next(1);
            }
        });
        for _ in 0..taken {
            assert_eq!(stream.blocking_next(), Some(1));
        }
        drop(stream);
        producer.join().unwrap();
    }
}

#[test]
fn values_during_subscription_do_not_block() {
    let source = ManualSource::<u32>::with_ready(vec![1, 2, 3, 4, 5]);
    let mut stream = source.clone().into_stream(Bounded::block(2));
    for value in 1..=5 {
        assert_eq!(poll(&mut stream, Waker::noop()), Poll::Ready(Some(value)));
    }
    source.next(6);
    source.complete();
    assert!(stream.blocking_iter().eq([6]));
}

/// Emits from another thread, and collects under an executor.
fn collect_across_threads<P>(policy: P, count: u32, tokio: bool) -> Vec<P::Item<u32>>
where
    P: OverflowPolicy + 'static,
    P::Item<u32>: Send,
{
    let source = ManualSource::<u32>::new();
    let stream = source.clone().into_stream(policy);
    let producer = std::thread::spawn(move || {
        for value in 0..count {
            if value % 3 == 0 {
                source.next_slice(&[value]);
            } else {
                source.next(value);
            }
        }
        source.complete();
    });
    let items = if tokio {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(stream.collect())
    } else {
        futures::executor::block_on(stream.collect())
    };
    producer.join().unwrap();
    items
}

#[test]
fn values_arrive_exactly_once_across_threads() {
    for tokio in [false, true] {
        for _ in 0..20 {
            assert!(
                collect_across_threads(Unbounded, 20_000, tokio)
                    .into_iter()
                    .eq(0..20_000)
            );
        }
        assert!(
            collect_across_threads(Bounded::block(16), 20_000, tokio)
                .into_iter()
                .eq(0..20_000)
        );
    }
}

#[test]
fn every_value_arrives_or_is_counted_as_lost() {
    for policy in [Bounded::drop_oldest(8), Bounded::drop_newest(8)] {
        for tokio in [false, true] {
            let mut next = 0;
            for item in collect_across_threads(policy.report_lag(), 20_000, tokio) {
                match item {
                    Ok(value) => {
                        assert_eq!(u64::from(value), next);
                        next += 1;
                    }
                    Err(Lagged(count)) => next += count,
                }
            }
            assert_eq!(next, 20_000);
        }
    }
}

#[test]
fn latest_stream_ends_with_last_value() {
    for tokio in [false, true] {
        let items = collect_across_threads(Latest, 20_000, tokio);
        assert!(items.is_sorted());
        assert_eq!(items.last(), Some(&19_999));
    }
}

#[test]
fn dropped_next_loses_no_value() {
    futures::executor::block_on(async {
        let source = ManualSource::<u32>::new();
        let mut stream = source.clone().into_stream(Unbounded);
        let abandoned =
            futures::future::select(Box::pin(stream.next()), futures::future::ready(())).await;
        assert!(matches!(abandoned, futures::future::Either::Right(_)));
        drop(abandoned);
        source.next(1);
        assert_eq!(stream.next().await, Some(1));
    });
}
