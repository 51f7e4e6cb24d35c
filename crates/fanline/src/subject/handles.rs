//! Shared subjects: the classic ones, which emit by reference on any thread.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

use super::end::End;
use super::list::Boxed;
use super::local::{EmitLocal, Local};
use super::policy::{Current, Last, Policy, Publish, Replay, Rules};
use super::producer::OnPanic;
use super::shared::Shared;
use super::source::{FromSource, Live, Source};
use crate::{Guard, IntoObservable, Observer, observer};

/// A subject that emits by reference, for any number of threads: Rx's classic subject. `P` is the
/// [flavor](Flavor), for which there are short names:
///
/// | | late subscribers receive |
/// | --- | --- |
/// | [`Subject`] | only later values |
/// | [`BehaviorSubject`] | the current value |
/// | [`AsyncSubject`] | the last value, after completion |
/// | [`ReplaySubject`] | the values that a [`Replay`] retains |
///
/// A handle: clones refer to the same subject. When the last one is dropped before the subject has completed
/// or failed, the subject is disposed of.
///
/// An emission takes one atomic read-modify-write, or two for a while after contention. A value emitted
/// during another emission, by another thread or by an observer, is queued. The thread that is emitting emits
/// it next. So all observers see the values in the same order, and no thread waits. `next` may therefore
/// return before its value has reached any observer, and may also emit values of other threads. After the
/// subject has ended, emissions have no effect.
///
/// An observer that panics is removed, and no other observer misses a value; see [`OnPanic`].
///
/// ```
/// use fanline::SharedSubject;
/// use fanline::policy::Flavor;
///
/// fn emit_twice<P: Flavor>(s: &SharedSubject<u32, std::convert::Infallible, P>) {
///     s.next_slice(&[1, 2]);
/// }
///
/// let s = fanline::Subject::new();
/// emit_twice(&s);
/// emit_twice(&fanline::BehaviorSubject::new(0));
/// ```
pub struct SharedSubject<T, E = Infallible, P = Publish>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Flavor,
{
    inner: Arc<P::Inner<T, E>>,
}

/// A subject that retains nothing: subscribers receive only later values. If the subject has completed or
/// failed, they receive only the completion or the error.
///
/// ```
/// let s = fanline::Subject::<u32>::new();
/// let echo = s.clone();
/// s.subscribe(move |value| {
///     if *value < 3 {
///         echo.next(value + 1);
///     }
/// })
/// .detach();
/// s.next(1); // the observer sees 1, 2, 3
/// s.complete();
/// assert!(!s.has_observers());
/// ```
pub type Subject<T, E = Infallible> = SharedSubject<T, E, Publish>;

/// A subject with a current value, which each subscriber receives first.
///
/// After the subject has completed or failed, a late subscriber receives only the completion or the error.
/// After completion, [`value`](BehaviorSubject::value) still returns the last value.
///
/// ```
/// let s = fanline::BehaviorSubject::new(0);
/// s.next(1);
/// s.subscribe(|value| assert_eq!(*value, 1)).detach();
/// assert_eq!(s.value(), Ok(1));
/// ```
pub type BehaviorSubject<T, E = Infallible> = SharedSubject<T, E, Current>;

/// A subject that emits only its last value, when it completes, to current and later subscribers. If it
/// fails, it emits no value, only the error.
///
/// ```
/// let s = fanline::AsyncSubject::new();
/// s.next(1);
/// s.next(2);
/// s.complete();
/// s.subscribe(|value| assert_eq!(*value, 2)).detach();
/// ```
pub type AsyncSubject<T, E = Infallible> = SharedSubject<T, E, Last>;

/// A subject that retains values for late subscribers; [`Replay`] chooses which. All replay subjects of the
/// same values and errors have the same type.
///
/// ```
/// use fanline::{Replay, ReplaySubject};
///
/// let s = ReplaySubject::new(Replay::all());
/// s.next(1);
/// s.next(2);
/// assert_eq!(s.snapshot(), [1, 2]);
/// ```
pub type ReplaySubject<T, E = Infallible> = SharedSubject<T, E, AnyReplay>;

