use crate::operators::forward::{emit_all, forward};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`start_with`](crate::ObservableExt::start_with).
///
/// Emits these values at the subscription, then subscribes to the source.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::of(3)
///     .start_with([1, 2])
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct StartWith<S, I> {
    source: S,
    values: I,
}

impl<S, I> StartWith<S, I> {
    pub(super) fn new(source: S, values: I) -> Self {
        Self { source, values }
    }
}

impl<S, I> Observable for StartWith<S, I>
where
    S: Observable,
    I: IntoIterator<Item = S::Item>,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        if emit_all(&mut observer, self.values) {
            self.source.subscribe_with(observer)
        } else {
            Guard::closed()
        }
    }
}

/// The observable returned by [`end_with`](crate::ObservableExt::end_with).
///
/// Emits these values after the source has completed. After an error, does not emit them.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::of(1)
///     .end_with([2, 3])
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct EndWith<S, I> {
    source: S,
    values: I,
}

impl<S, I> EndWith<S, I> {
    pub(super) fn new(source: S, values: I) -> Self {
        Self { source, values }
    }
}

impl<S, I> Observable for EndWith<S, I>
where
    S: Observable,
    I: IntoIterator<Item = S::Item> + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(EndWithObserver {
            observer,
            values: Some(self.values),
        })
    }
}

struct EndWithObserver<O, I> {
    observer: O,
    /// `None` after the end.
    values: Option<I>,
}

impl<T, E, O, I> Observer<T, E> for EndWithObserver<O, I>
where
    O: Observer<T, E>,
    I: IntoIterator<Item = T>,
{
    fn complete(&mut self) {
        let values = self.values.take();
        if emit_all(&mut self.observer, values.into_iter().flatten()) {
            self.observer.complete();
        }
    }

    forward!(next, error, is_closed);
}
