//! Operators with several sources, or several subscriptions to one source, whose tables are not in
//! `operators_combine` or `operators_errors`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanline::operators::{self, Unicast};
use fanline::{CombineExt, Observable, ObservableExt};

use crate::manual_source::{Cold, Log, ManualSource, check, sources};

#[test]
fn switch_if_empty() {
    check(
        |[a, b, ..]| a.switch_if_empty(b).boxed(),
        &[
            ("b9 a| b1 b|", "1 |"),
            ("a1 b2 a|", "1 |"),
            ("a#", "#a"),
            ("a1 a#", "1 #a"),
            ("a| b#", "#b"),
            ("a| b1 !", "1"),
            ("!", ""),
            ("a-", "."),
            ("a| b-", "."),
        ],
    );
}

#[test]
fn retry_when() {
    check(
        |[a, b, ..]| a.retry_when(move |_| b).boxed(),
        &[
            ("a1 a# a8 b0 a2 a|", "1 2 |"),
            ("a1 b0 a# b|", "1 |"),
            ("b| a1 a#", "1 |"),
            ("b# a1 a#", "1 #b"),
            ("a# b#", "#b"),
            ("a# b0 a# b0 a1 !", "1"),
            ("a# !", ""),
            ("!", ""),
            ("a# b-", "."),
            ("a-", "."),
        ],
    );
    check(
        |[a, ..]| {
            a.retry_when(|errors| errors.take(1).with_error_type())
                .boxed()
        },
        &[("a1 a# a2 a# a3", "1 2 |"), ("a# a1 a|", "1 |")],
    );
    // The handler receives the errors.
    check(
        |[a, ..]| {
            a.retry_when(|errors| {
                errors
                    .with_error_type()
                    .concat_map(|error| fanline::throw::<u32, &'static str>(*error))
            })
            .boxed()
        },
        &[("a1 a#", "1 #a")],
    );
}

#[test]
fn repeat_when() {
    check(
        |[a, b, ..]| a.repeat_when(move |_| b).boxed(),
        &[
            ("a1 a| a8 b0 a2 a#", "1 2 #a"),
            ("a1 a| b|", "1 |"),
            ("a| b#", "#b"),
            ("b| a1 a|", "1 |"),
            ("a| b0 a1 !", "1"),
            ("a| !", ""),
        ],
    );
}

#[test]
fn resubscription_of_immediate_source_does_not_grow_stack() {
    const TIMES: usize = 100_000;
    let failing = Cold::<u32>::new([], Some(Err("no")));
    let log = Log::default();
    let guard = failing
        .clone()
        .retry_when(|errors| errors.take(TIMES).with_error_type())
        .subscribe_with(log.clone());
    assert_eq!(log.text(), "|");
    assert_eq!(failing.subscriptions.load(Ordering::SeqCst), TIMES + 1);
    assert!(guard.is_closed());
    assert_eq!(log.handles(), 1);

    let log = Log::default();
    let mut left = TIMES;
    let source = Cold::<u32>::new([], Some(Ok(())));
    source
        .clone()
        .do_while(move || {
            left -= 1;
            left > 0
        })
        .subscribe_with(log.clone())
        .detach();
    assert_eq!(log.text(), "|");
    assert_eq!(source.subscriptions.load(Ordering::SeqCst), TIMES);
}

#[test]
fn do_while_stops_at_error_and_at_unsubscription() {
    check(
        |[a, ..]| a.do_while(|| true).boxed(),
        &[("a1 a| a2 a#", "1 2 #a"), ("a1 a| a2 !", "1 2")],
    );
}

#[test]
fn tuples() {
    check(
        |[a, b, c, _]| operators::zip((a, b, c)).boxed(),
        &[
            ("a1 b2 a4 c3 b5 c6", "(1,2,3) (4,5,6)"),
            ("a1 b2 c3 a|", "(1,2,3) |"),
            ("a1 c3 b|", "|"),
            ("a1 a2 b3 b4 a| c5 c6", "(1,3,5) (2,4,6) |"),
            ("a1 b2 c#", "#c"),
            ("a1 b2 c3 b#", "(1,2,3) #b"),
            ("a1 b2 !", ""),
        ],
    );
    check(
        |[a, b, c, d]| operators::combine_latest((a, b, c, d)).boxed(),
        &[
            ("a1 b2 c3 d4 b5", "(1,2,3,4) (1,5,3,4)"),
            ("a1 b2 c3 d4 a| b| c| d6 d|", "(1,2,3,4) (1,2,3,6) |"),
            ("a1 c|", "|"),
            ("a1 b2 d#", "#d"),
            ("a1 b2 c3 d4 !", "(1,2,3,4)"),
        ],
    );
    let n = || fanline::of(1_u8);
    let log = Log::default();
    operators::zip((n(), n(), n(), n(), n(), n(), n(), fanline::of("h")))
        .subscribe_with(log.clone())
        .detach();
    assert_eq!(log.text(), "(1,1,1,1,1,1,1,\"h\") |");
}

#[test]
fn concat_map_eager() {
    check(
        |[a, b, c, d]| {
            let inner = [b, c, d];
            a.concat_map_eager(move |&at| inner[at as usize].clone())
                .boxed()
        },
        &[
            ("a0 a1 c1 b2 b| c3 c| a|", "2 1 3 |"),
            ("a0 a1 a2 d1 d| c2 c| b| a|", "2 1 |"),
            ("a0 a| b1 b|", "1 |"),
            ("a|", "|"),
            ("a0 a1 c1 b#", "#b"),
            ("a0 a1 b1 c#", "1 #c"),
            ("a0 a#", "#a"),
            ("a0 a1 c1 !", ""),
        ],
    );
}

#[test]
fn delay_error() {
    check(
        |[a, b, ..]| a.merge_delay_error(b).boxed(),
        &[
            ("a1 a# b2 b|", "1 2 #a"),
            ("a# b#", "#a"),
            ("b# a#", "#b"),
            ("a1 a| b|", "1 |"),
            ("a# b1 !", "1"),
        ],
    );
    check(
        |[a, b, ..]| a.concat_delay_error(b).boxed(),
        &[
            ("a1 a# b2 b|", "1 2 #a"),
            ("a| b#", "#b"),
            ("a# b#", "#a"),
            ("a| b|", "|"),
            ("a# !", ""),
        ],
    );
    check(
        |[a, b, ..]| a.zip_delay_error(b).boxed(),
        &[
            ("a1 a2 a# b3 b4", "(1,3) (2,4) #a"),
            ("a#", "#a"),
            ("a1 b2 b|", "(1,2) |"),
            ("a1 a# !", ""),
        ],
    );
    check(
        |[a, b, ..]| a.combine_latest_delay_error(b).boxed(),
        &[
            ("a1 a# b2 b|", "(1,2) #a"),
            ("a#", "#a"),
            ("a1 b2 a| b|", "(1,2) |"),
            ("a1 a# b2 !", "(1,2)"),
        ],
    );
    let select = |[a, b, c, d]: [ManualSource<u32>; 4]| {
        let inner = [b, c, d];
        (a, move |at: &u32| inner[*at as usize].clone())
    };
    check(
        |sources| {
            let (a, inner) = select(sources);
            a.flat_map_delay_error(inner).boxed()
        },
        &[
            ("a0 a1 b# c1 a| c|", "1 #b"),
            ("a0 a# b1 b|", "1 #a"),
            ("a0 a| b|", "|"),
            ("a0 b# !", ""),
        ],
    );
    check(
        |sources| {
            let (a, inner) = select(sources);
            a.concat_map_delay_error(inner).boxed()
        },
        &[("a0 a1 c8 b1 b# c2 c| a|", "1 2 #b")],
    );
}

#[test]
fn merge_all_concat_all_and_race_all() {
    let observables = |[a, b, c, d]: [ManualSource<u32>; 4]| {
        let inner = [b, c, d];
        a.map(move |at| inner[*at as usize].clone())
    };
    check(
        |sources| observables(sources).merge_all().boxed(),
        &[
            ("a0 a1 c1 b2 a| b| c|", "1 2 |"),
            ("a0 b#", "#b"),
            ("a0 a1 b1 !", "1"),
        ],
    );
    check(
        |sources| observables(sources).concat_all().boxed(),
        &[("a0 a1 c1 b2 b| c3 a| c|", "2 3 |")],
    );
    check(
        |sources| observables(sources).race_all().boxed(),
        &[
            ("a0 a1 c1 b2 c3 c| b|", "1 3 |"),
            ("a0 b1 a1 c2 a# b|", "1 |"),
            ("a0 a| b1 b|", "1 |"),
            ("a|", "|"),
            ("a#", "#a"),
            ("a0 a# b1", "#a"),
            ("a0 b|", "|"),
            ("a0 a1 c# b1", "#c"),
            ("a0 a1 ! b1", ""),
        ],
    );
}

/// The source and the observables that lose must not stay subscribed.
#[test]
fn race_all_unsubscribes_from_the_source_and_the_losers() {
    let [a, b, c, _] = sources();
    let inner = [b.clone(), c.clone()];
    let _guard = a
        .clone()
        .map(move |at| inner[*at as usize].clone())
        .race_all()
        .subscribe(|_| ());
    a.next(0);
    a.next(1);
    c.next(7);
    assert_eq!((a.observers(), b.observers(), c.observers()), (0, 0, 1));
}

#[test]
fn sequence_equal() {
    check(
        |[a, b, ..]| a.sequence_equal(b).boxed(),
        &[
            ("a1 a2 b1 b2 a| b|", "true |"),
            ("a| b|", "true |"),
            ("a1 b2", "false |"),
            ("a1 a| b1 b2", "false |"),
            ("a1 b|", "false |"),
            ("b1 a|", "false |"),
            ("a1 a#", "#a"),
            ("a| b1 !", "false |"),
            ("a1 !", ""),
            ("a-", "."),
        ],
    );
}

#[test]
fn expand() {
    check(
        |[a, ..]| {
            a.expand(|&n| Cold::new((n > 1).then_some(n / 2), Some(Ok(()))))
                .boxed()
        },
        &[
            ("a4 a3 a|", "4 2 1 3 1 |"),
            ("a|", "|"),
            ("a2 a#", "2 1 #a"),
            ("a2 !", "2 1"),
        ],
    );
    check(
        |[a, b, ..]| a.expand(move |_| b.clone().take(1)).boxed(),
        &[("a1 a| b2", "1 2"), ("a1 a| b|", "1 |"), ("a1 b#", "1 #b")],
    );
    let deepest = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&deepest);
    fanline::of(0_usize)
        .expand(|&n| fanline::from_iter((n < 100_000).then_some(n + 1)))
        .subscribe(move |n| seen.store(*n, Ordering::SeqCst))
        .detach();
    assert_eq!(deepest.load(Ordering::SeqCst), 100_000);
    let log = Log::default();
    fanline::of(0)
        .expand(|n| fanline::repeat_value(n + 1))
        .take(4)
        .subscribe_with(log.clone())
        .detach();
    assert_eq!(log.text(), "0 1 1 1 |");
}

