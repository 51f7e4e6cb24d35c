//! A common interface to every form and flavor of subject, so that each case is written once.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanline::policy::Policy;
use fanline::{
    AsyncSubject, BehaviorSubject, Clock, Producer, Replay, ReplaySubject, Source, Subject, Time,
    behavior_with_error, last_value_with_error, subject_with_error,
};

/// The error type of subjects in these tests.
pub(crate) type Fault = &'static str;
pub(crate) const FAULT: Fault = "fault";

/// The initial value of behavior subjects.
pub(crate) const INITIAL: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Exclusive,
    Shared,
    /// For one thread.
    Local,
}

/// The forms that several threads can use.
pub(crate) const FORMS: [Form; 2] = [Form::Exclusive, Form::Shared];

pub(crate) const ALL_FORMS: [Form; 3] = [Form::Exclusive, Form::Shared, Form::Local];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    Publish,
    Behavior,
    Async,
    All,
    One,
    Many(usize),
    /// Contains the window in nanoseconds, and whether values stop aging at the end of the subject.
    Within(u64, bool),
    ManyWithin(usize, u64, bool),
}

/// All flavors, with the bounds at which the behavior changes.
pub(crate) const FLAVORS: [Flavor; 15] = [
    Flavor::Publish,
    Flavor::Behavior,
    Flavor::Async,
    Flavor::All,
    Flavor::One,
    Flavor::Many(0),
    Flavor::Many(1),
    Flavor::Many(5),
    Flavor::Within(10, false),
    Flavor::Within(0, false),
    Flavor::Within(10, true),
    Flavor::ManyWithin(3, 10, false),
    Flavor::ManyWithin(0, 10, false),
    Flavor::ManyWithin(3, 0, false),
    Flavor::ManyWithin(2, 10, true),
];

impl Flavor {
    pub(crate) fn count_max(self) -> usize {
        match self {
            Self::Publish => 0,
            Self::Behavior | Self::Async | Self::One => 1,
            Self::Many(count) | Self::ManyWithin(count, ..) => count,
            Self::All | Self::Within(..) => usize::MAX,
        }
    }

    pub(crate) fn window(self) -> Option<u64> {
        match self {
            Self::Within(window, _) | Self::ManyWithin(_, window, _) => Some(window),
            _ => None,
        }
    }

    pub(crate) fn freezes(self) -> bool {
        matches!(self, Self::Within(_, true) | Self::ManyWithin(_, _, true))
    }
}

/// A value with a number.
pub(crate) trait Value: Clone + Debug + Send + Sync + 'static {
    fn of(number: u32) -> Self;
    fn number(&self) -> u32;
    /// Returns the number of live values on this thread, or `None` if they are not counted.
    fn alive() -> Option<i64>;
}

impl Value for u32 {
    fn of(number: u32) -> Self {
        number
    }

    fn number(&self) -> u32 {
        *self
    }

    fn alive() -> Option<i64> {
        None
    }
}

thread_local! {
    static ALIVE: Cell<i64> = const { Cell::new(0) };
}

/// A counted value with a destructor. It detects reads after its drop.
#[derive(Debug)]
pub(crate) struct Counted {
    number: u32,
    /// A heap allocation, so that tools detect a second drop.
    memory: Box<u32>,
}

impl Value for Counted {
    fn of(number: u32) -> Self {
        ALIVE.set(ALIVE.get() + 1);
        Self {
            number,
            memory: Box::new(!number),
        }
    }

    fn number(&self) -> u32 {
        assert_eq!(*self.memory, !self.number, "read after drop");
        self.number
    }

    fn alive() -> Option<i64> {
        Some(ALIVE.get())
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::of(self.number())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(*self.memory, !self.number, "dropped twice");
        *self.memory = 0;
        ALIVE.set(ALIVE.get() - 1);
    }
}

