use super::SwitchMap;
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`switch_all`](crate::CombineExt::switch_all).
///
/// Emits the values of the latest observable of a source of observables:
/// [`switch_map`](crate::CombineExt::switch_map) without a closure.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut channel, channels) = fanline::subject();
/// let _guard = channels.switch_all().subscribe(|value: &u32| println!("{value}"));
/// let (first, second) = (fanline::Subject::new(), fanline::Subject::new());
/// channel.next(first.clone());
/// channel.next(second.clone());
/// first.next(1); // no longer subscribed to
/// second.next(2);
/// ```
#[derive(Clone, Debug)]
pub struct SwitchAll<S> {
    source: S,
}

impl<S> SwitchAll<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S> Observable for SwitchAll<S>
where
    S: Observable<Error: Clone + Send + 'static>,
    S::Item: IntoObservable<Item: Clone + Send + 'static, Error = S::Error> + Clone + 'static,
{
    type Item = <S::Item as IntoObservable>::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<Self::Item, S::Error> + Send + 'static,
    {
        SwitchMap::new(self.source, Clone::clone as fn(&S::Item) -> S::Item)
            .subscribe_with(observer)
    }
}
