//! Operators: observables made of observables.

mod map;

pub use map::Map;

use crate::{BoxObservable, IntoObservable, Observable};

/// The operators, on everything that can be turned into an [`Observable`].
pub trait ObservableExt: IntoObservable {
    // Each group of methods stands under its heading, alphabetically where nothing else decides.

    // -- Transforming

    /// Emits what `f` makes of each value.
    fn map<U, F>(self, f: F) -> Map<Self::Observable, F>
    where
        F: FnMut(&Self::Item) -> U + Send + 'static,
    {
        Map::new(self.into_observable(), f)
    }

    // -- Filtering

    // -- Folding

    // -- Combining

    // -- Errors

    // -- Time

    // -- Threads

    // -- Multicast

    // -- Looking on

    // -- Other shapes

    /// Hides the chain in a box; see [`BoxObservable`].
    fn boxed(self) -> BoxObservable<Self::Item, Self::Error>
    where
        Self::Observable: Send + 'static,
        Self::Item: 'static,
        Self::Error: 'static,
    {
        BoxObservable::new(self.into_observable())
    }
}

impl<S: IntoObservable> ObservableExt for S {}
