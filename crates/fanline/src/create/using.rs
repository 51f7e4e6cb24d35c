use crate::{Guard, IntoObservable, Observable, ObservableExt, Observer};

/// Creates a resource at the subscription, and drops it when the subscription ends.
///
/// `make_resource` is called at each subscription. `make_source` then makes the observable from the resource.
/// The resource is dropped once: after the completion or error was passed on, when the guard is dropped, or
/// when an operator after this one needs no more values.
///
/// ```
/// use fanline::prelude::*;
///
/// struct Connection;
///
/// impl Drop for Connection {
///     fn drop(&mut self) {
///         println!("closed");
///     }
/// }
///
/// fanline::using(|| Connection, |_connection| fanline::of("a row"))
///     .subscribe(|row| println!("{row}"))
///     .detach(); // a row, closed
/// ```
pub fn using<R, S, M, F>(make_resource: M, make_source: F) -> Using<M, F>
where
    R: Send + 'static,
    S: IntoObservable,
    M: FnOnce() -> R,
    F: FnOnce(&mut R) -> S,
{
    Using {
        make_resource,
        make_source,
    }
}

/// An observable that owns a resource; see [`using`].
#[derive(Clone, Debug)]
pub struct Using<M, F> {
    make_resource: M,
    make_source: F,
}

impl<R, S, M, F> Observable for Using<M, F>
where
    R: Send + 'static,
    S: IntoObservable,
    M: FnOnce() -> R,
    F: FnOnce(&mut R) -> S,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let mut resource = (self.make_resource)();
        (self.make_source)(&mut resource)
            .finalize(move || drop(resource))
            .subscribe_with(observer)
    }
}
