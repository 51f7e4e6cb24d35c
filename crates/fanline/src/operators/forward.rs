//! Common parts of the observers of operators.

use crate::Observer;

/// Defines methods of an `impl<T, E, ..> Observer<T, E>` that forward the call to `self.observer`. `T` and
/// `E` are the names that the impl uses.
macro_rules! forward {
    ($($method:ident),+) => { $($crate::operators::forward::forward!(@$method);)+ };
    (@next) => {
        #[inline]
        fn next(&mut self, value: &T) {
            self.observer.next(value);
        }

        #[inline]
        fn next_owned(&mut self, value: T) {
            self.observer.next_owned(value);
        }

        #[inline]
        fn next_slice(&mut self, values: &[T]) {
            self.observer.next_slice(values);
        }
    };
    (@error) => {
        fn error(&mut self, error: &E) {
            self.observer.error(error);
        }
    };
    (@complete) => {
        fn complete(&mut self) {
            self.observer.complete();
        }
    };
    (@is_closed) => {
        #[inline]
        fn is_closed(&self) -> bool {
            self.observer.is_closed()
        }
    };
}
pub(crate) use forward;

/// Completes the observer, unless it is closed.
#[inline]
pub(crate) fn complete<T, E>(observer: &mut impl Observer<T, E>) {
    if !observer.is_closed() {
        observer.complete();
    }
}

/// Emits the values one by one until the observer is closed. Returns whether it is still open.
pub(crate) fn emit_all<T, E>(
    observer: &mut impl Observer<T, E>,
    values: impl IntoIterator<Item = T>,
) -> bool {
    if observer.is_closed() {
        return false;
    }
    for value in values {
        observer.next_owned(value);
        if observer.is_closed() {
            return false;
        }
    }
    true
}