/// A clock that is set manually, even backwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    pub(crate) fn set(&self, nanos: u64) {
        self.0.store(nanos, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

/// The emitting half of a subject. Calls after the end of the subject have no effect; an exclusive producer
/// no longer exists then.
pub(crate) trait Emit<T>: Send {
    fn next(&mut self, value: T);
    fn slice(&mut self, values: &[T]);
    fn complete(&mut self);
    fn error(&mut self);
    fn dispose(&mut self);
    fn count(&self) -> usize;
    /// Returns another handle of the same subject, or `None` for an exclusive producer.
    fn another(&self) -> Option<Box<dyn Emit<T>>>;
}

struct Exclusive<T, P: Policy>(Option<Producer<T, Fault, P>>)
where
    T: Value;

impl<T: Value, P: Policy> Emit<T> for Exclusive<T, P> {
    fn next(&mut self, value: T) {
        if let Some(producer) = &mut self.0 {
            producer.next(value);
        }
    }

    fn slice(&mut self, values: &[T]) {
        if let Some(producer) = &mut self.0 {
            producer.next_slice(values);
        }
    }

    fn complete(&mut self) {
        if let Some(producer) = self.0.take() {
            producer.complete();
        }
    }

    fn error(&mut self) {
        if let Some(producer) = self.0.take() {
            producer.error(FAULT);
        }
    }

    fn dispose(&mut self) {
        if let Some(producer) = self.0.take() {
            producer.dispose();
        }
    }

    fn count(&self) -> usize {
        self.0.as_ref().map_or(0, Producer::observer_count)
    }

    fn another(&self) -> Option<Box<dyn Emit<T>>> {
        None
    }
}

macro_rules! emit_through_handle {
    ($($name:ident),*) => {
        $(
            impl<T: Value> Emit<T> for $name<T, Fault> {
                fn next(&mut self, value: T) {
                    $name::next(self, value);
                }

                fn slice(&mut self, values: &[T]) {
                    self.next_slice(values);
                }

                fn complete(&mut self) {
                    $name::complete(self);
                }

                fn error(&mut self) {
                    $name::error(self, FAULT);
                }

                fn dispose(&mut self) {
                    $name::dispose(self);
                }

                fn count(&self) -> usize {
                    self.observer_count()
                }

                fn another(&self) -> Option<Box<dyn Emit<T>>> {
                    Some(Box::new(self.clone()))
                }
            }
        )*
    };
}

emit_through_handle!(Subject, BehaviorSubject, AsyncSubject, ReplaySubject);

pub(crate) struct Rig<T> {
    pub(crate) emit: Box<dyn Emit<T>>,
    pub(crate) source: Source<T, Fault>,
    pub(crate) clock: ManualClock,
}

impl<T: Value> Rig<T> {
    pub(crate) fn new(form: Form, flavor: Flavor) -> Self {
        let clock = ManualClock::default();
        let (emit, source) = match form {
            Form::Exclusive => exclusive(flavor, &clock),
            Form::Shared => shared(flavor, &clock),
            Form::Local => unreachable!("it has no source"),
        };
        Self {
            emit,
            source,
            clock,
        }
    }
}

type Halves<T> = (Box<dyn Emit<T>>, Source<T, Fault>);

fn exclusive<T: Value>(flavor: Flavor, clock: &ManualClock) -> Halves<T> {
    match flavor {
        Flavor::Publish => halves(subject_with_error()),
        Flavor::Behavior => halves(behavior_with_error(T::of(INITIAL))),
        Flavor::Async => halves(last_value_with_error()),
        Flavor::All => halves(Producer::retaining(Replay::all())),
        Flavor::One => halves(Producer::retaining(Replay::one())),
        Flavor::Many(count) => halves(Producer::retaining(Replay::many(count))),
        Flavor::Within(window, freezes) => {
            let replay = Replay::within(Duration::from_nanos(window)).clock(clock.clone());
            halves(Producer::retaining(if freezes {
                replay.freeze_on_terminal()
            } else {
                replay
            }))
        }
        Flavor::ManyWithin(count, window, freezes) => {
            let replay =
                Replay::many_within(count, Duration::from_nanos(window)).clock(clock.clone());
            halves(Producer::retaining(if freezes {
                replay.freeze_on_terminal()
            } else {
                replay
            }))
        }
    }
}

fn halves<T: Value, P: Policy>(
    (producer, source): (Producer<T, Fault, P>, Source<T, Fault>),
) -> Halves<T> {
    (Box::new(Exclusive(Some(producer))), source)
}

fn shared<T: Value>(flavor: Flavor, clock: &ManualClock) -> Halves<T> {
    let subject = match flavor {
        Flavor::Publish => {
            let subject = Subject::with_error();
            let source = subject.source();
            return (Box::new(subject), source);
        }
        Flavor::Behavior => {
            let subject = BehaviorSubject::with_error(T::of(INITIAL));
            let source = subject.source();
            return (Box::new(subject), source);
        }
        Flavor::Async => {
            let subject = AsyncSubject::with_error();
            let source = subject.source();
            return (Box::new(subject), source);
        }
        Flavor::All => ReplaySubject::with_error(Replay::all()),
        Flavor::One => ReplaySubject::with_error(Replay::one()),
        Flavor::Many(count) => ReplaySubject::with_error(Replay::many(count)),
        Flavor::Within(window, freezes) => {
            let replay = Replay::within(Duration::from_nanos(window)).clock(clock.clone());
            ReplaySubject::with_error(if freezes {
                replay.freeze_on_terminal()
            } else {
                replay
            })
        }
        Flavor::ManyWithin(count, window, freezes) => {
            let replay =
                Replay::many_within(count, Duration::from_nanos(window)).clock(clock.clone());
            ReplaySubject::with_error(if freezes {
                replay.freeze_on_terminal()
            } else {
                replay
            })
        }
    };
    let source = subject.source();
    (Box::new(subject), source)
}
