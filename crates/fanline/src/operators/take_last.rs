use alloc::collections::VecDeque;

use crate::operators::forward::{emit_all, forward};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`take_last`](crate::ObservableExt::take_last).
///
/// Emits the last `count` values when the source completes. Stores `count` values.
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
            buffer: VecDeque::new(),
            count: self.count,
        })
    }
}

struct TakeLastObserver<O, T> {
    observer: O,
    buffer: VecDeque<T>,
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
        if self.buffer.len() == self.count {
            self.buffer.pop_front();
        }
        self.buffer.push_back(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        let last = &values[values.len().saturating_sub(self.count)..];
        let room = self.count - last.len();
        self.buffer.drain(..self.buffer.len().saturating_sub(room));
        self.buffer.extend(last.iter().cloned());
    }

    fn complete(&mut self) {
        if emit_all(&mut self.observer, core::mem::take(&mut self.buffer)) {
            self.observer.complete();
        }
    }

    forward!(error, is_closed);
}

/// The observable returned by [`skip_last`](crate::ObservableExt::skip_last).
///
/// Drops the last `count` values: emits each value after `count` others have followed. Stores `count`
/// values.
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
            buffer: VecDeque::new(),
            count: self.count,
        })
    }
}

struct SkipLastObserver<O, T> {
    observer: O,
    buffer: VecDeque<T>,
    count: usize,
}

impl<T: Clone, E, O: Observer<T, E>> Observer<T, E> for SkipLastObserver<O, T> {
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        self.buffer.push_back(value);
        if self.buffer.len() > self.count
            && let Some(value) = self.buffer.pop_front()
        {
            self.observer.next_owned(value);
        }
    }

    forward!(error, complete, is_closed);
}
