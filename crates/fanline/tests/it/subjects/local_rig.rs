//! Subjects for one thread, behind the interface of the other forms.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use fanline::{
    Guard, LocalAsyncSubject, LocalBehaviorSubject, LocalReplaySubject, LocalSubject, Replay,
    Source, UnsyncSubject, policy,
};

use super::rig::{Emit, FAULT, Fault, Flavor, Form, INITIAL, ManualClock, Rig, Value};
use super::script::Probe;

/// The subscriber's half of a subject.
pub(crate) trait Listen<T>: Send + Sync {
    fn subscribe(&self, probe: Probe<T>) -> Guard;
    fn snapshot(&self) -> Vec<T>;
    fn trim(&self);
    fn observer_count(&self) -> usize;
    fn has_observers(&self) -> bool;
    fn has_ended(&self) -> bool;
}

impl<T: Value> Listen<T> for Source<T, Fault> {
    fn subscribe(&self, probe: Probe<T>) -> Guard {
        self.subscribe_with(probe)
    }

    fn snapshot(&self) -> Vec<T> {
        self.snapshot()
    }

    fn trim(&self) {
        self.trim();
    }

    fn observer_count(&self) -> usize {
        self.observer_count()
    }

    fn has_observers(&self) -> bool {
        self.has_observers()
    }

    fn has_ended(&self) -> bool {
        self.has_ended()
    }
}

#[derive(Default)]
struct Table {
    last_key: u64,
    subjects: HashMap<u64, Rc<dyn Any>>,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
}

/// A handle of a subject in a table of this thread, because the observers in these tests are `Send`.
struct Here<S> {
    key: u64,
    subject: PhantomData<fn(S)>,
}

impl<S: Clone + 'static> Here<S> {
    fn new(subject: S) -> Self {
        let key = TABLE.with_borrow_mut(|table| {
            table.last_key += 1;
            table.subjects.insert(table.last_key, Rc::new(subject));
            table.last_key
        });
        Self {
            key,
            subject: PhantomData,
        }
    }

    fn get(&self) -> S {
        let subject = TABLE.with_borrow(|table| table.subjects[&self.key].clone());
        subject.downcast_ref::<S>().expect("same type").clone()
    }
}

impl<S> Drop for Here<S> {
    fn drop(&mut self) {
        // The subject is dropped after the borrow.
        let _subject = TABLE.with_borrow_mut(|table| table.subjects.remove(&self.key));
    }
}

impl<T: Value, P: policy::Flavor + 'static> Emit<T> for Here<UnsyncSubject<T, Fault, P>> {
    fn next(&mut self, value: T) {
        self.get().next(value);
    }

    fn slice(&mut self, values: &[T]) {
        self.get().next_slice(values);
    }

    fn complete(&mut self) {
        self.get().complete();
    }

    fn error(&mut self) {
        self.get().error(FAULT);
    }

    fn dispose(&mut self) {
        self.get().dispose();
    }

    fn count(&self) -> usize {
        self.get().observer_count()
    }

    fn another(&self) -> Option<Box<dyn Emit<T>>> {
        Some(Box::new(Self::new(self.get())))
    }
}

impl<T: Value, P: policy::Flavor + 'static> Listen<T> for Here<UnsyncSubject<T, Fault, P>> {
    fn subscribe(&self, probe: Probe<T>) -> Guard {
        self.get().subscribe_with(probe)
    }

    fn snapshot(&self) -> Vec<T> {
        self.get().snapshot()
    }

    fn trim(&self) {
        self.get().trim();
    }

    fn observer_count(&self) -> usize {
        self.get().observer_count()
    }

    fn has_observers(&self) -> bool {
        self.get().has_observers()
    }

    fn has_ended(&self) -> bool {
        self.get().has_ended()
    }
}

pub(crate) type Halves<T> = (Box<dyn Emit<T>>, Box<dyn Listen<T>>);

/// Creates a subject of any form, with the clock of its window.
pub(crate) fn subject<T: Value>(form: Form, flavor: Flavor) -> (Halves<T>, ManualClock) {
    if form == Form::Local {
        let clock = ManualClock::default();
        return (local(flavor, &clock), clock);
    }
    let rig = Rig::<T>::new(form, flavor);
    ((rig.emit, Box::new(rig.source)), rig.clock)
}

fn local<T: Value>(flavor: Flavor, clock: &ManualClock) -> Halves<T> {
    let subject = match flavor {
        Flavor::Publish => return halves(LocalSubject::with_error()),
        Flavor::Behavior => return halves(LocalBehaviorSubject::with_error(T::of(INITIAL))),
        Flavor::Async => return halves(LocalAsyncSubject::with_error()),
        Flavor::All => LocalReplaySubject::with_error(Replay::all()),
        Flavor::One => LocalReplaySubject::with_error(Replay::one()),
        Flavor::Many(count) => LocalReplaySubject::with_error(Replay::many(count)),
        Flavor::Within(window, freezes) => {
            let replay = Replay::within(Duration::from_nanos(window)).clock(clock.clone());
            LocalReplaySubject::with_error(if freezes {
                replay.freeze_on_terminal()
            } else {
                replay
            })
        }
        Flavor::ManyWithin(count, window, freezes) => {
            let replay =
                Replay::many_within(count, Duration::from_nanos(window)).clock(clock.clone());
            LocalReplaySubject::with_error(if freezes {
                replay.freeze_on_terminal()
            } else {
                replay
            })
        }
    };
    halves(subject)
}

fn halves<T: Value, P>(subject: UnsyncSubject<T, Fault, P>) -> Halves<T>
where
    P: policy::Flavor + 'static,
{
    (
        Box::new(Here::new(subject.clone())),
        Box::new(Here::new(subject)),
    )
}
