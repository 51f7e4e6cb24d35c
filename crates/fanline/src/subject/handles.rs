//! The shared form: the classic subjects, emitted from by reference, on any thread.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use super::core::End;
use super::list::Boxed;
use super::policy::{Current, Last, Policy, Publish, Replay, Rules};
use super::producer::OnPanic;
use super::shared::Shared;
use super::source::{FromSource, Live, Source};
use crate::{Guard, IntoObservable, Observer, observer};

/// A shared subject, whatever it retains.
trait Emit<T, E>: Send + Sync {
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

/// What all shared subjects can do; the types differ in what they retain.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        ///
        /// A handle: clones are the same subject, and when the last is dropped before the end the
        /// subject is disposed of. Emission takes one atomic read-modify-write; two for a while after
        /// threads were in each other's way. A value emitted from another thread, or by an observer,
        /// while one is being emitted is queued and passed on by whoever emits, after that one: all
        /// observers see the same order, and nobody waits. So `next` may return before its value has
        /// reached anybody, and may also pass on values of others. After the end nothing happens.
        ///
        /// An observer that panics is removed and costs nobody else a value; see [`OnPanic`].
        pub struct $name<T, E = Infallible>
        where
            T: Send + Sync + 'static,
            E: Send + Sync + 'static,
        {
            inner: Arc<$inner>,
        }

        impl<T, E> $name<T, E>
        where
            T: Send + Sync + 'static,
            E: Send + Sync + 'static,
        {
            /// Passes a value on to everybody who is subscribed.
            ///
            /// # Panics
            ///
            /// When an observer did, after everybody else has got the value.
            #[inline]
            pub fn next(&self, value: T) {
                self.inner.next(value);
            }

            /// Passes on values in one go: each observer gets all of them before the next observer
            /// does, at the cost of one call. Queued because something is being emitted, they are
            /// passed on one by one.
            ///
            /// # Panics
            ///
            /// When an observer did, after everybody else has got the values.
            pub fn next_slice(&self, values: &[T])
            where
                T: Clone,
            {
                self.inner.next_slice(values);
            }

            /// Ends the subject well.
            ///
            /// # Panics
            ///
            /// When an observer did, after everybody else has been told.
            pub fn complete(&self) {
                self.inner.end(End::Completed);
            }

            /// Ends the subject with a failure.
            ///
            /// # Panics
            ///
            /// When an observer did, after everybody else has been told.
            pub fn error(&self, error: E) {
                self.inner.end(End::Failed(Arc::new(error)));
            }

            /// Ends the subject without a word and at once: observers and retained values are dropped,
            /// those not yet called for the value that is being emitted are not called any more, and
            /// who subscribes later gets nothing.
            pub fn dispose(&self) {
                self.inner.dispose();
            }

            /// The subject as those see it who only subscribe.
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

            /// Whether anybody is subscribed. False after the end.
            pub fn has_observers(&self) -> bool {
                self.observer_count() > 0
            }

            /// How many are subscribed. None after the end.
            pub fn observer_count(&self) -> usize {
                self.inner.observer_count()
            }

            /// Whether what is emitted can reach anybody, now or later: somebody is subscribed, or holds
            /// a [source](Self::source), or a chain that begins with one, where observers may subscribe.
            /// Handles do not count. A hint, as others may come and go meanwhile.
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

            /// Whether the subject has completed, failed or been disposed.
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

            /// What a late subscriber would be given now; see [`Source::snapshot`].
            pub fn snapshot(&self) -> Vec<T>
            where
                T: Clone,
            {
                self.source().snapshot()
            }
        }

        impl<T, E> Clone for $name<T, E>
        where
            T: Send + Sync + 'static,
            E: Send + Sync + 'static,
        {
            fn clone(&self) -> Self {
                Self {
                    inner: self.inner.clone(),
                }
            }
        }

        impl<T, E> fmt::Debug for $name<T, E>
        where
            T: Send + Sync + 'static,
            E: Send + Sync + 'static,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("observer_count", &self.observer_count())
                    .field("has_ended", &self.has_ended())
                    .finish()
            }
        }

        impl<T, E> IntoObservable for $name<T, E>
        where
            T: Send + Sync + 'static,
            E: Send + Sync + 'static,
        {
            type Item = T;
            type Error = E;
            type Observable = FromSource<T, E>;

            fn into_observable(self) -> FromSource<T, E> {
                self.source().into_observable()
            }
        }
    };
}

