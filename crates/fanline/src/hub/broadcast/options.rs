//! Options of a broadcast hub.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::hub::{OptionsError, Timer};

/// Largest number of elements that a hub can store.
pub const CAPACITY_MAX: usize = 1 << 28;

/// Options of [`broadcast_with`](crate::hub::broadcast_with). The defaults are those of
/// [`broadcast`](crate::hub::broadcast).
///
/// ```
/// use fanline::hub::{BroadcastOptions, NobodyListens, broadcast_with};
///
/// let (tx, hub) = broadcast_with::<u64>(BroadcastOptions {
///     capacity: 64,
///     nobody_listens: NobodyListens::Discard,
///     ..BroadcastOptions::default()
/// });
/// # drop((tx, hub));
/// ```
#[derive(Clone, Debug)]
pub struct BroadcastOptions {
    /// Number of elements that the slowest consumer can be behind before the producer waits; from 1 to
    /// [`CAPACITY_MAX`]. The value is not rounded. The default is 256.
    pub capacity: usize,
    /// Number of consumers, at least 1, that must be subscribed at the same time before the hub accepts
    /// elements. `None`, the default, accepts elements at once. A hub that has started does not wait for
    /// consumers again.
    pub start_after: Option<usize>,
    /// The first element of a consumer that subscribes while elements are stored.
    pub start: Start,
    /// Treatment of elements while there is no consumer.
    pub nobody_listens: NobodyListens,
    /// Treatment of a consumer that keeps the hub full.
    pub slow_consumer: SlowConsumer,
    /// The timer that [`SlowConsumer::Disconnect`] uses.
    pub timer: Timer,
}

impl Default for BroadcastOptions {
    fn default() -> Self {
        Self {
            capacity: 256,
            start_after: None,
            start: Start::Oldest,
            nobody_listens: NobodyListens::Hold,
            slow_consumer: SlowConsumer::Wait,
            timer: Timer::default(),
        }
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
pub enum Start {
    /// The oldest stored element: the next element of the slowest consumer or, if there is no consumer, of
    /// the last consumer that left. With more than 64 consumers the start may be a little earlier: the
    /// position that the slowest consumer had when the producer last checked.
    #[default]
    Oldest,
    /// The next element that is sent.
    Latest,
}

/// The treatment of elements while there is no consumer, or only consumers that were
/// [disconnected](SlowConsumer::Disconnect).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NobodyListens {
    /// Stores the elements, and makes the producer wait when the hub is full. The next consumer resumes at
    /// the position of the last consumer that left.
    #[default]
    Hold,
    /// Drops the elements. The next consumer gets only elements that are sent after it subscribed.
    Discard,
    /// Completes the hub when the last consumer leaves. Until the first consumer subscribes, this works like
    /// `Hold`.
    Close,
}

// `Wait` is the default, so one slow consumer stops all others.
/// The treatment of a slow consumer that keeps the hub full.
///
/// ```
/// use fanline::hub::{BroadcastOptions, SlowConsumer, TryRecvError, broadcast_with};
///
/// let (mut tx, hub) = broadcast_with::<u64>(BroadcastOptions {
///     capacity: 2,
///     slow_consumer: SlowConsumer::Lag,
///     ..BroadcastOptions::default()
/// });
/// let mut rx = hub.subscribe();
/// for value in 1..=5 {
///     tx.try_send(value).unwrap(); // never full
/// }
/// assert!(matches!(rx.try_recv(), Err(TryRecvError::Lagged(3))));
/// assert_eq!(rx.try_recv().unwrap(), 4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowConsumer {
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
    /// the oldest stored element and learns how many it missed. Lent elements make the producer wait, as with
    /// `Disconnect`.
    Lag,
}

/// Validated options.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) capacity: usize,
    pub(super) start_after: Option<usize>,
    pub(super) start: Start,
    pub(super) nobody_listens: NobodyListens,
    pub(super) slow_consumer: SlowConsumer,
    pub(super) timer: Timer,
}

impl Rules {
    /// Returns whether the hub can revoke a consumer. If so, consumers must claim elements before they read
    /// them.
    pub(super) fn can_revoke(&self) -> bool {
        self.slow_consumer != SlowConsumer::Wait
    }

    pub(super) fn overwrites(&self) -> bool {
        self.slow_consumer == SlowConsumer::Lag
    }
}

impl TryFrom<BroadcastOptions> for Rules {
    type Error = OptionsError;

    fn try_from(options: BroadcastOptions) -> Result<Self, OptionsError> {
        OptionsError::check_range("capacity", options.capacity, 1, CAPACITY_MAX)?;
        if let Some(count) = options.start_after {
            NonZeroUsize::new(count).ok_or(OptionsError::too_small("start_after", 1))?;
        }
        if let SlowConsumer::Disconnect { after } = options.slow_consumer
            && after.is_zero()
        {
            return Err(OptionsError::zero_time("slow_consumer: after"));
        }
        Ok(Self {
            capacity: options.capacity,
            start_after: options.start_after,
            start: options.start,
            nobody_listens: options.nobody_listens,
            slow_consumer: options.slow_consumer,
            timer: options.timer,
        })
    }
}
