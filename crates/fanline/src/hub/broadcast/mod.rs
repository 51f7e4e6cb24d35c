//! The broadcast hub: one producer, any number of consumers at any time, and every element for each of them.
//!
//! # Algorithm
//!
//! ```text
//!             head                 tail          limit = head + capacity
//!  positions   |  a  b  c  d  e  f  |  .  .  .  .  |
//!              ^        ^           ^
//!           slowest   another    waits for more
//! ```
//!
//! The hub is a ring of slots, addressed by positions that only grow. The producer owns `tail` and publishes
//! it with each element. Each consumer owns its position and publishes it in a cell of its own. Each word has
//! only one writer, so a delivery is one read of the slot and one store to the consumer's own cache line.
//!
//! Only the producer knows `limit`. It reads the consumers' positions only when the tail reaches the limit,
//! so this check costs each delivery a fraction of one read. If there is no room, the producer *watches* the
//! head, the position of the slowest consumers. It writes that position to `watch`, executes a heavy fence,
//! and checks which consumers are still there. It names one of them the *laggard*, and sleeps. Each consumer
//! stores its position and then reads `watch`. When the laggard leaves the watched position, it names another
//! consumer that is still there, or wakes the producer if all have left.
//!
//! In each race, both sides write one word, execute a full fence, and read the word of the other side.
//! `docs/explanation/hub.md` lists the races, and the hazards: known ways in which such a hub can fail.
//!
//! A thread takes the lock to join, to leave, to look for room, and as the laggard, but not to send or
//! receive an element. No waker, clone, or drop runs under the lock.
//!
//! # Cost
//!
//! Each delivery costs the read, a clone, a store to the consumer's own cell, and two loads of words that
//! rarely change. Each batch of elements that a consumer receives costs one push to the list of waiting
//! consumers, one wake-up, and one poll. When a consumer joins or leaves, the lock is held only briefly,
//! however many consumers there are.

mod feed;
mod handle;
#[cfg(all(test, fanline_loom))]
mod models;
mod options;
mod parked;
mod receiver;
mod registry;
mod relay;
mod ring;
mod sender;
mod shared;
mod watch;
mod yield_backoff;

pub use handle::{BroadcastHub, KillSwitch};
pub use options::{BroadcastOptions, CAPACITY_MAX, OnEmpty, OnSlow, Start};
pub use receiver::{BroadcastReceiver, Next, NextRef};
pub use relay::Relay;
pub use sender::{BroadcastPermit, BroadcastSender};

pub(crate) use handle::Switch;

/// Returns a hub that stores `capacity` elements. [`BroadcastHub::options`] sets
/// other options.
///
/// Every consumer gets every element after its start, in order. The producer waits when the slowest consumer
/// is `capacity` elements behind. While there is no consumer, elements are stored, and the producer waits
/// when the hub is full.
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
/// If `capacity` is 0 or more than [`CAPACITY_MAX`], or there is not enough memory.
pub fn broadcast<T>(capacity: usize) -> (BroadcastSender<T>, BroadcastHub<T>) {
    BroadcastOptions::new().capacity(capacity).build()
}

#[cfg(test)]
#[cfg(not(fanline_loom))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fence::Fences;
    use crate::hub::TryRecvError;

    fn hub<T>(
        capacity: usize,
        on_slow: OnSlow,
        fences: Fences,
    ) -> (BroadcastSender<T>, BroadcastHub<T>) {
        let options = BroadcastHub::options().capacity(capacity).on_slow(on_slow);
        // Positions wrap around during each test.
        options.build_at(fences, usize::MAX - 7).unwrap()
    }

    /// Checks that a hub whose positions wrap around neither loses nor repeats nor leaks an element.
    fn check(capacity: usize, fences: Fences, on_slow: OnSlow) {
        let element = Arc::new(());
        let (mut tx, hub) = hub::<(u64, Arc<()>)>(capacity, on_slow, fences);
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

    /// Late consumers start before the head, while positions wrap around. The ring has few slots, so an element
    /// that was overwritten too early would show as a wrong value.
    #[test]
    fn late_consumers_get_exactly_the_last_elements() {
        for capacity in [1, 2, 3, 4] {
            for replay in [0, 1, 2, 5] {
                let options = BroadcastHub::<(usize, Arc<()>)>::options()
                    .capacity(capacity)
                    .replay(replay);
                let ends = options.build_at(Fences::detect(), usize::MAX - 7);
                let (mut tx, hub) = ends.unwrap();
                let element = Arc::new(());
                let mut early = hub.subscribe();
                for sent in 1..if cfg!(miri) { 12 } else { 30 } {
                    tx.try_send((sent, element.clone())).unwrap();
                    assert_eq!(early.try_recv().unwrap().0, sent);
                    for count in [0, 1, 2, 9] {
                        let mut late = hub.subscribe_at(Start::Last(count));
                        let seen: Vec<_> =
                            std::iter::from_fn(|| late.try_recv().ok().map(|seen| seen.0))
                                .collect();
                        let expected = sent + 1 - count.min(replay).min(sent)..sent + 1;
                        assert!(seen.iter().copied().eq(expected), "{seen:?}");
                    }
                    if sent % 2 == 0 {
                        tx.release();
                        assert_eq!(Arc::strong_count(&element), 1 + replay.min(sent));
                    }
                }
                drop((tx, hub, early));
                assert_eq!(Arc::strong_count(&element), 1);
            }
        }
    }

    /// Runs most interactions of two threads with few elements, so that Miri can check each access in
    /// acceptable time.
    #[test]
    fn two_threads_with_capacity_one_or_two() {
        for (capacity, on_slow) in [
            (1, OnSlow::Wait),
            (2, OnSlow::Wait),
            (2, OnSlow::DropOldest),
        ] {
            let (mut tx, hub) = hub::<Box<u64>>(capacity, on_slow, Fences::detect());
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
                check(capacity, fences, OnSlow::Wait);
                check(capacity, fences, OnSlow::DropOldest);
            }
        }
    }
}
