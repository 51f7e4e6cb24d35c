//! Errors of hubs.

use std::fmt;
use std::sync::Arc;

/// The default error type of a hub: any error, or a text.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The way a hub ended.
#[derive(Debug)]
pub(crate) enum Ended<E> {
    Completed,
    Error(HubError<E>),
}

impl<E> Ended<E> {
    /// Returns the error, if the hub failed.
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

/// The reason why a consumer gets no more elements, if the hub did not complete.
#[derive(Debug)]
#[non_exhaustive]
pub enum HubError<E = BoxError> {
    /// The producer failed, or a kill switch reported an error. All consumers share the error.
    Failed(Arc<E>),
    /// A panic dropped the producer before the producer had completed or failed, or the task of a
    /// [`Relay`](crate::hub::Relay) was dropped before the end.
    Abandoned,
    /// This consumer delayed the hub for longer than allowed, and was disconnected.
    TooSlow,
}

impl<E> HubError<E> {
    /// Returns the producer's error, if it failed.
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
            Self::Abandoned => f.write_str("the producer was dropped before the end"),
            Self::TooSlow => f.write_str("disconnected as a slow consumer"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for HubError<E> {}

/// The reason why `recv` returned no element.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RecvError<E = BoxError> {
    /// The number of elements that the hub dropped before the consumer received them. The next call returns
    /// the oldest element that is still stored.
    Lagged(u64),
    /// The producer has completed, and every element was received.
    Completed,
    /// The hub failed; no element follows.
    Failed(HubError<E>),
}

impl<E: fmt::Display> fmt::Display for RecvError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lagged(count) => write!(f, "{count} elements were lost"),
            Self::Completed => f.write_str("completed"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RecvError<E> {}

/// The reason why `try_recv` returned no element.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TryRecvError<E = BoxError> {
    /// No element is available yet.
    Empty,
    /// See [`RecvError::Lagged`].
    Lagged(u64),
    /// See [`RecvError::Completed`].
    Completed,
    /// See [`RecvError::Failed`].
    Failed(HubError<E>),
}

impl<E: fmt::Display> fmt::Display for TryRecvError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no element is available yet"),
            Self::Lagged(count) => write!(f, "{count} elements were lost"),
            Self::Completed => f.write_str("completed"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for TryRecvError<E> {}

/// The reason why `recv_timeout` returned no element.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RecvTimeoutError<E = BoxError> {
    /// No element arrived in time.
    Timeout,
    /// See [`RecvError::Lagged`].
    Lagged(u64),
    /// See [`RecvError::Completed`].
    Completed,
    /// See [`RecvError::Failed`].
    Failed(HubError<E>),
}

impl<E> From<RecvError<E>> for RecvTimeoutError<E> {
    fn from(error: RecvError<E>) -> Self {
        match error {
            RecvError::Lagged(count) => Self::Lagged(count),
            RecvError::Completed => Self::Completed,
            RecvError::Failed(error) => Self::Failed(error),
        }
    }
}

/// Makes [`TryRecvError::Empty`] a [`RecvTimeoutError::Timeout`].
impl<E> From<TryRecvError<E>> for RecvTimeoutError<E> {
    fn from(error: TryRecvError<E>) -> Self {
        match error {
            TryRecvError::Empty => Self::Timeout,
            TryRecvError::Lagged(count) => Self::Lagged(count),
            TryRecvError::Completed => Self::Completed,
            TryRecvError::Failed(error) => Self::Failed(error),
        }
    }
}

impl<E: fmt::Display> fmt::Display for RecvTimeoutError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("no element arrived in time"),
            Self::Lagged(count) => write!(f, "{count} elements were lost"),
            Self::Completed => f.write_str("completed"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RecvTimeoutError<E> {}

/// The hub accepts no more elements: it has ended, or it has no consumer and can get none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubClosed;

impl fmt::Display for HubClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the hub is closed")
    }
}

impl std::error::Error for HubClosed {}

/// The hub is [`HubClosed`]. Contains the rejected element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HubClosed.fmt(f)
    }
}

impl<T> std::error::Error for SendError<T> {}

/// The reason why an element was rejected. Contains the element.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrySendError<T> {
    /// The hub is full.
    Full(T),
    /// The hub is [`HubClosed`].
    Closed(T),
}

impl<T> TrySendError<T> {
    /// Returns the rejected element.
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
            Self::Closed(_) => HubClosed.fmt(f),
        }
    }
}

impl<T> std::error::Error for TrySendError<T> {}

/// The reason why `send_timeout` did not send an element. Contains the element.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendTimeoutError<T> {
    /// The hub was full for the whole time.
    Timeout(T),
    /// The hub is [`HubClosed`].
    Closed(T),
}

impl<T> SendTimeoutError<T> {
    /// Returns the rejected element.
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(value) | Self::Closed(value) => value,
        }
    }
}

/// Makes [`TrySendError::Full`] a [`SendTimeoutError::Timeout`].
impl<T> From<TrySendError<T>> for SendTimeoutError<T> {
    fn from(error: TrySendError<T>) -> Self {
        match error {
            TrySendError::Full(value) => Self::Timeout(value),
            TrySendError::Closed(value) => Self::Closed(value),
        }
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Timeout(_) => "Timeout",
            Self::Closed(_) => "Closed",
        };
        f.debug_tuple(name).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(_) => f.write_str("the hub had no room in time"),
            Self::Closed(_) => HubClosed.fmt(f),
        }
    }
}

impl<T> std::error::Error for SendTimeoutError<T> {}

/// An invalid option. The message names the option.
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
    /// Returns the name of the option.
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
                write!(f, "`{option}` needs more memory than is available")
            }
            OptionsErrorKind::ZeroTime => write!(f, "`{option}` must be greater than zero"),
        }
    }
}

impl std::error::Error for OptionsError {}
