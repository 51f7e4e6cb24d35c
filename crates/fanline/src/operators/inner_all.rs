//! `merge_all` and `concat_all`: the operators for an observable of observables.

use super::flat_map::FlatMap;
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`merge_all`](crate::CombineExt::merge_all) and
/// [`concat_all`](crate::CombineExt::concat_all).
///
/// [`merge_all`](crate::CombineExt::merge_all) emits the values of the observables that the source emits, as
/// they arrive; [`concat_all`](crate::CombineExt::concat_all) emits those of one observable after the other.
/// They behave like [`flat_map`](crate::CombineExt::flat_map) and
/// [`concat_map`](crate::CombineExt::concat_map) with a closure that clones its argument. For a list of
/// observables, use the functions [`merge`](crate::operators::merge()) and
/// [`concat`](crate::operators::concat()).
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=5)
///     .window_count(2)
///     .map(|window| window.clone().sum())
///     .concat_all()
///     .collect::<Vec<_>>()
///     .subscribe(|sums| assert_eq!(*sums, [3, 7, 5]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct MergeAll<S> {
    source: S,
    max_concurrent: usize,
}

impl<S> MergeAll<S> {
    pub(super) fn new(source: S, max_concurrent: usize) -> Self {
        Self {
            source,
            max_concurrent,
        }
    }
}

impl<S, R> Observable for MergeAll<S>
where
    S: Observable<Item = R, Error: Clone + Send + 'static>,
    R: IntoObservable<Item: Clone + Send + 'static, Error = S::Error, Observable: Send + 'static>
        + Clone
        + 'static,
{
    type Item = R::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<R::Item, S::Error> + Send + 'static,
    {
        FlatMap::new(self.source, self.max_concurrent, R::clone).subscribe_with(observer)
    }
}
