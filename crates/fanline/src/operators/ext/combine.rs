//! The operators that subscribe to more than one observable, or more than once.
#![expect(
    clippy::type_complexity,
    reason = "pairs are made by function types, and the lint sees through the alias"
)]

use crate::operators::*;
use crate::scheduler::ThreadPool;
use crate::{IntoObservable, Scheduler};

/// The operators that subscribe to several observables, or to one observable several times, for every type
/// that converts into an [`Observable`](crate::Observable).
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter([1, 2])
///     .concat_map(|&n| fanline::from_iter([n, n * 10]))
///     .merge(fanline::of(7))
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 10, 2, 20, 7]))
///     .detach();
/// ```
pub trait CombineExt: IntoObservable {
    // -- Combining

    /// Emits the latest values of both sources when either emits, until both complete.
    fn combine_latest<B>(
        self,
        other: B,
    ) -> CombineLatest<Self::Observable, B::Observable, Pairing<Self::Item, B::Item>>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        self.combine_latest_with(other, |left, right| (left.clone(), right.clone()))
    }

    /// Like [`combine_latest`](Self::combine_latest), but emits `f` of the pair.
    fn combine_latest_with<B, C, F>(
        self,
        other: B,
        f: F,
    ) -> CombineLatest<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        F: FnMut(&Self::Item, &B::Item) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        CombineLatest::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits the values of this source, then those of `next`. Completes when `next` does.
    fn concat<B>(self, next: B) -> Concat<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
    {
        Concat::new(self.into_observable(), next.into_observable())
    }

    /// Emits the values of the observables that `f` returns, one observable after the other:
    /// [`flat_map_with`](Self::flat_map_with) with `max_concurrent` 1.
    fn concat_map<R, F>(self, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), 1, f)
    }

    /// Emits the values of the observable that `f` returns. Ignores values of this source until that
    /// observable has completed. Completes when both have completed.
    fn exhaust_map<R, F>(self, f: F) -> ExhaustMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self::Error: Clone + Send + 'static,
    {
        ExhaustMap::new(self.into_observable(), f)
    }

    /// Emits the values of the observables that `f` returns, as they arrive. Completes when this source and
    /// all observables have completed.
    fn flat_map<R, F>(self, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), usize::MAX, f)
    }

    /// Like [`flat_map`](Self::flat_map), but subscribes to at most `max_concurrent` observables at a time.
    /// Panics if `max_concurrent` is 0.
    fn flat_map_with<R, F>(self, max_concurrent: usize, f: F) -> FlatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMap::new(self.into_observable(), max_concurrent, f)
    }

    /// Like [`flat_map`](Self::flat_map), but in parallel, on workers of `scheduler`.
    fn flat_map_on<C: Scheduler, R, F>(
        self,
        scheduler: C,
        max_concurrent: usize,
        f: F,
    ) -> FlatMapOn<Self::Observable, C, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMapOn::new(self.into_observable(), scheduler, max_concurrent, f)
    }

    /// Emits the values of both sources as they arrive. Completes when both have completed.
    fn merge<B>(self, other: B) -> Merge<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Merge::new(self.into_observable(), other.into_observable())
    }

    /// Behaves like this source or `other`, whichever emits or ends first.
    fn race<B>(self, other: B) -> Race<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
    {
        Race::new(self.into_observable(), other.into_observable())
    }

    /// Like [`switch_map`](Self::switch_map), for a source that emits observables.
    fn switch_all(self) -> SwitchAll<Self::Observable>
    where
        Self::Item: IntoObservable<Error = Self::Error> + Clone + 'static,
        <Self::Item as IntoObservable>::Item: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        SwitchAll::new(self.into_observable())
    }

    /// Emits the values of the observable that `f` returns for the latest value, and unsubscribes from the
    /// previous one. Completes when this source and the latest observable have completed.
    fn switch_map<R, F>(self, f: F) -> SwitchMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self::Error: Clone + Send + 'static,
    {
        SwitchMap::new(self.into_observable(), f)
    }

    /// Emits each value with the latest of `other`. Completes with this source.
    fn with_latest_from<B>(
        self,
        other: B,
    ) -> WithLatestFrom<Self::Observable, B::Observable, Pairing<Self::Item, B::Item>>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        self.with_latest_from_with(other, |value, latest| (value.clone(), latest.clone()))
    }

    /// Like [`with_latest_from`](Self::with_latest_from), but emits `f` of the pair.
    fn with_latest_from_with<B, C, F>(
        self,
        other: B,
        f: F,
    ) -> WithLatestFrom<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        F: FnMut(&Self::Item, &B::Item) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WithLatestFrom::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits pairs of the n-th values of both sources until either source ends.
    fn zip<B>(self, other: B) -> Zip<Self::Observable, B::Observable, Pair<Self::Item, B::Item>>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        self.zip_with(other, |left, right| (left, right))
    }

    /// Like [`zip`](Self::zip), but emits the result of `f` instead of a pair.
    fn zip_with<B, C, F>(self, other: B, f: F) -> Zip<Self::Observable, B::Observable, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        F: FnMut(Self::Item, B::Item) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Zip::new(self.into_observable(), other.into_observable(), f)
    }

    /// Emits the latest value when `sampler` emits. Completes when either completes.
    fn sample_when<N>(self, sampler: N) -> Sample<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Sample::new(self.into_observable(), sampler.into_observable())
    }

    /// Drops values until `notifier` emits. Completes when this source does.
    fn skip_until<N>(self, notifier: N) -> SkipUntil<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        SkipUntil::new(self.into_observable(), notifier.into_observable())
    }

    /// Emits values until `notifier` emits, then completes.
    fn take_until<N>(self, notifier: N) -> TakeUntil<Self::Observable, N::Observable>
    where
        N: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        TakeUntil::new(self.into_observable(), notifier.into_observable())
    }

    // -- Subscribing to another source

    /// On an error, continues with the observable that `handler` returns.
    fn catch<R, F>(self, handler: F) -> Catch<Self::Observable, F>
    where
        F: FnOnce(&Self::Error) -> R + Send + 'static,
        R: IntoObservable<Item = Self::Item>,
    {
        Catch::new(self.into_observable(), handler)
    }

    /// Subscribes again when the source completes, until the source has run `times` times.
    fn repeat(self, times: usize) -> Repeat<Self::Observable>
    where
        Self::Observable: Clone + Send + 'static,
    {
        Repeat::new(self.into_observable(), times)
    }

    /// Subscribes again when the source fails, at most `times` times.
    fn retry(self, times: usize) -> Retry<Self::Observable>
    where
        Self::Observable: Clone + Send + 'static,
    {
        Retry::new(self.into_observable(), times)
    }

    /// Like [`retry`](Self::retry), with a delay from `backoff` before each attempt.
    fn retry_with(self, backoff: Backoff) -> RetryWith<Self::Observable, ThreadPool>
    where
        Self::Observable: Clone + Send + 'static,
    {
        RetryWith::new(self.into_observable(), backoff, ThreadPool::global())
    }

    /// Like [`retry_with`](Self::retry_with), on a worker of `scheduler`.
    fn retry_with_on<C: Scheduler>(
        self,
        backoff: Backoff,
        scheduler: C,
    ) -> RetryWith<Self::Observable, C>
    where
        Self::Observable: Clone + Send + 'static,
    {
        RetryWith::new(self.into_observable(), backoff, scheduler)
    }
}

impl<S: IntoObservable> CombineExt for S {}

/// A function that makes a pair of clones.
type Pairing<A, B> = fn(&A, &B) -> (A, B);

/// A function that makes a pair.
type Pair<A, B> = fn(A, B) -> (A, B);
