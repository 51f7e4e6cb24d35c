use fanline::operators::NotSingle;

use super::End::{Completes, Fails, Never};
use super::*;

const FIVE: [i32; 5] = [1, 2, 3, 4, 5];

#[test]
fn filter_and_ignore_elements() {
    check(
        &FIVE,
        Completes,
        |source| source.filter(|n| n % 2 == 1),
        &completes([1, 3, 5]),
    );
    check(
        &FIVE,
        Fails("no"),
        |source| source.filter(|n| *n > 9),
        &only_fails("no"),
    );
    check(
        &FIVE,
        Completes,
        |source| source.ignore_elements(),
        &completes([]),
    );
    check(
        &FIVE,
        Fails("no"),
        |source| source.ignore_elements(),
        &only_fails("no"),
    );
    check(&FIVE, Never, |source| source.ignore_elements(), &open([]));
}

#[test]
fn take() {
    check(
        &FIVE,
        Completes,
        |source| source.take(2),
        &completes([1, 2]),
    );
    check(&FIVE, Never, |source| source.take(5), &completes(FIVE));
    check(&FIVE, Completes, |source| source.take(9), &completes(FIVE));
    check(
        &FIVE,
        Fails("no"),
        |source| source.take(5),
        &completes(FIVE),
    );
    check(
        &FIVE,
        Fails("no"),
        |source| source.take(6),
        &fails(FIVE, "no"),
    );
    check(&FIVE, Never, |source| source.take(0), &completes([]));
    check(
        &FIVE,
        Never,
        |source| source.take(3).take(3),
        &completes([1, 2, 3]),
    );
}

#[test]
fn take_while() {
    check(
        &FIVE,
        Completes,
        |source| source.take_while(|n| *n < 3),
        &completes([1, 2]),
    );
    check(
        &FIVE,
        Never,
        |source| source.take_while(|n| *n != 3),
        &completes([1, 2]),
    );
    check(
        &FIVE,
        Never,
        |source| source.take_while_inclusive(|n| *n < 3),
        &completes([1, 2, 3]),
    );
    check(
        &FIVE,
        Fails("no"),
        |source| source.take_while(|n| *n < 9),
        &fails(FIVE, "no"),
    );
    check(
        &FIVE,
        Completes,
        |source| source.take_while_inclusive(|n| *n < 9),
        &completes(FIVE),
    );
    check(
        &FIVE,
        Never,
        |source| source.take_while(|n| *n > 9),
        &completes([]),
    );
}

#[test]
fn skip_and_skip_while() {
    check(
        &FIVE,
        Completes,
        |source| source.skip(2),
        &completes([3, 4, 5]),
    );
    check(
        &FIVE,
        Fails("no"),
        |source| source.skip(9),
        &only_fails("no"),
    );
    check(&FIVE, Completes, |source| source.skip(0), &completes(FIVE));
    check(
        &FIVE,
        Completes,
        |source| source.skip_while(|n| n % 3 != 0),
        &completes([3, 4, 5]),
    );
    check(
        &FIVE,
        Fails("no"),
        |source| source.skip_while(|n| *n < 9),
        &only_fails("no"),
    );
}

#[test]
fn take_last_skip_last_and_last() {
    check(
        &FIVE,
        Completes,
        |source| source.take_last(2),
        &completes([4, 5]),
    );
    check(
        &FIVE,
        Completes,
        |source| source.take_last(9),
        &completes(FIVE),
    );
    check(
        &FIVE,
        Completes,
        |source| source.take_last(0),
        &completes([]),
    );
    check(
        &FIVE,
        Fails("no"),
        |source| source.take_last(2),
        &only_fails("no"),
    );
    check(&FIVE, Never, |source| source.take_last(2), &open([]));
    check(
        &FIVE,
        Completes,
        |source| source.skip_last(2),
        &completes([1, 2, 3]),
    );
    check(
        &FIVE,
        Fails("no"),
        |source| source.skip_last(2),
        &fails([1, 2, 3], "no"),
    );
    check(
        &FIVE,
        Completes,
        |source| source.skip_last(0),
        &completes(FIVE),
    );
    check(
        &FIVE,
        Completes,
        |source| source.skip_last(9),
        &completes([]),
    );
    check(&FIVE, Completes, |source| source.last(), &completes([5]));
    check(
        &FIVE,
        Fails("no"),
        |source| source.last(),
        &only_fails("no"),
    );
    check(
        &[],
        Completes,
        |source: Script<i32>| source.last(),
        &completes([]),
    );
}

#[test]
fn first_element_at_and_single() {
    check(&FIVE, Never, |source| source.first(), &completes([1]));
    check(
        &[],
        Completes,
        |source: Script<i32>| source.first(),
        &completes([]),
    );
    check(
        &[],
        Fails("no"),
        |source: Script<i32>| source.first(),
        &only_fails("no"),
    );
    check(&FIVE, Never, |source| source.element_at(3), &completes([4]));
    check(
        &FIVE,
        Completes,
        |source| source.element_at(5),
        &completes([]),
    );
    check(
        &[7],
        Completes,
        |source| source.single(),
        &completes([Ok(7)]),
    );
    check(
        &[7],
        Fails("no"),
        |source| source.single(),
        &only_fails("no"),
    );
    check(&[7], Never, |source| source.single(), &open([]));
    check(
        &[7, 8],
        Never,
        |source| source.single(),
        &completes([Err(NotSingle::Many)]),
    );
    check(
        &[],
        Completes,
        |source: Script<i32>| source.single(),
        &completes([Err(NotSingle::Empty)]),
    );
}

#[test]
fn distinct_and_distinct_until_changed() {
    let values = [1, 1, 2, 1, 3, 3];
    check(
        &values,
        Completes,
        |source| source.distinct(),
        &completes([1, 2, 3]),
    );
    check(
        &values,
        Fails("no"),
        |source| source.distinct_by_key(|n| n % 2),
        &fails([1, 2], "no"),
    );
    check(
        &values,
        Completes,
        |source| source.distinct_until_changed(),
        &completes([1, 2, 1, 3]),
    );
    check(
        &[],
        Fails("no"),
        |source: Script<i32>| source.distinct_until_changed(),
        &only_fails("no"),
    );
    check(
        &[11, 12, 25, 21, 13],
        Completes,
        |source| source.distinct_until_changed_by_key(|n| n / 10),
        &completes([11, 25, 13]),
    );
    // Each value is compared with the last emitted value, not with the previous value, so slow drift is
    // detected.
    check(
        &[0, 2, 4, 6, 8, 9],
        Completes,
        |source| source.distinct_until_changed_by(|before, now| now - before < 3),
        &completes([0, 4, 8]),
    );
}
