//! Time sources: readings of monotonic clocks.

#[cfg(feature = "std")]
mod coarse;
#[cfg(feature = "std")]
mod precise;

use alloc::sync::Arc;
use core::time::Duration;

#[cfg(feature = "std")]
pub use coarse::Coarse;
#[cfg(feature = "std")]
pub use precise::Precise;
#[cfg(feature = "tokio")]
pub(crate) use precise::beginning;

/// A point in time on a [`Clock`], in nanoseconds since that clock's origin.
///
/// Times of different clocks are comparable only if the clocks have the same origin. [`Precise`], [`Coarse`],
/// and the schedulers that run in real time have the same one. Each
/// [`VirtualTime`](crate::scheduler::VirtualTime) has its own.
///
/// ```
/// use std::time::Duration;
/// use fanline::Time;
///
/// let noon = Time::ZERO + Duration::from_secs(43_200);
/// assert_eq!(noon.since(Time::ZERO), Duration::from_secs(43_200));
/// assert_eq!(Time::ZERO.since(noon), Duration::ZERO); // never negative
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);

    /// Returns the time `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// Returns the nanoseconds since `earlier`, or 0 if `earlier` is later.
    pub(crate) const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Adds nanoseconds, and saturates at the largest representable time.
    pub(crate) const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl core::ops::Add<Duration> for Time {
    type Output = Self;

    /// Adds a duration. The result is at most the largest representable time, more than 500 years after the
    /// origin.
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// A source of the current time.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::{sync::Arc, time::Duration};
/// use fanline::{Clock, Replay, ReplaySubject, Time};
///
/// /// Counts the frames of a game.
/// #[derive(Default)]
/// struct Frames(AtomicU64);
///
/// impl Clock for Frames {
///     fn now(&self) -> Time {
///         Time::from_nanos(self.0.load(Ordering::Relaxed))
///     }
/// }
///
/// let frames = Arc::new(Frames::default());
/// let two = Duration::from_nanos(2);
/// let hits = ReplaySubject::new(Replay::within(two).clock(frames.clone()));
/// hits.next("left");
/// frames.0.store(2, Ordering::Relaxed);
/// assert_eq!(hits.snapshot(), ["left"]); // exactly as old as the window
/// frames.0.store(3, Ordering::Relaxed);
/// assert!(hits.snapshot().is_empty());
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time. If a reading is earlier than a previous one, time windows use the previous
    /// one instead.
    fn now(&self) -> Time;

    /// Returns the exact current time, as far as this clock can. [`now`](Clock::now) may return a reading
    /// that is cheaper but late.
    fn now_exact(&self) -> Time {
        self.now()
    }

    /// Returns the largest time by which a reading of [`now`](Clock::now) can be late. A time window retains
    /// its values longer by this duration, so that no value is dropped too early.
    fn granularity(&self) -> Duration {
        Duration::ZERO
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Time {
        (**self).now()
    }

    fn now_exact(&self) -> Time {
        (**self).now_exact()
    }

    fn granularity(&self) -> Duration {
        (**self).granularity()
    }
}
