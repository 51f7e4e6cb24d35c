use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::operators::forward::{complete, emit_all, forward};
use crate::{Guard, Observable, Observer};

/// Maximum initial capacity of a buffer, in values.
const INITIAL_CAPACITY_MAX: usize = 1024;

/// The observable returned by [`buffer_count`](crate::ObservableExt::buffer_count).
///
/// Emits the values in `Vec`s of `count`. On completion, the remaining values are emitted as a shorter `Vec`.
/// An error is passed on at once, and the remaining values are dropped. Stores up to `count` values.
///
/// # Panics
///
/// If `count` is zero.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=5)
///     .buffer_count(2)
///     .collect::<Vec<_>>()
///     .subscribe(|pairs| assert_eq!(*pairs, [vec![1, 2], vec![3, 4], vec![5]]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct BufferCount<S> {
    source: S,
    count: usize,
}

impl<S> BufferCount<S> {
    pub(super) fn new(source: S, count: usize) -> Self {
        assert!(count > 0, "`count` must be at least 1");
        Self { source, count }
    }
}

impl<S> Observable for BufferCount<S>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
{
    type Item = Vec<S::Item>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(BufferCountObserver {
            observer,
            buffer: Vec::new(),
            count: self.count,
            initial_capacity: self.count.min(INITIAL_CAPACITY_MAX),
        })
    }
}

struct BufferCountObserver<O, T> {
    observer: O,
    /// Never full between calls.
    buffer: Vec<T>,
    count: usize,
    /// The capacity of a new buffer. After a buffer was full, this is `count`.
    initial_capacity: usize,
}

impl<O, T> BufferCountObserver<O, T> {
    #[inline]
    fn reserve(&mut self) {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(self.initial_capacity);
        }
    }

    #[inline]
    fn emit_if_full<E>(&mut self)
    where
        O: Observer<Vec<T>, E>,
    {
        if self.buffer.len() == self.count {
            self.initial_capacity = self.count;
            self.observer.next_owned(core::mem::take(&mut self.buffer));
        }
    }
}

impl<T: Clone, E, O: Observer<Vec<T>, E>> Observer<T, E> for BufferCountObserver<O, T> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.reserve();
        self.buffer.push(value);
        self.emit_if_full();
    }

    fn next_slice(&mut self, mut values: &[T]) {
        while !values.is_empty() && !self.observer.is_closed() {
            self.reserve();
            let missing = values.len().min(self.count - self.buffer.len());
            let (now, later) = values.split_at(missing);
            self.buffer.extend_from_slice(now);
            self.emit_if_full();
            values = later;
        }
    }

    fn complete(&mut self) {
        let rest = core::mem::take(&mut self.buffer);
        if !rest.is_empty() {
            self.observer.next_owned(rest);
        }
        complete(&mut self.observer);
    }

    forward!(error, is_closed);
}

/// The observable returned by [`buffer_count_every`](crate::ObservableExt::buffer_count_every).
///
/// Like [`buffer_count`](crate::ObservableExt::buffer_count), but a new buffer begins at every `every`-th
/// value. If `every` is less than `count`, buffers overlap. If it is more, some values are in no buffer. On
/// completion all buffers that have begun are emitted, the oldest first.
///
/// # Panics
///
/// If `count` or `every` is zero.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=5)
///     .buffer_count_every(3, 2)
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [vec![1, 2, 3], vec![3, 4, 5], vec![5]]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct BufferCountEvery<S> {
    source: S,
    count: usize,
    every: usize,
}

impl<S> BufferCountEvery<S> {
    pub(super) fn new(source: S, count: usize, every: usize) -> Self {
        assert!(count > 0, "`count` must be at least 1");
        assert!(every > 0, "`every` must be at least 1");
        Self {
            source,
            count,
            every,
        }
    }
}

impl<S> Observable for BufferCountEvery<S>
where
    S: Observable,
    S::Item: Clone + Send + 'static,
{
    type Item = Vec<S::Item>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(BufferCountEveryObserver {
            observer,
            open: VecDeque::new(),
            count: self.count,
            every: self.every,
            until_next: 0,
        })
    }
}

struct BufferCountEveryObserver<O, T> {
    observer: O,
    /// Buffers that are not full, the oldest first; more than one only if they overlap.
    open: VecDeque<Vec<T>>,
    count: usize,
    every: usize,
    /// Number of values until the next buffer begins.
    until_next: usize,
}

impl<O, T: Clone> BufferCountEveryObserver<O, T> {
    /// Opens a buffer if this value is its first.
    #[inline]
    fn begin_value(&mut self) {
        if self.until_next == 0 {
            self.until_next = self.every;
            self.open
                .push_back(Vec::with_capacity(self.count.min(INITIAL_CAPACITY_MAX)));
        }
        self.until_next -= 1;
    }

    /// Emits the oldest buffer if it is full.
    #[inline]
    fn end_value<E>(&mut self)
    where
        O: Observer<Vec<T>, E>,
    {
        if self
            .open
            .front()
            .is_some_and(|oldest| oldest.len() == self.count)
            && let Some(full) = self.open.pop_front()
        {
            self.observer.next_owned(full);
        }
    }
}

impl<T: Clone, E, O: Observer<Vec<T>, E>> Observer<T, E> for BufferCountEveryObserver<O, T> {
    #[inline]
    fn next(&mut self, value: &T) {
        self.begin_value();
        for buffer in &mut self.open {
            buffer.push(value.clone());
        }
        self.end_value();
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.begin_value();
        let older = self.open.len().saturating_sub(1);
        for buffer in self.open.iter_mut().take(older) {
            buffer.push(value.clone());
        }
        // The newest buffer takes the value itself, so nothing is cloned if buffers do not overlap.
        if let Some(newest) = self.open.back_mut() {
            newest.push(value);
        }
        self.end_value();
    }

    fn complete(&mut self) {
        let rest = core::mem::take(&mut self.open);
        if emit_all(&mut self.observer, rest) {
            self.observer.complete();
        }
    }

    forward!(error, is_closed);
}
