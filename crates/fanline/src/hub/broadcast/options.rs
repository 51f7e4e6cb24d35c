//! Options of a broadcast hub.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::handle::BroadcastHub;
use super::ring::Ring;
use super::sender::BroadcastSender;
use super::shared::Shared;
use crate::Scheduler;
use crate::fence::Fences;
use crate::hub::timer::Timer;
use crate::hub::{BoxError, OptionsError};

/// Largest number of elements that a hub can store.
pub const CAPACITY_MAX: usize = 1 << 28;

/// A builder of a broadcast hub; see [`BroadcastHub::options`].
///
/// ```
/// use fanline::hub::{BroadcastHub, OnEmpty};
///
/// let (tx, hub) = BroadcastHub::<u64>::options()
///     .capacity(64)
///     .on_empty(OnEmpty::Drop)
///     .build();
/// # drop((tx, hub));
/// ```
#[must_use = "options do nothing until `build` is called"]
pub struct BroadcastOptions<T, E = BoxError> {
    rules: Rules,
    types: PhantomData<fn() -> (T, E)>,
}

impl<T, E> BroadcastOptions<T, E> {
    pub(super) fn new() -> Self {
        Self {
            rules: Rules {
                capacity: 256,
                start_after: None,
                start: Start::default(),
                replay: 0,
                on_empty: OnEmpty::default(),
                on_slow: OnSlow::default(),
                timer: Timer::default(),
            },
            types: PhantomData,
        }
    }

    /// Sets the number of elements that the slowest consumer can be behind before the producer waits; from 1
    /// to [`CAPACITY_MAX`]. The value is not rounded. The default is 256.
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.rules.capacity = capacity;
        self
    }

    /// Sets the number of consumers, at least 1, that must be subscribed at the same time before the hub
    /// accepts elements. By default the hub accepts elements at once. A hub that has started does not wait for
    /// consumers again.
    pub fn start_after(mut self, consumers: usize) -> Self {
        self.rules.start_after = Some(consumers);
        self
    }

    /// Sets the first element of a consumer that subscribes while elements are stored. The default is
    /// [`Start::Oldest`].
    pub fn start(mut self, start: Start) -> Self {
        self.rules.start = start;
        self
    }

    /// Sets the number of elements that stay stored for consumers that start with [`Start::Last`], in addition
    /// to `capacity`; at most [`CAPACITY_MAX`]. They stay stored until newer elements replace them, even if
    /// every consumer has received them. The hub has slots for `capacity` and these elements together, rounded
    /// up to a power of two. The default is 0.
    pub fn replay(mut self, count: usize) -> Self {
        self.rules.replay = count;
        self
    }

    /// Sets the treatment of elements while there is no consumer. The default is [`OnEmpty::Store`].
    pub fn on_empty(mut self, on_empty: OnEmpty) -> Self {
        self.rules.on_empty = on_empty;
        self
    }

    /// Sets the treatment of a consumer that keeps the hub full. The default is [`OnSlow::Wait`].
    pub fn on_slow(mut self, on_slow: OnSlow) -> Self {
        self.rules.on_slow = on_slow;
        self
    }

    /// Sets the scheduler whose time [`OnSlow::Disconnect`] and the `_timeout` methods use. The default is the process's
    /// [`ThreadPool`](crate::scheduler::ThreadPool), which starts on first use.
    pub fn scheduler(mut self, scheduler: impl Scheduler) -> Self {
        self.rules.timer = Timer::on(scheduler);
        self
    }

    /// Builds the hub.
    ///
    /// # Panics
    ///
    /// If an option is out of range; the message names it. [`try_build`](Self::try_build) returns an error
    /// instead.
    pub fn build(self) -> (BroadcastSender<T, E>, BroadcastHub<T, E>) {
        match self.try_build() {
            Ok(ends) => ends,
            Err(error) => panic!("{error}"),
        }
    }

    /// Builds the hub, or returns an error.
    ///
    /// # Errors
    ///
    /// If an option is out of range, or if there is not enough memory for the elements. The error names the
    /// option.
    ///
    /// ```
    /// use fanline::hub::BroadcastHub;
    ///
    /// let error = BroadcastHub::<u64>::options().capacity(0).try_build().unwrap_err();
    /// assert_eq!(error.option(), "capacity");
    /// assert_eq!(error.to_string(), "`capacity` must be at least 1");
    /// ```
    #[expect(
        clippy::type_complexity,
        reason = "two ends, each with its element and error type"
    )]
    pub fn try_build(self) -> Result<(BroadcastSender<T, E>, BroadcastHub<T, E>), OptionsError> {
        self.build_at(Fences::detect(), 0)
    }

    /// Does the same as [`try_build`](Self::try_build), but with the given fences and with positions that
    /// start at `origin`.
    #[expect(
        clippy::type_complexity,
        reason = "two ends, each with its element and error type"
    )]
    pub(super) fn build_at(
        self,
        fences: Fences,
        origin: usize,
    ) -> Result<(BroadcastSender<T, E>, BroadcastHub<T, E>), OptionsError> {
        let rules = self.rules;
        rules.check()?;
        let ring =
            Ring::new(rules.capacity + rules.replay).ok_or(OptionsError::no_memory("capacity"))?;
        let shared = Arc::new(Shared::new(ring, rules, fences, origin));
        Ok((
            BroadcastSender::new(shared.clone()),
            BroadcastHub::new(shared),
        ))
    }
}

