use crate::{Guard, IntoObservable, Observable, Observer};

/// Creates the observable at subscription, so that each subscription of a clone gets a new one.
///
/// ```
/// use fanline::prelude::*;
///
/// let chain = fanline::defer(|| fanline::of(std::process::id()));
/// chain.clone().subscribe(|id| println!("{id}")).detach();
/// chain.subscribe(|id| println!("{id}, created again")).detach();
/// ```
pub fn defer<F, S>(make: F) -> Defer<F>
where
    F: FnOnce() -> S,
    S: IntoObservable,
{
    Defer { make }
}

/// See [`defer`].
#[derive(Clone, Debug)]
pub struct Defer<F> {
    make: F,
}

impl<F, S> Observable for Defer<F>
where
    F: FnOnce() -> S,
    S: IntoObservable,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        (self.make)().into_observable().subscribe_with(observer)
    }
}
