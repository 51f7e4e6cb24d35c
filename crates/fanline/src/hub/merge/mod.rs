//! The merge hub: producers that come and go, and one consumer of all their elements.
//!
//! Producers append to one [list](list), in the order in which they arrive, and the consumer reads it;
//! neither takes a lock. Each producer has a [lane](lane), which counts what it has appended and what of
//! it was taken, and so bounds it; [places](places) bound all of them together. A lock holds who is
//! there ([shared]), and is not touched for an element. No waker, clone or drop runs under it.

mod lane;
mod list;
#[cfg(all(test, fanline_loom))]
mod models;
mod places;
mod receiver;
mod sender;
mod shared;

use std::fmt;
use std::sync::Arc;

pub use receiver::MergeReceiver;
pub use sender::MergeSender;

use super::broadcast::{KillSwitch, Switch};
use super::{BoxError, CAPACITY_MAX, OptionsError};
use shared::Shared;

/// Options of [`merge_with`].
///
/// ```
/// use fanline::hub::{MergeOptions, merge_with};
///
/// let (hub, rx) = merge_with::<u64>(MergeOptions {
///     total: Some(100),
///     ..MergeOptions::default()
/// });
/// # drop((hub, rx));
/// ```
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// How many elements of one producer can wait for the consumer; from 1 to
    /// [`CAPACITY_MAX`]. 16 by default.
    pub per_producer: usize,
    /// How many elements of all producers together can; from 1 to [`CAPACITY_MAX`]. Never exceeded:
    /// producers wait for a place, first come, first served. `None`, the default, leaves it at the sum
    /// of the producers' own, to which those count that have left and whose elements still wait: with
    /// producers that come and go while nobody receives, only a total is a bound.
    pub total: Option<usize>,
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self {
            per_producer: 16,
            total: None,
        }
    }
}

/// A hub in which `per_producer` elements of each producer can wait.
///
/// Elements of one producer stay in order; between producers the order is that of arrival. A producer
/// that completes, fails or is dropped leaves, and the hub goes on for the others. The consumer's
/// stream ends when the hub is [drained](MergeHub::drain) or killed, or when no producer is left and
/// no handle from which another could come.
///
/// ```
/// # futures::executor::block_on(async {
/// let (hub, mut rx) = fanline::hub::merge::<u64>(16);
/// let (mut a, mut b) = (hub.producer(), hub.producer());
/// a.send(1).await?;
/// b.send(2).await?;
/// drop(b);
/// a.send(3).await?;
/// hub.drain(); // no new producers; ends when those that are there have
/// drop(a);
/// assert_eq!(rx.next().await, Some(1));
/// assert_eq!(rx.next().await, Some(2));
/// assert_eq!(rx.next().await, Some(3));
/// assert_eq!(rx.next().await, None);
/// # Ok::<(), fanline::hub::SendError<u64>>(())
/// # }).unwrap();
/// ```
///
/// # Panics
///
/// When `per_producer` is 0 or more than [`CAPACITY_MAX`].
pub fn merge<T>(per_producer: usize) -> (MergeHub<T>, MergeReceiver<T>) {
    merge_with(MergeOptions {
        per_producer,
        ..MergeOptions::default()
    })
}

/// A hub with these options.
///
/// # Panics
///
/// When an option is out of its range; the message names it. [`try_merge_with`] gives an error
/// instead.
pub fn merge_with<T>(options: MergeOptions) -> (MergeHub<T>, MergeReceiver<T>) {
    merge_with_error(options)
}

/// A hub with these options that fails with errors of the type `E`.
///
/// # Panics
///
/// As [`merge_with`].
pub fn merge_with_error<T, E>(options: MergeOptions) -> (MergeHub<T, E>, MergeReceiver<T, E>) {
    match try_merge_with(options) {
        Ok(ends) => ends,
        Err(error) => panic!("{error}"),
    }
}

/// A hub with these options.
///
/// # Errors
///
/// When an option is out of its range; the error names it.
#[expect(
    clippy::type_complexity,
    reason = "two ends, each with the type of what goes through it"
)]
pub fn try_merge_with<T, E>(
    options: MergeOptions,
) -> Result<(MergeHub<T, E>, MergeReceiver<T, E>), OptionsError> {
    OptionsError::check_range("per_producer", options.per_producer, 1, CAPACITY_MAX)?;
    if let Some(total) = options.total {
        OptionsError::check_range("total", total, 1, CAPACITY_MAX)?;
    }
    let (shared, head) = Shared::new(&options);
    let shared = Arc::new(shared);
    Ok((
        MergeHub {
            shared: shared.clone(),
        },
        MergeReceiver::new(shared, head),
    ))
}

/// Where producers come from; see [`merge`]. Clones are handles of the same hub.
///
/// ```
/// let (hub, mut rx) = fanline::hub::merge::<u64>(16);
/// let (mut good, bad) = (hub.producer(), hub.producer());
/// bad.fail("broken"); // harms nobody
/// good.try_send(1).unwrap();
/// assert_eq!(rx.try_recv().unwrap(), 1);
/// assert_eq!(hub.producer_count(), 1);
/// assert_eq!(hub.last_failure().unwrap().to_string(), "broken");
/// ```
pub struct MergeHub<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> MergeHub<T, E> {
    /// A new producer. After the hub has ended, or while it is drained, it is closed from the
    /// beginning: everything that it sends comes back.
    pub fn producer(&self) -> MergeSender<T, E> {
        MergeSender::new(self.shared.clone())
    }

    /// Takes no new producers; the consumer's stream ends when those that are there have left and all
    /// was received, at once if there is nothing of the kind.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// Something to end the hub with from elsewhere: completing it lets the consumer have what waits,
    /// failing it drops that. Producers are told either way.
    pub fn kill_switch(&self) -> KillSwitch<E>
    where
        T: Send + 'static,
        E: Send + Sync + 'static,
    {
        let shared: Arc<dyn Switch<E>> = self.shared.clone();
        KillSwitch::new(&shared)
    }

    /// How many producers there are.
    pub fn producer_count(&self) -> usize {
        self.shared.producers()
    }

    /// How many elements wait for the consumer. It goes over all producers.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no element waits for the consumer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// With what the last producer that failed did so. It left like any other.
    pub fn last_failure(&self) -> Option<Arc<E>> {
        self.shared.last_failure()
    }

    /// Whether nothing is taken any more, from anybody.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
}

impl<T, E> Clone for MergeHub<T, E> {
    fn clone(&self) -> Self {
        self.shared.add_handle();
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T, E> Drop for MergeHub<T, E> {
    fn drop(&mut self) {
        self.shared.remove_handle();
    }
}

impl<T, E> fmt::Debug for MergeHub<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeHub")
            .field("producer_count", &self.producer_count())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
