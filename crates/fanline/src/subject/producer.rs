//! The exclusive form: one [`Producer`] that emits, and sources to subscribe to.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

use super::core::Core;
use super::end::End;
use super::list::{Boxed, Entry, Inline};
use super::owner::Owner;
use super::policy::{Current, Last, Policy, Publish, Replay};
use super::source::{Members, Source};
use crate::Observer;
use crate::fence::Fences;
use crate::unwind::{self, Panic};

/// Creates a plain subject. It retains nothing: subscribers receive the values that follow.
///
/// ```
/// let (mut tx, source) = fanline::subject::<u32>();
/// let guard = source.subscribe(|value: &u32| println!("{value}"));
/// tx.next(1);
/// tx.next_slice(&[2, 3]);
/// tx.complete();
/// assert!(guard.is_closed());
/// ```
pub fn subject<T: Send + Sync + 'static>() -> (Producer<T>, Source<T>) {
    subject_with_error()
}

/// Creates a plain subject that can fail with `E`.
pub fn subject_with_error<T, E>() -> (Producer<T, E>, Source<T, E>)
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    Producer::with_policy(Publish)
}

/// Creates a subject that retains values for late subscribers; [`Replay`] chooses which. If the producer's
/// type must be named, use [`Producer::retaining`].
///
/// ```
/// use fanline::Replay;
///
/// let (mut tx, source) = fanline::replay::<u32>(Replay::many(2));
/// tx.next_slice(&[1, 2, 3]);
/// source.subscribe(|value| assert!([2, 3, 4].contains(value))).detach();
/// tx.next(4);
/// ```
pub fn replay<T: Send + Sync + 'static>(
    replay: Replay<impl Policy>,
) -> (Producer<T, Infallible, impl Policy>, Source<T>) {
    Producer::retaining(replay)
}

/// Creates a replay subject that can fail with `E`.
pub fn replay_with_error<T, E>(
    replay: Replay<impl Policy>,
) -> (Producer<T, E, impl Policy>, Source<T, E>)
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    Producer::retaining(replay)
}

/// Creates a subject with a current value, which each subscriber receives first. After completion or failure,
/// a late subscriber receives only the completion or the error.
///
/// ```
/// let (mut tx, level) = fanline::behavior(5);
/// tx.next(7);
/// level.subscribe(|level| assert_eq!(*level, 7)).detach();
/// assert_eq!(level.snapshot(), [7]);
/// ```
pub fn behavior<T>(initial: T) -> (Producer<T, Infallible, Current>, Source<T>)
where
    T: Send + Sync + 'static,
{
    behavior_with_error(initial)
}

/// Creates a subject with a current value that can fail with `E`.
pub fn behavior_with_error<T, E>(initial: T) -> (Producer<T, E, Current>, Source<T, E>)
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    let (mut producer, source) = Producer::with_policy(Current);
    producer.next(initial);
    (producer, source)
}

/// Creates a subject that emits only its last value, when it completes, to current and later subscribers.
///
/// ```
/// let (mut tx, answer) = fanline::last_value::<u32>();
/// answer.subscribe(|answer| assert_eq!(*answer, 42)).detach();
/// tx.next(41);
/// tx.next(42);
/// tx.complete();
/// ```
pub fn last_value<T>() -> (Producer<T, Infallible, Last>, Source<T>)
where
    T: Send + Sync + 'static,
{
    last_value_with_error()
}

/// Creates a subject that emits its last value when it completes, and can fail with `E`. If it fails, it
/// emits no value.
pub fn last_value_with_error<T, E>() -> (Producer<T, E, Last>, Source<T, E>)
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    Producer::with_policy(Last)
}

/// Creates a plain subject whose observers all have the type `O`. They are called directly instead of
/// through a pointer, and can be inlined. With many observers this is about twice as fast.
///
/// ```
/// use fanline::Observer;
///
/// struct Count(u64);
///
/// impl Observer<u32> for Count {
///     fn next(&mut self, _: &u32) {
///         self.0 += 1;
///     }
///     fn error(&mut self, _: &std::convert::Infallible) {}
///     fn complete(&mut self) {
///         assert_eq!(self.0, 2);
///     }
/// }
///
/// let (mut tx, members) = fanline::subject_of::<u32, Count>();
/// members.subscribe_with(Count(0)).detach();
/// tx.next_slice(&[1, 2]);
/// tx.complete();
/// ```
#[expect(clippy::type_complexity, reason = "named by what it is made of")]
pub fn subject_of<T, O>() -> (
    Producer<T, Infallible, Publish, Inline<O>>,
    Members<T, O, Infallible>,
)
where
    T: Send + Sync + 'static,
    O: Observer<T> + Send + 'static,
{
    let owner = Owner::new(Publish, Fences::detect());
    (Producer::new(owner.clone()), Members::new(owner))
}

