use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`skip`](crate::ObservableExt::skip).
///
/// Drops the first `count` values.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=4)
///     .skip(2)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [3, 4]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Skip<S> {
    source: S,
    count: usize,
}

impl<S> Skip<S> {
    pub(super) fn new(source: S, count: usize) -> Self {
        Self { source, count }
    }
}

impl<S> Observable for Skip<S>
where
    S: Observable,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(SkipObserver {
            observer,
            left: self.count,
        })
    }
}

struct SkipObserver<O> {
    observer: O,
    left: usize,
}

impl<T, E, O: Observer<T, E>> Observer<T, E> for SkipObserver<O> {
    #[inline]
    fn next(&mut self, value: &T) {
        if self.left > 0 {
            self.left -= 1;
        } else {
            self.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if self.left > 0 {
            self.left -= 1;
        } else {
            self.observer.next_owned(value);
        }
    }

    #[inline]
    fn next_slice(&mut self, values: &[T]) {
        let skipped = values.len().min(self.left);
        self.left -= skipped;
        if skipped < values.len() {
            self.observer.next_slice(&values[skipped..]);
        }
    }

    forward!(error, complete, is_closed);
}
