//! Operators with one source and a timer, whose calls pass one gate.

use core::marker::PhantomData;

use super::gate::{Event, Gate, Stage};
use crate::{Guard, Observable, Observer, Scheduler, Time, Worker};

/// The behavior of an operator with a source and an alarm. Calls never overlap.
pub(super) trait Timed<T, E, W: Worker>: Send + 'static {
    /// Called before the source is subscribed to.
    fn start(&mut self, _alarm: &mut Alarm<W>) {}

    fn next(&mut self, value: &T, alarm: &mut Alarm<W>);

    fn next_owned(&mut self, value: T, alarm: &mut Alarm<W>) {
        self.next(&value, alarm);
    }

    fn error(&mut self, error: &E);

    fn complete(&mut self, alarm: &mut Alarm<W>);

    /// Called when the alarm goes off.
    fn tick(&mut self, alarm: &mut Alarm<W>);

    /// Called when the source has dropped its observer, whether or not it has completed or failed before. An
    /// operator whose alarm goes off periodically must end in this call. Other operators may still emit
    /// pending values.
    fn source_disconnected(&mut self) {}

    fn is_over(&self) -> bool;
}

/// A timer that goes off once after it is set.
///
/// Setting the alarm again moves the deadline; callers never move the deadline to an earlier time. At most
/// one action is scheduled. If the action runs before the deadline, it is scheduled again. So a deadline that
/// moves with every value costs one action per period, not one per value.
pub(super) struct Alarm<W> {
    worker: W,
    deadline: Option<Time>,
    scheduled: bool,
}

impl<W: Worker> Alarm<W> {
    pub(super) fn now(&self) -> Time {
        self.worker.now()
    }

    pub(super) fn set(&mut self, deadline: Time) {
        self.deadline = Some(deadline);
    }

    pub(super) fn is_set(&self) -> bool {
        self.deadline.is_some()
    }

    /// Returns whether the deadline has passed. If it has, removes it.
    fn is_due(&mut self) -> bool {
        self.deadline
            .take_if(|deadline| *deadline <= self.worker.now())
            .is_some()
    }
}

/// Subscribes `operator`, which owns the downstream observer, to `source`. The operator's alarm goes off on a
/// worker of `scheduler`.
pub(super) fn timed<S, C, J>(source: S, scheduler: &C, operator: J) -> Guard
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    C: Scheduler,
    J: Timed<S::Item, S::Error, C::Worker>,
{
    let gate = gate_of(scheduler, operator);
    let guard = gate.guard();
    subscribe(source, &gate);
    guard
}

pub(super) type TimedGate<T, E, J, W> = Gate<Operator<T, E, J, W>>;

pub(super) fn gate_of<C, T, E, J>(scheduler: &C, operator: J) -> TimedGate<T, E, J, C::Worker>
where
    C: Scheduler,
    J: Timed<T, E, C::Worker>,
    T: Send + 'static,
    E: Send + 'static,
{
    Gate::new(Operator {
        operator,
        alarm: Alarm {
            worker: scheduler.worker(),
            deadline: None,
            scheduled: false,
        },
        types: PhantomData,
    })
}

pub(super) fn subscribe<S, J, W>(source: S, gate: &TimedGate<S::Item, S::Error, J, W>)
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    J: Timed<S::Item, S::Error, W>,
    W: Worker,
{
    gate.send(Message::Start);
    gate.connect(|key| {
        source.subscribe_with(Input {
            gate: gate.clone(),
            key,
        })
    });
}

pub(super) struct Operator<T, E, J, W> {
    operator: J,
    alarm: Alarm<W>,
    types: PhantomData<fn(T, E)>,
}

pub(super) enum Message<T, E> {
    Start,
    Source(Event<T, E>),
    SourceDisconnected,
    Tick,
}

impl<T, E, J, W> Operator<T, E, J, W>
where
    T: Send + 'static,
    E: Send + 'static,
    J: Timed<T, E, W>,
    W: Worker,
{
    /// Runs `work` on the operator. If the alarm is then set and no action is scheduled, schedules one.
    #[inline]
    fn work(&mut self, gate: &Gate<Self>, work: impl FnOnce(&mut J, &mut Alarm<W>)) {
        work(&mut self.operator, &mut self.alarm);
        if let Some(deadline) = self.alarm.deadline
            && !self.alarm.scheduled
            && !self.operator.is_over()
        {
            self.alarm.scheduled = true;
            gate.send_at(&self.alarm.worker, deadline, Message::Tick);
        }
    }
}

impl<T, E, J, W> Stage for Operator<T, E, J, W>
where
    T: Send + 'static,
    E: Send + 'static,
    J: Timed<T, E, W>,
    W: Worker,
{
    type Message = Message<T, E>;

    fn receive(&mut self, message: Message<T, E>, gate: &Gate<Self>) {
        self.work(gate, |operator, alarm| match message {
            Message::Start => operator.start(alarm),
            Message::Source(Event::Next(value)) => operator.next_owned(value, alarm),
            Message::Source(Event::Slice(values)) => {
                for value in values {
                    if !operator.is_over() {
                        operator.next_owned(value, alarm);
                    }
                }
            }
            Message::Source(Event::Error(error)) => operator.error(&error),
            Message::Source(Event::Complete) => operator.complete(alarm),
            Message::SourceDisconnected => operator.source_disconnected(),
            Message::Tick => {
                alarm.scheduled = false;
                if alarm.is_due() {
                    operator.tick(alarm);
                }
            }
        });
    }

    fn is_over(&self) -> bool {
        self.operator.is_over()
    }
}

struct Input<T, E, J, W>
where
    T: Send + 'static,
    E: Send + 'static,
    J: Timed<T, E, W>,
    W: Worker,
{
    gate: Gate<Operator<T, E, J, W>>,
    key: u64,
}

impl<T, E, J, W> Observer<T, E> for Input<T, E, J, W>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    J: Timed<T, E, W>,
    W: Worker,
{
    fn next(&mut self, value: &T) {
        self.gate.enter(
            value,
            |stage, value, gate| stage.work(gate, |op, alarm| op.next(value, alarm)),
            |value| Message::Source(Event::Next(value.clone())),
        );
    }

    fn next_owned(&mut self, value: T) {
        self.gate.enter(
            value,
            |stage, value, gate| stage.work(gate, |op, alarm| op.next_owned(value, alarm)),
            |value| Message::Source(Event::Next(value)),
        );
    }

    fn error(&mut self, error: &E) {
        self.gate.enter(
            error,
            |stage, error, _| stage.operator.error(error),
            |error| Message::Source(Event::Error(error.clone())),
        );
    }

    fn complete(&mut self) {
        self.gate.send(Message::Source(Event::Complete));
        self.gate.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.gate.is_over()
    }
}

impl<T, E, J, W> Drop for Input<T, E, J, W>
where
    T: Send + 'static,
    E: Send + 'static,
    J: Timed<T, E, W>,
    W: Worker,
{
    fn drop(&mut self) {
        // Has no effect if the operator has ended or was unsubscribed.
        self.gate.send(Message::SourceDisconnected);
    }
}
