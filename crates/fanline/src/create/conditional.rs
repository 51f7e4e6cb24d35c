use crate::{CombineExt, Guard, IntoObservable, Observable, Observer};

/// Subscribes to `then` if `condition` returns `true`, and to `otherwise` if not.
///
/// `condition` is called at each subscription. RxJS calls this function `iif`.
///
/// ```
/// use fanline::prelude::*;
///
/// let cached = true;
/// fanline::if_then(move || cached, fanline::of("cache"), fanline::of("network"))
///     .subscribe(|from| assert_eq!(*from, "cache"))
///     .detach();
/// ```
pub fn if_then<A, B, F>(
    condition: F,
    then: A,
    otherwise: B,
) -> IfThen<F, A::Observable, B::Observable>
where
    A: IntoObservable,
    B: IntoObservable<Item = A::Item, Error = A::Error>,
    F: FnOnce() -> bool,
{
    IfThen {
        condition,
        then: then.into_observable(),
        otherwise: otherwise.into_observable(),
    }
}

/// One of two observables; see [`if_then`].
#[derive(Clone, Debug)]
pub struct IfThen<F, A, B> {
    condition: F,
    then: A,
    otherwise: B,
}

impl<F, A, B> Observable for IfThen<F, A, B>
where
    A: Observable,
    B: Observable<Item = A::Item, Error = A::Error>,
    F: FnOnce() -> bool,
{
    type Item = A::Item;
    type Error = A::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<A::Item, A::Error> + Send + 'static,
    {
        if (self.condition)() {
            self.then.subscribe_with(observer)
        } else {
            self.otherwise.subscribe_with(observer)
        }
    }
}

/// Subscribes to a clone of `source` again and again, while `condition` returns `true` before it.
///
/// Completes when `condition` returns `false`, fails when the source fails. The stack does not grow with the
/// number of runs. [`do_while`](crate::CombineExt::do_while) checks the condition after each run.
///
/// ```
/// use fanline::prelude::*;
///
/// let mut left = 2;
/// let more = move || { left -= 1; left >= 0 };
/// fanline::while_do(more, fanline::from_iter([1, 2]))
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [1, 2, 1, 2]))
///     .detach();
/// ```
pub fn while_do<S, F>(condition: F, source: S) -> WhileDo<F, S::Observable>
where
    S: IntoObservable<Item: 'static, Error: 'static, Observable: Clone + Send + 'static>,
    F: FnMut() -> bool + Send + 'static,
{
    WhileDo {
        condition,
        source: source.into_observable(),
    }
}

/// An observable that runs while a condition holds; see [`while_do`].
#[derive(Clone, Debug)]
pub struct WhileDo<F, S> {
    condition: F,
    source: S,
}

impl<F, S> Observable for WhileDo<F, S>
where
    S: Observable<Item: 'static, Error: 'static> + Clone + Send + 'static,
    F: FnMut() -> bool + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(mut self, mut observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        if (self.condition)() {
            return self
                .source
                .do_while(self.condition)
                .subscribe_with(observer);
        }
        if !observer.is_closed() {
            observer.complete();
        }
        Guard::closed()
    }
}
