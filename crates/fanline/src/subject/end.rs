//! How a subject ended.

use alloc::sync::Arc;

/// How a subject ended; see [`Source::end`](crate::Source::end).
///
/// ```
/// use fanline::End;
///
/// let (tx, source) = fanline::subject_with_error::<u32, String>();
/// assert_eq!(source.end(), None);
/// tx.error("out of paper".to_owned());
/// match source.end() {
///     Some(End::Failed(error)) => assert_eq!(*error, "out of paper"),
///     other => unreachable!("{other:?}"),
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End<E> {
    /// The subject has completed.
    Completed,
    /// The subject has failed with this error.
    Failed(Arc<E>),
    /// The subject was disposed of, for example by dropping its producer, or the last handle of a shared
    /// subject.
    Disposed,
}

impl<E> Clone for End<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Completed => Self::Completed,
            Self::Failed(error) => Self::Failed(error.clone()),
            Self::Disposed => Self::Disposed,
        }
    }
}