impl<T, E> Clone for BroadcastOptions<T, E> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            types: PhantomData,
        }
    }
}

impl<T, E> fmt::Debug for BroadcastOptions<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BroadcastOptions")
            .field(&self.rules)
            .finish()
    }
}

/// The position at which a consumer starts.
///
/// ```
/// use fanline::hub::{Start, broadcast};
///
/// let (mut tx, hub) = broadcast::<u64>(8);
/// tx.try_send(1).unwrap();
/// let mut oldest = hub.subscribe();
/// let mut latest = hub.subscribe_at(Start::Latest);
/// tx.try_send(2).unwrap();
/// assert_eq!(oldest.try_recv().unwrap(), 1);
/// assert_eq!(latest.try_recv().unwrap(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// The oldest stored element: the next element of the slowest consumer or, if there is no consumer, of
    /// the last consumer that left. With more than 64 consumers the start may be a little earlier: the
    /// position that the slowest consumer had when the producer last checked.
    #[default]
    Oldest,
    /// The next element that is sent.
    Latest,
    /// Up to this many of the last elements that were sent. The hub has those that some consumer has not
    /// received yet, and at least as many as [`BroadcastOptions::replay`] says.
    ///
    /// The consumer starts behind by these elements. If they are `capacity` or more, the producer may wait
    /// until the consumer has received some of them.
    ///
    /// ```
    /// use fanline::hub::{BroadcastHub, Start};
    ///
    /// let (mut tx, hub) = BroadcastHub::<u64>::options()
    ///     .replay(100)
    ///     .start(Start::Last(2))
    ///     .build();
    /// let mut early = hub.subscribe();
    /// for value in 1..=5 {
    ///     tx.try_send(value).unwrap();
    ///     assert_eq!(early.try_recv().unwrap(), value);
    /// }
    /// let mut late = hub.subscribe();
    /// assert_eq!(late.try_recv().unwrap(), 4);
    /// assert_eq!(late.try_recv().unwrap(), 5);
    /// assert!(late.try_recv().is_err());
    /// ```
    Last(usize),
}

/// The treatment of elements while there is no consumer, or only consumers that were
/// [disconnected](OnSlow::Disconnect).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnEmpty {
    /// Stores the elements, and makes the producer wait when the hub is full. The next consumer resumes at
    /// the position of the last consumer that left.
    #[default]
    Store,
    /// Drops the elements. The next consumer gets only elements that are sent after it subscribed.
    Drop,
    /// Completes the hub when the last consumer leaves. Until the first consumer subscribes, this works like
    /// `Store`.
    Complete,
}

// `Wait` is the default, so one slow consumer stops all others.
/// The treatment of a slow consumer that keeps the hub full.
///
/// ```
/// use fanline::hub::{BroadcastHub, OnSlow, TryRecvError};
///
/// let (mut tx, hub) = BroadcastHub::<u64>::options()
///     .capacity(2)
///     .on_slow(OnSlow::DropOldest)
///     .build();
/// let mut rx = hub.subscribe();
/// for value in 1..=5 {
///     tx.try_send(value).unwrap(); // never full
/// }
/// assert!(matches!(rx.try_recv(), Err(TryRecvError::Lagged(3))));
/// assert_eq!(rx.try_recv().unwrap(), 4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnSlow {
    /// Makes the producer wait.
    #[default]
    Wait,
    /// Makes the producer wait for `after`, and then disconnects the consumer. Its stream ends with
    /// [`HubError::TooSlow`](crate::hub::HubError::TooSlow).
    ///
    /// The elements that `next_ref` and `next_slice` lend are in use until the consumer requests the next
    /// one. The hub cannot overwrite them, so the producer waits for such a consumer even when the time
    /// `after` has passed.
    Disconnect {
        /// Time that the producer waits for room.
        after: Duration,
    },
    /// Never makes the producer wait. The producer overwrites the oldest elements. The consumer resumes with
    /// the oldest stored element and learns how many it lost. Lent elements make the producer wait, as with
    /// `Disconnect`.
    DropOldest,
}

/// The options of a hub.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) capacity: usize,
    pub(super) start_after: Option<usize>,
    pub(super) start: Start,
    pub(super) replay: usize,
    pub(super) on_empty: OnEmpty,
    pub(super) on_slow: OnSlow,
    pub(super) timer: Timer,
}

impl Rules {
    fn check(&self) -> Result<(), OptionsError> {
        OptionsError::check_range("capacity", self.capacity, 1, CAPACITY_MAX)?;
        OptionsError::check_range("replay", self.replay, 0, CAPACITY_MAX)?;
        if let Some(count) = self.start_after {
            OptionsError::check_range("start_after", count, 1, usize::MAX)?;
        }
        if let OnSlow::Disconnect { after } = self.on_slow
            && after.is_zero()
        {
            return Err(OptionsError::zero_time("on_slow: after"));
        }
        Ok(())
    }

    /// Returns whether the hub can revoke a consumer. If so, consumers must claim elements before they read
    /// them.
    pub(super) fn can_revoke(&self) -> bool {
        self.on_slow != OnSlow::Wait
    }

    pub(super) fn overwrites(&self) -> bool {
        self.on_slow == OnSlow::DropOldest
    }
}
