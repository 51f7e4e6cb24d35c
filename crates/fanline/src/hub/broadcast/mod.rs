//! The broadcast hub: one producer, consumers that come and go, and every element for each of them.
//!
//! # The algorithm
//!
//! ```text
//!             head                 tail          limit = head + capacity
//!  positions   |  a  b  c  d  e  f  |  .  .  .  .  |
//!              ^        ^           ^
//!           slowest   another    waits for more
//! ```
//!
//! A ring of slots, addressed by positions that only grow. The producer owns `tail` and publishes it
//! with each element; each consumer owns its position and publishes it in a cell of its own. Nobody
//! writes to what another writes: a delivery is one read of the slot and one store to the consumer's
//! own cache line.
//!
//! The producer keeps the *limit* to itself. It looks at the consumers' positions only when it comes
//! to that limit, so the look costs each delivery a fraction of one read. If there is no room it
//! *watches* the head, where the slowest consumers are: it writes that position to `watch`, makes a heavy
//! fence and looks who is still there; one of them is named the *laggard*, and it sleeps. A consumer stores
//! its position and reads `watch`; when it has left what is watched and is the laggard, it names another that is
//! still there, or wakes the producer.
//!
//! | meets | first side | second side | why neither is missed |
//! | --- | --- | --- | --- |
//! | producer sleeps, consumer moves | `watch`, heavy fence, position | position, light fence, `watch` | the fences are of a kind that is full for both (see `fence`) |
//! | consumer is named, consumer moves | `laggard`, full fence, position | position, full fence, `laggard` | full fences, of those only who find their position watched |
//! | consumer sleeps, producer publishes | list, full fence, tail | tail, full fence, list | full fences |
//! | consumer sleeps, hub ends | list, full fence, end | end, full fence, list | full fences |
//! | consumer is cut off, consumer looks | `revoked`, heavy fence, `claimed` | `claimed`, light fence, `revoked` | as the first |
//! | slots are read, then written | position by release | position by acquire, then the slot | release and acquire |
//! | join, leave, head moves | the lock | the lock | the head moves under the lock only |
//!
//! The lock is taken to come, to go, to look for room, and by the consumer who is named; never for an
//! element, and no waker, clone or drop runs under it.
//!
//! # Hazards
//!
//! Those known of hubs of this kind, under the numbers by which comments name them.
//!
//! | | hazard | answered in |
//! | --- | --- | --- |
//! | 1 | the producer's wake-up is lost: a consumer moves between the look and the watch | `Shared::room`, `Shared::name_laggard` |
//! | 2 | a consumer's wake-up is lost: one relies on another to raise a summary of who waits | `Parked`, which has none |
//! | 3 | a store and then a load, on both sides, need full fences | `Shared::advance_usual`, `Parked::park`, `fence` |
//! | 4 | joining at the head while it moves | `Shared::start_of`, under the lock |
//! | 5 | a slot is overwritten while it is read or lent | `Shared::advance_usual`, `Lap::get`; what is forgotten only stalls |
//! | 6 | when elements are dropped; users' code under a lock, or that panics | `BroadcastSender::publish`, `release`, `Listed` |
//! | 7 | a consumer is dropped while it waits; a number is used twice | `Parked::disown`; numbers never are |
//! | 8 | the consumer that is named leaves; the last one leaves | `Shared::leave` |
//! | 9 | the executor starves | `RUN_MIN` of both ends |
//! | 10 | one slow consumer stops all | `SlowConsumer`, `lag`, `lags` |
//!
//! # What it costs
//!
//! For each delivery the read, a clone, a store to the consumer's own cell and two loads of what hardly
//! ever changes; for each batch that a consumer gets, one push on the list, one wake-up and one poll. Joining and leaving
//! take the lock for a moment, whatever the number of consumers.

mod feed;
mod handle;
#[cfg(all(test, fanline_loom))]
mod models;
mod options;
mod parked;
mod patience;
mod receiver;
mod ring;
mod roster;
mod sender;
mod shared;
mod watch;

use std::sync::Arc;

pub use handle::{BroadcastHub, KillSwitch};
pub use options::{BroadcastOptions, CAPACITY_MAX, NobodyListens, SlowConsumer, Start};
pub use receiver::{BroadcastReceiver, Next, NextRef};
pub use sender::BroadcastSender;

pub(crate) use handle::Switch;

use super::OptionsError;
use crate::fence::Fences;
use options::Rules;
use ring::Ring;
use shared::Shared;

/// A hub that keeps `capacity` elements, with the options of [`BroadcastOptions::default`] otherwise.
///
/// Every consumer gets every element from where it began, in order. The slowest holds the producer
/// when it is `capacity` elements behind; while nobody listens, elements are kept, and the producer is
/// held when the hub is full.
///
/// ```
/// # futures::executor::block_on(async {
/// let (mut tx, hub) = fanline::hub::broadcast::<u64>(256);
/// let mut rx = hub.subscribe();
/// tx.send(1).await?; // waits for room
/// tx.feed(2).await?; // consumers are not woken yet
/// tx.flush(); // now they are
/// assert_eq!(rx.next().await, Some(1));
/// assert_eq!(rx.next_ref().await, Some(&2));
/// tx.complete();
/// assert_eq!(rx.next().await, None);
/// assert!(rx.error().is_none());
/// # Ok::<(), fanline::hub::SendError<u64>>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// When `capacity` is 0 or more than [`CAPACITY_MAX`], or there is no memory for so many.
pub fn broadcast<T>(capacity: usize) -> (BroadcastSender<T>, BroadcastHub<T>) {
    broadcast_with(BroadcastOptions {
        capacity,
        ..BroadcastOptions::default()
    })
}

