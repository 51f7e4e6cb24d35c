//! Policies: the values that a subject retains for late subscribers, chosen at its creation.

use core::time::Duration;

use super::store::{Runs, Times, Untimed};
#[cfg(feature = "std")]
use crate::clock::Coarse;
use crate::clock::{Clock, Time};

/// A rule for the values that a subject retains. A flavor contains only the code of the features it uses; the
/// rest is removed at compile time.
///
/// This trait is sealed: only the flavors of this module implement it. Use it as a bound, or as
/// `impl Policy` in the type of a producer.
pub trait Policy: Rules {}

impl<P: Rules> Policy for P {}

/// The rules behind [`Policy`]. Sealed: other crates cannot implement it.
pub trait Rules: Send + Sync + 'static {
    /// The timestamps of values: [`Runs`] if their age is bounded, otherwise [`Untimed`].
    type Times: Times;

    /// Whether values are retained at all.
    const STORES: bool = true;
    /// Whether the number of values is bounded.
    const COUNTED: bool = false;
    /// Whether the age of values is bounded.
    const TIMED: bool = false;
    /// Whether values are held back until completion instead of being emitted.
    const HOLDS_BACK: bool = false;
    /// Whether late subscribers receive retained values while the subject is live.
    const REPLAYS_LIVE: bool = true;
    /// Whether late subscribers receive retained values after completion.
    const REPLAYS_COMPLETED: bool = true;
    /// Whether late subscribers receive retained values after a failure.
    const REPLAYS_FAILED: bool = true;

    /// Maximum number of retained values, if the number is bounded.
    fn count_max(&self) -> usize {
        usize::MAX
    }

    /// Maximum age of retained values, if the age is bounded: the window plus the clock's granularity.
    fn age_max(&self) -> Duration {
        Duration::MAX
    }

    /// Returns the timestamp for a new value.
    fn now(&self) -> Time {
        Time::ZERO
    }

    /// Returns [`age_max`](Self::age_max) in nanoseconds, so that a subscription compares without a division.
    fn age_nanos_max(&self) -> u64 {
        u64::MAX
    }

    /// Maximum difference between the exact time and [`now`](Self::now).
    fn late_nanos_max(&self) -> u64 {
        0
    }

    /// Returns the exact time. Subscriptions, completions, errors, and trims compute the age of values with
    /// it.
    fn now_exact(&self) -> Time {
        Time::ZERO
    }

    /// Whether a window stops moving when the subject ends.
    fn freezes(&self) -> bool {
        false
    }
}

/// Assumed maximum delay of a coarse clock, whose thread may have to wait for the CPU. If the granularity of
/// a clock is longer, the granularity is used. If no value can expire within this delay, a subscription does
/// not read the exact time, which would cost a third of the subscription.
const LATE_MAX: Duration = Duration::from_millis(100);

/// Retains nothing: a plain subject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publish;

impl Rules for Publish {
    type Times = Untimed;

    const STORES: bool = false;
}

/// Retains the current value: a behavior subject. After completion or failure, late subscribers receive only
/// the completion or the error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Current;

impl Rules for Current {
    type Times = Untimed;

    const COUNTED: bool = true;
    const REPLAYS_COMPLETED: bool = false;
    const REPLAYS_FAILED: bool = false;

    fn count_max(&self) -> usize {
        1
    }
}

/// Retains the last value and emits it at completion: an async subject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last;

impl Rules for Last {
    type Times = Untimed;

    const COUNTED: bool = true;
    const HOLDS_BACK: bool = true;
    const REPLAYS_LIVE: bool = false;
    const REPLAYS_FAILED: bool = false;

    fn count_max(&self) -> usize {
        1
    }
}

/// Retains all values; see [`Replay::all`].
#[derive(Clone, Copy, Debug, Default)]
pub struct All;

impl Rules for All {
    type Times = Untimed;
}

/// Retains one value; see [`Replay::one`].
#[derive(Clone, Copy, Debug, Default)]
pub struct One;

impl Rules for One {
    type Times = Untimed;

    const COUNTED: bool = true;

    fn count_max(&self) -> usize {
        1
    }
}