/// The flavor of a [`SharedSubject`] or an [`UnsyncSubject`](crate::UnsyncSubject): [`Publish`], [`Current`], [`Last`], or [`AnyReplay`].
///
/// This trait is sealed: only these types implement it. Use it as the bound of a function that takes any
/// such subject.
pub trait Flavor: sealed::Sealed + 'static {
    /// The subject behind the handles.
    #[doc(hidden)]
    type Inner<T, E>: Emit<T, E> + ?Sized
    where
        T: Send + Sync + 'static,
        E: Send + Sync + 'static;

    /// The subject behind the handles of one thread.
    #[doc(hidden)]
    type Local<T: 'static, E: 'static>: EmitLocal<T, E> + ?Sized;

    /// The name in `Debug`.
    #[doc(hidden)]
    const NAME: &'static str;
}

/// The flavor of a [`ReplaySubject`] or a [`LocalReplaySubject`](crate::LocalReplaySubject): any [`Replay`], chosen at the creation of the subject.
#[derive(Clone, Copy, Debug)]
pub struct AnyReplay;

mod sealed {
    /// Seals [`Flavor`](super::Flavor).
    pub trait Sealed {}
    impl Sealed for super::Publish {}
    impl Sealed for super::Current {}
    impl Sealed for super::Last {}
    impl Sealed for super::AnyReplay {}
}

impl Flavor for Publish {
    type Inner<T, E>
        = Shared<T, E, Self>
    where
        T: Send + Sync + 'static,
        E: Send + Sync + 'static;

    type Local<T: 'static, E: 'static> = Local<T, E, Self>;

    const NAME: &'static str = "Subject";
}

impl Flavor for Current {
    type Inner<T, E>
        = Shared<T, E, Self>
    where
        T: Send + Sync + 'static,
        E: Send + Sync + 'static;

    type Local<T: 'static, E: 'static> = Local<T, E, Self>;

    const NAME: &'static str = "BehaviorSubject";
}

impl Flavor for Last {
    type Inner<T, E>
        = Shared<T, E, Self>
    where
        T: Send + Sync + 'static,
        E: Send + Sync + 'static;

    type Local<T: 'static, E: 'static> = Local<T, E, Self>;

    const NAME: &'static str = "AsyncSubject";
}

impl Flavor for AnyReplay {
    type Inner<T, E>
        = dyn Emit<T, E>
    where
        T: Send + Sync + 'static,
        E: Send + Sync + 'static;

    type Local<T: 'static, E: 'static> = dyn EmitLocal<T, E>;

    const NAME: &'static str = "ReplaySubject";
}

/// The subject behind the handles, with any policy.
pub trait Emit<T, E>: Send + Sync {
    fn next(&self, value: T);
    fn next_slice(&self, values: &[T])
    where
        T: Clone;
    fn end(&self, end: End<E>);
    fn dispose(&self);
    fn has_ended(&self) -> bool;
    fn set_on_panic(&self, on_panic: OnPanic);
    fn observer_count(&self) -> usize;
    fn is_reachable(&self) -> bool;
    fn subscribe(&self, observer: Boxed<T, E>) -> Guard;
    fn live(&self) -> Arc<dyn Live<T, E, Boxed<T, E>>>;
}

impl<T, E, P> Emit<T, E> for Shared<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Rules,
{
    #[inline]
    fn next(&self, value: T) {
        Shared::next(self, value);
    }

    fn next_slice(&self, values: &[T])
    where
        T: Clone,
    {
        Shared::next_slice(self, values);
    }

    fn end(&self, end: End<E>) {
        Shared::end(self, end);
    }

    fn dispose(&self) {
        self.core().dispose();
    }

    fn has_ended(&self) -> bool {
        self.core().has_ended()
    }

    fn set_on_panic(&self, on_panic: OnPanic) {
        Shared::set_on_panic(self, on_panic);
    }

    fn observer_count(&self) -> usize {
        self.core().observer_count()
    }

    fn is_reachable(&self) -> bool {
        Shared::is_reachable(self)
    }

    fn subscribe(&self, observer: Boxed<T, E>) -> Guard {
        self.core().subscribe(observer)
    }

