//! The types of long chains, and boxing.

use std::any::type_name_of_val;

use fanline::{BoxObservable, CombineExt, Observable, ObservableExt};

use crate::manual_source::Log;

/// Adds four operators: a closure that maps, one that filters, one with state, and one without a closure.
macro_rules! four {
    ($source:expr) => {
        $source
            .map(|n: &u64| n + 1)
            .filter(|n: &u64| *n > 0)
            .scan(0, |_, n: &u64| *n)
            .skip(0)
    };
}

/// Returns a chain of forty operators, whose types are nested in each other.
fn forty() -> impl Observable<Item = u64, Error = &'static str> + Send + 'static {
    let source = fanline::from_iter(0..3_u64).with_error_type();
    let ten = four!(four!(source)).take(9).tap(|_| ());
    let twenty = four!(four!(ten)).take(9).tap(|_| ());
    let thirty = four!(four!(twenty)).take(9).tap(|_| ());
    four!(four!(thirty)).take(9).tap(|_| ())
}

/// The main check is that this test compiles, and quickly. The compile time grows linearly with the length of
/// the chain, and the compiler's limits are not reached.
#[test]
fn chain_of_forty_operators_can_be_boxed() {
    let chain = forty();
    let length = type_name_of_val(&chain).matches("operators::").count();
    assert!(length >= 40, "{length} operators");

    let boxed: BoxObservable<u64, &str> = chain.boxed();
    assert!(type_name_of_val(&boxed).matches("operators::").count() == 0);
    let log = Log::default();
    drop(boxed.subscribe_with(log.clone()));
    assert_eq!(log.text(), "8 9 10 |");
}

/// Builds a chain with queues, workers, shared state, and several sources.
#[test]
fn chain_can_be_boxed_at_each_step() {
    let time = fanline::scheduler::VirtualTime::new();
    let mut chain: BoxObservable<u64, &str> = fanline::of(0).with_error_type().boxed();
    for _ in 0..40 {
        chain = chain
            .merge(fanline::empty().with_error_type())
            .observe_on(time.clone())
            .flat_map_with(1, |n| fanline::of(n + 1).with_error_type())
            .take(1)
            .boxed();
    }
    let log = Log::default();
    let guard = chain.subscribe_with(log.clone());
    time.run();
    assert_eq!(log.text(), "40 |");
    drop(guard);
}
