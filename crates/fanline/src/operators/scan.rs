use crate::operators::forward::forward;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`scan`](crate::ObservableExt::scan).
///
/// Folds the values with `f`, starting from `initial`, and emits each intermediate result.
/// [`fold`](crate::ObservableExt::fold) emits only the last one.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(1..=4)
///     .scan(0, |sum, n| sum + n)
///     .collect::<Vec<_>>()
///     .subscribe(|sums| assert_eq!(*sums, [1, 3, 6, 10]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct Scan<S, A, F> {
    source: S,
    state: A,
    f: F,
}

impl<S, A, F> Scan<S, A, F> {
    pub(super) fn new(source: S, state: A, f: F) -> Self {
        Self { source, state, f }
    }
}

impl<S, A, F> Observable for Scan<S, A, F>
where
    S: Observable,
    A: Send + 'static,
    F: FnMut(A, &S::Item) -> A + Send + 'static,
{
    type Item = A;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<A, S::Error> + Send + 'static,
    {
        self.source.subscribe_with(ScanObserver {
            observer,
            state: Some(self.state),
            f: self.f,
        })
    }
}

struct ScanObserver<O, A, F> {
    observer: O,
    /// `None` while `f` runs. If `f` panics, it stays `None`.
    state: Option<A>,
    f: F,
}

impl<T, E, A, O, F> Observer<T, E> for ScanObserver<O, A, F>
where
    O: Observer<A, E>,
    F: FnMut(A, &T) -> A,
{
    #[inline]
    fn next(&mut self, value: &T) {
        if let Some(state) = self.state.take() {
            let state = self.state.insert((self.f)(state, value));
            self.observer.next(state);
        }
    }

    forward!(error, complete, is_closed);
}
