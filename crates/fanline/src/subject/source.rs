//! Where observers subscribe: [`Source`], and [`Members`] for observers of one type.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use super::list::{Boxed, Entry, Inline};
use super::owner::Owner;
use super::policy::Rules;
use crate::{Guard, IntoObservable, Observable, Observer, observer};

/// A subject as those see it who subscribe, whatever it retains.
pub(super) trait Live<T, E, L>: Send + Sync {
    fn subscribe(&self, entry: L) -> Guard;
    fn visit(&self, visit: &mut dyn FnMut(&[T]));
    fn trim(&self);
    fn observer_count(&self) -> usize;
    fn has_ended(&self) -> bool;
}

impl<T, E, P, L> Live<T, E, L> for Owner<T, E, P, L>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Rules,
    L: Entry<T, E> + 'static,
{
    fn subscribe(&self, entry: L) -> Guard {
        self.core().subscribe(entry)
    }

    fn visit(&self, visit: &mut dyn FnMut(&[T])) {
        self.core().visit(visit);
    }

    fn trim(&self) {
        self.core().trim();
    }

    fn observer_count(&self) -> usize {
        self.core().observer_count()
    }

    fn has_ended(&self) -> bool {
        self.core().has_ended()
    }
}

/// The half of a subject that is subscribed to. A handle: clones are the same source.
///
/// It does not keep the subject going: when the [`Producer`](crate::Producer), or the last handle of a
/// shared subject, is gone, no value will come.
///
/// A source is subscribed by reference, as often as wanted; operators take a clone:
///
/// ```
/// use fanline::{Observable, ObservableExt};
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// source.subscribe(|value| println!("{value}")).detach();
/// source.clone().map(|value| value * 2).subscribe(|value| println!("{value}")).detach();
/// tx.next(21);
/// ```
pub struct Source<T, E = Infallible> {
    live: Arc<dyn Live<T, E, Boxed<T, E>>>,
}

impl<T, E> Source<T, E> {
    pub(super) fn new(live: Arc<dyn Live<T, E, Boxed<T, E>>>) -> Self {
        Self { live }
    }

    /// Calls `next` with each value; errors and completion are not looked at.
    ///
    /// Retained values are passed on before this returns, on this thread; later ones by whoever emits,
    /// on its thread. Subscribed to from inside an observer, the values retained so far come at once,
    /// the one that is being emitted among them where it is retained, and the next emission is the
    /// first that is passed on live.
    pub fn subscribe(&self, next: impl FnMut(&T) + Send + 'static) -> Guard
    where
        T: 'static,
        E: 'static,
    {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer; see [`subscribe`](Self::subscribe). After the end it gets what is
    /// retained, and the end, and the guard is closed.
    pub fn subscribe_with(&self, observer: impl Observer<T, E> + Send + 'static) -> Guard
    where
        T: 'static,
        E: 'static,
    {
        self.live.subscribe(Boxed::new(observer))
    }

    /// Whether anybody is subscribed. False after the end.
    pub fn has_observers(&self) -> bool {
        self.observer_count() > 0
    }

    /// How many are subscribed. None after the end.
    pub fn observer_count(&self) -> usize {
        self.live.observer_count()
    }

    /// Whether the subject has completed, failed or been disposed.
    pub fn has_ended(&self) -> bool {
        self.live.has_ended()
    }

    /// What a late subscriber would be given now. Values are cloned without a lock: emission goes on
    /// meanwhile.
    ///
    /// ```
    /// use fanline::Replay;
    ///
    /// let (mut tx, source) = fanline::replay::<u32>(Replay::many(2));
    /// tx.next_slice(&[1, 2, 3]);
    /// assert_eq!(source.snapshot(), [2, 3]);
    /// ```
    pub fn snapshot(&self) -> Vec<T>
    where
        T: Clone,
    {
        let mut values = Vec::new();
        self.live
            .visit(&mut |retained| values.extend_from_slice(retained));
        values
    }

    /// Lets go of retained values that are too old by now. Only for windows of time, and only needed
    /// where nothing is emitted and nobody subscribes for long: both do it anyway.
    pub fn trim(&self) {
        self.live.trim();
    }
}

impl<T, E> Clone for Source<T, E> {
    fn clone(&self) -> Self {
        Self {
            live: self.live.clone(),
        }
    }
}

impl<T, E> fmt::Debug for Source<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("observer_count", &self.observer_count())
            .field("has_ended", &self.has_ended())
            .finish()
    }
}

impl<T: 'static, E: 'static> IntoObservable for Source<T, E> {
    type Item = T;
    type Error = E;
    type Observable = FromSource<T, E>;

    fn into_observable(self) -> FromSource<T, E> {
        FromSource { source: self }
    }
}

/// A [`Source`] at the head of a chain of operators.
pub struct FromSource<T, E = Infallible> {
    source: Source<T, E>,
}

impl<T, E> Clone for FromSource<T, E> {
    fn clone(&self) -> Self {
        Self {
            source: self.source.clone(),
        }
    }
}

impl<T, E> fmt::Debug for FromSource<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl<T: 'static, E: 'static> Observable for FromSource<T, E> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        self.source.subscribe_with(observer)
    }
}

/// The half of a subject whose observers are all of one type, `O`: they are called directly, so the
/// compiler can inline them. See [`subject_of`](crate::subject_of).
pub struct Members<T, O, E = Infallible> {
    live: Arc<dyn Live<T, E, Inline<O>>>,
}

impl<T, O, E> Members<T, O, E> {
    pub(super) fn new(live: Arc<dyn Live<T, E, Inline<O>>>) -> Self {
        Self { live }
    }

    /// Subscribes an observer; see [`Source::subscribe_with`].
    pub fn subscribe_with(&self, observer: O) -> Guard {
        self.live.subscribe(Inline::new(observer))
    }

    /// How many are subscribed. None after the end.
    pub fn observer_count(&self) -> usize {
        self.live.observer_count()
    }

    /// Whether anybody is subscribed. False after the end.
    pub fn has_observers(&self) -> bool {
        self.observer_count() > 0
    }
}

impl<T, O, E> Clone for Members<T, O, E> {
    fn clone(&self) -> Self {
        Self {
            live: self.live.clone(),
        }
    }
}

impl<T, O, E> fmt::Debug for Members<T, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members")
            .field("observer_count", &self.observer_count())
            .finish()
    }
}
