//! What each kind of subject retains for those who come late, decided when it is made.

use std::time::Duration;

use crate::clock::{Clock, Coarse, Time};

/// What a subject keeps for late subscribers; implemented by the flavours of this module. A flavour
/// pays for what it needs and nothing else: what it does not have is gone at compile time.
pub trait Policy: Rules {}

impl<P: Rules> Policy for P {}

/// The rules that [`Policy`] stands for; nobody else can implement it.
pub trait Rules: Send + Sync + 'static {
    /// Whether values are kept at all.
    const STORES: bool = true;
    /// Whether their number is bounded.
    const COUNTED: bool = false;
    /// Whether their age is bounded.
    const TIMED: bool = false;
    /// Whether values wait until completion instead of being passed on.
    const HOLDS_BACK: bool = false;
    /// Whether late comers are given values while the subject is live, and when it has completed.
    const REPLAYS_LIVE: bool = true;
    const REPLAYS_COMPLETED: bool = true;
    /// The same when it has failed.
    const REPLAYS_FAILED: bool = true;

    /// How many values are kept, where they are counted.
    fn count_max(&self) -> usize {
        usize::MAX
    }

    /// For how long values are kept, where age counts: the window, and how late the clock may be.
    fn keep(&self) -> Duration {
        Duration::MAX
    }

    /// The time that a value gets.
    fn now(&self) -> Time {
        Time::ZERO
    }

    /// The same in nanoseconds: what is compared for each who subscribes, without a division.
    fn keep_nanos(&self) -> u64 {
        u64::MAX
    }

    /// How much later than [`now`](Self::now) it is at most.
    fn late_nanos_max(&self) -> u64 {
        0
    }

    /// The time at which a window is looked at.
    fn now_exact(&self) -> Time {
        Time::ZERO
    }

    /// Whether a window stands still once the subject has ended.
    fn freezes(&self) -> bool {
        false
    }
}

/// A clock's reading is taken to be no later than this, or than the clock says when that is more: what
/// keeps it up to date may have to wait for its turn. Whoever subscribes to a window that loses nothing by then
/// is spared the exact reading, which costs a third of a subscription.
const LATE_MAX: Duration = Duration::from_millis(100);

/// Keeps nothing: a plain subject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publish;

impl Rules for Publish {
    const STORES: bool = false;
}

/// Keeps the current value: a behavior subject. After the end late comers get the end alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Current;

impl Rules for Current {
    const COUNTED: bool = true;
    const REPLAYS_COMPLETED: bool = false;
    const REPLAYS_FAILED: bool = false;

    fn count_max(&self) -> usize {
        1
    }
}

/// Keeps the last value and passes it on at completion: an async subject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last;

impl Rules for Last {
    const COUNTED: bool = true;
    const HOLDS_BACK: bool = true;
    const REPLAYS_LIVE: bool = false;
    const REPLAYS_FAILED: bool = false;

    fn count_max(&self) -> usize {
        1
    }
}

/// Keeps everything; see [`Replay::all`].
#[derive(Clone, Copy, Debug, Default)]
pub struct All;

impl Rules for All {}

/// Keeps one value; see [`Replay::one`].
#[derive(Clone, Copy, Debug, Default)]
pub struct One;

impl Rules for One {
    const COUNTED: bool = true;

    fn count_max(&self) -> usize {
        1
    }
}

/// Keeps so many values; see [`Replay::many`].
#[derive(Clone, Copy, Debug)]
pub struct Many {
    count: usize,
}

impl Rules for Many {
    const COUNTED: bool = true;

    fn count_max(&self) -> usize {
        self.count
    }
}

/// Keeps values for so long; see [`Replay::within`].
#[derive(Clone, Debug)]
pub struct Within<C> {
    window: Window<C>,
}

impl<C: Clock> Rules for Within<C> {
    const TIMED: bool = true;

    fn keep(&self) -> Duration {
        self.window.keep
    }

    fn now(&self) -> Time {
        self.window.clock.now()
    }

