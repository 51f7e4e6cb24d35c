use std::collections::VecDeque;

use crate::operators::forward::{emit_all, forward};
use crate::{Guard, Observable, Observer};

/// What [`take_last`](crate::ObservableExt::take_last) gives.
///
/// Emits the last `count` values when the source completes. Keeps that many.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=5)
///     .take_last(2)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [4, 5]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct TakeLast<S> {
    source: S,
    count: usize,
}

impl<S> TakeLast<S> {
    pub(super) fn new(source: S, count: usize) -> Self {
        Self { source, count }
    }
}

impl<S> Observable for TakeLast<S>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(TakeLastObserver {
            observer,
            kept: VecDeque::new(),
            count: self.count,
        })
    }
}

struct TakeLastObserver<O, T> {
    observer: O,
    kept: VecDeque<T>,
    count: usize,
}

impl<T: Clone, E, O: Observer<T, E>> Observer<T, E> for TakeLastObserver<O, T> {
    #[inline]
    fn next(&mut self, value: &T) {
        if self.count > 0 {
            self.next_owned(value.clone());
        }
    }

    fn next_owned(&mut self, value: T) {
        if self.count == 0 {
            return;
        }
        if self.kept.len() == self.count {
            self.kept.pop_front();
        }
        self.kept.push_back(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        let last = &values[values.len().saturating_sub(self.count)..];
        let room = self.count - last.len();
        self.kept.drain(..self.kept.len().saturating_sub(room));
        self.kept.extend(last.iter().cloned());
    }

    fn complete(&mut self) {
        if emit_all(&mut self.observer, std::mem::take(&mut self.kept)) {
            self.observer.complete();
        }
    }

    forward!(error, is_closed);
}

/// What [`skip_last`](crate::ObservableExt::skip_last) gives.
///
/// Leaves the last `count` values out: each is emitted when that many have come after it. Keeps
/// `count` values.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=5)
///     .skip_last(2)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 3]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct SkipLast<S> {
    source: S,
    count: usize,
}

impl<S> SkipLast<S> {
    pub(super) fn new(source: S, count: usize) -> Self {
        Self { source, count }
    }
}

impl<S> Observable for SkipLast<S>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(SkipLastObserver {
            observer,
            held: VecDeque::new(),
            count: self.count,
        })
    }
}

struct SkipLastObserver<O, T> {
    observer: O,
    held: VecDeque<T>,
    count: usize,
}

impl<T: Clone, E, O: Observer<T, E>> Observer<T, E> for SkipLastObserver<O, T> {
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        self.held.push_back(value);
        if self.held.len() > self.count
            && let Some(value) = self.held.pop_front()
        {
            self.observer.next_owned(value);
        }
    }

    forward!(error, complete, is_closed);
}
