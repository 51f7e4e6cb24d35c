//! Buffers and windows whose ends another observable determines.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::gate::Out;
use super::join::{First, Join, join};
use super::signal::Signal;
use super::unicast::{SourceRefs, Unicast};
use super::window_count::Windows;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`buffer_when`](crate::CombineExt::buffer_when).
///
/// Emits the values since the previous emission as one `Vec`, which may be empty, whenever `boundaries`
/// emits.
///
/// When the source or `boundaries` completes, emits the values that are left, if there are any, and
/// completes. Fails with the first error, without those values. `boundaries` is subscribed to first. Stores
/// the values of one buffer.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let (mut flush, flushes) = fanline::subject::<()>();
/// let _guard = source.buffer_when(flushes).subscribe(|values| println!("{values:?}"));
/// tx.next(1);
/// tx.next(2);
/// flush.next(()); // [1, 2]
/// tx.next(3);
/// tx.complete(); // [3]
/// ```
#[derive(Clone, Debug)]
pub struct BufferWhen<S, N> {
    source: S,
    boundaries: N,
}

impl<S, N> BufferWhen<S, N> {
    pub(super) fn new(source: S, boundaries: N) -> Self {
        Self { source, boundaries }
    }
}

impl<S, N> Observable for BufferWhen<S, N>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    N: Observable<Error = S::Error>,
{
    type Item = Vec<S::Item>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Vec<S::Item>, S::Error> + Send + 'static,
    {
        let stage = Buffering {
            out: Out::new(observer),
            buffer: Vec::new(),
        };
        join(self.source, Signal(self.boundaries), stage, First::Right)
    }
}

struct Buffering<T, O> {
    out: Out<O>,
    buffer: Vec<T>,
}

impl<T, O> Buffering<T, O> {
    fn complete<E>(&mut self)
    where
        O: Observer<Vec<T>, E>,
    {
        if !self.buffer.is_empty() {
            self.out.next_owned(core::mem::take(&mut self.buffer));
        }
        self.out.complete();
    }
}

impl<T, E, O> Join<T, (), E> for Buffering<T, O>
where
    T: Clone + Send + 'static,
    O: Observer<Vec<T>, E> + Send + 'static,
{
    fn left(&mut self, value: &T) {
        self.buffer.push(value.clone());
    }

    fn left_owned(&mut self, value: T) {
        self.buffer.push(value);
    }

    fn right(&mut self, (): &()) {
        self.out.next_owned(core::mem::take(&mut self.buffer));
    }

    fn left_complete(&mut self) {
        self.complete();
    }

    fn right_complete(&mut self) {
        self.complete();
    }

    fn left_disconnected(&mut self) {
        self.out.end_silently();
    }

    fn right_disconnected(&mut self) {
        self.out.end_silently();
    }

    fn error(&mut self, error: &E) {
        self.out.error(error);
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}

/// The observable returned by [`window_when`](crate::CombineExt::window_when).
///
/// Emits an observable of the following values at the subscription, and again whenever `boundaries` emits.
/// The previous window completes first.
///
/// A window buffers its values until it is subscribed to, which is possible once; see
/// [`Unicast`](crate::operators::Unicast). When the source or `boundaries` completes, or when one of them
/// fails, so does the open window, and then this observable. An open window continues after the observer of
/// this observable has closed.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let (mut cut, cuts) = fanline::subject::<()>();
/// let _guard = source
///     .window_when(cuts)
///     .flat_map(|window| window.clone().sum())
///     .subscribe(|sum| println!("{sum}"));
/// tx.next(1);
/// tx.next(2);
/// cut.next(()); // 3
/// tx.next(4);
/// tx.complete(); // 4
/// ```
#[derive(Clone, Debug)]
pub struct WindowWhen<S, N> {
    source: S,
    boundaries: N,
}

impl<S, N> WindowWhen<S, N> {
    pub(super) fn new(source: S, boundaries: N) -> Self {
        Self { source, boundaries }
    }
}

impl<S, N> Observable for WindowWhen<S, N>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    N: Observable<Error = S::Error>,
{
    type Item = Unicast<S::Item, S::Error>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        let source_refs = SourceRefs::new();
        let guard = source_refs.guard();
        let mut windows = Windows::new(observer, Arc::clone(&source_refs));
        windows.open();
        let stage = Windowing {
            windows,
            disconnected: false,
        };
        source_refs.set(join(
            self.source,
            Signal(self.boundaries),
            stage,
            First::Right,
        ));
        guard
    }
}

struct Windowing<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    windows: Windows<O, T, E>,
    /// Whether the source or the boundaries have dropped their observer.
    disconnected: bool,
}

impl<O, T, E> Join<T, (), E> for Windowing<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<Unicast<T, E>, E> + Send + 'static,
{
    fn left(&mut self, value: &T) {
        self.windows.next(value);
    }

    fn right(&mut self, (): &()) {
        self.windows.close();
        self.windows.open();
    }

    fn left_complete(&mut self) {
        self.windows.complete();
    }

    fn right_complete(&mut self) {
        self.windows.complete();
    }

    fn left_disconnected(&mut self) {
        self.disconnected = true;
    }

    fn right_disconnected(&mut self) {
        self.disconnected = true;
    }

    fn error(&mut self, error: &E) {
        self.windows.error(error);
    }

    fn is_over(&self) -> bool {
        self.disconnected || self.windows.is_over()
    }
}
