//! Subjects for one thread: no atomics and no `Send`.

mod core;
mod guards;

use ::core::convert::Infallible;
use ::core::fmt;
use alloc::format;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub(super) use self::core::{Boxed, Local};

use super::end::End;
use super::handles::{AnyReplay, Flavor, NoValue};
use super::policy::{Current, Last, Policy, Publish, Replay, Rules};
use super::producer::OnPanic;
use crate::{Guard, IntoObservable, Observable, Observer, observer};

/// A subject that stays on its thread. Neither it nor its values and observers need be [`Send`], so an
/// observer can hold an `Rc` or a widget. `P` is the [flavor](crate::policy::Flavor), for which there are
/// short names:
///
/// | | late subscribers receive |
/// | --- | --- |
/// | [`LocalSubject`] | only later values |
/// | [`LocalBehaviorSubject`] | the current value |
/// | [`LocalAsyncSubject`] | the last value, after completion |
/// | [`LocalReplaySubject`] | the values that a [`Replay`] retains |
///
/// A handle: clones refer to the same subject. When the last one is dropped before the subject has completed
/// or failed, the subject is disposed of.
///
/// Otherwise it behaves as a [`SharedSubject`](crate::SharedSubject): all observers see the values in the same
/// order, values emitted by an observer come after the current one, an observer that panics is removed, and
/// emissions after the end have no effect. There is one difference. A value that is emitted while a new
/// subscriber receives the retained values is emitted after that, by the call of `subscribe`. The same holds
/// for a value that is emitted while retained values are read, for example by their `clone`.
///
/// Operators work on these subjects too. Their closures must be `Send`, because the same operators also work
/// on subjects that are used from several threads. A closure reaches what is not `Send` through a
/// [`ThreadBound`](crate::ThreadBound), and the last observer may be local; see
/// [`subscribe_local`](crate::ObservableExt::subscribe_local).
pub struct UnsyncSubject<T: 'static, E: 'static = Infallible, P: Flavor = Publish> {
    inner: Rc<P::Local<T, E>>,
}

/// A subject for one thread that retains nothing: subscribers receive only later values.
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
///
/// let seen = Rc::new(RefCell::new(Vec::new()));
/// let s = fanline::LocalSubject::new();
/// let sink = seen.clone();
/// let guard = s.subscribe(move |value: &u32| sink.borrow_mut().push(*value));
/// s.next(1);
/// drop(guard);
/// s.next(2);
/// assert_eq!(*seen.borrow(), [1]);
/// ```
pub type LocalSubject<T, E = Infallible> = UnsyncSubject<T, E, Publish>;

/// A subject for one thread with a current value, which each subscriber receives first.
///
/// After the subject has completed or failed, a late subscriber receives only the completion or the error.
/// After completion, [`value`](LocalBehaviorSubject::value) still returns the last value.
///
/// ```
/// use std::{cell::Cell, rc::Rc};
///
/// let volume = fanline::LocalBehaviorSubject::new(5);
/// let shown = Rc::new(Cell::new(0));
/// let label = shown.clone();
/// volume.subscribe(move |volume| label.set(*volume)).detach();
/// assert_eq!(shown.get(), 5);
/// volume.update(|volume| volume + 1);
/// assert_eq!((shown.get(), volume.value()), (6, Ok(6)));
/// ```
pub type LocalBehaviorSubject<T, E = Infallible> = UnsyncSubject<T, E, Current>;

/// A subject for one thread that emits only its last value, when it completes, to current and later
/// subscribers. If it fails, it emits no value, only the error.
///
/// ```
/// use std::{cell::Cell, rc::Rc};
///
/// let answer = fanline::LocalAsyncSubject::new();
/// answer.next(41);
/// answer.next(42);
/// answer.complete();
/// let seen = Rc::new(Cell::new(0));
/// let sink = seen.clone();
/// answer.subscribe(move |answer| sink.set(*answer)).detach();
/// assert_eq!(seen.get(), 42);
/// ```
pub type LocalAsyncSubject<T, E = Infallible> = UnsyncSubject<T, E, Last>;

/// A subject for one thread that retains values for late subscribers; [`Replay`] chooses which.
///
/// ```
/// use fanline::{LocalReplaySubject, Replay};
/// use std::rc::Rc;
///
/// let lines = LocalReplaySubject::new(Replay::many(2));
/// for line in ["one", "two", "three"] {
///     lines.next(Rc::<str>::from(line)); // the values need not be `Send`
/// }
/// assert_eq!(lines.snapshot(), ["two".into(), "three".into()]);
/// ```
pub type LocalReplaySubject<T, E = Infallible> = UnsyncSubject<T, E, AnyReplay>;

