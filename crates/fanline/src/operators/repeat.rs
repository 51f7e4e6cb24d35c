use super::resubscribe::{Attempt, Decision, NoWait, Policy};
use super::series::Series;
use crate::{Guard, Observable, Observer};

/// The observable returned by [`repeat`](crate::CombineExt::repeat).
///
/// Subscribes to a clone of the source again each time it completes, until it has run `times` times.
/// `usize::MAX` means no limit; with 0, this observable completes at once.
///
/// Fails when the source fails. The stack does not grow with the number of runs. Stores no values.
///
/// Holds a clone of the source until this observable ends, or until the guard is dropped. This is harmless
/// for subjects and their sources: a subject ends and drops its observers when its last handle or its
/// producer is dropped. But a detached subscription to this observable keeps a
/// [`Connectable`](crate::operators::Connectable) alive even if it is not connected.
///
/// ```
/// use fanline::prelude::*;
///
/// fanline::from_iter(0..2).repeat(2).subscribe(|value| println!("{value}")).detach(); // 0 1 0 1
/// ```
#[derive(Clone, Debug)]
pub struct Repeat<S> {
    source: S,
    times: usize,
}

impl<S> Repeat<S> {
    pub(super) fn new(source: S, times: usize) -> Self {
        Self { source, times }
    }
}

impl<S> Observable for Repeat<S>
where
    S: Observable<Item: 'static, Error: 'static> + Clone + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, mut observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        let Some(left) = self.times.checked_sub(1) else {
            observer.complete();
            return Guard::closed();
        };
        Series::begin(Attempt {
            source: self.source,
            observer,
            policy: RepeatPolicy { left },
            wait: NoWait,
            delay: None,
        })
    }
}

struct RepeatPolicy {
    left: usize,
}

impl<E> Policy<E> for RepeatPolicy {
    fn after_error(&mut self, _error: &E) -> Decision {
        Decision::Stop
    }

    fn after_completion(&mut self) -> Decision {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Decision::Resubscribe
            }
            None => Decision::Stop,
        }
    }
}

/// The observable returned by [`do_while`](crate::CombineExt::do_while).
///
/// Subscribes to a clone of the source again each time it completes and `condition` then returns `true`.
/// Otherwise completes. Fails when the source fails. The stack does not grow with the number of runs. Stores
/// no values. [`while_do`](crate::while_do) checks the condition before the first run too.
///
/// ```
/// use fanline::prelude::*;
///
/// let mut runs = 0;
/// fanline::from_iter(0..2)
///     .do_while(move || { runs += 1; runs < 2 })
///     .collect::<Vec<_>>()
///     .subscribe(|all| assert_eq!(*all, [0, 1, 0, 1]))
///     .detach();
/// ```
#[derive(Clone, Debug)]
pub struct DoWhile<S, F> {
    source: S,
    condition: F,
}

impl<S, F> DoWhile<S, F> {
    pub(super) fn new(source: S, condition: F) -> Self {
        Self { source, condition }
    }
}

impl<S, F> Observable for DoWhile<S, F>
where
    S: Observable<Item: 'static, Error: 'static> + Clone + Send + 'static,
    F: FnMut() -> bool + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        Series::begin(Attempt {
            source: self.source,
            observer,
            policy: WhilePolicy {
                condition: self.condition,
            },
            wait: NoWait,
            delay: None,
        })
    }
}

struct WhilePolicy<F> {
    condition: F,
}

impl<E, F: FnMut() -> bool + Send + 'static> Policy<E> for WhilePolicy<F> {
    fn after_error(&mut self, _error: &E) -> Decision {
        Decision::Stop
    }

    fn after_completion(&mut self) -> Decision {
        if (self.condition)() {
            Decision::Resubscribe
        } else {
            Decision::Stop
        }
    }
}
