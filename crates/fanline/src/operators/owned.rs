use crate::Observer;

/// An observer that passes owned values to a closure; see
/// [`ObservableExt::subscribe_owned`](crate::ObservableExt::subscribe_owned).
pub(super) struct OwnedObserver<F>(pub(super) F);

impl<T: Clone, E, F: FnMut(T)> Observer<T, E> for OwnedObserver<F> {
    #[inline]
    fn next(&mut self, value: &T) {
        (self.0)(value.clone());
    }

    #[inline]
    fn next_owned(&mut self, value: T) {
        (self.0)(value);
    }

    fn error(&mut self, _error: &E) {}

    fn complete(&mut self) {}
}
