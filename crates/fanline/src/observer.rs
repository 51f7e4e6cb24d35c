//! What receives: the [`Observer`] contract, and observers made of closures.

use std::convert::Infallible;
use std::ops::ControlFlow;

/// Receives what a subject multicasts or an operator passes on.
///
/// The grammar is `next* (error | complete)?`: any number of values, then at most one end. After an
/// end nothing is called again, and calls to one observer never overlap. Whoever calls an observer
/// keeps to that; an observer need not check.
///
/// Values are borrowed, because every other observer of a subject gets the same one: nothing is
/// cloned on the way. An operator that has a value of its own to give away calls
/// [`next_owned`](Observer::next_owned).
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
    /// One value; it is borrowed because every other observer gets the same one.
    fn next(&mut self, value: &T);

    /// One value that nobody else gets. Observers that keep values override it and spare a clone.
    fn next_owned(&mut self, value: T) {
        self.next(&value);
    }

    /// Values in order, as many calls of [`next`](Observer::next) in one: a boxed observer is called
    /// once for the slice.
    fn next_slice(&mut self, values: &[T]) {
        for value in values {
            if self.is_closed() {
                break;
            }
            self.next(value);
        }
    }

    /// Values that nobody else gets and that take no time to come, as those of a range: as many calls
    /// of [`next_owned`](Observer::next_owned) in one. Observers that hand values to another thread
    /// override it, and need not show each of them there at once.
    fn next_owned_all<I>(&mut self, mut values: I)
    where
        I: Iterator<Item = T>,
        Self: Sized,
    {
        // The iterator drives, because many have a faster loop inside than `next` gives outside.
        let _ = values.try_for_each(|value| {
            self.next_owned(value);
            if self.is_closed() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }

    /// The source failed; nothing follows.
    fn error(&mut self, error: &E);

    /// The source is done; nothing follows.
    fn complete(&mut self);

    /// Whether nothing more is wanted. Asked after each value: a source that sees `true` drops the
    /// observer without another call, so an operator that ends early passes the end on first.
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

/// An observer of which only the type of its values and errors is known, and that may change threads.
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

/// An observer made of a closure for values; see [`Callbacks::on_error`] and
/// [`Callbacks::on_complete`] for the ends. An end without a closure is ignored.
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
    /// The same observer with a closure for the error.
    pub fn on_error<E, F: FnMut(&E)>(self, error: F) -> Callbacks<N, Called<F>, C> {
        Callbacks {
            next: self.next,
            error: Called(error),
            complete: self.complete,
        }
    }
}

impl<N, F> Callbacks<N, F, Ignored> {
    /// The same observer with a closure for completion.
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

/// Stands where a [`Callbacks`] has no closure.
#[derive(Clone, Copy, Debug)]
pub struct Ignored;

/// Stands where a [`Callbacks`] has a closure.
#[derive(Clone, Copy, Debug)]
pub struct Called<F>(F);

/// What a [`Callbacks`] does with an error: [`Ignored`] or [`Called`].
pub trait ErrorCallback<E> {
    /// The error.
    fn call(&mut self, error: &E);
}

/// What a [`Callbacks`] does on completion: [`Ignored`] or [`Called`].
pub trait CompleteCallback {
    /// The completion.
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
