use core::convert::Infallible;
use core::iter;
use core::ops::{ControlFlow, RangeBounds};

use crate::{Guard, Observable, Observer};

/// Emits each value of an iterator, then completes.
///
/// All values are emitted inside the subscription call, which returns when the iterator has ended or the
/// observer is closed. So if the iterator is endless, a later operator in the chain must end the
/// subscription, such as [`take`](crate::ObservableExt::take). Values are moved, not cloned. A panic of the
/// iterator unwinds to the caller of the subscription.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..)
///     .map(|n| n * n)
///     .take(3)
///     .collect::<Vec<_>>()
///     .subscribe(|squares| assert_eq!(*squares, [1, 4, 9]))
///     .detach();
/// ```
pub fn from_iter<I: IntoIterator>(values: I) -> FromIter<I> {
    FromIter { values }
}

/// An observable of an iterator's values; see [`from_iter`].
#[derive(Clone, Debug)]
pub struct FromIter<I> {
    values: I,
}

impl<I: IntoIterator> Observable for FromIter<I> {
    type Item = I::Item;
    type Error = Infallible;

    #[inline]
    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<I::Item> + Send + 'static,
    {
        if observer.is_closed() {
            return Guard::closed();
        }
        // Many iterators run `try_for_each` faster than a loop over `next`.
        let flow = self.values.into_iter().try_for_each(|value| {
            observer.next_owned(value);
            if observer.is_closed() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if flow.is_continue() {
            observer.complete();
        }
        Guard::closed()
    }
}

/// Emits each `Ok` value of an iterator. At the first `Err`, fails with its error.
///
/// Otherwise like [`from_iter`].
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::try_from_iter(["1", "2", "x", "4"].map(str::parse::<u32>))
///     .subscribe_with(
///         fanline::observer(|n: &u32| assert!(*n < 3))
///             .on_error(|error: &std::num::ParseIntError| println!("{error}")),
///     )
///     .detach();
/// ```
pub fn try_from_iter<I, T, E>(results: I) -> TryFromIter<I>
where
    I: IntoIterator<Item = Result<T, E>>,
{
    TryFromIter { results }
}

/// An observable of an iterator's `Ok` values; see [`try_from_iter`].
#[derive(Clone, Debug)]
pub struct TryFromIter<I> {
    results: I,
}

impl<I, T, E> Observable for TryFromIter<I>
where
    I: IntoIterator<Item = Result<T, E>>,
{
    type Item = T;
    type Error = E;

    #[inline]
    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        if observer.is_closed() {
            return Guard::closed();
        }
        for result in self.results {
            match result {
                Ok(value) => observer.next_owned(value),
                Err(error) => {
                    observer.error(&error);
                    return Guard::closed();
                }
            }
            if observer.is_closed() {
                return Guard::closed();
            }
        }
        observer.complete();
        Guard::closed()
    }
}

/// Emits one value, then completes.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::of("one").subscribe(|value| assert_eq!(*value, "one")).detach();
/// ```
pub const fn of<T>(value: T) -> Of<T> {
    Of { value }
}

/// An observable of one value; see [`of`].
#[derive(Clone, Debug)]
pub struct Of<T> {
    value: T,
}

impl<T> Observable for Of<T> {
    type Item = T;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T> + Send + 'static,
    {
        from_iter(iter::once(self.value)).subscribe_with(observer)
    }
}

/// Emits the numbers of a range, then completes; like [`from_iter`], which takes any iterator. All numbers
/// are available at once, so operators pass them to another thread in batches.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::range(1..=4).sum().subscribe(|sum| assert_eq!(*sum, 10)).detach();
/// ```
pub fn range<R, T>(range: R) -> FromRange<R>
where
    R: RangeBounds<T> + IntoIterator<Item = T>,
{
    FromRange { range }
}

/// An observable of a range; see [`range`].
#[derive(Clone, Debug)]
pub struct FromRange<R> {
    range: R,
}

impl<R: IntoIterator> Observable for FromRange<R> {
    type Item = R::Item;
    type Error = Infallible;

    #[inline]
    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<R::Item> + Send + 'static,
    {
        if observer.is_closed() {
            return Guard::closed();
        }
        observer.next_owned_all(self.range.into_iter());
        if !observer.is_closed() {
            observer.complete();
        }
        Guard::closed()
    }
}

/// Emits the values that `f` returns until it returns `None`, then completes; like [`from_iter`].
///
/// ```
/// use fanline::prelude::*;
///
/// let mut left = vec![1, 2, 3];
/// fanline::from_fn(move || left.pop())
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [3, 2, 1]))
///     .detach();
/// ```
pub const fn from_fn<T, F: FnMut() -> Option<T>>(f: F) -> FromFn<F> {
    FromFn { f }
}

/// An observable of the results of a closure; see [`from_fn`].
#[derive(Clone, Debug)]
pub struct FromFn<F> {
    f: F,
}

impl<T, F: FnMut() -> Option<T>> Observable for FromFn<F> {
    type Item = T;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T> + Send + 'static,
    {
        from_iter(iter::from_fn(self.f)).subscribe_with(observer)
    }
}

/// Emits the same value again and again, without end; like [`from_iter`]. A later operator in the chain must
/// end the subscription.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::repeat_value(7).take(2).sum().subscribe(|sum| assert_eq!(*sum, 14)).detach();
/// ```
pub const fn repeat_value<T: Clone>(value: T) -> RepeatValue<T> {
    RepeatValue { value }
}

/// An observable of the same value without end; see [`repeat_value`].
#[derive(Clone, Debug)]
pub struct RepeatValue<T> {
    value: T,
}

impl<T: Clone> Observable for RepeatValue<T> {
    type Item = T;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T> + Send + 'static,
    {
        from_iter(iter::repeat(self.value)).subscribe_with(observer)
    }
}

/// Emits `first`, then calls `next` with each emitted value and emits the result. Completes when the result
/// is `None`. Like [`from_iter`].
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::generate(1_u32, |n| (*n < 100).then_some(n * 3))
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 3, 9, 27, 81, 243]))
///     .detach();
/// ```
pub const fn generate<T, F>(first: T, next: F) -> Generate<T, F>
where
    F: FnMut(&T) -> Option<T>,
{
    Generate { first, next }
}

/// An observable of values that a closure computes from each other; see [`generate`].
#[derive(Clone, Debug)]
pub struct Generate<T, F> {
    first: T,
    next: F,
}

impl<T, F: FnMut(&T) -> Option<T>> Observable for Generate<T, F> {
    type Item = T;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T> + Send + 'static,
    {
        from_iter(iter::successors(Some(self.first), self.next)).subscribe_with(observer)
    }
}
