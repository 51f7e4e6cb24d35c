use super::funnel::MergedSources;
use crate::{Guard, IntoObservable, Observable, Observer};
use alloc::vec::Vec;

/// The observable returned by [`merge`](crate::CombineExt::merge).
///
/// Emits the values of this source and of `other` as they arrive.
///
/// Completes when both have completed; fails with the first error. If values arrive on two threads at once,
/// one of the threads emits both; the other queues a clone and continues. Stores nothing else.
/// The function [`merge`](crate::operators::merge()) takes a list.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(0..2)
///     .merge(fanline::from_iter(5..7))
///     .subscribe(|value| println!("{value}"))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Merge<A, B> {
    first: A,
    second: B,
}

impl<A, B> Merge<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A, B> Observable for Merge<A, B>
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item = A::Item, Error = A::Error>,
{
    type Item = A::Item;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<A::Item, A::Error> + Send + 'static,
    {
        let merged = MergedSources::new(observer, 2);
        let guard = merged.guard();
        merged.add(self.first);
        merged.add(self.second);
        guard
    }
}

/// The merged values of several sources of one type; see [`merge`](crate::operators::merge()).
#[derive(Clone, Debug)]
pub struct MergeList<S> {
    sources: Vec<S>,
}

/// Emits the values of all sources as they arrive; see
/// [`CombineExt::merge`](crate::CombineExt::merge).
///
/// Subscribes in the given order. Completes when all sources have completed; an empty list completes at once.
/// Fails with the first error. Sources of different types must be [`boxed`](crate::ObservableExt::boxed)
/// first.
///
/// ```
/// use fanline::{ObservableExt, Observable, Subject, operators::merge};
///
/// let (north, south) = (Subject::<u32>::new(), Subject::<u32>::new());
/// let _guard = merge([north.clone(), south.clone()]).subscribe(|value| println!("{value}"));
/// north.next(1);
/// south.next(2);
/// ```
pub fn merge<I>(sources: I) -> MergeList<<I::Item as IntoObservable>::Observable>
where
    I: IntoIterator<Item: IntoObservable>,
{
    MergeList {
        sources: sources
            .into_iter()
            .map(IntoObservable::into_observable)
            .collect(),
    }
}

impl<S> Observable for MergeList<S>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        if self.sources.is_empty() {
            observer.complete();
            return Guard::closed();
        }
        let merged = MergedSources::new(observer, self.sources.len());
        let guard = merged.guard();
        for source in self.sources {
            if merged.is_over() {
                break;
            }
            merged.add(source);
        }
        guard
    }
}