/// Creates a replay subject whose observers all have the type `O`; see [`subject_of`].
///
/// ```
/// use fanline::{Replay, Subject};
///
/// // The observers of this source are themselves subjects.
/// let (mut tx, members) = fanline::replay_of::<u32, Subject<u32>>(Replay::one());
/// tx.next(1);
/// let s = Subject::new();
/// s.subscribe(|n| println!("{n}")).detach();
/// members.subscribe_with(s).detach(); // 1
/// tx.next(2); // 2
/// ```
#[expect(clippy::type_complexity, reason = "named by what it is made of")]
pub fn replay_of<T, O>(
    replay: Replay<impl Policy>,
) -> (
    Producer<T, Infallible, impl Policy, Inline<O>>,
    Members<T, O, Infallible>,
)
where
    T: Send + Sync + 'static,
    O: Observer<T> + Send + 'static,
{
    let owner = Owner::new(replay.flavor, Fences::detect());
    (Producer::new(owner.clone()), Members::new(owner))
}

/// The reaction to an observer that panics. In any case the observer is removed, and all others receive the
/// value.
///
/// ```
/// use fanline::OnPanic;
///
/// let (tx, source) = fanline::subject::<u32>();
/// let mut tx = tx.on_observer_panic(OnPanic::Ignore);
/// source.subscribe(|_| panic!("reported, and no more")).detach();
/// # std::panic::set_hook(Box::new(|_| ()));
/// tx.next(1);
/// assert!(!tx.has_observers());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnPanic {
    /// Resumes the panic in the emitting call, after all other observers have received the value.
    #[default]
    Resume,
    /// Continues. The panic hook has reported the panic, by default on standard error.
    Ignore,
    /// Aborts the process.
    Abort,
}

impl OnPanic {
    /// Reacts to a panic.
    pub(super) fn react(self, panic: Option<Panic>) {
        match (panic, self) {
            (None, _) | (Some(_), Self::Ignore) => {}
            (Some(panic), Self::Resume) => unwind::resume_unwind(panic),
            (Some(_), Self::Abort) => unwind::abort(),
        }
    }
}

/// The emitting half of a subject. Each subject has one producer, and emitting takes it by `&mut`. So the
/// compiler guarantees that calls of observers do not overlap, and that an observer does not emit. Therefore
/// emission needs no lock and no atomic read-modify-write.
///
/// Observers are called on the thread that emits, one after the other in the order of their subscription; all
/// observers see the values in the same order. After the last call the value is dropped or retained, as the
/// policy `P` requires. Without observers a plain subject does nothing.
///
/// Ending the subject consumes the producer. Dropping it instead disposes of the subject: observers are
/// dropped without being notified; see [`complete_on_drop`](Producer::complete_on_drop).
///
/// An observer that panics is removed, and no other observer misses a value. Then the panic resumes in the
/// method that emitted; see [`on_observer_panic`](Producer::on_observer_panic).
///
/// ```
/// let (mut tx, source) = fanline::subject::<String>();
/// source.subscribe(|line| println!("{line}")).detach();
/// std::thread::spawn(move || {
///     for line in ["one", "two"] {
///         tx.next(line.to_owned());
///     }
///     tx.complete();
/// })
/// .join()
/// .unwrap();
/// assert!(source.has_ended());
/// ```
pub struct Producer<T, E = Infallible, P = Publish, L = Boxed<T, E>>
where
    P: Policy,
    L: Entry<T, E>,
{
    core: Arc<Core<T, E, P, L>>,
    owner: Arc<Owner<T, E, P, L>>,
    /// Empty between slices; its memory is reused.
    scratch: Vec<T>,
    on_panic: OnPanic,
    on_drop: Option<End<E>>,
}

impl<T, E, P> Producer<T, E, P>
where
    T: Send + Sync + 'static,
    E: Send + Sync + 'static,
    P: Policy,
{
    /// Creates a replay subject whose producer has a type that can be named:
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use fanline::{Producer, Replay, policy::Many};
    ///
    /// struct Feed {
    ///     prices: Producer<f64, Infallible, Many>,
    /// }
    ///
    /// let (prices, source) = Producer::retaining(Replay::many(100));
    /// let mut feed = Feed { prices };
    /// feed.prices.next(1.5);
    /// assert_eq!(source.snapshot(), [1.5]);
    /// ```
    pub fn retaining(replay: Replay<P>) -> (Self, Source<T, E>) {
        Self::with_policy(replay.flavor)
    }

    fn with_policy(policy: P) -> (Self, Source<T, E>) {
        let owner = Owner::new(policy, Fences::detect());
        (Self::new(owner.clone()), Source::new(owner))
    }

    /// Returns a source to subscribe to.
    pub fn source(&self) -> Source<T, E> {
        Source::new(self.owner.clone())
    }
}

