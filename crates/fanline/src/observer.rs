//! The [`Observer`] contract, and observers made of closures.

use alloc::boxed::Box;
use core::convert::Infallible;
use core::ops::ControlFlow;

/// A receiver of the values of a subject or an operator.
///
/// The grammar is `next* (error | complete)?`: any number of values, then at most one error or completion.
/// After that no method is called, and calls to one observer never overlap. The caller guarantees this; an
/// observer need not check it.
///
/// Values are borrowed, because all observers of a subject receive the same one, without a clone. An
/// operator that owns its value calls [`next_owned`](Observer::next_owned).
///
/// ```
/// use fanline::Observer;
///
/// struct Sum(u64);
///
/// impl Observer<u64> for Sum {
///     fn next(&mut self, value: &u64) {
///         self.0 += value;
///     }
///     fn error(&mut self, error: &std::convert::Infallible) {
///         match *error {}
///     }
///     fn complete(&mut self) {}
/// }
///
/// let mut sum = Sum(0);
/// sum.next(&2);
/// sum.next_slice(&[3, 4]);
/// sum.complete();
/// assert_eq!(sum.0, 9);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not observe values of `{T}` with errors of `{E}`",
    label = "not an `Observer<{T}, {E}>`",
    note = "a closure for values becomes an observer with `fanline::observer(..)`, or goes to `subscribe`",
    note = "see `with_error_type` and `map_err` where only the errors differ"
)]
pub trait Observer<T, E = Infallible> {
    /// Receives a value, borrowed because all observers receive the same one.
    fn next(&mut self, value: &T);

    /// Receives a value that no other observer receives. An observer that stores values overrides this method
    /// to avoid a clone.
    fn next_owned(&mut self, value: T) {
        self.next(&value);
    }

    /// Receives values in order, like several calls of [`next`](Observer::next). A boxed observer is called
    /// once per slice.
    fn next_slice(&mut self, values: &[T]) {
        for value in values {
            if self.is_closed() {
                break;
            }
            self.next(value);
        }
    }