/// A hub with these options.
///
/// # Panics
///
/// When an option is out of its range; the message names it. [`try_broadcast_with`] gives an error
/// instead.
pub fn broadcast_with<T>(options: BroadcastOptions) -> (BroadcastSender<T>, BroadcastHub<T>) {
    broadcast_with_error(options)
}

/// A hub with these options that fails with errors of the type `E`.
///
/// # Panics
///
/// As [`broadcast_with`].
pub fn broadcast_with_error<T, E>(
    options: BroadcastOptions,
) -> (BroadcastSender<T, E>, BroadcastHub<T, E>) {
    match try_broadcast_with(options) {
        Ok(ends) => ends,
        Err(error) => panic!("{error}"),
    }
}

/// A hub with these options.
///
/// # Errors
///
/// When an option is out of its range, or there is no memory for the elements; the error names it.
///
/// ```
/// use fanline::hub::{BoxError, BroadcastOptions, try_broadcast_with};
///
/// let options = BroadcastOptions { capacity: 0, ..BroadcastOptions::default() };
/// let error = try_broadcast_with::<u64, BoxError>(options).unwrap_err();
/// assert_eq!(error.option(), "capacity");
/// assert_eq!(error.to_string(), "`capacity` must be at least 1");
/// ```
#[expect(
    clippy::type_complexity,
    reason = "two ends, each with the type of what goes through it"
)]
pub fn try_broadcast_with<T, E>(
    options: BroadcastOptions,
) -> Result<(BroadcastSender<T, E>, BroadcastHub<T, E>), OptionsError> {
    build(options, Fences::detect(), 0)
}

/// The same, with its positions beginning at `origin`.
#[expect(
    clippy::type_complexity,
    reason = "two ends, each with the type of what goes through it"
)]
fn build<T, E>(
    options: BroadcastOptions,
    fences: Fences,
    origin: usize,
) -> Result<(BroadcastSender<T, E>, BroadcastHub<T, E>), OptionsError> {
    let rules = Rules::try_from(options)?;
    let ring = Ring::new(rules.capacity).ok_or(OptionsError::no_memory("capacity"))?;
    let shared = Arc::new(Shared::new(ring, rules, fences, origin));
    Ok((
        BroadcastSender::new(shared.clone()),
        BroadcastHub::new(shared),
    ))
}

#[cfg(test)]
#[cfg(not(fanline_loom))]
mod tests {
    use super::*;
    use crate::hub::{BoxError, TryRecvError};

    /// Positions wrap around on the way; dropped elements are counted.
    fn check(capacity: usize, fences: Fences, slow_consumer: SlowConsumer) {
        let options = BroadcastOptions {
            capacity,
            slow_consumer,
            ..BroadcastOptions::default()
        };
        let element = Arc::new(());
        let (mut tx, hub) =
            build::<(u64, Arc<()>), BoxError>(options, fences, usize::MAX - 7).unwrap();
        let mut early = hub.subscribe();
        let mut seen = 0;
        for value in 0..40 {
            tx.try_send((value, element.clone())).unwrap();
            if value % 3 == 0 {
                let mut late = hub.subscribe_at(Start::Latest);
                assert!(matches!(late.try_recv(), Err(TryRecvError::Empty)));
                assert_eq!(late.lag(), 0);
            }
            if tx.lags() == [(early.id(), capacity)] {
                assert_eq!(hub.subscribe().try_recv().unwrap().0, seen);
                while let Ok((value, _)) = early.try_recv() {
                    assert_eq!(value, seen);
                    seen += 1;
                }
                if value % 2 == 0 {
                    tx.release();
                    assert_eq!(Arc::strong_count(&element), 1);
                }
            }
        }
        drop((tx, hub));
        while let Ok((value, _)) = early.try_recv() {
            assert_eq!(value, seen);
            seen += 1;
        }
        assert_eq!(seen, 40);
        drop(early);
        assert_eq!(Arc::strong_count(&element), 1);
    }

    /// Few elements, and everything that two threads can do to each other: for Miri as well, which looks
    /// at each access.
    #[test]
    fn two_threads_with_hardly_any_room() {
        for (capacity, slow_consumer) in [
            (1, SlowConsumer::Wait),
            (2, SlowConsumer::Wait),
            (2, SlowConsumer::Lag),
        ] {
            let options = BroadcastOptions {
                capacity,
                slow_consumer,
                ..BroadcastOptions::default()
            };
            let (mut tx, hub) =
                build::<Box<u64>, BoxError>(options, Fences::detect(), usize::MAX - 7).unwrap();
            let threads: Vec<_> = (0..2)
                .map(|index| {
                    let mut rx = hub.subscribe();
                    std::thread::spawn(move || {
                        let mut last = None;
                        while let Some(value) = rx.blocking_recv_ref() {
                            assert!(last.is_none_or(|last| last < **value));
                            last = Some(**value);
                            if index == 1 && last == Some(20) {
                                return;
                            }
                        }
                        assert_eq!(last, Some(29));
                    })
                })
                .collect();
            for value in 0..30 {
                tx.blocking_send(Box::new(value)).unwrap();
                drop(hub.subscribe());
            }
            drop(tx);
            for thread in threads {
                thread.join().unwrap();
            }
        }
    }

    #[test]
    fn positions_wrap_around() {
        for capacity in [1, 2, 3, 4, 8] {
            for fences in [Fences::Symmetric, Fences::detect()] {
                check(capacity, fences, SlowConsumer::Wait);
                check(capacity, fences, SlowConsumer::Lag);
            }
        }
    }
}
