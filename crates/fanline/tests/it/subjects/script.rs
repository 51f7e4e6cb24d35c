//! Scripts: operations on a subject, and actions of its observers.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, Weak};

use fanline::{Guard, Observer};

use super::local_rig::{self, Listen};
use super::model::Model;
use super::rig::{Emit, FAULT, Fault, Flavor, Form, ManualClock, Value};
use crate::manual_source::locked;

/// An operation on the subject by the test. Observers are numbered in the order of subscription.
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

/// The actions of an observer. The number before each action says during which of the observer's calls,
/// counted from 1, the observer performs it.
pub(crate) type Plan = Vec<(usize, Act)>;

/// An action of an observer during a call. Observers of the exclusive form cannot emit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Next(u32),
    Complete,
    Fail,
    Dispose,
    Subscribe,
    Unsubscribe(usize),
    Snapshot,
    /// Closes the observer.
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

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) lines: Vec<Line>,
    pub(crate) panicked: bool,
    pub(crate) observers: usize,
    pub(crate) ended: bool,
    /// Number of observers in memory.
    pub(crate) observers_in_memory: usize,
    /// Number of values in memory, or `None` if they are not counted.
    pub(crate) values_in_memory: Option<i64>,
}

impl Step {
    /// Formats the result, for example `A1 B1 A. B! [1, 2] panic`. `A1` means that observer A received the
    /// value 1, `A.` that it completed, and `B!` that B received an error. `[1, 2]` is a snapshot, and
    /// `panic` means that the operation panicked.
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

/// The payload of an observer's panic. It is raised with `resume_unwind`, so the panic hook prints nothing.
pub(crate) struct Thrown;

pub(crate) fn throw() -> ! {
    resume_unwind(Box::new(Thrown))
}

/// The state that the observers of a run can access.
struct Run<T> {
    source: Box<dyn Listen<T>>,
    /// Used by observers that emit.
    emit: Mutex<Option<Box<dyn Emit<T>>>>,
    lines: Mutex<Vec<Line>>,
    guards: Mutex<Vec<Option<Guard>>>,
    /// A token that every observer owns, to count the observers in memory.
    token: Arc<()>,
}

pub(crate) struct Probe<T> {
    id: usize,
    run_state: Weak<Run<T>>,
    plan: Plan,
    calls: usize,
    closed: bool,
    _token: Arc<()>,
}

impl<T: Value> Run<T> {
    fn subscribe(self: &Arc<Self>, plan: Plan) {
        let mut guards = locked(&self.guards);
        let id = guards.len();
        guards.push(None);
        drop(guards);
        let guard = self.source.subscribe(Probe {
            id,
            run_state: Arc::downgrade(self),
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
        let run_state = self
            .run_state
            .upgrade()
            .expect("called after the end of the run");
        locked(&run_state.lines).push(line);
        self.calls += 1;
        for (call, act) in &self.plan {
            if *call != self.calls {
                continue;
            }
            match act {
                Act::Next(number) => run_state.emit(|emit| emit.next(T::of(*number))),
                Act::Complete => run_state.emit(|emit| emit.complete()),
                Act::Fail => run_state.emit(|emit| emit.error()),
                Act::Dispose => run_state.emit(|emit| emit.dispose()),
                Act::Subscribe => run_state.subscribe(Plan::new()),
                Act::Unsubscribe(id) => run_state.unsubscribe(*id),
                Act::Snapshot => run_state.snapshot(),
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

/// Runs a script, and returns the result of each operation.
pub(crate) fn run<T: Value>(form: Form, flavor: Flavor, script: &[Op]) -> Vec<Step> {
    assert_eq!(T::alive().unwrap_or(0), 0, "values of a previous run");
    let ((mut emit, source), clock) = local_rig::subject::<T>(form, flavor);
    let run_state = Arc::new(Run {
        source,
        emit: Mutex::new(emit.another()),
        lines: Mutex::new(Vec::new()),
        guards: Mutex::new(Vec::new()),
        token: Arc::new(()),
    });
    let steps = script
        .iter()
        .map(|op| step(&run_state, &mut *emit, &clock, op))
        .collect();
    drop(emit);
    let token = run_state.token.clone();
    drop(run_state);
    assert_eq!(Arc::strong_count(&token), 1, "observers were not dropped");
    assert_eq!(T::alive().unwrap_or(0), 0, "values were not dropped");
    steps
}

fn step<T: Value>(
    run_state: &Arc<Run<T>>,
    emit: &mut dyn Emit<T>,
    clock: &ManualClock,
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
        Op::Subscribe(plan) => run_state.subscribe(plan.clone()),
        Op::Unsubscribe(id) => run_state.unsubscribe(*id),
        Op::Trim => run_state.source.trim(),
        Op::Clock(nanos) => clock.set(*nanos),
        Op::Snapshot => run_state.snapshot(),
    }));
    if let Err(panic) = &outcome {
        assert!(panic.is::<Thrown>(), "the subject itself panicked");
    }
    let observers = run_state.source.observer_count();
    assert_eq!(run_state.source.has_observers(), observers > 0);
    assert_eq!(emit.count(), observers);
    Step {
        lines: std::mem::take(&mut *locked(&run_state.lines)),
        panicked: outcome.is_err(),
        observers,
        ended: run_state.source.has_ended(),
        observers_in_memory: Arc::strong_count(&run_state.token) - 1,
        values_in_memory: T::alive(),
    }
}

/// Compares a subject with the model, step by step.
#[track_caller]
pub(crate) fn check_against_model<T: Value>(form: Form, flavor: Flavor, script: &[Op]) {
    let seen = run::<T>(form, flavor, script);
    let mut model = Model::new(form, flavor);
    for (index, (op, seen)) in script.iter().zip(seen).enumerate() {
        let mut expected = model.step(op);
        if seen.values_in_memory.is_none() {
            expected.values_in_memory = None;
        }
        assert_eq!(
            seen, expected,
            "{form:?} {flavor:?}, step {index}: {op:?} of {script:?}"
        );
    }
}