    fn keep_nanos(&self) -> u64 {
        self.window.keep_nanos
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

/// Keeps so many values for so long; see [`Replay::many_within`].
#[derive(Clone, Debug)]
pub struct ManyWithin<C> {
    count: usize,
    window: Window<C>,
}

impl<C: Clock> Rules for ManyWithin<C> {
    const COUNTED: bool = true;
    const TIMED: bool = true;

    fn count_max(&self) -> usize {
        self.count
    }

    fn keep(&self) -> Duration {
        self.window.keep
    }

    fn now(&self) -> Time {
        self.window.clock.now()
    }

    fn keep_nanos(&self) -> u64 {
        self.window.keep_nanos
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
    /// The length, and how late the clock may be. Asked for once, as it is the user's code that tells.
    keep: Duration,
    keep_nanos: u64,
    late_nanos_max: u64,
    clock: C,
    freezes: bool,
}

impl<C: Clock> Window<C> {
    fn new(length: Duration, clock: C) -> Self {
        let late = clock.granularity();
        let keep = length.saturating_add(late);
        Self {
            length,
            keep,
            keep_nanos: nanos(keep),
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

/// A window longer than can be told is one without an end.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What a replay subject retains, chosen when it is made:
/// `fanline::replay::<u32>(Replay::many(5))`, `ReplaySubject::<u32>::new(Replay::all())`.
///
/// | | retains | on next | memory |
/// | --- | --- | --- | --- |
/// | [`all`](Replay::all) | every value | append | grows; one allocation for 2,048 values, or for 2 MiB of them |
/// | [`one`](Replay::one) | the last value | overwrite | constant |
/// | [`many(n)`](Replay::many) | the last n values | overwrite the oldest | constant |
/// | [`within(d)`](Replay::within) | values not older than d | append; once a tick, drop what is too old | what d holds |
/// | [`many_within(n, d)`](Replay::many_within) | the last n values not older than d | both | constant |
///
/// Values that are no longer retained are dropped by the emission, subscription or end that finds
/// them so, in that order by count and then by age; [`Source::trim`](crate::Source::trim) is for a
/// subject that is quiet for long. While somebody is being given the retained values, those and all
/// later ones stay until that is done.
///
/// A window of time keeps a value whose age is exactly the window, and goes on after the end: a
/// completed subject gives a late comer the values that are still young enough, and at last only the
/// end. [`freeze_on_terminal`](Replay::freeze_on_terminal) stops it at the end instead.
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
    pub(crate) flavour: F,
}

impl<F: Policy> Replay<F> {
    /// How many values it retains at most, where they are counted.
    ///
    /// ```
    /// use fanline::Replay;
    ///
    /// assert_eq!(Replay::many(5).values_max(), Some(5));
    /// assert_eq!(Replay::all().values_max(), None);
    /// ```
    pub fn values_max(&self) -> Option<usize> {
        F::COUNTED.then(|| self.flavour.count_max())
    }

    /// For how long it retains them, where age counts: the window, and how late its clock may be.
    pub fn window(&self) -> Option<Duration> {
        F::TIMED.then(|| self.flavour.keep())
    }
}

impl Replay<All> {
    /// Everything, from the first value on.
    pub const fn all() -> Self {
        Self { flavour: All }
    }
}

impl Replay<One> {
    /// The last value.
    pub const fn one() -> Self {
        Self { flavour: One }
    }
}

impl Replay<Many> {
    /// The last `count` values. With 0 it is a subject that retains only its end.
    pub const fn many(count: usize) -> Self {
        Self {
            flavour: Many { count },
        }
    }
}

impl Replay<Within<Coarse>> {
    /// Values for as long as `window` after they were emitted, by a clock of 1 ms ticks; a window of
    /// zero keeps those of the same tick. Each is kept for the window, and a tick longer at most.
    pub fn within(window: Duration) -> Self {
        Self {
            flavour: Within {
                window: Window::new(window, Coarse::new()),
            },
        }
    }
}

impl Replay<ManyWithin<Coarse>> {
    /// The last `count` values, for as long as `window` after they were emitted; see
    /// [`many`](Replay::many) and [`within`](Replay::within).
    pub fn many_within(count: usize, window: Duration) -> Self {
        Self {
            flavour: ManyWithin {
                count,
                window: Window::new(window, Coarse::new()),
            },
        }
    }
}

impl<C> Replay<Within<C>> {
    /// Takes the time from another clock: [`Precise`](crate::Precise), or the virtual time of a test.
    pub fn clock<D: Clock>(self, clock: D) -> Replay<Within<D>> {
        Replay {
            flavour: Within {
                window: self.flavour.window.on(clock),
            },
        }
    }

    /// Lets the window stand still once the subject has ended: late comers then get what it held at
    /// the end, however late they come.
    #[must_use]
    pub fn freeze_on_terminal(mut self) -> Self {
        self.flavour.window.freezes = true;
        self
    }
}

impl<C> Replay<ManyWithin<C>> {
    /// Takes the time from another clock: [`Precise`](crate::Precise), or the virtual time of a test.
    pub fn clock<D: Clock>(self, clock: D) -> Replay<ManyWithin<D>> {
        Replay {
            flavour: ManyWithin {
                count: self.flavour.count,
                window: self.flavour.window.on(clock),
            },
        }
    }

    /// Lets the window stand still once the subject has ended: late comers then get what it held at
    /// the end, however late they come.
    #[must_use]
    pub fn freeze_on_terminal(mut self) -> Self {
        self.flavour.window.freezes = true;
        self
    }
}
