//! The subscriber's side of subjects: [`Source`], and [`Members`] for observers of one type.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

use super::end::End;
use super::list::{Boxed, Entry, Inline};
use super::owner::Owner;
use super::policy::Rules;
use crate::{Guard, IntoObservable, Observable, Observer, observer};

/// The subscriber's view of a subject, with any policy.
pub trait Live<T, E, L>: Send + Sync {
    fn subscribe(&self, entry: L) -> Guard;
    fn visit(&self, visit: &mut dyn FnMut(&[T]));
    fn visit_latest(&self, visit: &mut dyn FnMut(&T));
    fn retained(&self) -> usize;
    fn trim(&self);
    fn observer_count(&self) -> usize;
    fn has_ended(&self) -> bool;
    fn end(&self) -> Option<End<E>>;
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

    fn visit_latest(&self, visit: &mut dyn FnMut(&T)) {
        self.core().visit_latest(visit);
    }

    fn retained(&self) -> usize {
        self.core().retained()
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

    fn end(&self) -> Option<End<E>> {
        self.core().end_so_far()
    }
}

/// The subscriber's half of a subject. It is a handle: clones refer to the same subject.
///
/// A source does not keep the subject alive. After the [`Producer`](crate::Producer), or the last handle of a
/// shared subject, is dropped, no more values arrive.
///
/// Subscribing takes a reference and may be repeated; operators take a clone:
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

    /// Calls `next` with each value; ignores errors and completion.
    ///
    /// Retained values are emitted on this thread, before this method returns; later values are emitted on
    /// the emitter's thread. If an observer calls this during an emission, the retained values are emitted at
    /// once. They include the value that is being emitted, if it is retained. The next emission is the first
    /// live value.
    pub fn subscribe(&self, next: impl FnMut(&T) + Send + 'static) -> Guard
    where
        T: 'static,
        E: 'static,
    {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer; see [`subscribe`](Self::subscribe). If the subject has completed or failed,
    /// the observer receives the retained values and the completion or the error, and the returned guard is
    /// closed.
    pub fn subscribe_with(&self, observer: impl Observer<T, E> + Send + 'static) -> Guard
    where
        T: 'static,
        E: 'static,
    {
        self.live.subscribe(Boxed::new(observer))
    }

    /// Returns whether the subject has observers. `false` after the subject has ended.
    pub fn has_observers(&self) -> bool {
        self.observer_count() > 0
    }

    /// Returns the number of observers. 0 after the subject has ended.
    pub fn observer_count(&self) -> usize {
        self.live.observer_count()
    }

    /// Returns whether the subject has completed, failed, or been disposed of.
    pub fn has_ended(&self) -> bool {
        self.live.has_ended()
    }

    /// Returns how the subject ended; `None` while it has not.
    ///
    /// ```
    /// let (tx, source) = fanline::subject::<u32>();
    /// assert_eq!(source.end(), None);
    /// tx.complete();
    /// assert_eq!(source.end(), Some(fanline::End::Completed));
    /// ```
    pub fn end(&self) -> Option<End<E>> {
        self.live.end()
    }

    /// Returns a clone of the last value that a late subscriber would receive now: the last one of
    /// [`snapshot`](Self::snapshot). Returns `None` if there is none, for example because a behavior subject
    /// has completed.
    ///
    /// ```
    /// let (mut tx, price) = fanline::behavior(300);
    /// tx.next(310);
    /// assert_eq!(price.latest(), Some(310));
    /// ```
    pub fn latest(&self) -> Option<T>
    where
        T: Clone,
    {
        self.with_latest(T::clone)
    }

    /// Calls `read` with the value that [`latest`](Self::latest) clones, and returns the result. No lock is
    /// held, so emission continues meanwhile. The value stays in memory until `read` returns.
    ///
    /// ```
    /// let (_tx, page) = fanline::behavior("a long text".to_owned());
    /// assert_eq!(page.with_latest(|text| text.len()), Some(11));
    /// ```
    pub fn with_latest<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        let mut read = Some(read);
        let mut result = None;
        self.live
            .visit_latest(&mut |value| result = read.take().map(|read| read(value)));
        result
    }

    /// Returns the number of values that a late subscriber would receive now.
    ///
    /// There is no method `is_empty`, because [`ObservableExt::is_empty`](crate::ObservableExt::is_empty) is
    /// an operator.
    ///
    /// ```
    /// use fanline::Replay;
    ///
    /// let (mut tx, source) = fanline::replay::<u32>(Replay::many(2));
    /// tx.next_slice(&[1, 2, 3]);
    /// assert_eq!(source.len(), 2);
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "an operator has that name")]
    pub fn len(&self) -> usize {
        self.live.retained()
    }

    /// Returns the values that a late subscriber would receive now. They are cloned without a lock, so
    /// emission continues meanwhile.
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

    /// Removes retained values that are too old. Useful only for a time window that has no emissions and no
    /// new subscribers for long, because both remove such values anyway.
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

/// The subscriber's half of a subject whose observers all have the type `O`. They are called directly, so
/// the compiler can inline them. See [`subject_of`](crate::subject_of).
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

    /// Returns the number of observers. 0 after the subject has ended.
    pub fn observer_count(&self) -> usize {
        self.live.observer_count()
    }

    /// Returns whether the subject has observers. `false` after the subject has ended.
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