/// The subject behind the handles, with any policy.
pub trait EmitLocal<T, E> {
    fn next(&self, value: T);
    fn next_slice(&self, values: &[T])
    where
        T: Clone;
    fn end(&self, end: End<E>);
    fn dispose(&self);
    fn end_so_far(&self) -> Option<End<E>>;
    fn set_on_panic(&self, on_panic: OnPanic);
    fn observer_count(&self) -> usize;
    fn subscribe(&self, observer: Boxed<T, E>) -> Guard;
    fn visit(&self, visit: &mut dyn FnMut(&[T]));
    fn visit_latest(&self, visit: &mut dyn FnMut(&T));
    fn trim(&self);
}

impl<T, E, P: Rules> EmitLocal<T, E> for Local<T, E, P> {
    #[inline]
    fn next(&self, value: T) {
        Local::next(self, value);
    }

    fn next_slice(&self, values: &[T])
    where
        T: Clone,
    {
        Local::next_slice(self, values);
    }

    fn end(&self, end: End<E>) {
        Local::end(self, end);
    }

    fn dispose(&self) {
        Local::dispose(self);
    }

    fn end_so_far(&self) -> Option<End<E>> {
        Local::end_so_far(self)
    }

    fn set_on_panic(&self, on_panic: OnPanic) {
        Local::set_on_panic(self, on_panic);
    }

    fn observer_count(&self) -> usize {
        Local::observer_count(self)
    }

    fn subscribe(&self, observer: Boxed<T, E>) -> Guard {
        Local::subscribe(self, observer)
    }

    fn visit(&self, visit: &mut dyn FnMut(&[T])) {
        Local::visit(self, visit);
    }

    fn visit_latest(&self, visit: &mut dyn FnMut(&T)) {
        Local::visit_latest(self, visit);
    }

    fn trim(&self) {
        Local::trim(self);
    }
}

impl<T: 'static, E: 'static, P: Flavor> UnsyncSubject<T, E, P> {
    /// Chooses what happens when an observer panics, for all handles of the subject.
    #[must_use]
    pub fn on_observer_panic(self, on_panic: OnPanic) -> Self {
        self.inner.set_on_panic(on_panic);
        self
    }

    /// Emits a value to all observers. If an observer calls this, the value is emitted after the current one.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the value.
    #[inline]
    pub fn next(&self, value: T) {
        self.inner.next(value);
    }

    /// Emits several values: each observer receives all of them, with one call, before the next observer
    /// does. If the values are queued during another emission, they are emitted one by one.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the values.
    pub fn next_slice(&self, values: &[T])
    where
        T: Clone,
    {
        self.inner.next_slice(values);
    }

    /// Completes the subject.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have been called.
    pub fn complete(&self) {
        self.inner.end(End::Completed);
    }

    /// Ends the subject with an error.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have been called.
    pub fn error(&self, error: E) {
        self.inner.end(End::Failed(Arc::new(error)));
    }

    /// Ends the subject at once, without notifying observers. Observers and retained values are dropped, after
    /// the call in progress if there is one. Later subscribers receive nothing.
    pub fn dispose(&self) {
        self.inner.dispose();
    }

    /// Calls `next` with each value; ignores errors and completion. Retained values are delivered before this
    /// returns.
    pub fn subscribe(&self, next: impl FnMut(&T) + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer. The guard may move to another thread. If it is dropped there, the observer is
    /// removed before the next emission. On another thread, `is_closed` of the guard returns `false` even if
    /// the observer has closed itself.
    pub fn subscribe_with(&self, observer: impl Observer<T, E> + 'static) -> Guard {
        self.inner.subscribe(Boxed::new(observer))
    }

    /// Returns whether the subject has observers. `false` after the subject has ended.
    pub fn has_observers(&self) -> bool {
        self.observer_count() > 0
    }

    /// Returns the number of observers. 0 after the subject has ended.
    pub fn observer_count(&self) -> usize {
        self.inner.observer_count()
    }

    /// Returns whether the subject has completed, failed, or been disposed of.
    pub fn has_ended(&self) -> bool {
        self.end().is_some()
    }

    /// Returns how the subject ended; `None` while it has not.
    pub fn end(&self) -> Option<End<E>> {
        self.inner.end_so_far()
    }

    /// Returns the values that a late subscriber would receive now.
    pub fn snapshot(&self) -> Vec<T>
    where
        T: Clone,
    {
        let mut values = Vec::new();
        self.inner
            .visit(&mut |retained| values.extend_from_slice(retained));
        values
    }

    /// Returns a clone of the last value that a late subscriber would receive now; `None` if there is none.
    pub fn latest(&self) -> Option<T>
    where
        T: Clone,
    {
        self.with_latest(T::clone)
    }

    /// Calls `read` with the value that [`latest`](Self::latest) clones, and returns the result. Values that
    /// `read` emits are emitted afterward.
    pub fn with_latest<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        let mut read = Some(read);
        let mut result = None;
        self.inner
            .visit_latest(&mut |value| result = read.take().map(|read| read(value)));
        result
    }

    /// Removes retained values that are too old. Useful only for a time window that has no emissions and no
    /// new subscribers for long, because both remove such values anyway.
    pub fn trim(&self) {
        self.inner.trim();
    }
}