    fn live(&self) -> Arc<dyn Live<T, E, Boxed<T, E>>> {
        Shared::live(self)
    }
}

impl<T, E, P> SharedSubject<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Flavor,
{
    /// Emits a value to all observers.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the value.
    #[inline]
    pub fn next(&self, value: T) {
        self.inner.next(value);
    }

    /// Emits several values: each observer receives all of them, with one call, before the next
    /// observer does. If the values are queued during another emission, they are emitted one by one.
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

    /// Ends the subject at once, without notifying observers. Observers and retained values are
    /// dropped. Observers that have not yet received the current value do not receive it. Later
    /// subscribers receive nothing.
    pub fn dispose(&self) {
        self.inner.dispose();
    }

    /// Returns the subscriber's half of the subject.
    pub fn source(&self) -> Source<T, E> {
        Source::new(self.inner.live())
    }

    /// Calls `next` with each value; see [`Source::subscribe`].
    pub fn subscribe(&self, next: impl FnMut(&T) + Send + 'static) -> Guard {
        self.subscribe_with(observer(next))
    }

    /// Subscribes an observer; see [`Source::subscribe_with`].
    pub fn subscribe_with(&self, observer: impl Observer<T, E> + Send + 'static) -> Guard {
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

    /// Returns whether an emission can reach an observer, now or later. This is the case if the
    /// subject has observers, or if a [source](Self::source) or a chain of operators on a source
    /// exists. Handles do not count. The result is a hint, because it may change at any time.
    ///
    /// ```
    /// let s = fanline::Subject::<u32>::new();
    /// assert!(!s.is_reachable());
    /// let source = s.source();
    /// assert!(s.is_reachable());
    /// let guard = source.subscribe(|_| ());
    /// drop(source);
    /// assert!(s.is_reachable());
    /// drop(guard);
    /// assert!(!s.is_reachable());
    /// ```
    pub fn is_reachable(&self) -> bool {
        self.inner.is_reachable()
    }

    /// Returns whether the subject has completed, failed, or been disposed of.
    pub fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }

    /// Chooses what happens when an observer panics, for all handles of the subject.
    ///
    /// ```
    /// use fanline::{OnPanic, Subject};
    ///
    /// let s = Subject::<u32>::new().on_observer_panic(OnPanic::Ignore);
    /// s.subscribe(|_| panic!("reported, and no more")).detach();
    /// # std::panic::set_hook(Box::new(|_| ()));
    /// s.next(1);
    /// assert!(!s.has_observers());
    /// ```
    #[must_use]
    pub fn on_observer_panic(self, on_panic: OnPanic) -> Self {
        self.inner.set_on_panic(on_panic);
        self
    }

    /// Returns the values that a late subscriber would receive now; see [`Source::snapshot`].
    pub fn snapshot(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.source().snapshot()
    }
}

impl<T, E, P> Clone for SharedSubject<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Flavor,
{
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<T, E, P> fmt::Debug for SharedSubject<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Flavor,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(P::NAME)
            .field("observer_count", &self.observer_count())
            .field("has_ended", &self.has_ended())
            .finish()
    }
}

impl<T, E, P> IntoObservable for SharedSubject<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Flavor,
{
    type Item = T;
    type Error = E;
    type Observable = FromSource<T, E>;

    fn into_observable(self) -> FromSource<T, E> {
        self.source().into_observable()
    }
}

impl<T: Send + Sync + 'static> Subject<T> {
    /// Creates a subject that cannot fail.
    pub fn new() -> Self {
        Self::with_error()
    }
}

impl<T, E> Subject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Creates a subject that can fail with `E`: `Subject::<u32, String>::with_error()`.
    pub fn with_error() -> Self {
        Self {
            inner: Arc::new(Shared::new(Publish)),
        }
    }
}

impl<T, E> Default for Subject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn default() -> Self {
        Self::with_error()
    }
}

impl<T: Send + Sync + 'static> BehaviorSubject<T> {
    /// Creates a subject that cannot fail, with its first value.
    pub fn new(initial: T) -> Self {
        Self::with_error(initial)
    }
}

