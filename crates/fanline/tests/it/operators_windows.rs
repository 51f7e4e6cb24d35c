//! Operators that emit parts of their source as observables or lists.

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use fanline::from_future;
use fanline::operators::{Grouped, Unicast};
use fanline::scheduler::VirtualTime;
use fanline::{CombineExt, Observable, ObservableExt, TimeExt};

use crate::manual_source::{Log, ManualSource, locked};
use crate::operators_time::{check, ms};

type Window = Unicast<u32, &'static str>;

fn collected(
    window: &Window,
) -> impl Observable<Item = Vec<u32>, Error = &'static str> + Send + use<> {
    window.clone().collect::<Vec<_>>()
}

#[test]
fn buffer_time() {
    check(
        |[a, ..], time| a.buffer_time_on(ms(10), time).boxed(),
        &[
            (
                "a1 a2 +10 +10 a3 +5 a4 +5 a5 a|",
                "[1,2]@10 []@20 [3,4]@30 [5]@30 |",
            ),
            ("a1 a#", "#a"),
            ("a|", "|"),
            ("a1 ! +10", ""),
        ],
    );
    check(
        |[a, ..], time| a.buffer_time_or_count_on(ms(10), 2, time).boxed(),
        &[
            ("a1 +5 a2 a3 +9 +1 a4 a5", "[1,2]@5 [3]@15 [4,5]@15"),
            ("+5 a1 a2 +9 +1", "[1,2]@5 []@15"),
        ],
    );
}

#[test]
fn window_count() {
    check(
        |[a, ..], _| a.window_count(2).flat_map(collected).boxed(),
        &[
            ("a1 a2 a3 a4 a5 a|", "[1,2]@0 [3,4]@0 [5]@0 |"),
            ("a1 a2 a|", "[1,2]@0 |"),
            ("a|", "|"),
            ("a1 a#", "#a"),
            ("a1 !", ""),
        ],
    );
    // The first window is complete, although `take` requests no other window.
    check(
        |[a, ..], _| {
            a.window_count(2)
                .take(1)
                .flat_map_with(1, Clone::clone)
                .boxed()
        },
        &[
            ("a1 a2 a3", "1@0 2@0 |"),
            ("a1 a|", "1@0 |"),
            ("a1 !", "1@0"),
        ],
    );
}

#[test]
fn window_time() {
    check(
        |[a, ..], time| a.window_time_on(ms(10), time).flat_map(collected).boxed(),
        &[
            ("a1 a2 +10 +10 a3 +5 a|", "[1,2]@10 []@20 [3]@25 |"),
            ("a1 +10 a2 a#", "[1]@10 #a"),
            ("a1 ! +10", ""),
        ],
    );
    check(
        |[a, ..], time| {
            a.window_time_or_count_on(ms(10), 2, time)
                .flat_map(collected)
                .boxed()
        },
        &[("a1 +5 a2 a3 +10 a4 a|", "[1,2]@5 [3]@15 [4]@15 |")],
    );
    check(
        |[a, ..], time| {
            a.window_time_on(ms(10), time)
                .take(1)
                .flat_map_with(1, Clone::clone)
                .boxed()
        },
        &[("a1 +5 a2 +5 a3", "1@0 2@5 |")],
    );
}

/// Regression: the sums of the groups arrived in a different order in each run.
#[test]
fn groups_end_in_order_of_creation() {
    let sum = |group: &Grouped<u32, u32>| group.clone().sum();
    let sums = fanline::range(0..40)
        .group_by(|n| n % 20)
        .flat_map(sum)
        .collect::<Vec<_>>()
        .last_value()
        .blocking_wait();
    let expected = (0..20).map(|n| n + n + 20).collect();
    assert_eq!(sums, Ok(Some(expected)));
}

