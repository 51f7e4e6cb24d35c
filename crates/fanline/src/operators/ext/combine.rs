//! The operators that subscribe to more than one observable, or more than once.
#![expect(
    clippy::type_complexity,
    reason = "pairs are made by function types, and the lint sees through the alias"
)]

use crate::operators::*;
#[cfg(feature = "std")]
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

    /// Emits all values of the observable that `f` returns for the first value, then those of the second, and
    /// so on.
    fn concat_map<R, F>(self, f: F) -> ConcatMap<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        ConcatMap::new(self.into_observable(), f)
    }

    /// Like [`concat_map`](Self::concat_map), but an error is passed on after all observables have ended.
    fn concat_map_delay_error<R, F>(self, f: F) -> FlatMapDelayError<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMapDelayError::new(self.into_observable(), 1, f)
    }

    /// Like [`concat_map`](Self::concat_map), but subscribes to all observables at once.
    fn concat_map_eager<R, F>(self, f: F) -> ConcatMapEager<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self::Error: Clone + Send + 'static,
    {
        ConcatMapEager::new(self.into_observable(), f)
    }

    /// Like [`merge_all`](Self::merge_all), but emits all values of one observable before those of the next.
    fn concat_all(self) -> MergeAll<Self::Observable>
    where
        Self::Item: IntoObservable<Error = Self::Error> + Clone + 'static,
        <Self::Item as IntoObservable>::Item: Clone + Send + 'static,
        <Self::Item as IntoObservable>::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        MergeAll::new(self.into_observable(), 1)
    }

    /// Emits the values of the observables that this source emits, as they arrive.
    fn merge_all(self) -> MergeAll<Self::Observable>
    where
        Self::Item: IntoObservable<Error = Self::Error> + Clone + 'static,
        <Self::Item as IntoObservable>::Item: Clone + Send + 'static,
        <Self::Item as IntoObservable>::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        MergeAll::new(self.into_observable(), usize::MAX)
    }

    /// Emits the values, those of the observables that `f` returns for them, those of the observables for
    /// those, and so on.
    fn expand<R, F>(self, f: F) -> Expand<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Clone + Send + 'static,
        R: IntoObservable<Item = Self::Item, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        Expand::new(self.into_observable(), f)
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
    #[cfg(feature = "std")]
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

    /// Behaves like the first of the observables that this source emits to emit a value or end.
    fn race_all(self) -> RaceAll<Self::Observable>
    where
        Self::Item: IntoObservable<Error = Self::Error> + Clone,
    {
        RaceAll::new(self.into_observable())
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

    /// Like [`merge`](Self::merge), but an error is passed on after both sources have ended.
    fn merge_delay_error<B>(self, other: B) -> MergeDelayError<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        MergeDelayError::new(self.into_observable(), other.into_observable())
    }

    /// Like [`concat`](Self::concat), but an error is passed on after `next` has ended.
    fn concat_delay_error<B>(self, next: B) -> ConcatDelayError<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        Self::Error: Clone + Send + 'static,
    {
        ConcatDelayError::new(self.into_observable(), next.into_observable())
    }

    /// Like [`zip`](Self::zip), but an error is passed on after the last pair.
    fn zip_delay_error<B>(self, other: B) -> ZipDelayError<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        ZipDelayError::new(self.into_observable(), other.into_observable())
    }

    /// Like [`combine_latest`](Self::combine_latest), but an error is passed on after both sources have
    /// ended.
    fn combine_latest_delay_error<B>(
        self,
        other: B,
    ) -> CombineLatestDelayError<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        CombineLatestDelayError::new(self.into_observable(), other.into_observable())
    }

    /// Like [`flat_map`](Self::flat_map), but an error is passed on after all observables have ended.
    fn flat_map_delay_error<R, F>(self, f: F) -> FlatMapDelayError<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        R::Observable: Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        FlatMapDelayError::new(self.into_observable(), usize::MAX, f)
    }

    /// Emits whether both sources have equal values in the same order, as soon as this is known.
    fn sequence_equal<B>(self, other: B) -> SequenceEqual<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        Self::Item: PartialEq,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        SequenceEqual::new(self.into_observable(), other.into_observable())
    }

    /// Emits the values of `fallback` if this source completes without a value.
    fn switch_if_empty<B>(self, fallback: B) -> SwitchIfEmpty<Self::Observable, B::Observable>
    where
        B: IntoObservable<Item = Self::Item, Error = Self::Error>,
        B::Observable: Send + 'static,
    {
        SwitchIfEmpty::new(self.into_observable(), fallback.into_observable())
    }

    /// Emits the result of `f` for each pair of values that are valid at the same time. A value is valid until
    /// the observable that `left_until` or `right_until` returns for it emits or completes.
    fn join<B, L, R, C, LU, RU, F>(
        self,
        other: B,
        left_until: LU,
        right_until: RU,
        f: F,
    ) -> Join<Self::Observable, B::Observable, LU, RU, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        L: IntoObservable<Error = Self::Error>,
        R: IntoObservable<Error = Self::Error>,
        LU: FnMut(&Self::Item) -> L + Send + 'static,
        RU: FnMut(&B::Item) -> R + Send + 'static,
        F: FnMut(&Self::Item, &B::Item) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        let (left, right) = (self.into_observable(), other.into_observable());
        Join::new(left, right, left_until, right_until, f)
    }

    /// Emits the result of `f` for each value and an observable of the values of `other` that are valid at the
    /// same time; see [`join`](Self::join).
    fn group_join<B, L, R, C, LU, RU, F>(
        self,
        other: B,
        left_until: LU,
        right_until: RU,
        f: F,
    ) -> GroupJoin<Self::Observable, B::Observable, LU, RU, F>
    where
        B: IntoObservable<Item: Clone + Send + 'static, Error = Self::Error>,
        L: IntoObservable<Error = Self::Error>,
        R: IntoObservable<Error = Self::Error>,
        LU: FnMut(&Self::Item) -> L + Send + 'static,
        RU: FnMut(&B::Item) -> R + Send + 'static,
        F: FnMut(&Self::Item, Unicast<B::Item, Self::Error>) -> C + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        let (left, right) = (self.into_observable(), other.into_observable());
        GroupJoin::new(left, right, left_until, right_until, f)
    }

    /// Like [`group_by`](crate::ObservableExt::group_by), but a group completes when the observable that
    /// `until` returns for it emits or completes.
    #[cfg(feature = "std")]
    fn group_by_until<K, R, F, U>(self, key: F, until: U) -> GroupByUntil<Self::Observable, F, U>
    where
        K: Clone + Eq + core::hash::Hash + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        F: FnMut(&Self::Item) -> K + Send + 'static,
        U: FnMut(&Grouped<K, Self::Item, Self::Error>) -> R + Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        GroupByUntil::new(self.into_observable(), key, until)
    }

    /// Emits the values since the previous emission as a `Vec` whenever `boundaries` emits.
    fn buffer_when<B>(self, boundaries: B) -> BufferWhen<Self::Observable, B::Observable>
    where
        B: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        BufferWhen::new(self.into_observable(), boundaries.into_observable())
    }

    /// Emits an observable of the following values whenever `boundaries` emits.
    fn window_when<B>(self, boundaries: B) -> WindowWhen<Self::Observable, B::Observable>
    where
        B: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        WindowWhen::new(self.into_observable(), boundaries.into_observable())
    }

    /// Emits a value when the observable that `f` returns for it emits or completes, unless another value
    /// arrives before that.
    fn debounce_with<R, F>(self, f: F) -> DebounceWith<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        DebounceWith::new(self.into_observable(), f)
    }

    /// Delays each value until the observable that `f` returns for it emits or completes.
    fn delay_with<R, F>(self, f: F) -> DelayWith<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        R::Observable: Send + 'static,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        DelayWith::new(self.into_observable(), f)
    }

    /// Emits a value, and drops values until the observable that `f` returned for it emits or completes.
    fn throttle_with<R, F>(self, f: F) -> ThrottleWith<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> R + Send + 'static,
        R: IntoObservable<Error = Self::Error>,
        Self: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    {
        ThrottleWith::new(self.into_observable(), f)
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

    /// Subscribes again each time the source completes and `condition` returns `true`.
    fn do_while<F>(self, condition: F) -> DoWhile<Self::Observable, F>
    where
        Self::Observable: Clone + Send + 'static,
        F: FnMut() -> bool + Send + 'static,
    {
        DoWhile::new(self.into_observable(), condition)
    }

    /// When the source completes, the observable that `handler` returns decides whether to subscribe again.
    fn repeat_when<R, F>(self, handler: F) -> RepeatWhen<Self::Observable, F>
    where
        F: FnOnce(Unicast<()>) -> R,
        R: IntoObservable<Error = Self::Error>,
        Self::Observable: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        RepeatWhen::new(self.into_observable(), handler)
    }

    /// When the source fails, the observable that `handler` returns decides whether to subscribe again.
    fn retry_when<R, F>(self, handler: F) -> RetryWhen<Self::Observable, F>
    where
        F: FnOnce(Unicast<Self::Error>) -> R,
        R: IntoObservable<Error = Self::Error>,
        Self::Observable: Clone + Send + 'static,
        Self::Error: Clone + Send + 'static,
    {
        RetryWhen::new(self.into_observable(), handler)
    }

    /// Subscribes again when the source fails, at most `times` times.
    fn retry(self, times: usize) -> Retry<Self::Observable>
    where
        Self::Observable: Clone + Send + 'static,
    {
        Retry::new(self.into_observable(), times)
    }

    /// Like [`retry`](Self::retry), with a delay from `backoff` before each attempt.
    #[cfg(feature = "std")]
    fn retry_with(self, backoff: Backoff) -> RetryWith<Self::Observable, ThreadPool>
    where
        Self::Observable: Clone + Send + 'static,
    {
        RetryWith::new(self.into_observable(), backoff, ThreadPool::global())
    }

    /// Like [`retry_with`](Self::retry_with), with the time of `scheduler`.
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
