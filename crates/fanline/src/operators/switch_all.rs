use super::SwitchMap;
use crate::{Guard, IntoObservable, Observable, Observer};

/// See [`ObservableExt::switch_all`](crate::ObservableExt::switch_all).
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
