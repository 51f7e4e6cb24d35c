//! An observer that sends to a hub, for the end of a chain of operators.

use crate::Observer;
use crate::hub::SendError;

/// The methods of a merge or partition hub's producer that [`Feeding`] calls.
pub(crate) trait Producer<T, E>: Send {
    fn blocking_feed(&mut self, value: T) -> Result<(), SendError<T>>;
    fn flush(&mut self);
    fn complete(&mut self);
    fn fail(&mut self, error: E);
    fn is_closed(&self) -> bool;
}

/// An observer that sends to a hub's producer, whose error type is `E`.
pub(crate) struct Feeding<P, E>(P, std::marker::PhantomData<fn(E)>);

impl<P, E> Feeding<P, E> {
    pub(crate) fn new(producer: P) -> Self {
        Self(producer, std::marker::PhantomData)
    }
}

impl<T: Clone, E, X: Clone + Into<E>, P: Producer<T, E>> Observer<T, X> for Feeding<P, E> {
    fn next(&mut self, value: &T) {
        Observer::<T, X>::next_owned(self, value.clone());
    }

    fn next_owned(&mut self, value: T) {
        // If the hub is closed, the source finds out through `is_closed`.
        if self.0.blocking_feed(value).is_ok() {
            self.0.flush();
        }
    }

    fn next_slice(&mut self, values: &[T]) {
        for value in values {
            if self.0.blocking_feed(value.clone()).is_err() {
                return;
            }
        }
        self.0.flush();
    }

    fn error(&mut self, error: &X) {
        self.0.fail(error.clone().into());
    }

    fn complete(&mut self) {
        self.0.complete();
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
