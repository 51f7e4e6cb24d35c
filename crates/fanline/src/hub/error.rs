//! What can go wrong, by who is told.

use std::fmt;
use std::sync::Arc;

/// What a hub fails with unless another type is named: anything that is an error, or a text.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How a hub has ended.
#[derive(Debug)]
pub(crate) enum Ended<E> {
    Completed,
    Error(HubError<E>),
}

impl<E> Ended<E> {
    /// The error that it was, if it was one.
    pub(crate) fn error(&self) -> Option<&HubError<E>> {
        match self {
            Self::Completed => None,
            Self::Error(error) => Some(error),
        }
    }
}

impl<E> Clone for Ended<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Completed => Self::Completed,
            Self::Error(error) => Self::Error(error.clone()),
        }
    }
}

/// Why a consumer gets no more elements, other than completion.
#[derive(Debug)]
#[non_exhaustive]
pub enum HubError<E = BoxError> {
    /// The producer failed, or a kill switch said so. All consumers share the one error.
    Failed(Arc<E>),
    /// The producer was dropped by a panic, and did not come to its end.
    Abandoned,
    /// This consumer held everybody up for longer than allowed, and was cut off.
    TooSlow,
}

impl<E> HubError<E> {
    /// What the producer failed with, if it did.
    pub fn failure(&self) -> Option<&E> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Abandoned | Self::TooSlow => None,
        }
    }
}

impl<E> Clone for HubError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(error.clone()),
            Self::Abandoned => Self::Abandoned,
            Self::TooSlow => Self::TooSlow,
        }
    }
}

impl<E: fmt::Display> fmt::Display for HubError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "the producer failed: {error}"),
            Self::Abandoned => f.write_str("the producer panicked"),
            Self::TooSlow => f.write_str("cut off for being too slow"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for HubError<E> {}

/// What `recv` gives instead of an element.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RecvError<E = BoxError> {
    /// So many elements were overwritten before this consumer came to them; the next call goes on with
    /// the oldest that is kept.
    Lagged(u64),
    /// The producer has completed, and everything was received.
    Completed,
    /// Nothing follows.
    Failed(HubError<E>),
}

impl<E: fmt::Display> fmt::Display for RecvError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lagged(count) => write!(f, "{count} elements were missed"),
            Self::Completed => f.write_str("completed"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RecvError<E> {}

/// What `try_recv` gives instead of an element.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TryRecvError<E = BoxError> {
    /// There is nothing yet.
    Empty,
    /// As [`RecvError::Lagged`].
    Lagged(u64),
    /// As [`RecvError::Completed`].
    Completed,
    /// As [`RecvError::Failed`].
    Failed(HubError<E>),
}

impl<E: fmt::Display> fmt::Display for TryRecvError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing yet"),
            Self::Lagged(count) => write!(f, "{count} elements were missed"),
            Self::Completed => f.write_str("completed"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for TryRecvError<E> {}

/// The hub takes no more elements: it was ended, or nobody is there and nobody can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the hub is closed")
    }
}

impl std::error::Error for Closed {}

/// The hub is [`Closed`]; the element comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Closed.fmt(f)
    }
}

impl<T> std::error::Error for SendError<T> {}

/// Why an element was not taken; it comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room now.
    Full(T),
    /// The hub is [`Closed`].
    Closed(T),
}

impl<T> TrySendError<T> {
    /// The element.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Full(_) => "Full",
            Self::Closed(_) => "Closed",
        };
        f.debug_tuple(name).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("the hub is full"),
            Self::Closed(_) => Closed.fmt(f),
        }
    }
}

impl<T> std::error::Error for TrySendError<T> {}

/// An option that cannot be; the message names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionsError {
    option: &'static str,
    kind: OptionsErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionsErrorKind {
    TooSmall { min: usize },
    TooLarge { max: usize },
    NoMemory,
    ZeroTime,
}

impl OptionsError {
    /// The name of the option.
    pub fn option(&self) -> &'static str {
        self.option
    }

    pub(crate) const fn too_small(option: &'static str, min: usize) -> Self {
        let kind = OptionsErrorKind::TooSmall { min };
        Self { option, kind }
    }

    pub(crate) const fn too_large(option: &'static str, max: usize) -> Self {
        let kind = OptionsErrorKind::TooLarge { max };
        Self { option, kind }
    }

    pub(crate) const fn no_memory(option: &'static str) -> Self {
        let kind = OptionsErrorKind::NoMemory;
        Self { option, kind }
    }

    pub(crate) const fn zero_time(option: &'static str) -> Self {
        let kind = OptionsErrorKind::ZeroTime;
        Self { option, kind }
    }

    pub(crate) fn check_range(
        option: &'static str,
        value: usize,
        min: usize,
        max: usize,
    ) -> Result<(), Self> {
        if value < min {
            return Err(Self::too_small(option, min));
        }
        if value > max {
            return Err(Self::too_large(option, max));
        }
        Ok(())
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = self.option;
        match self.kind {
            OptionsErrorKind::TooSmall { min } => write!(f, "`{option}` must be at least {min}"),
            OptionsErrorKind::TooLarge { max } => write!(f, "`{option}` must be at most {max}"),
            OptionsErrorKind::NoMemory => {
                write!(f, "`{option}` needs more memory than there is")
            }
            OptionsErrorKind::ZeroTime => write!(f, "`{option}` must be longer than no time"),
        }
    }
}

impl std::error::Error for OptionsError {}