/// Retains a number of values; see [`Replay::many`].
#[derive(Clone, Copy, Debug)]
pub struct Many {
    count: usize,
}

impl Rules for Many {
    type Times = Untimed;

    const COUNTED: bool = true;

    fn count_max(&self) -> usize {
        self.count
    }
}

/// Retains values for a duration; see [`Replay::within`].
#[derive(Clone, Debug)]
pub struct Within<C> {
    window: Window<C>,
}

impl<C: Clock> Rules for Within<C> {
    type Times = Runs;

    const TIMED: bool = true;

    fn age_max(&self) -> Duration {
        self.window.age_max
    }

    fn now(&self) -> Time {
        self.window.clock.now()
    }

    fn age_nanos_max(&self) -> u64 {
        self.window.age_nanos_max
    }

    fn late_nanos_max(&self) -> u64 {
        self.window.late_nanos_max
    }

    fn now_exact(&self) -> Time {
        self.window.clock.now_exact()
    }

    fn freezes(&self) -> bool {
        self.window.freezes
    }
}

/// Retains a number of values for a duration; see [`Replay::many_within`].
#[derive(Clone, Debug)]
pub struct ManyWithin<C> {
    count: usize,
    window: Window<C>,
}

impl<C: Clock> Rules for ManyWithin<C> {
    type Times = Runs;

    const COUNTED: bool = true;
    const TIMED: bool = true;

    fn count_max(&self) -> usize {
        self.count
    }

    fn age_max(&self) -> Duration {
        self.window.age_max
    }

    fn now(&self) -> Time {
        self.window.clock.now()
    }

    fn age_nanos_max(&self) -> u64 {
        self.window.age_nanos_max
    }

    fn late_nanos_max(&self) -> u64 {
        self.window.late_nanos_max
    }

    fn now_exact(&self) -> Time {
        self.window.clock.now_exact()
    }

    fn freezes(&self) -> bool {
        self.window.freezes
    }
}

#[derive(Clone, Debug)]
struct Window<C> {
    length: Duration,
    /// The window's length plus the clock's granularity. Computed once, because the clock is user code.
    age_max: Duration,
    age_nanos_max: u64,
    late_nanos_max: u64,
    clock: C,
    freezes: bool,
}

impl<C: Clock> Window<C> {
    fn new(length: Duration, clock: C) -> Self {
        let late = clock.granularity();
        let age_max = length.saturating_add(late);
        Self {
            length,
            age_max,
            age_nanos_max: nanos(age_max),
            late_nanos_max: nanos(LATE_MAX.max(late)),
            clock,
            freezes: false,
        }
    }
}

impl<C> Window<C> {
    fn on<D: Clock>(self, clock: D) -> Window<D> {
        Window {
            freezes: self.freezes,
            ..Window::new(self.length, clock)
        }
    }
}

/// Converts to nanoseconds; a longer duration becomes unlimited.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The values that a replay subject retains, chosen at its creation:
/// `fanline::replay::<u32>(Replay::many(5))`, `ReplaySubject::<u32>::new(Replay::all())`.
///
/// | | retains | on `next` | memory |
/// | --- | --- | --- | --- |
/// | [`all`](Replay::all) | every value | append | grows; in the end one allocation for 2,048 values, or for 2 MiB of them |
/// | [`one`](Replay::one) | the last value | overwrite | one value; two if it has a destructor |
/// | [`many(n)`](Replay::many) | the last n values | overwrite the oldest | constant: n values or n + 1, up to the next power of two if n is small |
/// | [`within(d)`](Replay::within) | values not older than d | append; once per tick, drop values that are too old | grows with the values emitted within d |
/// | [`many_within(n, d)`](Replay::many_within) | the last n values not older than d | overwrite the oldest; once per tick, drop values that are too old | constant |
///
/// A value that is no longer retained is dropped by the next emission, subscription, completion, or error.
/// The limit of count is applied first, then the limit of age. [`Source::trim`](crate::Source::trim) drops
/// old values of a subject that has not emitted for long. While retained values are replayed to a subscriber,
/// they and all later values stay in memory.
///
/// A time window retains a value whose age is exactly the window. The window keeps moving after completion or
/// failure: a completed subject replays the values that are still young enough, and when there are no more
/// such values, only the completion. [`freeze_on_terminal`](Replay::freeze_on_terminal) stops the window when
/// the subject ends.
///
/// ```
/// use std::time::Duration;
/// use fanline::{Replay, scheduler::VirtualTime};
///
/// let time = VirtualTime::new();
/// let minute = Duration::from_secs(60);
/// let (mut tx, recent) = fanline::replay::<u32>(Replay::within(minute).clock(time.clone()));
/// tx.next(1);
/// time.advance_by(minute);
/// tx.next(2);
/// assert_eq!(recent.snapshot(), [1, 2]); // exactly a minute old
/// time.advance_by(Duration::from_nanos(1));
/// assert_eq!(recent.snapshot(), [2]);
/// ```
#[derive(Clone, Debug)]
pub struct Replay<F> {
    pub(crate) flavor: F,
}

