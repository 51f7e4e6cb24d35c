//! A simple single-threaded model of a subject. It stores all values ever emitted in a `Vec`, with their
//! times.

use std::collections::VecDeque;

use super::rig::{Flavor, Form, INITIAL};
use super::script::{Act, Line, Op, Plan, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Completed,
    Failed,
    Disposed,
}

#[derive(Clone, Debug)]
enum Emission {
    Values(Vec<u32>),
    End(End),
}

struct ObserverState {
    plan: Plan,
    calls: usize,
    closed: bool,
    /// Whether the observer is in memory.
    in_memory: bool,
    /// Whether the observer's guard exists.
    guarded: bool,
}

pub(crate) struct Model {
    form: Form,
    flavor: Flavor,
    /// Values, each with the time from which its age counts.
    log: Vec<(u32, u64)>,
    /// Number of values that are no longer retained.
    dropped: usize,
    clock: u64,
    /// The latest time that was read from the clock.
    latest: u64,
    end: Option<End>,
    states: Vec<ObserverState>,
    /// Subscribed observers, in order.
    members: Vec<usize>,
    emitting: bool,
    queue: VecDeque<Emission>,
    lines: Vec<Line>,
}

/// The error of an observer that panicked.
struct Panicked;

impl Model {
    pub(crate) fn new(form: Form, flavor: Flavor) -> Self {
        let initial = (flavor == Flavor::Behavior).then_some((INITIAL, 0));
        Self {
            form,
            flavor,
            log: initial.into_iter().collect(),
            dropped: 0,
            clock: 0,
            latest: 0,
            end: None,
            states: Vec::new(),
            members: Vec::new(),
            emitting: false,
            queue: VecDeque::new(),
            lines: Vec::new(),
        }
    }

    pub(crate) fn step(&mut self, op: &Op) -> Step {
        let outcome = match op {
            Op::Next(number) => self.emit(Emission::Values(vec![*number])),
            Op::Slice(numbers) => self.emit(Emission::Values(numbers.clone())),
            Op::Complete => self.emit(Emission::End(End::Completed)),
            Op::Fail => self.emit(Emission::End(End::Failed)),
            Op::Dispose => {
                // After the end there is no exclusive producer that could dispose of the subject.
                if self.form != Form::Exclusive || self.end.is_none() {
                    self.dispose();
                }
                Ok(())
            }
            Op::Subscribe(plan) => self.subscribe(plan.clone()),
            Op::Unsubscribe(id) => {
                self.unsubscribe(*id);
                Ok(())
            }
            Op::Trim => {
                self.read_clock();
                Ok(())
            }
            Op::Clock(nanos) => {
                self.clock = *nanos;
                Ok(())
            }
            Op::Snapshot => {
                self.snapshot();
                Ok(())
            }
        };
        let retained = i64::try_from(self.log.len() - self.dropped).expect("few values");
        Step {
            lines: std::mem::take(&mut self.lines),
            panicked: outcome.is_err(),
            observers: self.members.len(),
            ended: self.end.is_some(),
            observers_in_memory: self.states.iter().filter(|state| state.in_memory).count(),
            values_in_memory: Some(retained),
        }
    }

    /// Emits `emission`, and then the values that observers emitted meanwhile. If an observer panicked, still
    /// emits all of them before it returns the panic.
    fn emit(&mut self, emission: Emission) -> Result<(), Panicked> {
        self.queue.push_back(emission);
        if self.emitting {
            return Ok(());
        }
        self.emitting = true;
        let outcome = self.emit_queued();
        self.emitting = false;
        outcome
    }

    fn emit_queued(&mut self) -> Result<(), Panicked> {
        let mut outcome = Ok(());
        while let Some(emission) = self.queue.pop_front() {
            if self.end.is_none() {
                let emitted = match emission {
                    Emission::Values(values) => self.emit_values(&values),
                    Emission::End(end) => self.emit_end(end),
                };
                outcome = outcome.and(emitted);
            }
        }
        outcome
    }

    fn emit_values(&mut self, values: &[u32]) -> Result<(), Panicked> {
        if self.flavor != Flavor::Publish {
            self.read_clock();
            let latest = self.latest;
            self.log.extend(values.iter().map(|value| (*value, latest)));
            self.trim();
        }
        if self.flavor == Flavor::Async {
            return Ok(());
        }
        let mut outcome = Ok(());
        for id in self.members.clone() {
            if !self.members.contains(&id) {
                continue;
            }
            for value in values {
                if self.states[id].closed {
                    break;
                }
                if let Err(panicked) = self.call(id, Line::Next(id, *value)) {
                    self.leave(id);
                    outcome = Err(panicked);
                    break;
                }
            }
            if self.states[id].closed {
                self.leave(id);
            }
        }
        outcome
    }

