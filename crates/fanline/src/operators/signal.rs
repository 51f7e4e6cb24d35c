//! A source whose values carry no data.

use crate::{Guard, Observable, Observer};

/// Emits `()` for each value, so that the values themselves need not be cloned or sent.
#[derive(Clone, Debug)]
pub(super) struct Signal<S>(pub(super) S);

impl<S: Observable> Observable for Signal<S> {
    type Item = ();
    type Error = S::Error;

    fn subscribe_with<O>(self, observer: O) -> Guard
    where
        O: Observer<(), S::Error> + Send + 'static,
    {
        self.0.subscribe_with(SignalObserver(observer))
    }
}

struct SignalObserver<O>(O);

impl<T, E, O: Observer<(), E>> Observer<T, E> for SignalObserver<O> {
    fn next(&mut self, _value: &T) {
        self.0.next_owned(());
    }

    fn error(&mut self, error: &E) {
        self.0.error(error);
    }

    fn complete(&mut self) {
        self.0.complete();
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