impl<F: Policy> Replay<F> {
    /// Returns the maximum number of retained values, if it is bounded.
    ///
    /// ```
    /// use fanline::Replay;
    ///
    /// assert_eq!(Replay::many(5).values_max(), Some(5));
    /// assert_eq!(Replay::all().values_max(), None);
    /// ```
    pub fn values_max(&self) -> Option<usize> {
        F::COUNTED.then(|| self.flavor.count_max())
    }

    /// Returns the maximum age of retained values, if it is bounded: the window plus the clock's
    /// granularity.
    pub fn window(&self) -> Option<Duration> {
        F::TIMED.then(|| self.flavor.age_max())
    }
}

impl Replay<All> {
    /// Retains all values, from the first one on.
    pub const fn all() -> Self {
        Self { flavor: All }
    }
}

impl Replay<One> {
    /// Retains the last value.
    pub const fn one() -> Self {
        Self { flavor: One }
    }
}

impl Replay<Many> {
    /// Retains the last `count` values. With 0, the subject retains no value, and a late subscriber receives
    /// only the completion or the error.
    pub const fn many(count: usize) -> Self {
        Self {
            flavor: Many { count },
        }
    }
}

#[cfg(feature = "std")]
impl Replay<Within<Coarse>> {
    /// Retains values for `window` after their emission, measured by a clock with ticks of 1 ms. A value is
    /// retained for the window, and at most one tick longer. A window of zero therefore retains the values of
    /// the current tick.
    pub fn within(window: Duration) -> Self {
        Self {
            flavor: Within {
                window: Window::new(window, Coarse::new()),
            },
        }
    }
}

#[cfg(feature = "std")]
impl Replay<ManyWithin<Coarse>> {
    /// Retains the last `count` values, for `window` after their emission; see [`many`](Replay::many) and
    /// [`within`](Replay::within).
    pub fn many_within(count: usize, window: Duration) -> Self {
        Self {
            flavor: ManyWithin {
                count,
                window: Window::new(window, Coarse::new()),
            },
        }
    }
}

impl<C> Replay<Within<C>> {
    /// Uses another clock: [`Precise`](crate::Precise), or the virtual time of a test.
    pub fn clock<D: Clock>(self, clock: D) -> Replay<Within<D>> {
        Replay {
            flavor: Within {
                window: self.flavor.window.on(clock),
            },
        }
    }

    /// Stops the window when the subject ends. A subscriber then receives the values that the window
    /// contained at that moment, however late it subscribes.
    #[must_use]
    pub fn freeze_on_terminal(mut self) -> Self {
        self.flavor.window.freezes = true;
        self
    }
}

impl<C> Replay<ManyWithin<C>> {
    /// Uses another clock: [`Precise`](crate::Precise), or the virtual time of a test.
    pub fn clock<D: Clock>(self, clock: D) -> Replay<ManyWithin<D>> {
        Replay {
            flavor: ManyWithin {
                count: self.flavor.count,
                window: self.flavor.window.on(clock),
            },
        }
    }

    /// Stops the window when the subject ends. A subscriber then receives the values that the window
    /// contained at that moment, however late it subscribes.
    #[must_use]
    pub fn freeze_on_terminal(mut self) -> Self {
        self.flavor.window.freezes = true;
        self
    }
}
