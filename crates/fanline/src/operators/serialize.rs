use super::funnel::Funnel;
use crate::{Guard, Observable, Observer};
use alloc::boxed::Box;

/// The observable returned by [`serialize`](crate::ObservableExt::serialize).
///
/// Enforces the rules of [`Observer`](crate::Observer): calls do not overlap, re-entrant calls are handled
/// breadth first, and no call follows a completion or an error.
///
/// All observables of this library follow the rules; this operator is for hand-written sources. To share an
/// observer between several callers, see [`Serialized`](crate::operators::Serialized).
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(0..3).serialize().subscribe(|value| println!("{value}")).detach();
/// ```
#[derive(Clone, Debug)]
pub struct Serialize<S> {
    source: S,
}

impl<S> Serialize<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for Serialize<S>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let funnel = Funnel::new(observer);
        let guard = funnel.guard();
        funnel.gate().connect(|_| {
            self.source.subscribe_with(Serialized {
                funnel: funnel.clone(),
            })
        });
        guard
    }
}

/// An observer that many callers may call at once, on any thread: clones are handles to the same observer.
///
/// A call during another call, on another thread or further up on the same stack, queues its value for the
/// other caller and returns. So one thread at a time calls the wrapped observer, the calls of one caller stay
/// in order, and no call follows the first completion or error. The queue is unbounded.
///
/// ```
/// use std::sync::mpsc;
/// use fanline::{Observer, operators::Serialized};
///
/// let (tx, rx) = mpsc::channel();
/// let all = Serialized::<u32>::new(fanline::observer(move |value: &u32| tx.send(*value).unwrap()));
/// let threads = [1, 2].map(|n| {
///     let mut mine = all.clone();
///     std::thread::spawn(move || mine.next(&n))
/// });
/// for thread in threads {
///     thread.join().unwrap();
/// }
/// assert_eq!(rx.try_iter().sum::<u32>(), 3);
/// ```
pub struct Serialized<T, E = core::convert::Infallible, O = crate::BoxObserver<T, E>>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    funnel: Funnel<T, E, O>,
}

impl<T, E> Serialized<T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// Boxes and wraps an observer.
    pub fn new(observer: impl Observer<T, E> + Send + 'static) -> Self {
        Self::unboxed(Box::new(observer))
    }
}

impl<T, E, O> Serialized<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    /// Wraps an observer without a box.
    pub fn unboxed(observer: O) -> Self {
        Self {
            funnel: Funnel::new(observer),
        }
    }
}

impl<T, E, O> Clone for Serialized<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn clone(&self) -> Self {
        Self {
            funnel: self.funnel.clone(),
        }
    }
}

impl<T, E, O> core::fmt::Debug for Serialized<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Serialized")
            .field("closed", &self.funnel.is_over())
            .finish_non_exhaustive()
    }
}

impl<T, E, O> Observer<T, E> for Serialized<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    #[inline]
    fn next(&mut self, value: &T) {
        self.funnel.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.funnel.next_owned(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        self.funnel.next_slice(values);
    }

    fn error(&mut self, error: &E) {
        self.funnel.error(error);
    }

    fn complete(&mut self) {
        self.funnel.complete();
    }

    fn is_closed(&self) -> bool {
        self.funnel.is_over()
    }
}