#[test]
fn group_by() {
    let shown = |group: &Grouped<u32, u32, &'static str>| {
        let key = *group.key();
        group.clone().map(move |value| (key, *value))
    };
    check(
        move |[a, ..], _| a.group_by(|n| n % 2).flat_map(shown).boxed(),
        &[
            ("a1 a2 a3 a4 a|", "(1,1)@0 (0,2)@0 (1,3)@0 (0,4)@0 |"),
            ("a1 a#", "(1,1)@0 #a"),
            ("a1 !", "(1,1)@0"),
        ],
    );
    check(
        |[a, ..], _| {
            a.group_by(|n| n % 2)
                .take(1)
                .flat_map_with(1, Clone::clone)
                .boxed()
        },
        &[("a1 a2 a3 a|", "1@0 3@0 |"), ("a1 a2 !", "1@0")],
    );
    // A group whose observer was dropped does not start again.
    check(
        |[a, ..], _| {
            a.group_by(|n| n % 2)
                .flat_map(|group| group.clone().take(1))
                .boxed()
        },
        &[("a1 a3 a2 a4 a|", "1@0 2@0 |")],
    );
}

#[test]
fn group_buffers_values_for_its_first_observer() {
    let source = ManualSource::<u32>::new();
    let groups = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&groups);
    let guard = source
        .clone()
        .group_by(|n| n % 2)
        .subscribe(move |group| found.lock().unwrap().push(group.clone()));
    [1, 2, 3].into_iter().for_each(|n| source.next(n));
    let mut groups = std::mem::take(&mut *locked(&groups));
    let (first, second) = (Log::default(), Log::default());
    let odd = groups[0].subscribe_with(first.clone());
    drop(groups[0].subscribe_with(second.clone()));
    source.next(5);
    assert_eq!(
        (first.text().as_str(), second.text().as_str()),
        ("1 3 5", "|")
    );

    drop(guard);
    source.next(7);
    assert_eq!(
        first.text(),
        "1 3 5 7",
        "the group outlives the outer subscription"
    );
    drop(odd);
    assert_eq!(
        source.observers(),
        1,
        "the even group may still be subscribed"
    );
    groups.clear();
    assert_eq!(source.observers(), 0);
    assert_eq!(first.handles(), 1);
}

#[test]
fn dropped_window_stores_nothing() {
    let token = Arc::new(());
    let source = ManualSource::<Arc<()>>::new();
    let held = Arc::new(Mutex::new(None));
    let last = Arc::clone(&held);
    let guard = source
        .clone()
        .window_count(3)
        .subscribe(move |window| *last.lock().unwrap() = Some(window.clone()));
    source.next(Arc::clone(&token));
    assert_eq!(Arc::strong_count(&token), 2);
    let window = locked(&held).take();
    drop(window);
    assert_eq!(Arc::strong_count(&token), 1);
    source.next(Arc::clone(&token));
    assert_eq!(Arc::strong_count(&token), 1);
    drop(guard);
    assert_eq!(source.observers(), 0);
}

#[test]
fn from_future_emits_value_and_drops_future_on_unsubscribe() {
    let time = VirtualTime::new();
    let slot: Arc<Mutex<(Option<u32>, Option<Waker>)>> = Arc::default();
    let there = Arc::clone(&slot);
    let log = Log::default();
    let guard = from_future(
        poll_fn(move |context| {
            let mut slot = there.lock().unwrap();
            slot.1 = Some(context.waker().clone());
            slot.0.take().map_or(Poll::Pending, Poll::Ready)
        }),
        time.clone(),
    )
    .subscribe_with(log.clone());
    let wake = |value: Option<u32>| {
        let mut slot = locked(&slot);
        slot.0 = value;
        let waker = slot.1.clone();
        drop(slot);
        waker.into_iter().for_each(Waker::wake);
        time.advance_by(ms(0));
    };
    time.advance_by(ms(0));
    wake(None);
    assert_eq!((log.text().as_str(), guard.is_closed()), ("", false));
    wake(Some(7));
    assert_eq!((log.text().as_str(), guard.is_closed()), ("7 |", true));
    wake(Some(8));
    assert_eq!((log.text().as_str(), log.handles()), ("7 |", 1));

    let token = Arc::new(());
    let inside = Arc::clone(&token);
    let waiting = async move {
        let _inside = inside;
        pending::<u32>().await
    };
    let guard = from_future(waiting, time.clone()).subscribe(|_| ());
    assert_eq!(Arc::strong_count(&token), 2);
    drop(guard);
    assert_eq!(Arc::strong_count(&token), 1);
}
