//! Scripts: what is done to a subject, and what its observers do when they are called.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, Weak};

use fanline::{Guard, Observer, Source};

use super::model::Model;
use super::rig::{Emit, FAULT, Fault, Flavour, Form, HandClock, Rig, Value};
use crate::hand::locked;

/// What is done from outside. Observers are named by the order in which they subscribed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Next(u32),
    Slice(Vec<u32>),
    Complete,
    Fail,
    Dispose,
    Subscribe(Plan),
    Unsubscribe(usize),
    Trim,
    /// Sets the clock.
    Clock(u64),
    Snapshot,
}

/// At which call, counted from 1, an observer does what.
pub(crate) type Plan = Vec<(usize, Act)>;

/// What an observer does when it is called. Emitting from inside is for the shared form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Next(u32),
    Complete,
    Fail,
    Dispose,
    Subscribe,
    Unsubscribe(usize),
    Snapshot,
    /// Wants no more.
    Close,
    Panic,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Next(usize, u32),
    Complete(usize),
    Error(usize),
    Snapshot(Vec<u32>),
}

/// What came of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) lines: Vec<Line>,
    pub(crate) panicked: bool,
    pub(crate) observers: usize,
    pub(crate) ended: bool,
    /// Observers that are in memory.
    pub(crate) kept_observers: usize,
    /// Values that are in memory, where that is counted.
    pub(crate) kept_values: Option<i64>,
}

impl Step {
    /// `A1 B1 A. B! [1, 2] panic`: by observer and value, completion, error, snapshot, panic.
    pub(crate) fn text(&self) -> String {
        let letter = |who: usize| char::from(b'A' + u8::try_from(who).expect("few observers"));
        let mut words: Vec<String> = self
            .lines
            .iter()
            .map(|line| match line {
                Line::Next(who, number) => format!("{}{number}", letter(*who)),
                Line::Complete(who) => format!("{}.", letter(*who)),
                Line::Error(who) => format!("{}!", letter(*who)),
                Line::Snapshot(values) => format!("{values:?}"),
            })
            .collect();
        if self.panicked {
            words.push("panic".to_owned());
        }
        words.join(" ")
    }
}

/// What a panicking observer throws; nothing is printed.
pub(crate) struct Thrown;

pub(crate) fn throw() -> ! {
    resume_unwind(Box::new(Thrown))
}

/// What the observers of a run can reach.
struct World<T> {
    source: Source<T, Fault>,
    /// For emission from inside.
    emit: Mutex<Option<Box<dyn Emit<T>>>>,
    lines: Mutex<Vec<Line>>,
    guards: Mutex<Vec<Option<Guard>>>,
    /// Counts observers.
    token: Arc<()>,
}

struct Probe<T> {
    id: usize,
    world: Weak<World<T>>,
    plan: Plan,
    calls: usize,
    closed: bool,
    _token: Arc<()>,
}

impl<T: Value> World<T> {
    fn subscribe(self: &Arc<Self>, plan: Plan) {
        let mut guards = locked(&self.guards);
        let id = guards.len();
        guards.push(None);
        drop(guards);
        let guard = self.source.subscribe_with(Probe {
            id,
            world: Arc::downgrade(self),
            plan,
            calls: 0,
            closed: false,
            _token: self.token.clone(),
        });
        locked(&self.guards)[id] = Some(guard);
    }

    fn unsubscribe(&self, id: usize) {
        let guard = locked(&self.guards).get_mut(id).and_then(Option::take);
        drop(guard);
    }

    fn snapshot(&self) {
        let values = self.source.snapshot().iter().map(T::number).collect();
        locked(&self.lines).push(Line::Snapshot(values));
    }

    fn emit(&self, emit: impl FnOnce(&mut dyn Emit<T>)) {
        let another = locked(&self.emit).as_ref().and_then(|emit| emit.another());
        if let Some(mut another) = another {
            emit(&mut *another);
        }
    }
}

