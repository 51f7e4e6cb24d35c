//! Relays, with which several threads serve the consumers of one hub.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::handle::BroadcastHub;
use super::options::BroadcastOptions;
use super::receiver::BroadcastReceiver;
use super::sender::BroadcastSender;
use crate::hub::blocking::block_on;
use crate::hub::{BoxError, Ended, HubError};

impl<T: Clone, E> BroadcastHub<T, E> {
    /// Returns another hub that gets the elements of this one, and the task that moves them.
    ///
    /// With many consumers on several threads, most time goes into waking consumers on other threads and moving
    /// their state between cores. A relay avoids both. It is one consumer of this hub, and the producer of a hub
    /// of its own, its *shard*. Make one relay for each thread, run its task on this thread, and subscribe the
    /// thread's consumers to its shard. Then only relays are woken across threads.
    ///
    /// Each shard stores up to its own `capacity` of elements in addition to those of this hub. The producer
    /// waits for the slowest relay, and a relay waits for the slowest consumer of its shard. By default a shard
    /// without consumers also waits; use [`OnEmpty::Drop`](super::OnEmpty::Drop) if the others must not. The
    /// shard ends as this hub ends: it completes after the last element, or fails with the same error.
    ///
    /// The options are those of the shard. Treat slow consumers there ([`OnSlow`](super::OnSlow)), because this
    /// hub sees only the relay.
    ///
    /// ```
    /// use fanline::hub::{BroadcastHub, broadcast};
    ///
    /// let (mut tx, hub) = broadcast::<u64>(256);
    /// let threads = [0, 1].map(|_| {
    ///     let (relay, shard) = hub.relay(BroadcastHub::options().capacity(128));
    ///     let consumers = [shard.subscribe(), shard.subscribe()];
    ///     std::thread::spawn(move || {
    ///         let mut executor = futures::executor::LocalPool::new();
    ///         let sums = consumers.map(|mut rx| async move {
    ///             let mut sum = 0_u64;
    ///             rx.for_each_ref(|value| sum += *value).await;
    ///             sum
    ///         });
    ///         let (_, sums) = executor.run_until(futures::future::join(
    ///             relay,
    ///             futures::future::join_all(sums),
    ///         ));
    ///         assert_eq!(sums, [5050, 5050]);
    ///     })
    /// });
    /// for value in 1..=100 {
    ///     tx.blocking_send(value)?;
    /// }
    /// tx.complete();
    /// threads.map(|thread| thread.join().unwrap());
    /// # Ok::<(), fanline::hub::SendError<u64>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If an option is out of range, as [`BroadcastOptions::build`].
    pub fn relay(&self, options: BroadcastOptions<T, E>) -> (Relay<T, E>, Self) {
        let (to, shard) = options.build();
        let relay = Relay {
            from: Some(self.subscribe()),
            to,
            lost: 0,
        };
        (relay, shard)
    }
}

/// The task that moves the elements of a hub to a shard; made by [`BroadcastHub::relay`].
///
/// The future is ready when the hub has ended and the shard has all elements, or when the shard is closed. Its
/// output is the number of elements that the relay lost because the hub drops elements for slow consumers; it is
/// 0 with all other options. Cancel safe: between two polls, each element is in the hub or in the shard.
///
/// If the task is dropped before it is ready, the shard fails with [`HubError::Abandoned`].
#[must_use = "a relay does nothing unless it is awaited or run"]
pub struct Relay<T, E = BoxError> {
    /// `None` after the end, so that a finished task does not delay the hub.
    from: Option<BroadcastReceiver<T, E>>,
    to: BroadcastSender<T, E>,
    lost: u64,
}

impl<T: Clone, E> Relay<T, E> {
    /// Moves elements until the hub or the shard has ended, and blocks the thread meanwhile. Returns the number
    /// of elements that the relay lost.
    pub fn blocking_run(mut self) -> u64 {
        block_on(|context| self.poll_all(context))
    }

    fn poll_all(&mut self, context: &mut Context<'_>) -> Poll<u64> {
        let Some(from) = &mut self.from else {
            return Poll::Ready(self.lost);
        };
        loop {
            // Wait for room first, because an element that has been received must be sent.
            if ready!(self.to.poll_room(context)).is_err() {
                break;
            }
            match from.poll_clone(context) {
                Poll::Ready(Some(value)) => self.to.publish(value),
                Poll::Ready(None) => {
                    let end = from.end().cloned();
                    self.to.end(end.unwrap_or(Ended::Completed));
                    break;
                }
                Poll::Pending => {
                    self.to.flush();
                    // The shard may be closed while the hub has no elements.
                    ready!(self.to.poll_closed(context));
                    break;
                }
            }
        }
        self.lost = from.lost();
        self.from = None;
        Poll::Ready(self.lost)
    }
}

impl<T: Clone, E> Future for Relay<T, E> {
    type Output = u64;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        self.get_mut().poll_all(context)
    }
}

impl<T, E> Drop for Relay<T, E> {
    fn drop(&mut self) {
        if self.from.is_some() {
            self.to.end(Ended::Error(HubError::Abandoned));
        }
    }
}

impl<T, E> fmt::Debug for Relay<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("lag", &self.from.as_ref().map(BroadcastReceiver::lag))
            .finish_non_exhaustive()
    }
}
