//! What a subject does, as plainly as it can be said: every value ever emitted in a `Vec`, with its
//! time, and one thread.

use std::collections::VecDeque;

use super::rig::{Flavour, Form, INITIAL};
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

struct Seat {
    plan: Plan,
    calls: usize,
    closed: bool,
    /// In memory.
    kept: bool,
    /// Whether anybody holds its guard by now.
    guarded: bool,
}

pub(crate) struct Model {
    form: Form,
    flavour: Flavour,
    /// Values and the times by which they age.
    log: Vec<(u32, u64)>,
    /// How many of them are no longer retained.
    gone: usize,
    clock: u64,
    /// The latest that the clock was seen at.
    latest: u64,
    end: Option<End>,
    seats: Vec<Seat>,
    /// Who is subscribed, in order.
    members: Vec<usize>,
    emitting: bool,
    queue: VecDeque<Emission>,
    lines: Vec<Line>,
}

/// An observer has panicked.
struct Panicked;

impl Model {
    pub(crate) fn new(form: Form, flavour: Flavour) -> Self {
        let initial = (flavour == Flavour::Behavior).then_some((INITIAL, 0));
        Self {
            form,
            flavour,
            log: initial.into_iter().collect(),
            gone: 0,
            clock: 0,
            latest: 0,
            end: None,
            seats: Vec::new(),
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
                // An exclusive producer is gone after the end.
                if self.form == Form::Shared || self.end.is_none() {
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
                self.look_at_clock();
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
        let retained = i64::try_from(self.log.len() - self.gone).expect("few values");
        Step {
            lines: std::mem::take(&mut self.lines),
            panicked: outcome.is_err(),
            observers: self.members.len(),
            ended: self.end.is_some(),
            kept_observers: self.seats.iter().filter(|seat| seat.kept).count(),
            kept_values: Some(retained),
        }
    }

    /// Emits, and then what was emitted from inside. Every panic waits until all is over.
    fn emit(&mut self, emission: Emission) -> Result<(), Panicked> {
        self.queue.push_back(emission);
        if self.emitting {
            return Ok(());
        }
        self.emitting = true;
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
        self.emitting = false;
        outcome
    }

    fn emit_values(&mut self, values: &[u32]) -> Result<(), Panicked> {
        if self.flavour != Flavour::Publish {
            self.look_at_clock();
            let latest = self.latest;
            self.log.extend(values.iter().map(|value| (*value, latest)));
            self.trim();
        }
        if self.flavour == Flavour::Async {
            return Ok(());
        }
        let mut outcome = Ok(());
        for id in self.members.clone() {
            if !self.members.contains(&id) {
                continue;
            }
            for value in values {
                if self.seats[id].closed {
                    break;
                }
                if let Err(panicked) = self.call(id, Line::Next(id, *value)) {
                    self.leave(id);
                    outcome = Err(panicked);
                    break;
                }
            }
            if self.seats[id].closed {
                self.leave(id);
            }
        }
        outcome
    }

    fn emit_end(&mut self, end: End) -> Result<(), Panicked> {
        self.look_at_clock();
        self.end = Some(end);
        if self.flavour == Flavour::Async && end == End::Failed {
            self.gone = self.log.len();
        }
        let held_back = match self.flavour {
            Flavour::Async => self.retained().last().copied(),
            _ => None,
        };
        let mut outcome = Ok(());
        // None counts as subscribed from now on; those who leave are told apart by what is kept.
        let members = std::mem::take(&mut self.members);
        for id in members {
            if !self.seats[id].kept {
                continue;
            }
            let called = match held_back {
                Some(value) => self.call(id, Line::Next(id, value)),
                None => Ok(()),
            };
            let called = match called {
                Ok(()) if !self.seats[id].closed => self.call_end(id, end),
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
        let seat = &mut self.seats[id];
        seat.calls += 1;
        let calls = seat.calls;
        for (call, act) in seat.plan.clone() {
            if call == calls {
                self.act(id, &act)?;
            }
        }
        Ok(())
    }

    fn act(&mut self, id: usize, act: &Act) -> Result<(), Panicked> {
        let shared = self.form == Form::Shared;
        match act {
            Act::Next(number) if shared => self.emit(Emission::Values(vec![*number]))?,
            Act::Complete if shared => self.emit(Emission::End(End::Completed))?,
            Act::Fail if shared => self.emit(Emission::End(End::Failed))?,
            Act::Dispose if shared => self.dispose(),
            Act::Next(_) | Act::Complete | Act::Fail | Act::Dispose => {}
            Act::Subscribe => self.subscribe(Plan::new())?,
            Act::Unsubscribe(other) => self.unsubscribe(*other),
            Act::Snapshot => self.snapshot(),
            Act::Close => self.seats[id].closed = true,
            Act::Panic => return Err(Panicked),
        }
        Ok(())
    }

    fn subscribe(&mut self, plan: Plan) -> Result<(), Panicked> {
        let id = self.seats.len();
        self.seats.push(Seat {
            plan,
            calls: 0,
            closed: false,
            kept: true,
            guarded: false,
        });
        let outcome = self.replay(id);
        self.seats[id].guarded = outcome.is_ok();
        if self.end.is_none() && outcome.is_ok() && !self.seats[id].closed {
            self.members.push(id);
        } else {
            self.seats[id].kept = false;
        }
        outcome
    }

    fn replay(&mut self, id: usize) -> Result<(), Panicked> {
        self.look_at_clock();
        let mut at = self.log.len() - self.replayed();
        while self.end != Some(End::Disposed) && at < self.log.len() {
            // What is given in one go is not cut short by a disposal.
            let given = self.log[at..].to_vec();
            for (value, _) in given {
                self.call(id, Line::Next(id, value))?;
                if self.seats[id].closed {
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

    /// How many values a late subscriber is given now.
    fn replayed(&self) -> usize {
        let replays = match (self.flavour, self.end) {
            (_, Some(End::Disposed)) | (Flavour::Behavior, Some(_)) => false,
            (Flavour::Async, end) => end == Some(End::Completed),
            _ => true,
        };
        if replays { self.retained().len() } else { 0 }
    }

    fn retained(&self) -> Vec<u32> {
        let retained = &self.log[self.gone..];
        retained.iter().map(|(value, _)| *value).collect()
    }

    fn snapshot(&mut self) {
        self.look_at_clock();
        let count = self.replayed();
        let mut values = self.retained();
        values.drain(..values.len() - count);
        self.lines.push(Line::Snapshot(values));
    }

    fn unsubscribe(&mut self, id: usize) {
        let Some(seat) = self.seats.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut seat.guarded) {
            self.leave(id);
        }
    }

    fn leave(&mut self, id: usize) {
        self.seats[id].kept = false;
        self.members.retain(|member| *member != id);
    }

    fn dispose(&mut self) {
        self.end = Some(End::Disposed);
        self.gone = self.log.len();
        self.members.clear();
        for seat in &mut self.seats {
            seat.kept = false;
        }
    }

    fn look_at_clock(&mut self) {
        if self.end.is_some() && self.flavour.freezes() {
            return;
        }
        self.latest = self.latest.max(self.clock);
        self.trim();
    }

    fn trim(&mut self) {
        let bound = self.log.len().saturating_sub(self.flavour.count_max());
        self.gone = self.gone.max(bound);
        let Some(window) = self.flavour.window() else {
            return;
        };
        let young = |time: u64| self.latest - time <= window;
        while self.gone < self.log.len() && !young(self.log[self.gone].1) {
            self.gone += 1;
        }
    }
}
