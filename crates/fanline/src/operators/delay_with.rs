use super::default_if_empty::DefaultIfEmpty;
use super::flat_map::FlatMap;
use super::map_to::MapTo;
use super::signal::Signal;
use super::take::Take;
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`delay_with`](crate::CombineExt::delay_with).
///
/// Emits a value when the observable that `f` returns for it emits or completes. So the order may change.
///
/// Completes when the source has completed and all values are emitted; fails at once with the first error of
/// the source or of an observable. Stores the delayed values, without bound.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let clock = time.clone();
/// let guard = fanline::from_iter([30, 10])
///     .delay_with(move |ms| fanline::timer_on(Duration::from_millis(*ms), clock.clone()))
///     .subscribe(|value| println!("{value}"));
/// time.advance_by(Duration::from_millis(30)); // 10 30
/// # drop(guard);
/// ```
#[derive(Clone, Debug)]
pub struct DelayWith<S, F> {
    source: S,
    f: F,
}

impl<S, F> DelayWith<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, R, F> Observable for DelayWith<S, F>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    R: IntoObservable<Error = S::Error, Observable: Send + 'static>,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let mut f = self.f;
        FlatMap::new(self.source, usize::MAX, move |value: &S::Item| {
            let first = Take::new(Signal(f(value).into_observable()), 1);
            MapTo::new(DefaultIfEmpty::new(first, ()), value.clone())
        })
        .subscribe_with(observer)
    }
}
