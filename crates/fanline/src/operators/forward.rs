//! What nearly every operator's observer does the same way.

use crate::Observer;

/// Methods of an `impl<T, E, ..> Observer<T, E>` that hand the call to `self.observer` as it is.
/// `T` and `E` are the impl's own names.
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

/// Completes, unless the observer has ended by itself.
#[inline]
pub(crate) fn complete<T, E>(observer: &mut impl Observer<T, E>) {
    if !observer.is_closed() {
        observer.complete();
    }
}

/// Emits the values one by one for as long as they are wanted, and tells whether they still are.
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