handle! {
    /// A subject that retains nothing: whoever subscribes gets what comes after, and after the end the
    /// end alone.
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
    Subject, Shared<T, E, Publish>
}

handle! {
    /// A subject with a current value, which whoever subscribes gets first.
    ///
    /// After the end late comers get the end alone; [`value`](BehaviorSubject::value) stays.
    ///
    /// ```
    /// let s = fanline::BehaviorSubject::new(0);
    /// s.next(1);
    /// s.subscribe(|value| assert_eq!(*value, 1)).detach();
    /// assert_eq!(s.value(), Ok(1));
    /// ```
    BehaviorSubject, Shared<T, E, Current>
}

handle! {
    /// A subject that passes on its last value when it completes, to those present and to those who
    /// come later; nothing else. When it fails there is no value, only the error.
    ///
    /// ```
    /// let s = fanline::AsyncSubject::new();
    /// s.next(1);
    /// s.next(2);
    /// s.complete();
    /// s.subscribe(|value| assert_eq!(*value, 2)).detach();
    /// ```
    AsyncSubject, Shared<T, E, Last>
}

handle! {
    /// A subject that retains values for those who subscribe late; see [`Replay`] for which.
    ///
    /// ```
    /// use fanline::{Replay, ReplaySubject};
    ///
    /// let s = ReplaySubject::new(Replay::all());
    /// s.next(1);
    /// s.next(2);
    /// assert_eq!(s.snapshot(), [1, 2]);
    /// ```
    ReplaySubject, dyn Emit<T, E>
}

impl<T: Send + Sync + 'static> Subject<T> {
    /// A subject that does not fail.
    pub fn new() -> Self {
        Self::with_error()
    }
}

impl<T, E> Subject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// A subject that can fail with `E`: `Subject::<u32, String>::with_error()`.
    pub fn with_error() -> Self {
        Self {
            inner: Arc::new(Shared::new(Publish)),
        }
    }
}

impl<T: Send + Sync + 'static> BehaviorSubject<T> {
    /// A subject that does not fail, and its first value.
    pub fn new(initial: T) -> Self {
        Self::with_error(initial)
    }
}

impl<T, E> BehaviorSubject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// A subject that can fail with `E`, and its first value.
    pub fn with_error(initial: T) -> Self {
        let inner = Shared::new(Current);
        inner.next(initial);
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The current value; after completion, the last one.
    ///
    /// # Errors
    ///
    /// The failure, once the subject has failed, or that it was disposed of.
    pub fn value(&self) -> Result<T, NoValue<E>>
    where
        T: Clone,
    {
        match self.inner.core().end_so_far() {
            Some(End::Failed(error)) => Err(NoValue::Failed(error)),
            Some(End::Disposed) => Err(NoValue::Disposed),
            None | Some(End::Completed) => {
                let mut value = None;
                self.inner
                    .core()
                    .visit_last(|last| value = Some(last.clone()));
                value.ok_or(NoValue::Disposed)
            }
        }
    }
}

/// Why a [`BehaviorSubject`] has no value.
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
    /// It has failed with this.
    Failed(Arc<E>),
    /// It was disposed of.
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

impl<E: fmt::Debug + fmt::Display> std::error::Error for NoValue<E> {}

impl<T: Send + Sync + 'static> AsyncSubject<T> {
    /// A subject that does not fail.
    pub fn new() -> Self {
        Self::with_error()
    }
}

impl<T, E> AsyncSubject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// A subject that can fail with `E`.
    pub fn with_error() -> Self {
        Self {
            inner: Arc::new(Shared::new(Last)),
        }
    }
}

impl<T: Send + Sync + 'static> ReplaySubject<T> {
    /// A subject that does not fail.
    pub fn new(replay: Replay<impl Policy>) -> Self {
        Self::with_error(replay)
    }
}

impl<T, E> ReplaySubject<T, E>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// A subject that can fail with `E`.
    pub fn with_error(replay: Replay<impl Policy>) -> Self {
        Self {
            inner: Arc::new(Shared::new(replay.flavour)),
        }
    }

    /// Lets go of retained values that are too old by now; see [`Source::trim`].
    pub fn trim(&self) {
        self.source().trim();
    }
}

macro_rules! default {
    ($($name:ident),*) => {
        $(
            impl<T, E> Default for $name<T, E>
            where
                T: Send + Sync + 'static,
                E: Send + Sync + 'static,
            {
                fn default() -> Self {
                    Self::with_error()
                }
            }
        )*
    };
}

default!(Subject, AsyncSubject);
