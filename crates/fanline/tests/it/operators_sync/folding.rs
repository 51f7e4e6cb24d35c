use std::collections::BTreeMap;

use super::End::{Completes, Fails, Never};
use super::*;

const FOUR: [i32; 4] = [3, 1, 2, 1];

#[test]
fn folds_values_into_one() {
    check(&FOUR, Completes, |source| source.count(), &completes([4]));
    check(&FOUR, Completes, |source| source.sum(), &completes([7]));
    check(&FOUR, Completes, |source| source.min(), &completes([1]));
    check(&FOUR, Completes, |source| source.max(), &completes([3]));
    check(
        &FOUR,
        Completes,
        |source| source.average(),
        &completes([1.75]),
    );
    check(
        &FOUR,
        Completes,
        |source| source.reduce(|all, n| all * 10 + n),
        &completes([3121]),
    );
    check(
        &FOUR,
        Completes,
        |source| source.fold(String::new(), |all, n| format!("{all}{n}")),
        &completes(["3121".to_string()]),
    );
    check(
        &FOUR,
        Completes,
        |source| source.collect::<Vec<_>>(),
        &completes([FOUR.to_vec()]),
    );
    check(
        &['a', 'b'],
        Completes,
        |source| source.collect::<String>(),
        &completes(["ab".to_string()]),
    );
    check(
        &[('a', 1), ('a', 2)],
        Completes,
        |source| source.collect::<BTreeMap<_, _>>(),
        &completes([BTreeMap::from([('a', 2)])]),
    );
}

#[test]
fn folds_empty_source() {
    type Source = Script<i32>;
    check(
        &[],
        Completes,
        |source: Source| source.count(),
        &completes([0]),
    );
    check(
        &[],
        Completes,
        |source: Source| source.sum(),
        &completes([0]),
    );
    check(
        &[],
        Completes,
        |source: Source| source.fold(9, |all, n| all + n),
        &completes([9]),
    );
    check(
        &[],
        Completes,
        |source: Source| source.collect::<Vec<_>>(),
        &completes([vec![]]),
    );
    check(
        &[],
        Completes,
        |source: Source| source.min(),
        &completes([]),
    );
    check(
        &[],
        Completes,
        |source: Source| source.max(),
        &completes([]),
    );
    check(
        &[],
        Completes,
        |source: Source| source.average(),
        &completes([]),
    );
    check(
        &[],
        Completes,
        |source: Source| source.reduce(|all, n| all + n),
        &completes([]),
    );
}

#[test]
fn fold_of_failed_source_emits_only_error() {
    check(
        &FOUR,
        Fails("no"),
        |source| source.count(),
        &only_fails("no"),
    );
    check(&FOUR, Fails("no"), |source| source.sum(), &only_fails("no"));
    check(&FOUR, Fails("no"), |source| source.min(), &only_fails("no"));
    check(
        &FOUR,
        Fails("no"),
        |source| source.average(),
        &only_fails("no"),
    );
    check(
        &FOUR,
        Fails("no"),
        |source| source.reduce(|all, n| all + n),
        &only_fails("no"),
    );
    check(
        &FOUR,
        Fails("no"),
        |source| source.fold(0, |all, n| all + n),
        &only_fails("no"),
    );
    check(
        &FOUR,
        Fails("no"),
        |source| source.collect::<Vec<_>>(),
        &only_fails("no"),
    );
    check(&FOUR, Never, |source| source.collect::<Vec<_>>(), &open([]));
}

#[test]
fn min_by_takes_first_and_max_by_last_of_equals() {
    let values = [(1, 'a'), (0, 'b'), (1, 'c'), (0, 'd')];
    check(
        &values,
        Completes,
        |source| source.min_by(|a, b| a.0.cmp(&b.0)),
        &completes([(0, 'b')]),
    );
    check(
        &values,
        Completes,
        |source| source.max_by(|a, b| a.0.cmp(&b.0)),
        &completes([(1, 'c')]),
    );
    check(
        &[2.5, -1.0],
        Completes,
        |source| source.max_by(f64::total_cmp),
        &completes([2.5]),
    );
}

#[test]
fn any_all_contains_and_is_empty() {
    check(
        &FOUR,
        Never,
        |source| source.any(|n| *n == 2),
        &completes([true]),
    );
    check(
        &FOUR,
        Completes,
        |source| source.any(|n| *n == 9),
        &completes([false]),
    );
    check(&FOUR, Never, |source| source.any(|n| *n == 9), &open([]));
    check(
        &FOUR,
        Fails("no"),
        |source| source.any(|n| *n == 9),
        &only_fails("no"),
    );
    check(
        &FOUR,
        Never,
        |source| source.all(|n| *n > 1),
        &completes([false]),
    );
    check(
        &FOUR,
        Completes,
        |source| source.all(|n| *n > 0),
        &completes([true]),
    );
    check(
        &[],
        Completes,
        |source: Script<i32>| source.all(|_| false),
        &completes([true]),
    );
    check(
        &FOUR,
        Never,
        |source| source.contains(2),
        &completes([true]),
    );
    check(
        &FOUR,
        Completes,
        |source| source.contains(9),
        &completes([false]),
    );
    check(
        &FOUR,
        Never,
        |source| source.is_empty(),
        &completes([false]),
    );
    check(
        &[],
        Completes,
        |source: Script<i32>| source.is_empty(),
        &completes([true]),
    );
    check(
        &[],
        Fails("no"),
        |source: Script<i32>| source.is_empty(),
        &only_fails("no"),
    );
}
