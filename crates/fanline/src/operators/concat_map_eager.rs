use alloc::collections::VecDeque;

use super::gate::{Event, Gate, Out, Stage};
use crate::{Guard, IntoObservable, Observable, Observer};

/// The observable returned by [`concat_map_eager`](crate::CombineExt::concat_map_eager).
///
/// Emits the values of the observables that `f` returns in the order of
/// [`concat_map`](crate::CombineExt::concat_map), but subscribes to each observable at once: their work runs
/// concurrently, and only their values wait.
///
/// Stores, without bound, the values of all observables but the first one that has not completed. Completes
/// when the source and all observables have completed; fails at once with the first error, without the stored
/// values. If `f` panics, the subscription ends without a call to the observer.
///
/// ```
/// use fanline::prelude::*;
///
/// let (mut slow, from_slow) = fanline::subject::<&str>();
/// let (mut fast, from_fast) = fanline::subject::<&str>();
/// let _guard = fanline::from_iter([from_slow, from_fast])
///     .concat_map_eager(Clone::clone)
///     .subscribe(|value| println!("{value}"));
/// fast.next("second");
/// slow.next("first"); // first
/// slow.complete(); // second
/// ```
#[derive(Clone, Debug)]
pub struct ConcatMapEager<S, F> {
    source: S,
    f: F,
}

impl<S, F> ConcatMapEager<S, F> {
    pub(super) fn new(source: S, f: F) -> Self {
        Self { source, f }
    }
}

impl<S, R, F> Observable for ConcatMapEager<S, F>
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
        let gate = Gate::new(Ordered {
            out: Out::new(observer),
            inners: VecDeque::new(),
            outer_complete: false,
        });
        let guard = gate.guard();
        gate.connect(|key| {
            self.source.subscribe_with(Outer {
                gate: gate.clone(),
                f: self.f,
                key,
            })
        });
        guard
    }
}

struct Ordered<T, E, O> {
    out: Out<O>,
    /// The inner sources that have not completed or have stored values, in order. The first one passes its
    /// values on.
    inners: VecDeque<InnerState<T, E>>,
    outer_complete: bool,
}

struct InnerState<T, E> {
    key: u64,
    stored: VecDeque<Event<T, E>>,
    complete: bool,
}

enum Message<T, E> {
    Add(u64),
    Inner(u64, Event<T, E>),
    OuterError(E),
    OuterComplete,
}

impl<T, E, O: Observer<T, E>> Ordered<T, E, O> {
    fn inner(&mut self, key: u64, event: Event<T, E>) {
        if let Event::Error(error) = event {
            self.out.error(&error);
            return;
        }
        let Some(at) = self.inners.iter().position(|inner| inner.key == key) else {
            return;
        };
        match event {
            Event::Complete => self.inners[at].complete = true,
            event if at == 0 => event.deliver(&mut self.out),
            event => self.inners[at].stored.push_back(event),
        }
        self.advance();
    }

    /// Removes the completed sources at the front, and emits the stored values of each new first source.
    fn advance(&mut self) {
        while let Some(first) = self.inners.front_mut() {
            while let Some(event) = first.stored.pop_front() {
                event.deliver(&mut self.out);
                if self.out.is_closed() {
                    return;
                }
            }
            if !first.complete {
                return;
            }
            self.inners.pop_front();
        }
        if self.outer_complete {
            self.out.complete();
        }
    }
}

impl<T, E, O> Stage for Ordered<T, E, O>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    type Message = Message<T, E>;

    fn receive(&mut self, message: Message<T, E>, _gate: &Gate<Self>) {
        match message {
            Message::Add(key) => self.inners.push_back(InnerState {
                key,
                stored: VecDeque::new(),
                complete: false,
            }),
            Message::Inner(key, event) => self.inner(key, event),
            Message::OuterError(error) => self.out.error(&error),
            Message::OuterComplete => {
                self.outer_complete = true;
                self.advance();
            }
        }
    }

    fn is_over(&self) -> bool {
        self.out.is_closed()
    }
}

struct Outer<F, T, E, O>
where
    T: Send + 'static,
    E: Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    gate: Gate<Ordered<T, E, O>>,
    f: F,
    key: u64,
}

impl<V, R, F, O> Observer<V, R::Error> for Outer<F, R::Item, R::Error, O>
where
    R: IntoObservable<Item: Clone + Send + 'static, Error: Clone + Send + 'static>,
    F: FnMut(&V) -> R,
    O: Observer<R::Item, R::Error> + Send + 'static,
{
    fn next(&mut self, value: &V) {
        if self.gate.is_over() {
            return;
        }
        let panicked = self.gate.close_on_panic();
        let inner = (self.f)(value).into_observable();
        self.gate.connect(|key| {
            self.gate.send(Message::Add(key));
            inner.subscribe_with(Inner {
                gate: self.gate.clone(),
                key,
            })
        });
        panicked.disarm();
    }

    fn error(&mut self, error: &R::Error) {
        self.gate.send(Message::OuterError(error.clone()));
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
    gate: Gate<Ordered<T, E, O>>,
    key: u64,
}

impl<T, E, O> Observer<T, E> for Inner<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn next(&mut self, value: &T) {
        self.next_owned(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        self.gate.send(Message::Inner(self.key, Event::Next(value)));
    }

    fn error(&mut self, error: &E) {
        self.gate
            .send(Message::Inner(self.key, Event::Error(error.clone())));
    }

    fn complete(&mut self) {
        self.gate.send(Message::Inner(self.key, Event::Complete));
        self.gate.upstreams().finish(self.key);
    }

    fn is_closed(&self) -> bool {
        self.gate.is_over()
    }
}