    /// Receives values that no other observer receives, like several calls of
    /// [`next_owned`](Observer::next_owned). All values are available at once, for example the numbers of a
    /// range. An observer that passes values to another thread overrides this method to deliver them in
    /// batches.
    fn next_owned_all<I>(&mut self, mut values: I)
    where
        I: Iterator<Item = T>,
        Self: Sized,
    {
        // Many iterators run `try_for_each` faster than a loop over `next`.
        let _ = values.try_for_each(|value| {
            self.next_owned(value);
            if self.is_closed() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }

    /// Receives the error of the source; nothing follows.
    fn error(&mut self, error: &E);

    /// Receives the completion of the source; nothing follows.
    fn complete(&mut self);

    /// Returns whether the observer needs no more values. The source checks this after each value. If the
    /// result is `true`, the source drops the observer without another call. An operator that completes or
    /// fails before its source must therefore notify its own observer before it returns `true` here.
    fn is_closed(&self) -> bool {
        false
    }
}

impl<T, E, O: Observer<T, E> + ?Sized> Observer<T, E> for Box<O> {
    fn next(&mut self, value: &T) {
        (**self).next(value);
    }

    fn next_owned(&mut self, value: T) {
        (**self).next_owned(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        (**self).next_slice(values);
    }

    fn error(&mut self, error: &E) {
        (**self).error(error);
    }

    fn complete(&mut self) {
        (**self).complete();
    }

    fn is_closed(&self) -> bool {
        (**self).is_closed()
    }
}

/// A boxed observer of any type. It may move to another thread.
///
/// ```
/// use fanline::{BoxObserver, Observer};
///
/// let mut sinks: Vec<BoxObserver<u32>> = vec![
///     Box::new(fanline::observer(|n: &u32| println!("{n}"))),
///     Box::new(fanline::Subject::new()),
/// ];
/// sinks.iter_mut().for_each(|sink| sink.next(&1));
/// ```
pub type BoxObserver<T, E = Infallible> = Box<dyn Observer<T, E> + Send>;

/// Creates an observer from a closure for values. [`Callbacks::on_error`] and [`Callbacks::on_complete`] add
/// closures for errors and completion. Without such a closure, the error or completion is ignored.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let sum = Arc::new(AtomicU32::new(0));
/// let (values, end) = (sum.clone(), sum.clone());
/// source
///     .subscribe_with(
///         fanline::observer(move |value: &u32| {
///             values.fetch_add(*value, Ordering::Relaxed);
///         })
///         .on_complete(move || {
///             end.fetch_add(100, Ordering::Relaxed);
///         }),
///     )
///     .detach();
/// tx.next(1);
/// tx.complete();
/// assert_eq!(sum.load(Ordering::Relaxed), 101);
/// ```
pub fn observer<T, N: FnMut(&T)>(next: N) -> Callbacks<N> {
    Callbacks {
        next,
        error: Ignored,
        complete: Ignored,
    }
}

/// An observer made of closures; see [`observer`].
///
/// ```
/// use fanline::Observer;
///
/// let mut observer = fanline::observer(|n: &u32| println!("{n}"))
///     .on_error(|error: &String| println!("failed: {error}"))
///     .on_complete(|| println!("done"));
/// observer.next(&1);
/// observer.error(&"out of paper".to_owned());
/// ```
#[derive(Clone, Debug)]
pub struct Callbacks<N, F = Ignored, C = Ignored> {
    next: N,
    error: F,
    complete: C,
}

impl<N, C> Callbacks<N, Ignored, C> {
    /// Adds a closure for the error.
    pub fn on_error<E, F: FnMut(&E)>(self, error: F) -> Callbacks<N, Called<F>, C> {
        Callbacks {
            next: self.next,
            error: Called(error),
            complete: self.complete,
        }
    }
}

impl<N, F> Callbacks<N, F, Ignored> {
    /// Adds a closure for the completion.
    pub fn on_complete<C: FnMut()>(self, complete: C) -> Callbacks<N, F, Called<C>> {
        Callbacks {
            next: self.next,
            error: self.error,
            complete: Called(complete),
        }
    }
}

impl<T, E, N, F, C> Observer<T, E> for Callbacks<N, F, C>
where
    N: FnMut(&T),
    F: ErrorCallback<E>,
    C: CompleteCallback,
{
    #[inline]
    fn next(&mut self, value: &T) {
        (self.next)(value);
    }

    fn error(&mut self, error: &E) {
        self.error.call(error);
    }

    fn complete(&mut self) {
        self.complete.call();
    }
}

/// The absence of a closure in a [`Callbacks`].
#[derive(Clone, Copy, Debug)]
pub struct Ignored;

/// A closure in a [`Callbacks`].
#[derive(Clone, Copy, Debug)]
pub struct Called<F>(F);

mod private {
    pub trait Sealed {}
    impl Sealed for super::Ignored {}
    impl<F> Sealed for super::Called<F> {}
}

/// The reaction of a [`Callbacks`] to an error: [`Ignored`] or [`Called`]. It cannot be implemented outside this
/// crate.
pub trait ErrorCallback<E>: private::Sealed {
    /// Receives the error.
    fn call(&mut self, error: &E);
}

/// The reaction of a [`Callbacks`] to completion: [`Ignored`] or [`Called`]. It cannot be implemented outside
/// this crate.
pub trait CompleteCallback: private::Sealed {
    /// Receives the completion.
    fn call(&mut self);
}

impl<E> ErrorCallback<E> for Ignored {
    fn call(&mut self, _error: &E) {}
}

impl<E, F: FnMut(&E)> ErrorCallback<E> for Called<F> {
    fn call(&mut self, error: &E) {
        (self.0)(error);
    }
}

impl CompleteCallback for Ignored {
    fn call(&mut self) {}
}

impl<C: FnMut()> CompleteCallback for Called<C> {
    fn call(&mut self) {
        (self.0)();
    }
}
