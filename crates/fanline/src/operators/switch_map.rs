use alloc::sync::Arc;

use super::gate::{Event, Gate, Out, Stage};
use crate::sync::{AtomicUsize, Ordering};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`switch_map`](crate::CombineExt::switch_map).
///
/// Emits the values of the observable that `f` returns for the latest value. The previous observable is
/// unsubscribed first.
///
/// Completes when the source and the latest observable have completed; fails with the first error of these.
/// Stores no values. If `f` panics, the subscription ends without a call to the observer.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut typed, texts) = fanline::subject::<u32>();
/// let _guard = texts
///     .switch_map(|&text| fanline::from_iter([text, text * 10])) // the results of a search
///     .subscribe(|value| println!("{value}"));
/// typed.next(1);
/// ```
#[derive(Clone, Debug)]
pub struct SwitchMap<S, F> {
    source: S,
    f: F,
}

impl<S, F> SwitchMap<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, R, F> Observable for SwitchMap<S, F>
where
    S: Observable,
    R: IntoObservable<Item: Clone + Send + 'static, Error = S::Error>,
    S::Error: Clone + Send + 'static,
    F: FnMut(&S::Item) -> R + Send + 'static,
{
    type Item = R::Item;
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<R::Item, S::Error> + Send + 'static,
    {
        let gate = Gate::new(Switch {
            out: Out::new(observer),
            current: None,
            outer_complete: false,
            types: core::marker::PhantomData,
        });
        let guard = gate.guard();
        gate.connect(|key| {
            self.source.subscribe_with(Outer {
                gate: gate.clone(),
                latest: Arc::new(AtomicUsize::new(word(key))),
                f: self.f,
                key,
                inner: None,
            })
        });
        guard
    }
}

struct Switch<T, E, O> {
    out: Out<O>,
    /// The key of the inner source that may emit. `None` after that source has completed.
    current: Option<u64>,
    outer_complete: bool,
    types: core::marker::PhantomData<fn(T, E)>,
}

enum Message<T, E> {
    To(u64),
    Inner(u64, Event<T, E>),
    OuterError(E),
    OuterComplete,
}

impl<T, E, O> Switch<T, E, O>
where
    O: Observer<T, E>,
{
    fn inner(&mut self, key: u64, call: impl FnOnce(&mut Out<O>)) {
        if self.current == Some(key) {
            call(&mut self.out);
        }
    }

    fn inner_complete(&mut self, key: u64) {
        if self.current == Some(key) {
            self.current = None;
            if self.outer_complete {
                self.out.complete();
            }
        }
    }
}

impl<T, E, O> Stage for Switch<T, E, O>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    type Message = Message<T, E>;

    fn receive(&mut self, message: Message<T, E>, _gate: &Gate<Self>) {
        match message {
            Message::To(key) => self.current = Some(key),
            Message::Inner(key, Event::Complete) => self.inner_complete(key),
            Message::Inner(key, event) => self.inner(key, |out| event.deliver(out)),
            Message::OuterError(error) => self.out.error(&error),
            Message::OuterComplete => {
                self.outer_complete = true;
                if self.current.is_none() {
                    self.out.complete();
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        Observer::<T, E>::is_closed(&self.out)
    }
}

struct Outer<F, T, E, O>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    gate: Gate<Switch<T, E, O>>,
    /// The key of the latest inner source. An older source that emits in a loop stops when it sees the
    /// change. Relaxed suffices, because the stage drops its later values.
    latest: Arc<AtomicUsize>,
    f: F,
    key: u64,
    inner: Option<u64>,
}

impl<V, R, F, O> Observer<V, R::Error> for Outer<F, R::Item, R::Error, O>
where
    R: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    F: FnMut(&V) -> R,
    O: Observer<R::Item, R::Error> + Send + 'static,
{
    fn next(&mut self, value: &V) {
        let panicked = self.gate.close_on_panic();
        let upstreams = self.gate.upstreams();
        if let Some(key) = upstreams.reserve() {
            self.latest.store(word(key), Ordering::Relaxed);
            self.gate.send(Message::To(key));
            if let Some(before) = self.inner.replace(key) {
                upstreams.finish(before);
            }
            let inner = (self.f)(value).into_observable();
            let guard = inner.subscribe_with(Inner {
                gate: self.gate.clone(),
                latest: Arc::clone(&self.latest),
                key,
            });
            upstreams.set(key, guard);
        }
        panicked.disarm();
    }

    fn error(&mut self, error: &R::Error) {
        self.gate.enter(
            error,
            |stage, error, _| stage.out.error(error),
            |error| Message::OuterError(error.clone()),
        );
    }

    fn complete(&mut self) {
        self.gate.send(Message::OuterComplete);
        self.gate.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.gate.is_over()
    }
}

struct Inner<T, E, O>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    gate: Gate<Switch<T, E, O>>,
    latest: Arc<AtomicUsize>,
    key: u64,
}

impl<T, E, O> Observer<T, E> for Inner<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn next(&mut self, value: &T) {
        self.gate.enter(
            (self.key, value),
            |stage, (key, value), _| stage.inner(key, |out| out.next(value)),
            |(key, value)| Message::Inner(key, Event::Next(value.clone())),
        );
    }

    fn next_owned(&mut self, value: T) {
        self.gate.enter(
            (self.key, value),
            |stage, (key, value), _| stage.inner(key, |out| out.next_owned(value)),
            |(key, value)| Message::Inner(key, Event::Next(value)),
        );
    }

    fn error(&mut self, error: &E) {
        self.gate.enter(
            (self.key, error),
            |stage, (key, error), _| stage.inner(key, |out| out.error(error)),
            |(key, error)| Message::Inner(key, Event::Error(error.clone())),
        );
    }

    fn complete(&mut self) {
        self.gate.send(Message::Inner(self.key, Event::Complete));
        self.gate.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.gate.is_over() || self.latest.load(Ordering::Relaxed) != word(self.key)
    }
}

/// Returns as much of a key as an atomic holds on every target.
fn word(key: u64) -> usize {
    usize::try_from(key & usize::MAX as u64).expect("masked")
}
