//! `debounce_with` and `throttle_with`: operators with one notifier at a time.

use super::gate::{Event, Gate, Out, Stage};
use super::inputs::{connect, notify};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`debounce_with`](crate::CombineExt::debounce_with).
///
/// Emits a value when the observable that `f` returns for it emits or completes, unless another value arrives
/// before that.
///
/// On completion, the pending value is emitted first. An error of the source or of the observable is passed
/// on at once, and the pending value is dropped. Stores one value. If `f` panics, the subscription ends
/// without a call to the observer.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let clock = time.clone();
/// let (mut tx, texts) = fanline::subject::<&str>();
/// let _guard = texts
///     .debounce_with(move |text| {
///         let wait = if text.len() < 3 { 500 } else { 100 };
///         fanline::timer_on(Duration::from_millis(wait), clock.clone())
///     })
///     .subscribe(|text| println!("search for {text}"));
/// tx.next("ru");
/// tx.next("rust");
/// time.advance_by(Duration::from_millis(100)); // search for rust
/// ```
#[derive(Clone, Debug)]
pub struct DebounceWith<S, F> {
    source: S,
    f: F,
}

impl<S, F> DebounceWith<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, R, F> Observable for DebounceWith<S, F>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    R: IntoObservable<Error = S::Error>,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        subscribe(self.source, self.f, observer, Pace::Debounce)
    }
}

/// The observable returned by [`throttle_with`](crate::CombineExt::throttle_with).
///
/// Emits a value and then drops values until the observable that `f` returned for it emits or completes.
///
/// Completes with the source, at once; fails with the first error of the source or of the observable. Stores
/// no values. If `f` panics, the subscription ends without a call to the observer.
///
/// ```
/// use std::time::Duration;
/// use fanline::{prelude::*, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let clock = time.clone();
/// let (mut tx, source) = fanline::subject::<u64>();
/// let _guard = source
///     .throttle_with(move |ms| fanline::timer_on(Duration::from_millis(*ms), clock.clone()))
///     .subscribe(|value| println!("{value}"));
/// tx.next(10); // 10
/// tx.next(11);
/// time.advance_by(Duration::from_millis(10));
/// tx.next(12); // 12
/// ```
#[derive(Clone, Debug)]
pub struct ThrottleWith<S, F> {
    source: S,
    f: F,
}

impl<S, F> ThrottleWith<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, R, F> Observable for ThrottleWith<S, F>
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    R: IntoObservable<Error = S::Error>,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = S::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<S::Item, S::Error> + Send + 'static,
    {
        subscribe(self.source, self.f, observer, Pace::Throttle)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Debounce,
    Throttle,
}

fn subscribe<S, R, F, O>(source: S, f: F, observer: O, pace: Pace) -> Guard
where
    S: Observable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    R: IntoObservable<Error = S::Error>,
    F: FnMut(&S::Item) -> R + Send + 'static,
    O: Observer<S::Item, S::Error> + Send + 'static,
{
    let gate = Gate::new(Paced {
        out: Out::new(observer),
        f,
        pace,
        pending: None,
        number: 0,
        notifier: None,
    });
    let guard = gate.guard();
    connect(&gate, source, Message::Source);
    guard
}

struct Paced<T, O, F> {
    out: Out<O>,
    f: F,
    pace: Pace,
    /// The value that waits for its notifier; only for [`Pace::Debounce`].
    pending: Option<T>,
    /// The number of the latest notifier. A message of an older one is ignored.
    number: u64,
    notifier: Option<Notifier>,
}

/// The notifier that has not sent its message.
struct Notifier {
    key: Option<u64>,
}

enum Message<T, E> {
    Source(Event<T, E>),
    Notified(u64, Result<(), E>),
}

impl<T, O, R, F> Paced<T, O, F>
where
    T: Clone + Send + 'static,
    R: IntoObservable<Error: Clone + Send + 'static>,
    O: Observer<T, R::Error> + Send + 'static,
    F: FnMut(&T) -> R + Send + 'static,
{
    fn value(&mut self, value: T, gate: &Gate<Self>) {
        if self.pace == Pace::Throttle && self.notifier.is_some() {
            return;
        }
        if let Some(Notifier { key: Some(key) }) = self.notifier.take() {
            gate.upstreams().finish(key);
        }
        let notifier = (self.f)(&value);
        match self.pace {
            Pace::Debounce => self.pending = Some(value),
            Pace::Throttle => {
                self.out.next_owned(value);
                if self.out.is_closed() {
                    return;
                }
            }
        }
        self.number += 1;
        let number = self.number;
        // A notifier that emits at once queues its message, so the state is set before it is handled.
        let key = notify(gate, notifier, move |result| {
            Message::Notified(number, result)
        });
        self.notifier = Some(Notifier { key });
    }

    fn notified(&mut self, number: u64, result: Result<(), R::Error>) {
        if number != self.number {
            return;
        }
        self.notifier = None;
        match result {
            Ok(()) => self.emit_pending(),
            Err(error) => self.out.error(&error),
        }
    }

    fn emit_pending(&mut self) {
        if let Some(value) = self.pending.take() {
            self.out.next_owned(value);
        }
    }
}

impl<T, O, R, F> Stage for Paced<T, O, F>
where
    T: Clone + Send + 'static,
    R: IntoObservable<Error: Clone + Send + 'static>,
    O: Observer<T, R::Error> + Send + 'static,
    F: FnMut(&T) -> R + Send + 'static,
{
    type Message = Message<T, R::Error>;

    fn receive(&mut self, message: Self::Message, gate: &Gate<Self>) {
        match message {
            Message::Source(Event::Next(value)) => self.value(value, gate),
            Message::Source(Event::Complete) => {
                self.emit_pending();
                self.out.complete();
            }
            Message::Source(event) => event.deliver(&mut self.out),
            Message::Notified(number, result) => self.notified(number, result),
        }
    }

    fn is_over(&self) -> bool {
        Observer::<T, R::Error>::is_closed(&self.out)
    }
}
