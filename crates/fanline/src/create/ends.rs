use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;

use crate::sync::{Mutex, lock};
use crate::{Guard, Observable, Observer};

/// Completes at once, without a value.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::empty::<u32>().count().subscribe(|count| assert_eq!(*count, 0)).detach();
/// ```
pub const fn empty<T>() -> Empty<T> {
    Empty(PhantomData)
}

/// An observable that completes at once; see [`empty`].
pub struct Empty<T>(PhantomData<fn() -> T>);

impl<T> Clone for Empty<T> {
    fn clone(&self) -> Self {
        empty()
    }
}

impl<T> fmt::Debug for Empty<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Empty")
    }
}

impl<T> Observable for Empty<T> {
    type Item = T;
    type Error = Infallible;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<T> + Send + 'static,
    {
        if !observer.is_closed() {
            observer.complete();
        }
        Guard::closed()
    }
}

/// Never emits a value, and never completes or fails. The guard owns the observer, and drops it when the
/// guard is dropped or detached.
///
/// ```
/// use fanline::prelude::*;
///
/// let guard = fanline::never::<u32>().subscribe(|_| unreachable!());
/// assert!(!guard.is_closed());
/// ```
pub const fn never<T>() -> Never<T> {
    Never(PhantomData)
}

/// An observable that never emits; see [`never()`].
pub struct Never<T>(PhantomData<fn() -> T>);

impl<T> Clone for Never<T> {
    fn clone(&self) -> Self {
        never()
    }
}

impl<T> fmt::Debug for Never<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Never")
    }
}

impl<T> Observable for Never<T> {
    type Item = T;
    type Error = Infallible;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T> + Send + 'static,
    {
        // A guard must be `Sync`, but an observer need not be. The lock makes access to the observer `Sync`.
        let observer = Mutex::new(Some(observer));
        Guard::new(move || {
            let observer = lock(&observer).take();
            drop(observer);
        })
    }
}

/// Fails at once with `error`.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::throw::<u32, _>("no luck")
///     .subscribe_with(
///         fanline::observer(|_: &u32| unreachable!())
///             .on_error(|error: &&str| assert_eq!(*error, "no luck")),
///     )
///     .detach();
/// ```
pub const fn throw<T, E>(error: E) -> Throw<T, E> {
    Throw {
        error,
        item: PhantomData,
    }
}

/// An observable that fails at once; see [`throw`].
pub struct Throw<T, E> {
    error: E,
    item: PhantomData<fn() -> T>,
}

impl<T, E: Clone> Clone for Throw<T, E> {
    fn clone(&self) -> Self {
        throw(self.error.clone())
    }
}

impl<T, E: fmt::Debug> fmt::Debug for Throw<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Throw").field(&self.error).finish()
    }
}

impl<T, E> Observable for Throw<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        if !observer.is_closed() {
            observer.error(&self.error);
        }
        Guard::closed()
    }
}