impl<T, E> BehaviorSubject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Creates a subject that can fail with `E`, with its first value.
    pub fn with_error(initial: T) -> Self {
        let inner = Shared::new(Current);
        inner.next(initial);
        Self {
            inner: Arc::new(inner),
        }
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
    /// current value is the last one. Emission continues meanwhile, and the value stays until `read` returns.
    ///
    /// ```
    /// let name = fanline::BehaviorSubject::new("Ada".to_owned());
    /// assert_eq!(name.with_value(|name| name.len()), Ok(3));
    /// ```
    ///
    /// # Errors
    ///
    /// The error, if the subject has failed, or [`NoValue::Disposed`].
    pub fn with_value<R>(&self, read: impl FnOnce(&T) -> R) -> Result<R, NoValue<E>> {
        match self.inner.core().end_so_far() {
            Some(End::Failed(error)) => Err(NoValue::Failed(error)),
            Some(End::Disposed) => Err(NoValue::Disposed),
            None | Some(End::Completed) => {
                let mut result = None;
                self.inner
                    .core()
                    .visit_last(|last| result = Some(read(last)));
                result.ok_or(NoValue::Disposed)
            }
        }
    }

    /// Emits the value that `change` computes from the current one. No other emission comes between, so
    /// concurrent updates are all applied.
    ///
    /// If another emission is in progress, the update is queued, and the emitting thread calls `change`. After
    /// the subject has ended, nothing happens.
    ///
    /// ```
    /// let hits = fanline::BehaviorSubject::new(0);
    /// std::thread::scope(|scope| {
    ///     for _ in 0..2 {
    ///         scope.spawn(|| (0..100).for_each(|_| hits.update(|hits| hits + 1)));
    ///     }
    /// });
    /// assert_eq!(hits.value(), Ok(200));
    /// ```
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the value. If `change` panics, nothing is
    /// emitted, and the panic is treated as one of an observer; see [`OnPanic`].
    pub fn update(&self, change: impl FnOnce(&T) -> T + Send + 'static) {
        self.inner.update(change);
    }
}

/// The reason why a [`BehaviorSubject`] or a [`LocalBehaviorSubject`](crate::LocalBehaviorSubject) has no
/// value.
///
/// ```
/// use fanline::{BehaviorSubject, NoValue};
///
/// let level = BehaviorSubject::<u32, &str>::with_error(5);
/// level.error("sensor lost");
/// match level.value() {
///     Err(NoValue::Failed(error)) => assert_eq!(*error, "sensor lost"),
///     other => unreachable!("{other:?}"),
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum NoValue<E> {
    /// The subject has failed with this error.
    Failed(Arc<E>),
    /// The subject was disposed of.
    Disposed,
}

impl<E: PartialEq> PartialEq for NoValue<E> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failed(one), Self::Failed(other)) => one == other,
            (Self::Disposed, Self::Disposed) => true,
            _ => false,
        }
    }
}

impl<E: fmt::Display> fmt::Display for NoValue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "the subject has failed: {error}"),
            Self::Disposed => f.write_str("the subject was disposed of"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for NoValue<E> {}

impl<T: Send + Sync + 'static> AsyncSubject<T> {
    /// Creates a subject that cannot fail.
    pub fn new() -> Self {
        Self::with_error()
    }
}

impl<T, E> AsyncSubject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Creates a subject that can fail with `E`.
    pub fn with_error() -> Self {
        Self {
            inner: Arc::new(Shared::new(Last)),
        }
    }
}

impl<T: Send + Sync + 'static> ReplaySubject<T> {
    /// Creates a subject that cannot fail.
    pub fn new(replay: Replay<impl Policy>) -> Self {
        Self::with_error(replay)
    }
}

impl<T, E> ReplaySubject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Creates a subject that can fail with `E`.
    pub fn with_error(replay: Replay<impl Policy>) -> Self {
        Self {
            inner: Arc::new(Shared::new(replay.flavor)),
        }
    }

    /// Removes retained values that are too old; see [`Source::trim`].
    pub fn trim(&self) {
        self.source().trim();
    }
}

impl<T, E> Default for AsyncSubject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn default() -> Self {
        Self::with_error()
    }
}
