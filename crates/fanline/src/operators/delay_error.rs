//! Variants of operators with several sources that pass an error on only after all sources have ended.

use alloc::sync::Arc;

use super::combine_latest::CombineLatest;
use super::concat::Concat;
use super::flat_map::FlatMap;
use super::merge::Merge;
use super::zip::Zip;
use crate::operators::forward::forward;
use crate::sync::{Mutex, lock};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The first error of the sources of one subscription.
struct FirstError<E>(Arc<Mutex<Option<E>>>);

impl<E> Clone for FirstError<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E> FirstError<E> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }
}

/// A source that completes instead of failing, and stores its error.
struct HoldError<S: Observable> {
    source: S,
    first: FirstError<S::Error>,
}

impl<S> Observable for HoldError<S>
where
    S: Observable<Error: Clone + Send + 'static>,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(HoldErrorObserver {
            observer,
            first: self.first,
        })
    }
}

struct HoldErrorObserver<O, E> {
    observer: O,
    first: FirstError<E>,
}

impl<T, E: Clone, O: Observer<T, E>> Observer<T, E> for HoldErrorObserver<O, E> {
    fn error(&mut self, error: &E) {
        let error = error.clone();
        let later = {
            let mut first = lock(&self.first.0);
            if first.is_none() {
                *first = Some(error);
                None
            } else {
                Some(error)
            }
        };
        drop(later);
        self.observer.complete();
    }

    forward!(next, complete, is_closed);
}

/// An observer that fails instead of completing if an error is stored.
struct ReleaseError<O, E> {
    observer: O,
    first: FirstError<E>,
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for ReleaseError<O, E> {
    fn complete(&mut self) {
        let error = lock(&self.first.0).take();
        match error {
            Some(error) => self.observer.error(&error),
            None => self.observer.complete(),
        }
    }

    forward!(next, error, is_closed);
}

/// Subscribes `observer` to the chain that `build` makes with the error store.
fn subscribe<S, O>(build: impl FnOnce(FirstError<S::Error>) -> S, observer: O) -> Guard
where
    S: Observable<Error: Send + 'static>,
    O: Observer<S::Item, S::Error> + Send + 'static,
{
    let first = FirstError::new();
    build(first.clone()).subscribe_with(ReleaseError { observer, first })
}

/// Subscribes `observer` to what `combine` makes of two sources that hold their errors.
fn subscribe_both<A, B, S, O>(
    left: A,
    right: B,
    combine: impl FnOnce(HoldError<A>, HoldError<B>) -> S,
    observer: O,
) -> Guard
where
    A: Observable,
    B: Observable<Error = A::Error>,
    S: Observable<Error = A::Error>,
    A::Error: Send + 'static,
    O: Observer<S::Item, A::Error> + Send + 'static,
{
    let hold = |first| {
        let left = HoldError {
            source: left,
            first: FirstError::clone(&first),
        };
        let right = HoldError {
            source: right,
            first,
        };
        combine(left, right)
    };
    subscribe(hold, observer)
}

/// Defines the struct of an operator with two sources.
macro_rules! two_sources {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<A, B> {
            left: A,
            right: B,
        }

        impl<A, B> $name<A, B> {
            pub(super) fn new(left: A, right: B) -> Self {
                Self { left, right }
            }
        }
    };
}

two_sources! {
    /// The observable returned by [`merge_delay_error`](crate::CombineExt::merge_delay_error).
    ///
    /// Like [`merge`](crate::CombineExt::merge), but a source that fails does not end the other one. After
    /// both have ended, fails with the first error, or completes if there is none. Stores one error.
    ///
    /// ```
    /// use fanline::{Subject, prelude::*};
    ///
    /// let (a, b) = (Subject::<u32, &str>::with_error(), Subject::<u32, &str>::with_error());
    /// let _guard = a.source().merge_delay_error(b.source()).subscribe_with(
    ///     observer(|value: &u32| println!("{value}")).on_error(|error: &&str| println!("{error}")),
    /// );
    /// a.error("offline");
    /// b.next(1); // 1
    /// b.complete(); // offline
    /// ```
    MergeDelayError
}

impl<A, B> Observable for MergeDelayError<A, B>
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
        subscribe_both(self.left, self.right, Merge::new, observer)
    }
}

two_sources! {
    /// The observable returned by [`concat_delay_error`](crate::CombineExt::concat_delay_error).
    ///
    /// Like [`concat`](crate::CombineExt::concat), but subscribes to `next` even if this source has failed.
    /// After `next` has ended, fails with the first error, or completes if there is none. Stores one error.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::throw::<u32, _>("offline")
    ///     .concat_delay_error(fanline::of(1).with_error_type())
    ///     .subscribe_with(
    ///         observer(|value: &u32| println!("{value}")).on_error(|error: &&str| println!("{error}")),
    ///     )
    ///     .detach(); // 1 offline
    /// ```
    ConcatDelayError
}