    fn emit_end(&mut self, end: End) -> Result<(), Panicked> {
        self.read_clock();
        self.end = Some(end);
        if self.flavor == Flavor::Async && end == End::Failed {
            self.dropped = self.log.len();
        }
        let held_back = match self.flavor {
            Flavor::Async => self.retained().last().copied(),
            _ => None,
        };
        let mut outcome = Ok(());
        // From now on, no observer counts as subscribed. `in_memory` is false for an observer that another
        // one unsubscribed meanwhile.
        let members = std::mem::take(&mut self.members);
        for id in members {
            if !self.states[id].in_memory {
                continue;
            }
            let called = match held_back {
                Some(value) => self.call(id, Line::Next(id, value)),
                None => Ok(()),
            };
            let called = match called {
                Ok(()) if !self.states[id].closed => self.call_end(id, end),
                other => other,
            };
            self.leave(id);
            outcome = outcome.and(called);
        }
        outcome
    }

    fn call_end(&mut self, id: usize, end: End) -> Result<(), Panicked> {
        match end {
            End::Completed => self.call(id, Line::Complete(id)),
            End::Failed => self.call(id, Line::Error(id)),
            End::Disposed => Ok(()),
        }
    }

    fn call(&mut self, id: usize, line: Line) -> Result<(), Panicked> {
        self.lines.push(line);
        let state = &mut self.states[id];
        state.calls += 1;
        let calls = state.calls;
        for (call, act) in state.plan.clone() {
            if call == calls {
                self.act(id, &act)?;
            }
        }
        Ok(())
    }

    fn act(&mut self, id: usize, act: &Act) -> Result<(), Panicked> {
        let emits = self.form != Form::Exclusive;
        match act {
            Act::Next(number) if emits => self.emit(Emission::Values(vec![*number]))?,
            Act::Complete if emits => self.emit(Emission::End(End::Completed))?,
            Act::Fail if emits => self.emit(Emission::End(End::Failed))?,
            Act::Dispose if emits => self.dispose(),
            Act::Next(_) | Act::Complete | Act::Fail | Act::Dispose => {}
            Act::Subscribe => self.subscribe(Plan::new())?,
            Act::Unsubscribe(other) => self.unsubscribe(*other),
            Act::Snapshot => self.snapshot(),
            Act::Close => self.states[id].closed = true,
            Act::Panic => return Err(Panicked),
        }
        Ok(())
    }

    fn subscribe(&mut self, plan: Plan) -> Result<(), Panicked> {
        let id = self.states.len();
        self.states.push(ObserverState {
            plan,
            calls: 0,
            closed: false,
            in_memory: true,
            guarded: false,
        });
        // A subject for one thread queues what is emitted during the replay.
        let outermost = self.form == Form::Local && !self.emitting;
        self.emitting |= outermost;
        let mut outcome = self.replay(id);
        if self.end.is_none() && outcome.is_ok() && !self.states[id].closed {
            self.members.push(id);
        } else {
            self.states[id].in_memory = false;
        }
        if outermost {
            let emitted = self.emit_queued();
            self.emitting = false;
            if emitted.is_err() {
                // The panic drops the guard.
                self.leave(id);
            }
            outcome = outcome.and(emitted);
        }
        self.states[id].guarded = outcome.is_ok();
        outcome
    }

    fn replay(&mut self, id: usize) -> Result<(), Panicked> {
        self.read_clock();
        let mut at = self.log.len() - self.replayed();
        while self.end != Some(End::Disposed) && at < self.log.len() {
            // A disposal does not cut short a batch of values that is being delivered.
            let given = self.log[at..].to_vec();
            for (value, _) in given {
                self.call(id, Line::Next(id, value))?;
                if self.states[id].closed {
                    return Ok(());
                }
                at += 1;
            }
        }
        match self.end {
            Some(end) => self.call_end(id, end),
            None => Ok(()),
        }
    }

    /// Returns the number of values that a late subscriber gets now.
    fn replayed(&self) -> usize {
        let replays = match (self.flavor, self.end) {
            (_, Some(End::Disposed)) | (Flavor::Behavior, Some(_)) => false,
            (Flavor::Async, end) => end == Some(End::Completed),
            _ => true,
        };
        if replays { self.retained().len() } else { 0 }
    }

    fn retained(&self) -> Vec<u32> {
        let retained = &self.log[self.dropped..];
        retained.iter().map(|(value, _)| *value).collect()
    }

    fn snapshot(&mut self) {
        self.read_clock();
        let count = self.replayed();
        let mut values = self.retained();
        values.drain(..values.len() - count);
        self.lines.push(Line::Snapshot(values));
    }

    fn unsubscribe(&mut self, id: usize) {
        let Some(state) = self.states.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut state.guarded) {
            self.leave(id);
        }
    }

    fn leave(&mut self, id: usize) {
        self.states[id].in_memory = false;
        self.members.retain(|member| *member != id);
    }

    fn dispose(&mut self) {
        self.end = Some(End::Disposed);
        self.dropped = self.log.len();
        self.members.clear();
        for state in &mut self.states {
            state.in_memory = false;
        }
    }

    fn read_clock(&mut self) {
        if self.end.is_some() && self.flavor.freezes() {
            return;
        }
        self.latest = self.latest.max(self.clock);
        self.trim();
    }

    fn trim(&mut self) {
        let bound = self.log.len().saturating_sub(self.flavor.count_max());
        self.dropped = self.dropped.max(bound);
        let Some(window) = self.flavor.window() else {
            return;
        };
        let young = |time: u64| self.latest - time <= window;
        while self.dropped < self.log.len() && !young(self.log[self.dropped].1) {
            self.dropped += 1;
        }
    }
}
