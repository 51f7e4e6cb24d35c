use alloc::sync::Arc;

use super::upstreams::{UntilClosed, Upstreams};
use crate::{Guard, Observable, Observer};

/// The observable returned by [`switch_if_empty`](crate::CombineExt::switch_if_empty).
///
/// Emits the values of the source. If the source completes without a value, subscribes to `fallback` and
/// emits its values.
///
/// Completes or fails with the source, or with `fallback` if that was subscribed to. An error of the source
/// is passed on at once. Stores no values.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::empty::<u32>()
///     .switch_if_empty(fanline::from_iter([1, 2])) // the defaults
///     .sum()
///     .subscribe(|sum| assert_eq!(*sum, 3))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct SwitchIfEmpty<S, B> {
    source: S,
    fallback: B,
}

impl<S, B> SwitchIfEmpty<S, B> {
    pub(super) fn new(source: S, fallback: B) -> Self {
        Self { source, fallback }
    }
}

impl<S, B> Observable for SwitchIfEmpty<S, B>
where
    S: Observable<Item: 'static, Error: 'static>,
    B: Observable<Item = S::Item, Error = S::Error> + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let upstreams = Arc::new(Upstreams::default());
        let guard = upstreams.guard();
        if let Some(key) = upstreams.reserve() {
            let subscription = self.source.subscribe_with(SwitchIfEmptyObserver {
                parts: Some((observer, Some(self.fallback))),
                upstreams: Arc::clone(&upstreams),
                key,
            });
            upstreams.set(key, subscription);
        }
        guard
    }
}

struct SwitchIfEmptyObserver<O, B> {
    /// `None` after the source has ended. The fallback is `None` as soon as the source has emitted.
    parts: Option<(O, Option<B>)>,
    upstreams: Arc<Upstreams>,
    key: u64,
}

impl<T, E, O, B> Observer<T, E> for SwitchIfEmptyObserver<O, B>
where
    T: 'static,
    E: 'static,
    O: Observer<T, E> + Send + 'static,
    B: Observable<Item = T, Error = E>,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if let Some((observer, fallback)) = &mut self.parts {
            *fallback = None;
            observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if let Some((observer, fallback)) = &mut self.parts {
            *fallback = None;
            observer.next_owned(value);
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        if let Some((observer, fallback)) = &mut self.parts
            && !values.is_empty()
        {
            *fallback = None;
            observer.next_slice(values);
        }
    }

    fn error(&mut self, error: &E) {
        if let Some((mut observer, _)) = self.parts.take() {
            observer.error(error);
            self.upstreams.close();
        }
    }

    fn complete(&mut self) {
        let Some((mut observer, fallback)) = self.parts.take() else {
            return;
        };
        let Some(fallback) = fallback else {
            observer.complete();
            self.upstreams.close();
            return;
        };
        self.upstreams.finish(self.key);
        if let Some(key) = self.upstreams.reserve() {
            let subscription = fallback.subscribe_with(UntilClosed {
                observer,
                upstreams: Arc::clone(&self.upstreams),
            });
            self.upstreams.set(key, subscription);
        }
    }

    fn is_closed(&self) -> bool {
        self.upstreams.is_closed()
            || self
                .parts
                .as_ref()
                .is_none_or(|(observer, _)| observer.is_closed())
    }
}