impl<T: 'static> LocalSubject<T> {
    /// Creates a subject that cannot fail.
    pub fn new() -> Self {
        Self::with_error()
    }
}

impl<T: 'static, E: 'static> LocalSubject<T, E> {
    /// Creates a subject that can fail with `E`.
    pub fn with_error() -> Self {
        Self {
            inner: Local::new(Publish),
        }
    }
}

impl<T: 'static, E: 'static> Default for LocalSubject<T, E> {
    fn default() -> Self {
        Self::with_error()
    }
}

impl<T: 'static> LocalBehaviorSubject<T> {
    /// Creates a subject that cannot fail, with its first value.
    pub fn new(initial: T) -> Self {
        Self::with_error(initial)
    }
}

impl<T: 'static, E: 'static> LocalBehaviorSubject<T, E> {
    /// Creates a subject that can fail with `E`, with its first value.
    pub fn with_error(initial: T) -> Self {
        let inner = Local::new(Current);
        inner.next(initial);
        Self { inner }
    }

    /// Returns the current value; after completion, the last one.
    ///
    /// # Errors
    ///
    /// The error, if the subject has failed, or [`NoValue::Disposed`].
    pub fn value(&self) -> Result<T, NoValue<E>>
    where
        T: Clone,
    {
        self.with_value(T::clone)
    }

    /// Calls `read` with the current value, without cloning it, and returns the result. After completion, the
    /// current value is the last one. Values that `read` emits are emitted afterward.
    ///
    /// # Errors
    ///
    /// The error, if the subject has failed, or [`NoValue::Disposed`].
    pub fn with_value<R>(&self, read: impl FnOnce(&T) -> R) -> Result<R, NoValue<E>> {
        match self.end() {
            Some(End::Failed(error)) => Err(NoValue::Failed(error)),
            Some(End::Disposed) => Err(NoValue::Disposed),
            None | Some(End::Completed) => {
                let mut result = None;
                self.inner.visit_last(|last| result = Some(read(last)));
                result.ok_or(NoValue::Disposed)
            }
        }
    }

    /// Emits the value that `change` computes from the current one. If an emission is in progress, `change` is
    /// called after it. After the subject has ended, nothing happens.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the value. If `change` panics, nothing is
    /// emitted, and the panic is treated as one of an observer; see [`OnPanic`].
    pub fn update(&self, change: impl FnOnce(&T) -> T + 'static) {
        self.inner.update(change);
    }
}

impl<T: 'static> LocalAsyncSubject<T> {
    /// Creates a subject that cannot fail.
    pub fn new() -> Self {
        Self::with_error()
    }
}

impl<T: 'static, E: 'static> LocalAsyncSubject<T, E> {
    /// Creates a subject that can fail with `E`.
    pub fn with_error() -> Self {
        Self {
            inner: Local::new(Last),
        }
    }
}

impl<T: 'static, E: 'static> Default for LocalAsyncSubject<T, E> {
    fn default() -> Self {
        Self::with_error()
    }
}

impl<T: 'static> LocalReplaySubject<T> {
    /// Creates a subject that cannot fail.
    pub fn new(replay: Replay<impl Policy>) -> Self {
        Self::with_error(replay)
    }
}

impl<T: 'static, E: 'static> LocalReplaySubject<T, E> {
    /// Creates a subject that can fail with `E`.
    pub fn with_error(replay: Replay<impl Policy>) -> Self {
        Self {
            inner: Local::new(replay.flavor),
        }
    }
}

impl<T: 'static, E: 'static, P: Flavor> Clone for UnsyncSubject<T, E, P> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<T: 'static, E: 'static, P: Flavor> fmt::Debug for UnsyncSubject<T, E, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(&format!("Local{}", P::NAME))
            .field("observer_count", &self.observer_count())
            .field("has_ended", &self.has_ended())
            .finish()
    }
}

impl<T: 'static, E: 'static, P: Flavor> IntoObservable for UnsyncSubject<T, E, P> {
    type Item = T;
    type Error = E;
    type Observable = FromLocal<T, E, P>;

    fn into_observable(self) -> FromLocal<T, E, P> {
        FromLocal { subject: self }
    }
}

/// An [`UnsyncSubject`] at the head of a chain of operators.
pub struct FromLocal<T: 'static, E: 'static = Infallible, P: Flavor = Publish> {
    subject: UnsyncSubject<T, E, P>,
}

impl<T: 'static, E: 'static, P: Flavor> Clone for FromLocal<T, E, P> {
    fn clone(&self) -> Self {
        Self {
            subject: self.subject.clone(),
        }
    }
}

impl<T: 'static, E: 'static, P: Flavor> fmt::Debug for FromLocal<T, E, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject.fmt(f)
    }
}

impl<T: 'static, E: 'static, P: Flavor> Observable for FromLocal<T, E, P> {
    type Item = T;
    type Error = E;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<T, E> + Send + 'static,
    {
        self.subject.subscribe_with(observer)
    }
}
