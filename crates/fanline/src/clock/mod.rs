//! Time as a library sees it: readings of a clock that never goes back.

mod coarse;
mod precise;

use std::sync::Arc;
use std::time::Duration;

pub use coarse::Coarse;
pub use precise::Precise;
#[cfg(feature = "tokio")]
pub(crate) use precise::beginning;

/// A moment on a [`Clock`], in nanoseconds since that clock's own beginning. Moments of unlike clocks
/// have nothing to do with each other.
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
    /// The clock's beginning.
    pub const ZERO: Self = Self(0);

    /// The moment this many nanoseconds after the clock's beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this moment; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// The same in nanoseconds.
    pub(crate) const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment so many nanoseconds later; stops at the last that can be told.
    pub(crate) const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    /// Stops at the last moment that can be told, more than 500 years on.
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// Tells the time.
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
    /// The time now. A reading that is earlier than one before it is taken as equal to it by whoever
    /// reads: it neither brings anything back nor drops anything.
    fn now(&self) -> Time;

    /// The time now as exactly as this clock can tell it, where [`now`](Clock::now) gives a reading
    /// that is cheaper and late.
    fn now_exact(&self) -> Time {
        self.now()
    }

    /// How late a reading of [`now`](Clock::now) may be. A window keeps its values that much longer,
    /// so that none is dropped early.
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
