use alloc::sync::Arc;

use super::upstreams::{UntilClosed, Upstreams};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`catch`](crate::CombineExt::catch).
///
/// On an error, continues with the observable that `handler` returns for it.
///
/// Its error type is that of the observable from `handler`: [`Infallible`](std::convert::Infallible) if that
/// observable cannot fail. Stores no values.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::throw::<u32, _>("offline")
///     .catch(|_| fanline::from_iter([1, 2])) // from a file, say
///     .subscribe(|value| println!("{value}"))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Catch<S, F> {
    source: S,
    handler: F,
}

impl<S, F> Catch<S, F> {
    pub(super) fn new(source: S, handler: F) -> Self {
        Self { source, handler }
    }
}

impl<S, R, F> Observable for Catch<S, F>
where
    S: Observable<Item: 'static>,
    R: IntoObservable<Item = S::Item, Error: 'static>,
    F: FnOnce(&S::Error) -> R + Send + 'static,
{
    type Item = S::Item;
    type Error = R::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, R::Error> + Send + 'static,
    {
        let upstreams = Arc::new(Upstreams::default());
        let guard = upstreams.guard();
        if let Some(key) = upstreams.reserve() {
            let subscription = self.source.subscribe_with(CatchObserver {
                parts: Some((observer, self.handler)),
                upstreams: Arc::clone(&upstreams),
                key,
            });
            upstreams.set(key, subscription);
        }
        guard
    }
}

struct CatchObserver<O, F> {
    /// `None` after the source has ended.
    parts: Option<(O, F)>,
    upstreams: Arc<Upstreams>,
    key: u64,
}

impl<T, E, R, O, F> Observer<T, E> for CatchObserver<O, F>
where
    T: 'static,
    R: IntoObservable<Item = T, Error: 'static>,
    O: Observer<T, R::Error> + Send + 'static,
    F: FnOnce(&E) -> R,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if let Some((observer, _)) = &mut self.parts {
            observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if let Some((observer, _)) = &mut self.parts {
            observer.next_owned(value);
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        if let Some((observer, _)) = &mut self.parts {
            observer.next_slice(values);
        }
    }

    fn error(&mut self, error: &E) {
        let Some((observer, handler)) = self.parts.take() else {
            return;
        };
        let fallback = handler(error).into_observable();
        self.upstreams.finish(self.key);
        if let Some(key) = self.upstreams.reserve() {
            let subscription = fallback.subscribe_with(UntilClosed {
                observer,
                upstreams: Arc::clone(&self.upstreams),
            });
            self.upstreams.set(key, subscription);
        }
    }

    fn complete(&mut self) {
        if let Some((mut observer, _)) = self.parts.take() {
            observer.complete();
            self.upstreams.close();
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