impl<A, B> Observable for ConcatDelayError<A, B>
where
    A: Observable<Item: 'static, Error: Clone + Send + 'static> + Send + 'static,
    B: Observable<Item = A::Item, Error = A::Error> + Send + 'static,
{
    type Item = A::Item;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<A::Item, A::Error> + Send + 'static,
    {
        subscribe_both(self.left, self.right, Concat::new, observer)
    }
}

two_sources! {
    /// The observable returned by [`zip_delay_error`](crate::CombineExt::zip_delay_error).
    ///
    /// Like [`zip`](crate::CombineExt::zip), but a source that fails counts as completed: its values are
    /// still paired. At the end, fails with the first error, or completes if there is none. Stores one error.
    ///
    /// ```
    /// use fanline::prelude::*;
    ///
    /// fanline::of(1)
    ///     .with_error_type()
    ///     .concat(fanline::throw("offline"))
    ///     .zip_delay_error(fanline::from_iter(["a", "b"]).with_error_type())
    ///     .subscribe_with(
    ///         observer(|pair: &(u32, &str)| println!("{pair:?}"))
    ///             .on_error(|error: &&str| println!("{error}")),
    ///     )
    ///     .detach(); // (1, "a") offline
    /// ```
    ZipDelayError
}

impl<A, B> Observable for ZipDelayError<A, B>
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
{
    type Item = (A::Item, B::Item);
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, A::Error> + Send + 'static,
    {
        subscribe_both(
            self.left,
            self.right,
            |left, right| Zip::new(left, right, |left, right| (left, right)),
            observer,
        )
    }
}

two_sources! {
    /// The observable returned by
    /// [`combine_latest_delay_error`](crate::CombineExt::combine_latest_delay_error).
    ///
    /// Like [`combine_latest`](crate::CombineExt::combine_latest), but a source that fails counts as
    /// completed: its latest value is still combined with the values of the other source. At the end, fails
    /// with the first error, or completes if there is none. Stores one error.
    ///
    /// ```
    /// use fanline::{Subject, prelude::*};
    ///
    /// let (a, b) = (Subject::<u32, &str>::with_error(), Subject::<u32, &str>::with_error());
    /// let _guard = a.source().combine_latest_delay_error(b.source()).subscribe_with(
    ///     observer(|pair: &(u32, u32)| println!("{pair:?}")).on_error(|error: &&str| println!("{error}")),
    /// );
    /// a.next(1);
    /// a.error("offline");
    /// b.next(2); // (1, 2)
    /// b.complete(); // offline
    /// ```
    CombineLatestDelayError
}

impl<A, B> Observable for CombineLatestDelayError<A, B>
where
    A: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    B: Observable<Item: Clone + Send + 'static, Error = A::Error>,
{
    type Item = (A::Item, B::Item);
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, A::Error> + Send + 'static,
    {
        subscribe_both(
            self.left,
            self.right,
            |left, right| {
                CombineLatest::new(left, right, |left: &A::Item, right: &B::Item| {
                    (left.clone(), right.clone())
                })
            },
            observer,
        )
    }
}

/// The observable returned by [`flat_map_delay_error`](crate::CombineExt::flat_map_delay_error) and
/// [`concat_map_delay_error`](crate::CombineExt::concat_map_delay_error).
///
/// Like [`flat_map`](crate::CombineExt::flat_map) and [`concat_map`](crate::CombineExt::concat_map), but an
/// observable that fails counts as completed, and so does the source. After all have ended, fails with the
/// first error, or completes if there is none. Stores one error.
///
/// ```
/// use fanline::{BoxObservable, prelude::*};
///
/// fn load(n: &u32) -> BoxObservable<u32, &'static str> {
///     if *n == 2 { fanline::throw("not found").boxed() } else { fanline::of(*n).with_error_type().boxed() }
/// }
///
/// fanline::range(1..=3)
///     .with_error_type()
///     .flat_map_delay_error(load)
///     .subscribe_with(
///         observer(|value: &u32| println!("{value}")).on_error(|error: &&str| println!("{error}")),
///     )
///     .detach(); // 1 3 not found
/// ```
#[derive(Clone, Debug)]
pub struct FlatMapDelayError<S, F> {
    source: S,
    max_concurrent: usize,
    f: F,
}

impl<S, F> FlatMapDelayError<S, F> {
    pub(super) fn new(source: S, max_concurrent: usize, f: F) -> Self {
        Self {
            source,
            max_concurrent,
            f,
        }
    }
}

impl<S, R, F> Observable for FlatMapDelayError<S, F>
where
    S: Observable,
    R: IntoObservable<Item: Clone + Send + 'static, Error = S::Error, Observable: Send + 'static>,
    S::Error: Clone + Send + 'static,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = R::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<R::Item, S::Error> + Send + 'static,
    {
        let mut f = self.f;
        subscribe(
            |first| {
                let source = HoldError {
                    source: self.source,
                    first: first.clone(),
                };
                FlatMap::new(source, self.max_concurrent, move |value: &S::Item| {
                    HoldError {
                        source: f(value).into_observable(),
                        first: first.clone(),
                    }
                })
            },
            observer,
        )
    }
}
