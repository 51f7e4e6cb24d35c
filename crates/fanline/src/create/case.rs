use std::collections::HashMap;
use std::hash::Hash;

use crate::{Guard, IntoObservable, Observable, Observer};

/// Subscribes to the source whose key `select` returns. Without such a source, completes at once.
///
/// `select` is called at each subscription. Sources of different types must be
/// [`boxed`](crate::ObservableExt::boxed).
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::case(|| "b", [("a", fanline::of(1)), ("b", fanline::of(2))])
///     .subscribe(|value| assert_eq!(*value, 2))
///     .detach();
/// ```
pub fn case<K, S, F>(
    select: F,
    sources: impl IntoIterator<Item = (K, S)>,
) -> Case<F, K, S::Observable>
where
    K: Eq + Hash,
    S: IntoObservable,
    F: FnOnce() -> K,
{
    Case {
        select,
        sources: sources
            .into_iter()
            .map(|(key, source)| (key, source.into_observable()))
            .collect(),
    }
}

/// One of several observables; see [`case`].
#[derive(Clone, Debug)]
pub struct Case<F, K, S> {
    select: F,
    sources: HashMap<K, S>,
}

impl<F, K, S> Observable for Case<F, K, S>
where
    K: Eq + Hash,
    S: Observable,
    F: FnOnce() -> K,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(mut self, mut observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let key = (self.select)();
        match self.sources.remove(&key) {
            Some(source) => source.subscribe_with(observer),
            None => {
                if !observer.is_closed() {
                    observer.complete();
                }
                Guard::closed()
            }
        }
    }
}
