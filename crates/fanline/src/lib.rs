//! In-process fan-out. This release holds the contract that everything else stands on, the
//! [`Observer`]; subjects, replay and hubs come next and are not here yet.

/// Receives what a subject multicasts.
///
/// The grammar is `next* (error | complete)?`: any number of values, then at most one end.
/// After an end nothing is called again.
///
/// ```
/// struct Sum(u64);
///
/// impl fanline::Observer<u64> for Sum {
///     fn next(&mut self, value: &u64) {
///         self.0 += value;
///     }
///     fn error(&mut self, error: &std::convert::Infallible) {
///         match *error {}
///     }
///     fn complete(&mut self) {}
/// }
///
/// use fanline::Observer;
/// let mut sum = Sum(0);
/// sum.next(&2);
/// sum.next(&3);
/// sum.complete();
/// assert_eq!(sum.0, 5);
/// ```
pub trait Observer<T, E = std::convert::Infallible> {
    /// One value; it is borrowed because every other observer gets the same one.
    fn next(&mut self, value: &T);
    /// The source failed; nothing follows.
    fn error(&mut self, error: &E);
    /// The source is done; nothing follows.
    fn complete(&mut self);
}
