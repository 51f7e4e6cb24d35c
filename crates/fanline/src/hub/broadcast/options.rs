//! What can be chosen about a broadcast hub.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::hub::{OptionsError, Timer};

/// The most elements that a hub can keep.
pub const CAPACITY_MAX: usize = 1 << 28;

/// Options of [`broadcast_with`](crate::hub::broadcast_with); the defaults are those of
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
    /// How many elements the slowest consumer can be behind before the producer is held; from 1 to
    /// [`CAPACITY_MAX`]. Exact, whatever the number. 256 by default.
    pub capacity: usize,
    /// Nothing is taken from the producer before so many consumers are there at once; at least 1.
    /// `None`, the default, takes elements at once. Once started, a hub does not wait for consumers
    /// again.
    pub start_after: Option<usize>,
    /// Where a consumer begins that subscribes while there are elements.
    pub start: Start,
    /// What becomes of elements while there is no consumer.
    pub nobody_listens: NobodyListens,
    /// What becomes of a consumer that holds everybody up.
    pub slow_consumer: SlowConsumer,
    /// On what [`SlowConsumer::Disconnect`] waits.
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

/// Where a consumer begins.
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
    /// At the oldest element that is kept: where the slowest consumer is, or where the last one left.
    /// With more than 64 consumers it may be a little earlier: where the slowest was when the producer
    /// last looked.
    #[default]
    Oldest,
    /// At the next element that is sent.
    Latest,
}

/// What a hub does with elements while there is no consumer, or only such as were
/// [disconnected](SlowConsumer::Disconnect).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NobodyListens {
    /// Keeps them, and holds the producer when the hub is full. The next consumer goes on where the
    /// last one left.
    #[default]
    Hold,
    /// Drops them: the next consumer begins with what is sent after it came.
    Discard,
    /// Completes when the last consumer leaves; until the first one comes, it holds.
    Close,
}

// One slow consumer stops all by design (hazard 10): this is what can be done about it.
/// What happens when a hub is full since a consumer is slow.
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
    /// The producer waits.
    #[default]
    Wait,
    /// The producer waits for so long, and then goes on without the consumer, whose stream ends with
    /// [`HubError::TooSlow`](crate::hub::HubError::TooSlow).
    ///
    /// Elements lent by `next_ref` and `next_slice` are looked at until the consumer asks for the next:
    /// they cannot be taken away, so a consumer that uses these is waited for while it holds one.
    Disconnect {
        /// How long the producer waits for room.
        after: Duration,
    },
    /// The producer never waits: the oldest elements give way, and the consumer goes on with the oldest
    /// that is kept, and is told how many it missed. What was said of lent elements holds here too.
    Lag,
}

/// Options that were checked.
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
    /// Whether consumers have to say when they look at elements, as they can be cut off.
    pub(super) fn can_cut_off(&self) -> bool {
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
