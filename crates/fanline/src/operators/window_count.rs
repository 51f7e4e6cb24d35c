use alloc::sync::Arc;

use super::unicast::{Feed, SourceRefs, Unicast};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`window_count`](crate::ObservableExt::window_count).
///
/// Emits observables of `count` values each; the last one may have fewer. A window is emitted when its first
/// value arrives, and completes after its last value.
///
/// A window buffers its values until it is subscribed to, which is possible once; see
/// [`Unicast`](crate::operators::Unicast). When the source completes or fails, so does the open window, and
/// then this observable. An open window continues after the observer of this observable has closed.
///
/// # Panics
///
/// If `count` is 0.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=5)
///     .window_count(2)
///     .flat_map(|window| window.clone().sum())
///     .subscribe(|sum| println!("{sum}")) // 3 7 5
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct WindowCount<S> {
    source: S,
    count: usize,
}

impl<S> WindowCount<S> {
    pub(super) fn new(source: S, count: usize) -> Self {
        assert!(count > 0, "`count` must be at least 1");
        Self { source, count }
    }
}

impl<S> Observable for WindowCount<S>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
{
    type Item = Unicast<S::Item, S::Error>;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        let source_refs = SourceRefs::new();
        let guard = source_refs.guard();
        let subscription = self.source.subscribe_with(Windowing {
            windows: Windows::new(observer, Arc::clone(&source_refs)),
            count: self.count,
            len: 0,
        });
        source_refs.set(subscription);
        guard
    }
}

/// The observer of the windows, and the open window.
pub(super) struct Windows<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// `None` after the observer has closed.
    observer: Option<O>,
    open: Option<Feed<T, E>>,
    source_refs: Arc<SourceRefs>,
}

impl<O, T, E> Windows<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<Unicast<T, E>, E>,
{
    pub(super) fn new(observer: O, source_refs: Arc<SourceRefs>) -> Self {
        Self {
            observer: Some(observer),
            open: None,
            source_refs,
        }
    }

    fn outer(&mut self) -> Option<&mut O> {
        let open = self
            .observer
            .as_ref()
            .is_some_and(|observer| !observer.is_closed());
        if !open || !self.source_refs.outer_is_open() {
            self.observer = None;
            self.source_refs.close_outer();
        }
        self.observer.as_mut()
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Opens a window, unless the observer is closed.
    pub(super) fn open(&mut self) {
        let source_refs = Arc::clone(&self.source_refs);
        if let Some(observer) = self.outer() {
            let (feed, window) = Feed::new(Some(source_refs.add_ref()));
            observer.next_owned(window);
            self.open = Some(feed);
            self.outer(); // Drops the observer if it is closed.
        }
    }

    pub(super) fn next(&mut self, value: &T) {
        if let Some(window) = &self.open {
            window.next(value);
        }
    }

    /// Completes the open window.
    pub(super) fn close(&mut self) {
        if let Some(window) = self.open.take() {
            window.complete();
        }
    }

    pub(super) fn error(&mut self, error: &E) {
        if let Some(window) = self.open.take() {
            window.error(error);
        }
        if let Some(observer) = self.outer() {
            observer.error(error);
        }
        self.source_refs.close_outer();
    }

    pub(super) fn complete(&mut self) {
        self.close();
        if let Some(observer) = self.outer() {
            observer.complete();
        }
        self.source_refs.close_outer();
    }

    pub(super) fn is_over(&self) -> bool {
        self.source_refs.is_over()
    }
}

struct Windowing<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    windows: Windows<O, T, E>,
    count: usize,
    /// Number of values in the open window.
    len: usize,
}

impl<O, T, E> Observer<T, E> for Windowing<O, T, E>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<Unicast<T, E>, E>,
{
    fn next(&mut self, value: &T) {
        if !self.windows.is_open() {
            self.windows.open();
            self.len = 0;
        }
        self.windows.next(value);
        self.len += 1;
        if self.len == self.count {
            self.windows.close();
        }
    }

    fn error(&mut self, error: &E) {
        self.windows.error(error);
    }

    fn complete(&mut self) {
        self.windows.complete();
    }

    fn is_closed(&self) -> bool {
        self.windows.is_over()
    }
}
