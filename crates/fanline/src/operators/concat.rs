use alloc::sync::Arc;
use alloc::vec::Vec;

use super::series::{Series, Step};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`concat`](crate::CombineExt::concat).
///
/// Emits all values of this source. When it completes, subscribes to `next` and emits the values of `next`.
///
/// Completes when `next` completes; fails if either fails. If this source fails, `next` is not subscribed to.
/// Stores no values. The function [`concat`](crate::operators::concat()) takes a list.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(0..2)
///     .concat(fanline::from_iter(5..7))
///     .subscribe(|value| println!("{value}")) // 0 1 5 6
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Concat<A, B> {
    first: A,
    second: B,
}

impl<A, B> Concat<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A, B> Observable for Concat<A, B>
where
    A: Observable<Item: 'static, Error: 'static> + Send + 'static,
    B: Observable<Item = A::Item, Error = A::Error> + Send + 'static,
{
    type Item = A::Item;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<A::Item, A::Error> + Send + 'static,
    {
        Series::begin(Chain {
            observer,
            sources: Pair(Some(self.first), Some(self.second)),
        })
    }
}

/// Several sources of one type, one after the other; see [`concat`](crate::operators::concat()).
#[derive(Clone, Debug)]
pub struct ConcatList<S> {
    sources: Vec<S>,
}

/// Emits all values of the first source, then those of the second, and so on; see
/// [`CombineExt::concat`](crate::CombineExt::concat).
///
/// Each source is subscribed to when the previous one completes. Completes when the last one completes; an
/// empty list completes at once. Fails with the first error.
///
/// ```
/// use fanline::{Observable, Subject, operators::concat};
///
/// let (first, second) = (Subject::<u32>::new(), Subject::<u32>::new());
/// let _guard = concat([first.clone(), second.clone()]).subscribe(|value| println!("{value}"));
/// first.next(1);
/// second.next(2); // not subscribed to yet
/// first.complete();
/// second.next(3);
/// ```
pub fn concat<I>(sources: I) -> ConcatList<<I::Item as IntoObservable>::Observable>
where
    I: IntoIterator<Item: IntoObservable>,
{
    ConcatList {
        sources: sources
            .into_iter()
            .map(IntoObservable::into_observable)
            .collect(),
    }
}

impl<S> Observable for ConcatList<S>
where
    S: Observable<Item: 'static, Error: 'static> + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        if self.sources.is_empty() {
            observer.complete();
            return Guard::closed();
        }
        Series::begin(Chain {
            observer,
            sources: self.sources.into_iter(),
        })
    }
}

/// The sources that are not subscribed to yet.
trait Sources<O>: Send + 'static {
    /// Subscribes to the next source. The observer of that source owns the remaining sources.
    fn subscribe_next(self, observer: O, series: &Arc<Series<Chain<Self, O>>>) -> Guard
    where
        Self: Sized,
        O: Send + 'static;

    fn is_empty(&self) -> bool;
}

struct Pair<A, B>(Option<A>, Option<B>);

impl<A, B, O> Sources<O> for Pair<A, B>
where
    A: Observable<Item: 'static, Error: 'static> + Send + 'static,
    B: Observable<Item = A::Item, Error = A::Error> + Send + 'static,
    O: Observer<A::Item, A::Error>,
{
    fn subscribe_next(mut self, observer: O, series: &Arc<Series<Chain<Self, O>>>) -> Guard
    where
        O: Send + 'static,
    {
        if let Some(first) = self.0.take() {
            first.subscribe_with(ConcatObserver::new(observer, self, series))
        } else if let Some(second) = self.1.take() {
            second.subscribe_with(ConcatObserver::new(observer, self, series))
        } else {
            Guard::closed()
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_none() && self.1.is_none()
    }
}

impl<S, O> Sources<O> for alloc::vec::IntoIter<S>
where
    S: Observable<Item: 'static, Error: 'static> + Send + 'static,
    O: Observer<S::Item, S::Error>,
{
    fn subscribe_next(mut self, observer: O, series: &Arc<Series<Chain<Self, O>>>) -> Guard
    where
        O: Send + 'static,
    {
        match self.next() {
            Some(source) => source.subscribe_with(ConcatObserver::new(observer, self, series)),
            None => Guard::closed(),
        }
    }

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

struct Chain<Q, O> {
    observer: O,
    sources: Q,
}

impl<Q, O> Step for Chain<Q, O>
where
    Q: Sources<O>,
    O: Send + 'static,
{
    fn start(self, series: &Arc<Series<Self>>) -> Guard {
        self.sources.subscribe_next(self.observer, series)
    }
}

struct ConcatObserver<Q: Sources<O>, O: Send + 'static> {
    /// `None` after the source has ended.
    chain: Option<Chain<Q, O>>,
    series: Arc<Series<Chain<Q, O>>>,
}

impl<Q: Sources<O>, O: Send + 'static> ConcatObserver<Q, O> {
    fn new(observer: O, sources: Q, series: &Arc<Series<Chain<Q, O>>>) -> Self {
        Self {
            chain: Some(Chain { observer, sources }),
            series: Arc::clone(series),
        }
    }
}

impl<T, E, Q, O> Observer<T, E> for ConcatObserver<Q, O>
where
    Q: Sources<O>,
    O: Observer<T, E> + Send + 'static,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if let Some(chain) = &mut self.chain {
            chain.observer.next(value);
        }
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        if let Some(chain) = &mut self.chain {
            chain.observer.next_owned(value);
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        if let Some(chain) = &mut self.chain {
            chain.observer.next_slice(values);
        }
    }

    fn error(&mut self, error: &E) {
        if let Some(mut chain) = self.chain.take() {
            chain.observer.error(error);
            self.series.close();
        }
    }

    fn complete(&mut self) {
        let Some(mut chain) = self.chain.take() else {
            return;
        };
        if chain.sources.is_empty() {
            chain.observer.complete();
            self.series.close();
        } else {
            self.series.start_next(chain);
        }
    }

    fn is_closed(&self) -> bool {
        self.series.is_closed()
            || self
                .chain
                .as_ref()
                .is_none_or(|chain| chain.observer.is_closed())
    }
}
