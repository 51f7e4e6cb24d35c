//! Operators that other observables or durations control: buffers and windows by boundary, groups with an end,
//! pace by selector, and parts of a source by time.

use fanline::operators::{Grouped, Unicast};
use fanline::{CombineExt, ObservableExt, TimeExt};

use crate::manual_source::check;
use crate::operators_time::{self, ms};

#[test]
fn buffer_when() {
    check(
        |[a, b, ..]| a.buffer_when(b).boxed(),
        &[
            ("a1 a2 b0 b0 a3 a|", "[1,2] [] [3] |"),
            ("a1 b|", "[1] |"),
            ("b|", "|"),
            ("a1 a#", "#a"),
            ("a1 b#", "#b"),
            ("a1 !", ""),
            ("a1 a-", "."),
            ("a1 b-", "."),
        ],
    );
}

#[test]
fn window_when() {
    let collected = |window: &Unicast<u32, &'static str>| window.clone().collect::<Vec<_>>();
    check(
        move |[a, b, ..]| a.window_when(b).flat_map(collected).boxed(),
        &[
            ("a1 a2 b0 a3 a|", "[1,2] [3] |"),
            ("b0 a|", "[] [] |"),
            ("a1 b|", "[1] |"),
            ("a1 a#", "#a"),
            ("a1 b#", "#b"),
            ("a1 !", ""),
        ],
    );
    // The first window continues, although `take` requests no other window.
    check(
        |[a, b, ..]| a.window_when(b).take(1).flat_map(Clone::clone).boxed(),
        &[("a1 a2 b0 a3", "1 2 |"), ("a1 !", "1")],
    );
}

#[test]
fn group_by_until() {
    let collected = |group: &Grouped<u32, u32, &'static str>| group.clone().collect::<Vec<_>>();
    check(
        move |[a, b, ..]| {
            a.group_by_until(|n| n % 2, move |_| b.clone())
                .flat_map(collected)
                .boxed()
        },
        &[
            ("a1 a3 b0 a5 a|", "[1,3] [5] |"),
            ("a1 a2 b0", "[1] [2]"),
            ("a1 a2 a|", "[1] [2] |"),
            ("a1 b| a3 a|", "[1] [3] |"),
            ("a1 b#", "#b"),
            ("a1 a#", "#a"),
            ("a1 a2 !", ""),
        ],
    );
}

#[test]
fn debounce_with() {
    check(
        |[a, b, ..]| a.debounce_with(move |_| b.clone()).boxed(),
        &[
            ("a1 a2 b0 b0 a3 b0", "2 3"),
            ("a1 b| a2 a|", "1 2 |"),
            ("a1 a#", "#a"),
            ("a1 b#", "#b"),
            ("a1 !", ""),
        ],
    );
    // A notifier that has already ended.
    check(
        |[a, ..]| {
            a.debounce_with(|_| fanline::empty::<()>().with_error_type())
                .boxed()
        },
        &[("a1 a2 a|", "1 2 |")],
    );
}

#[test]
fn throttle_with() {
    check(
        |[a, b, ..]| a.throttle_with(move |_| b.clone()).boxed(),
        &[
            ("a1 a2 b0 a3 a4 b| a5", "1 3 5"),
            ("a1 a|", "1 |"),
            ("a1 a#", "1 #a"),
            ("a1 b#", "1 #b"),
            ("a1 ! b0", "1"),
        ],
    );
    check(
        |[a, ..]| {
            a.throttle_with(|_| fanline::of(()).with_error_type())
                .boxed()
        },
        &[("a1 a2 a|", "1 2 |")],
    );
}

#[test]
fn delay_with() {
    check(
        |[a, b, c, _]| {
            a.delay_with(move |n| if *n == 1 { b.clone() } else { c.clone() })
                .boxed()
        },
        &[
            ("a1 a2 c0 b0 a|", "2 1 |"),
            ("a1 a| b|", "1 |"),
            ("a1 b#", "#b"),
            ("a1 a#", "#a"),
            ("a1 !", ""),
        ],
    );
}

#[test]
fn take_for_and_skip_for() {
    operators_time::check(
        |[a, ..], time| a.take_for_on(ms(10), time).boxed(),
        &[
            ("a1 +9 a2 +1", "1@0 2@9 |"),
            ("a1 a|", "1@0 |"),
            ("a#", "#a"),
            ("a1 !", "1@0"),
        ],
    );
    operators_time::check(
        |[a, ..], time| a.skip_for_on(ms(10), time).boxed(),
        &[
            ("a1 +9 a2 +1 a3", "3@10"),
            ("a1 a|", "|"),
            ("a1 a#", "#a"),
            ("+10 a1 !", "1@10"),
        ],
    );
}

#[test]
fn take_last_for_and_skip_last_for() {
    operators_time::check(
        |[a, ..], time| a.take_last_for_on(ms(10), time).boxed(),
        &[
            ("a1 +1 a2 +10 a3 a|", "2@11 3@11 |"),
            ("a1 +11 a|", "|"),
            ("a1 a#", "#a"),
            ("a1 !", ""),
        ],
    );
    operators_time::check(
        |[a, ..], time| a.skip_last_for_on(ms(10), time).boxed(),
        &[
            ("a1 +9 a2 +1 a3 a|", "1@10 |"),
            ("a1 +10 a|", "1@10 |"),
            ("a1 +10 a#", "#a"),
            ("a1 !", ""),
        ],
    );
}

#[test]
fn timeout_with() {
    operators_time::check(
        |[a, b, ..], time| a.timeout_with_on(ms(10), b, time).boxed(),
        &[
            ("a1 +9 a2 +10 a3 b4 b|", "1@0 2@9 4@19 |"),
            ("a1 a|", "1@0 |"),
            ("a1 a#", "1@0 #a"),
            ("+10 b#", "#b"),
            ("+10 b1 !", "1@10"),
            ("a1 !", "1@0"),
        ],
    );
}