#[test]
fn join() {
    check(
        |[a, b, c, d]| {
            a.join(b, move |_| c.clone(), move |_| d.clone(), |a, b| (*a, *b))
                .boxed()
        },
        &[
            ("a1 b2 a3 c0 b4", "(1,2) (3,2)"),
            ("a1 b2 d0 a3 b4", "(1,2) (1,4) (3,4)"),
            ("a1 a| b2 c0", "(1,2) |"),
            ("b1 b| a2 d|", "(2,1) |"),
            ("a1 b2 a| b|", "(1,2) |"),
            ("a|", "|"),
            ("a1 b2 c#", "(1,2) #c"),
            ("b2 d#", "#d"),
            ("a1 b#", "#b"),
            ("a1 b2 !", "(1,2)"),
        ],
    );
}

#[test]
fn group_join() {
    let collected = |values: &Unicast<u32, &'static str>| values.clone().collect::<Vec<_>>();
    check(
        move |[a, b, c, d]| {
            a.group_join(
                b,
                move |_| c.clone(),
                move |_| d.clone(),
                |_, values| values,
            )
            .flat_map(collected)
            .boxed()
        },
        &[
            ("a1 b2 b3 c0 b4", "[2,3]"),
            ("b5 a1 c0", "[5]"),
            ("b5 d0 a1 c0", "[]"),
            ("a1 b2 a| c0", "[2] |"),
            ("a1 a3 b2 a| b|", "[2] [2] |"),
            ("a1 b| b2 c0 a|", "[] |"),
            ("a1 b2 a#", "#a"),
            ("a1 c#", "#c"),
            ("a1 b2 !", ""),
        ],
    );
}

