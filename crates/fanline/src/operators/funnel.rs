//! A gate whose stage contains only the observer, for operators in which many sources call one observer.

use alloc::sync::Arc;
use core::marker::PhantomData;

use super::gate::{Event, Gate, Out, Stage};
use super::upstreams::Upstreams;
use crate::sync::{AtomicUsize, Ordering};
use crate::{Guard, Observable, Observer};

/// An observer that many sources may call concurrently.
pub(super) struct Funnel<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    gate: Gate<FunnelStage<T, E, O>>,
}

pub(super) struct FunnelStage<T, E, O> {
    out: Out<O>,
    types: PhantomData<fn(T, E)>,
}

impl<T, E, O> Stage for FunnelStage<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    type Message = Event<T, E>;

    fn receive(&mut self, message: Event<T, E>, _gate: &Gate<Self>) {
        message.deliver(&mut self.out);
    }

    fn is_over(&self) -> bool {
        Observer::<T, E>::is_closed(&self.out)
    }
}

impl<T, E, O> Funnel<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    pub(super) fn new(observer: O) -> Self {
        Self {
            gate: Gate::new(FunnelStage {
                out: Out::new(observer),
                types: PhantomData,
            }),
        }
    }

    #[inline]
    pub(super) fn next(&self, value: &T) {
        self.gate.enter(
            value,
            |stage, value, _| stage.out.next(value),
            |value| Event::Next(value.clone()),
        );
    }

    #[inline]
    pub(super) fn next_owned(&self, value: T) {
        self.gate.enter(
            value,
            |stage, value, _| stage.out.next_owned(value),
            Event::Next,
        );
    }

    pub(super) fn next_slice(&self, values: &[T]) {
        self.gate.enter(
            values,
            |stage, values, _| stage.out.next_slice(values),
            |values| Event::Slice(values.to_vec()),
        );
    }

    pub(super) fn error(&self, error: &E) {
        self.gate.enter(
            error,
            |stage, error, _| stage.out.error(error),
            |error| Event::Error(error.clone()),
        );
    }

    pub(super) fn complete(&self) {
        self.gate.send(Event::Complete);
    }

    pub(super) fn is_over(&self) -> bool {
        self.gate.is_over()
    }

    pub(super) fn gate(&self) -> &Gate<FunnelStage<T, E, O>> {
        &self.gate
    }

    pub(super) fn upstreams(&self) -> &Upstreams {
        self.gate.upstreams()
    }

    pub(super) fn guard(&self) -> Guard {
        self.gate.guard()
    }
}

impl<T, E, O> Clone for Funnel<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    fn clone(&self) -> Self {
        Self {
            gate: self.gate.clone(),
        }
    }
}

/// An observer of a fixed number of sources, which completes when the last of them does.
pub(super) struct MergedSources<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    funnel: Funnel<T, E, O>,
    open: Arc<AtomicUsize>,
}

impl<T, E, O> MergedSources<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    pub(super) fn new(observer: O, sources: usize) -> Self {
        Self {
            funnel: Funnel::new(observer),
            open: Arc::new(AtomicUsize::new(sources)),
        }
    }

    pub(super) fn guard(&self) -> Guard {
        self.funnel.guard()
    }

    pub(super) fn is_over(&self) -> bool {
        self.funnel.is_over()
    }

    pub(super) fn add<S>(&self, source: S)
    where
        S: Observable<Item = T, Error = E>,
    {
        self.funnel.gate().connect(|key| {
            let open = Arc::clone(&self.open);
            source.subscribe_with(self.funnel.inlet(move |funnel| {
                // Acquire and release: the last completion comes after the values of the others.
                if open.fetch_sub(1, Ordering::AcqRel) == 1 {
                    funnel.complete();
                } else {
                    funnel.upstreams().finish(key);
                }
            }))
        });
    }
}

/// An observer that forwards values and errors to a funnel, and calls `on_complete` on completion.
pub(super) struct Inlet<T, E, O, F>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    funnel: Funnel<T, E, O>,
    on_complete: F,
}

impl<T, E, O> Funnel<T, E, O>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
{
    pub(super) fn inlet<F>(&self, on_complete: F) -> Inlet<T, E, O, F>
    where
        F: FnMut(&Self) + Send + 'static,
    {
        Inlet {
            funnel: self.clone(),
            on_complete,
        }
    }
}

impl<T, E, O, F> Observer<T, E> for Inlet<T, E, O, F>
where
    T: Clone + Send + 'static,
    E: Clone + Send + 'static,
    O: Observer<T, E> + Send + 'static,
    F: FnMut(&Funnel<T, E, O>),
{
    #[inline]
    fn next(&mut self, value: &T) {
        self.funnel.next(value);
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        self.funnel.next_owned(value);
    }

    fn next_slice(&mut self, values: &[T]) {
        self.funnel.next_slice(values);
    }

    fn error(&mut self, error: &E) {
        self.funnel.error(error);
    }

    fn complete(&mut self) {
        (self.on_complete)(&self.funnel);
    }

    fn is_closed(&self) -> bool {
        self.funnel.is_over()
    }
}