impl<T: Value> Probe<T> {
    fn called(&mut self, line: Line) {
        let world = self.world.upgrade().expect("the run is not over");
        locked(&world.lines).push(line);
        self.calls += 1;
        for (call, act) in &self.plan {
            if *call != self.calls {
                continue;
            }
            match act {
                Act::Next(number) => world.emit(|emit| emit.next(T::of(*number))),
                Act::Complete => world.emit(|emit| emit.complete()),
                Act::Fail => world.emit(|emit| emit.error()),
                Act::Dispose => world.emit(|emit| emit.dispose()),
                Act::Subscribe => world.subscribe(Plan::new()),
                Act::Unsubscribe(id) => world.unsubscribe(*id),
                Act::Snapshot => world.snapshot(),
                Act::Close => self.closed = true,
                Act::Panic => throw(),
            }
        }
    }
}

impl<T: Value> Observer<T, Fault> for Probe<T> {
    fn next(&mut self, value: &T) {
        self.called(Line::Next(self.id, value.number()));
    }

    fn error(&mut self, error: &Fault) {
        assert_eq!(*error, FAULT);
        self.called(Line::Error(self.id));
    }

    fn complete(&mut self) {
        self.called(Line::Complete(self.id));
    }

    fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Runs a script; what came of each operation.
pub(crate) fn run<T: Value>(form: Form, flavour: Flavour, script: &[Op]) -> Vec<Step> {
    assert_eq!(T::alive().unwrap_or(0), 0, "of a run before");
    let Rig {
        mut emit,
        source,
        clock,
    } = Rig::<T>::new(form, flavour);
    let world = Arc::new(World {
        source,
        emit: Mutex::new(emit.another()),
        lines: Mutex::new(Vec::new()),
        guards: Mutex::new(Vec::new()),
        token: Arc::new(()),
    });
    let steps = script
        .iter()
        .map(|op| step(&world, &mut *emit, &clock, op))
        .collect();
    drop(emit);
    let token = world.token.clone();
    drop(world);
    assert_eq!(Arc::strong_count(&token), 1, "observers that are left over");
    assert_eq!(T::alive().unwrap_or(0), 0, "values that are left over");
    steps
}

fn step<T: Value>(
    world: &Arc<World<T>>,
    emit: &mut dyn Emit<T>,
    clock: &HandClock,
    op: &Op,
) -> Step {
    let outcome = catch_unwind(AssertUnwindSafe(|| match op {
        Op::Next(number) => emit.next(T::of(*number)),
        Op::Slice(numbers) => {
            let values: Vec<T> = numbers.iter().copied().map(T::of).collect();
            emit.slice(&values);
        }
        Op::Complete => emit.complete(),
        Op::Fail => emit.error(),
        Op::Dispose => emit.dispose(),
        Op::Subscribe(plan) => world.subscribe(plan.clone()),
        Op::Unsubscribe(id) => world.unsubscribe(*id),
        Op::Trim => world.source.trim(),
        Op::Clock(nanos) => clock.set(*nanos),
        Op::Snapshot => world.snapshot(),
    }));
    if let Err(panic) = &outcome {
        assert!(panic.is::<Thrown>(), "a panic of the subject's own");
    }
    let observers = world.source.observer_count();
    assert_eq!(world.source.has_observers(), observers > 0);
    assert_eq!(emit.count(), observers);
    Step {
        lines: std::mem::take(&mut *locked(&world.lines)),
        panicked: outcome.is_err(),
        observers,
        ended: world.source.has_ended(),
        kept_observers: Arc::strong_count(&world.token) - 1,
        kept_values: T::alive(),
    }
}

/// Compares a subject with the model, step by step.
#[track_caller]
pub(crate) fn check_against_model<T: Value>(form: Form, flavour: Flavour, script: &[Op]) {
    let seen = run::<T>(form, flavour, script);
    let mut model = Model::new(form, flavour);
    for (index, (op, seen)) in script.iter().zip(seen).enumerate() {
        let mut expected = model.step(op);
        if seen.kept_values.is_none() {
            expected.kept_values = None;
        }
        assert_eq!(
            seen, expected,
            "{form:?} {flavour:?}, step {index}: {op:?} of {script:?}"
        );
    }
}