impl<T, E, P: Policy, L: Entry<T, E>> Producer<T, E, P, L> {
    fn new(owner: Arc<Owner<T, E, P, L>>) -> Self {
        Self {
            core: owner.core().clone(),
            owner,
            scratch: Vec::new(),
            on_panic: OnPanic::default(),
            on_drop: Some(End::Disposed),
        }
    }

    /// Emits a value to all observers.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the value.
    #[inline(always)]
    pub fn next(&mut self, value: T) {
        let panic = self.core.next(value);
        if panic.is_some() {
            self.on_panic.react(panic);
        }
    }

    /// Emits several values: each observer receives all of them, with one call, before the next observer
    /// does. An observer that is unsubscribed meanwhile receives either all values or none. Values that the
    /// subject retains are cloned.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have received the values. The observer that panicked does
    /// not receive the rest of the values.
    pub fn next_slice(&mut self, values: &[T])
    where
        T: Clone,
    {
        // Taken out of the field, so that a panic during cloning leaves an empty vector there.
        let mut scratch = core::mem::take(&mut self.scratch);
        let panic = self.core.next_slice(values, &mut scratch);
        self.scratch = scratch;
        self.on_panic.react(panic);
    }

    /// Completes the subject.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have been called.
    pub fn complete(self) {
        self.end(End::Completed);
    }

    /// Ends the subject with an error.
    ///
    /// # Panics
    ///
    /// If an observer panicked, after all others have been called.
    pub fn error(self, error: E) {
        self.end(End::Failed(Arc::new(error)));
    }

    fn end(mut self, end: End<E>) {
        self.end_in_place(end);
    }

    fn end_in_place(&mut self, end: End<E>) {
        // If a clock or a destructor panics, dropping the producer disposes of the subject. Otherwise
        // observers would wait for ever.
        self.on_drop = Some(End::Disposed);
        let panic = self.core.end(end);
        self.on_drop = None;
        self.on_panic.react(panic);
    }

    /// Completes the subject without consuming the producer; later emissions are ignored. For sinks: their
    /// `close` method takes only a reference.
    pub(crate) fn complete_in_place(&mut self) {
        self.end_in_place(End::Completed);
    }

    /// Ends the subject with an error, without consuming the producer.
    pub(crate) fn error_in_place(&mut self, error: E) {
        self.end_in_place(End::Failed(Arc::new(error)));
    }

    /// Returns whether the subject has ended. Only the producer can end it.
    pub(crate) fn has_ended(&self) -> bool {
        self.on_drop.is_none()
    }

    /// Ends the subject without notifying observers: observers and retained values are dropped, and later
    /// subscribers receive nothing. Dropping the producer has the same effect, unless
    /// [`complete_on_drop`](Self::complete_on_drop) was called.
    pub fn dispose(mut self) {
        self.on_drop = None;
        self.core.dispose();
    }

    /// Returns whether the subject has observers, at the cost of one load.
    pub fn has_observers(&self) -> bool {
        self.observer_count() > 0
    }

    /// Returns the number of observers.
    pub fn observer_count(&self) -> usize {
        self.core.observer_count()
    }

    /// Makes dropping the producer complete the subject instead of disposing of it, as dropping the sender
    /// of a channel ends the channel.
    #[must_use]
    pub fn complete_on_drop(mut self) -> Self {
        self.on_drop = Some(End::Completed);
        self
    }

    /// Chooses what happens when an observer panics.
    #[must_use]
    pub fn on_observer_panic(mut self, on_panic: OnPanic) -> Self {
        self.on_panic = on_panic;
        self
    }
}

impl<T, E, P: Policy, L: Entry<T, E>> Drop for Producer<T, E, P, L> {
    fn drop(&mut self) {
        match self.on_drop.take() {
            None => {}
            // The subject has ended, although a panic of a destructor interrupted the method that ended it.
            Some(_) if self.core.end_so_far().is_some() => {}
            Some(End::Disposed) => self.core.dispose(),
            Some(end) => {
                let panic = self.core.end(end);
                // A second panic during unwinding would abort.
                if !unwind::panicking() {
                    self.on_panic.react(panic);
                }
            }
        }
    }
}

impl<T, E, P: Policy, L: Entry<T, E>> fmt::Debug for Producer<T, E, P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("observer_count", &self.observer_count())
            .finish_non_exhaustive()
    }
}
