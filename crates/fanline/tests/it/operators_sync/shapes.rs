use std::sync::Arc;

use fanline::BoxObservable;

use super::End::{Completes, Fails, Never};
use super::*;

#[test]
fn start_with_and_end_with() {
    check(
        &[3],
        Completes,
        |source| source.start_with([1, 2]),
        &completes([1, 2, 3]),
    );
    check(
        &[3],
        Fails("no"),
        |source| source.start_with([1, 2]),
        &fails([1, 2, 3], "no"),
    );
    check(&[3], Never, |source| source.start_with([]), &open([3]));
    check(
        &[1],
        Completes,
        |source| source.end_with([2, 3]),
        &completes([1, 2, 3]),
    );
    check(
        &[1],
        Fails("no"),
        |source| source.end_with([2, 3]),
        &fails([1], "no"),
    );
    check(
        &[1],
        Completes,
        |source| source.end_with(vec![]),
        &completes([1]),
    );
    check(
        &[1],
        Completes,
        |source| source.end_with(2..).take(3),
        &completes([1, 2, 3]),
    );
    check(
        &[9],
        Completes,
        |source| source.start_with(1..).take(3),
        &completes([1, 2, 3]),
    );
}

#[test]
fn default_if_empty() {
    check(
        &[],
        Completes,
        |source| source.default_if_empty(7),
        &completes([7]),
    );
    check(
        &[1],
        Completes,
        |source| source.default_if_empty(7),
        &completes([1]),
    );
    check(
        &[],
        Fails("no"),
        |source| source.default_if_empty(7),
        &only_fails("no"),
    );
    check(&[], Never, |source| source.default_if_empty(7), &open([]));
}

#[test]
fn map_err_and_with_error_type() {
    check(
        &[1],
        Fails("no"),
        |source| source.map_err(|error| error.len()),
        &fails([1], 2),
    );
    check(
        &[1],
        Completes,
        |source| source.map_err(|error| error.len()),
        &completes([1]),
    );
    let lifted = fanline::of(1).with_error_type::<Failure>();
    check_whole(&lifted, &completes([1]));
}

/// Returns a list of different chains, one for each kind of operator that stores something.
fn different_chains(source: &Script<i32>) -> Vec<(&'static str, BoxObservable<i32, Failure>)> {
    let s = || source.clone();
    vec![
        ("plain", s().boxed()),
        ("boxed twice", s().boxed().boxed()),
        ("map, filter", s().map(|n| n + 1).filter(|n| *n > 0).boxed()),
        (
            "a box in the middle",
            s().boxed().map(|n| n + 1).boxed().skip(1).boxed(),
        ),
        ("filter_map", s().filter_map(|n| Some(*n)).boxed()),
        ("scan", s().scan(0, |sum, n| sum + n).boxed()),
        ("enumerate", s().enumerate().map(|(_, n)| *n).boxed()),
        ("pairwise", s().pairwise().map(|(a, b)| a + b).boxed()),
        (
            "buffer",
            s().buffer_count_every(3, 1).map(|all| all[0]).boxed(),
        ),
        ("take", s().take(100).boxed()),
        ("take_while", s().take_while(|n| *n < 100).boxed()),
        ("skip_while", s().skip_while(|n| *n < 0).boxed()),
        ("take_last", s().take_last(2).boxed()),
        ("skip_last", s().skip_last(2).boxed()),
        ("last", s().last().boxed()),
        ("single", s().skip(2).single().map(|_| 0).boxed()),
        ("distinct", s().distinct().boxed()),
        (
            "distinct_until_changed",
            s().distinct_until_changed().boxed(),
        ),
        ("fold", s().fold(0, |sum, n| sum + n).boxed()),
        ("reduce", s().reduce(|sum, n| sum + n).boxed()),
        ("min", s().min().boxed()),
        ("sum", s().sum().boxed()),
        ("collect", s().collect::<Vec<_>>().map(|all| all[0]).boxed()),
        (
            "contains",
            s().contains(100).map(|found| i32::from(*found)).boxed(),
        ),
        ("tap", s().tap(|_| {}).boxed()),
        ("finalize", s().finalize(|| {}).boxed()),
        ("materialize", s().materialize().dematerialize().boxed()),
        ("default_if_empty", s().default_if_empty(1).boxed()),
        ("start_with", s().start_with([1]).boxed()),
        ("end_with", s().end_with([1]).boxed()),
        ("map_err", s().map_err(|error| *error).boxed()),
    ]
}

/// An observer with a token whose owners can be counted.
struct Holder(#[allow(dead_code, reason = "held, not read")] Arc<()>);

impl<T, E> Observer<T, E> for Holder {
    fn next(&mut self, _value: &T) {}
    fn error(&mut self, _error: &E) {}
    fn complete(&mut self) {}
}

#[test]
fn boxed_chains_fit_one_list_and_drop_their_observer() {
    for end in [Completes, Fails("no"), Never] {
        let source = script(&[1, 2, 3], end, Way::Owned);
        for (name, chain) in different_chains(&source) {
            let token = Arc::new(());
            let guard = chain.subscribe_with(Holder(token.clone()));
            let held = Arc::strong_count(&token) > 1;
            assert_eq!(
                held,
                matches!(end, Never),
                "{name}: token held after {end:?}"
            );
            drop(guard);
            assert_eq!(
                Arc::strong_count(&token),
                1,
                "{name}: token held after unsubscription"
            );
        }
        assert_eq!(
            Arc::strong_count(&source.sent),
            1,
            "a chain was not dropped"
        );
    }
}

#[test]
fn chain_can_be_cloned_and_subscribed_twice() {
    let chain = fanline::from_iter(vec![1, 2, 3])
        .map(|n| n * 2)
        .filter(|n| *n > 2)
        .scan(0, |sum, n| sum + n)
        .take(5)
        .buffer_count(2)
        .start_with([vec![0]])
        .tap(|_| {})
        .with_error_type::<Failure>();
    check_whole(&chain, &completes([vec![0], vec![4, 10]]));
    check_whole(&chain, &completes([vec![0], vec![4, 10]]));
}

#[test]
fn owned_values_are_not_cloned() {
    #[derive(Debug)]
    struct Counted(Arc<Mutex<u32>>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            *self.0.lock().unwrap() += 1;
            Self(self.0.clone())
        }
    }
    let clones = Arc::new(Mutex::new(0));
    let counter = clones.clone();
    let values = fanline::from_iter(0..4).map(move |_| Counted(counter.clone()));
    values
        .filter(|_| true)
        .skip(1)
        .take(3)
        .skip_while(|_| false)
        .take_while(|_| true)
        .skip_last(1)
        .take_last(2)
        .enumerate()
        .map_err(|error| *error)
        .tap(|_| {})
        .finalize(|| {})
        .start_with([])
        .end_with([])
        .materialize()
        .dematerialize()
        .buffer_count(2)
        .last()
        .boxed()
        .subscribe_owned(|mut all| assert_eq!(all.drain(..).count(), 2))
        .detach();
    assert_eq!(*clones.lock().unwrap(), 0);
}
