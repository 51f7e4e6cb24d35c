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