#[test]
fn source_stored_for_resubscription_is_dropped_at_end() {
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let (source, decisions) = (ManualSource::<u32>::new(), ManualSource::<u32>::new());
    let given = decisions.clone();
    source
        .clone()
        .map(move |value| {
            let _held = &held;
            *value
        })
        .retry_when(move |_| given)
        .subscribe(|_| ())
        .detach();
    source.error("once");
    assert!(Arc::strong_count(&token) > 1, "an attempt is waiting");
    decisions.drop_observers();
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn panic_in_closure_ends_subscription() {
    type Build = fn(ManualSource<u32>) -> fanline::BoxObservable<u32, &'static str>;
    let builds: [Build; 5] = [
        |a| {
            a.concat_map_eager(|_| -> ManualSource<u32> { panic!("on purpose") })
                .boxed()
        },
        |a| {
            a.expand(|_| -> ManualSource<u32> { panic!("on purpose") })
                .boxed()
        },
        |a| {
            a.debounce_with(|_| -> ManualSource<u32> { panic!("on purpose") })
                .boxed()
        },
        |a| {
            a.group_by_until(|n| *n, |_| -> ManualSource<u32> { panic!("on purpose") })
                .flat_map(Clone::clone)
                .boxed()
        },
        |a| {
            a.join(
                ManualSource::new(),
                |_| -> ManualSource<u32> { panic!("on purpose") },
                |_: &u32| ManualSource::<u32>::new(),
                |a, b| a + b,
            )
            .boxed()
        },
    ];
    for (at, build) in builds.into_iter().enumerate() {
        let a = ManualSource::new();
        let log = Log::default();
        let guard = build(a.clone()).subscribe_with(log.clone());
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| a.next(1)));
        assert!(caught.is_err(), "{at}");
        assert_eq!(a.observers(), 0, "{at}");
        assert_eq!(log.handles(), 1, "{at}: the observer is kept");
        assert!(guard.is_closed(), "{at}");
    }
}
