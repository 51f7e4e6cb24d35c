//! The producer's end.
#![expect(
    unsafe_code,
    reason = "there is one producer, and it asks for room before it writes"
)]

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use futures_sink::Sink;

use super::options::SlowConsumer;
use super::patience::Patience;
use super::shared::{Room, Shared};
use crate::hub::blocking::block_on;
use crate::hub::{BoxError, Closed, Ended, HubError, SendError, TrySendError};
use crate::{Guard, Time};

/// A producer that never has to wait gives way to other tasks after so many elements, or after one
/// round of its hub (hazard 9).
const RUN_MIN: usize = 128;

/// The producing end of a broadcast hub; see [`broadcast`](super::broadcast()).
///
/// `send`, `feed` and their likes wait while the slowest consumer is as far behind as the hub has
/// room. Elements are there for consumers that look at once; those that wait are woken by
/// [`flush`](Self::flush), when the hub is full, and with each [`send`](Self::send). Feeding several
/// elements and flushing once costs each consumer one wake-up for all of them.
///
/// Dropping it completes the hub, as [`complete`](Self::complete) does; while its thread panics,
/// consumers get [`HubError::Abandoned`] instead.
///
/// It is a [`Sink`] too, whose `close` completes.
///
/// ```
/// use futures::{StreamExt, stream};
///
/// # futures::executor::block_on(async {
/// let (tx, hub) = fanline::hub::broadcast::<u64>(16);
/// let rx = hub.subscribe();
/// stream::iter(1..=3).map(Ok).forward(tx).await?;
/// assert_eq!(rx.collect::<Vec<_>>().await, [1, 2, 3]);
/// # Ok::<(), fanline::hub::Closed>(())
/// # }).unwrap();
/// ```
pub struct BroadcastSender<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    /// Where the next element goes.
    tail: usize,
    /// The first position for which there is no room, as far as is known.
    limit: usize,
    /// Up to where consumers were woken for.
    flushed: usize,
    /// Up to where elements have been dropped.
    dropped_to: usize,
    /// Elements before other tasks have their turn.
    run: usize,
    patience: Patience,
    /// Since it waits for room: when it has waited for long enough, and what wakes it then.
    stall: Option<(Time, Guard)>,
}

impl<T, E> BroadcastSender<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>) -> Self {
        let origin = shared.tail();
        Self {
            tail: origin,
            limit: origin,
            flushed: origin,
            dropped_to: origin,
            run: shared.rules.capacity.max(RUN_MIN),
            patience: Patience::new(),
            stall: None,
            shared,
        }
    }

    /// Waits for room and sends; consumers that wait are woken.
    ///
    /// Dropping the future before it is done drops the element, unsent.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    #[inline]
    pub async fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        self.feed(value).await?;
        self.flush();
        Ok(())
    }

    /// Waits for room and sends; consumers that wait are woken by the next [`flush`](Self::flush), or
    /// when the hub is full.
    ///
    /// Dropping the future before it is done drops the element, unsent.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    #[inline]
    pub async fn feed(&mut self, value: T) -> Result<(), SendError<T>> {
        match poll_fn(|context| self.poll_room(context)).await {
            Ok(()) => {
                self.publish(value);
                Ok(())
            }
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Wakes the consumers that wait, if there is something for them. Does not wait for anybody.
    #[inline]
    pub fn flush(&mut self) {
        if self.flushed != self.tail {
            // First, as a waker may panic.
            self.flushed = self.tail;
            self.shared.wake_parked();
        }
    }

    /// As [`send`](Self::send), and holds up this thread instead of a task.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub fn blocking_send(&mut self, value: T) -> Result<(), SendError<T>> {
        self.blocking_feed(value)?;
        self.flush();
        Ok(())
    }

    /// As [`feed`](Self::feed), and holds up this thread instead of a task.
    ///
    /// # Errors
    ///
    /// When the hub is closed; the element comes back.
    pub fn blocking_feed(&mut self, value: T) -> Result<(), SendError<T>> {
        let room = if self.has_room() {
            Ok(())
        } else {
            block_on(|context| self.poll_room(context))
        };
        match room {
            Ok(()) => {
                self.publish(value);
                Ok(())
            }
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Sends if there is room now; consumers that wait are woken.
    ///
    /// # Errors
    ///
    /// When there is no room, or the hub is closed; the element comes back.
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        if !self.has_room() {
            match self.poll_room(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(Closed)) => return Err(TrySendError::Closed(value)),
                Poll::Pending => return Err(TrySendError::Full(value)),
            }
        }
        self.publish(value);
        self.flush();
        Ok(())
    }

    /// Sends all that a stream yields, and completes after it. Consumers are woken when the hub is full
    /// and whenever the stream has nothing ready.
    ///
    /// A stream has no way to fail: that of another hub's receiver ends with its hub's failure as it does
    /// with completion. To pass a failure on, keep the receiver, and look at its
    /// [`error`](super::BroadcastReceiver::error) after the last element.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let (mut first, upstream) = fanline::hub::broadcast::<u64>(16);
    /// let (mut second, downstream) = fanline::hub::broadcast::<u64>(16);
    /// let (mut rx, mut last) = (upstream.subscribe(), downstream.subscribe());
    /// first.fail("broken");
    /// while let Some(value) = rx.next().await {
    ///     second.send(value).await?;
    /// }
    /// match rx.error() {
    ///     None => second.complete(),
    ///     Some(error) => second.fail(error.clone()),
    /// }
    /// assert_eq!(last.next().await, None);
    /// assert!(last.error().is_some());
    /// # Ok::<(), fanline::hub::SendError<u64>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// When the hub is closed; the stream is dropped with the element that it had yielded.
    pub async fn attach<S>(mut self, stream: S) -> Result<(), Closed>
    where
        S: Stream<Item = T>,
    {
        let mut stream = std::pin::pin!(stream);
        loop {
            poll_fn(|context| self.poll_room(context)).await?;
            let next = poll_fn(|context| {
                let next = stream.as_mut().poll_next(context);
                if next.is_pending() {
                    self.flush();
                    // The hub may be closed while the stream is silent.
                    if self.poll_closed(context).is_ready() {
                        return Poll::Ready(Err(Closed));
                    }
                }
                next.map(Ok)
            });
            match next.await? {
                Some(value) => self.publish(value),
                None => {
                    self.complete();
                    return Ok(());
                }
            }
        }
    }

    /// Says that there is no more. Consumers get what was sent before, and then the end; those that
    /// come later too. Does nothing after an end.
    pub fn complete(&mut self) {
        self.shared.end(Ended::Completed);
    }

    /// Says that the source has failed. Consumers get that at once, before what they have not received
    /// yet; those that come later too. Does nothing after an end.
    pub fn fail(&mut self, error: impl Into<E>) {
        let error = HubError::Failed(Arc::new(error.into()));
        self.shared.end(Ended::Error(error));
    }

    /// Whether nothing is taken any more.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// How many elements the hub can keep.
    pub fn capacity(&self) -> usize {
        self.shared.rules.capacity
    }

    /// How many consumers there are.
    pub fn receiver_count(&self) -> usize {
        self.shared.consumers()
    }

    /// How many elements each consumer is behind, with its [`id`](super::BroadcastReceiver::id).
    pub fn lags(&self) -> Vec<(u64, usize)> {
        self.shared.lags()
    }

    /// Drops elements that every consumer has received. Without this they are dropped when their place
    /// is needed.
    pub fn release(&mut self) {
        // The limit stays: whether there is room is not for the head alone to say.
        let head = self.shared.look_for_head();
        let behind = self.tail.wrapping_sub(self.dropped_to);
        if self.tail.wrapping_sub(head) < behind {
            // SAFETY: this is the producer, and `head` is a head, which does not go back.
            unsafe { self.shared.drop_to(&mut self.dropped_to, head) };
        }
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        self.tail != self.limit && !self.shared.is_closed()
    }

    /// Ready when there is room for an element, or never will be.
    #[inline(always)]
    pub(super) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        if self.run > 0 && self.has_room() {
            self.run -= 1;
            return Poll::Ready(Ok(()));
        }
        self.poll_more_room(context)
    }

    #[cold]
    #[inline(never)]
    fn poll_more_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        // Either way others have their turn.
        self.flush();
        let spent = self.run == 0;
        self.run = self.shared.rules.capacity.max(RUN_MIN);
        if spent && self.has_room() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            let mut waker = Some(context.waker().clone());
            let room = self.shared.room(self.tail, &mut waker, &mut self.patience);
            match room {
                Room::Closed => return Poll::Ready(Err(Closed)),
                Room::From(head) => {
                    self.limit = head.wrapping_add(self.shared.rules.capacity);
                    self.stall = None;
                    return Poll::Ready(Ok(()));
                }
                Room::Soon => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Room::Wait => {
                    if !self.stop_waiting(context) {
                        return Poll::Pending;
                    }
                }
                Room::Alone => {
                    // Whoever comes has all the time that there is.
                    self.stall = None;
                    return Poll::Pending;
                }
            }
        }
    }

    /// While there is no room: whether consumers were cut off, so that it is worth looking again.
    fn stop_waiting(&mut self, context: &Context<'_>) -> bool {
        let SlowConsumer::Disconnect { after } = self.shared.rules.slow_consumer else {
            return false;
        };
        let timer = &self.shared.rules.timer;
        let due = match &self.stall {
            Some((due, _)) => *due,
            None => timer.after(after),
        };
        if timer.is_over(due) {
            let mut core = self.shared.lock();
            return self.shared.cut_off_slowest(&mut core);
        }
        // Another task may ask than the one before.
        self.stall = Some((due, timer.wake_at(due, context.waker().clone())));
        false
    }

    fn poll_closed(&self, context: &Context<'_>) -> Poll<()> {
        let mut waker = Some(context.waker().clone());
        self.shared.closed_or_wait(&mut waker)
    }

    #[inline(always)]
    fn publish(&mut self, value: T) {
        // SAFETY: there is one producer; there is room, so that every position is past what was there.
        let old = unsafe { self.shared.publish(self.tail, value, &mut self.dropped_to) };
        self.tail = self.tail.wrapping_add(1);
        // The user's code: last, so that a panic leaves everything whole (hazard 6).
        drop(old);
    }
}

impl<T, E> Sink<T> for BroadcastSender<T, E> {
    type Error = Closed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().poll_room(context)
    }

    /// Feeds the element.
    ///
    /// # Panics
    ///
    /// When `poll_ready` was not asked before, and there is no room.
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), Closed> {
        let this = self.get_mut();
        if this.shared.is_closed() {
            return Err(Closed);
        }
        assert!(
            this.tail != this.limit,
            "`start_send` needs a `poll_ready` that was ready"
        );
        this.publish(value);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.get_mut().complete();
        Poll::Ready(Ok(()))
    }
}

impl<T, E> Unpin for BroadcastSender<T, E> {}

impl<T, E> Drop for BroadcastSender<T, E> {
    fn drop(&mut self) {
        self.shared.set_dropped_to(self.dropped_to);
        self.shared.end(if std::thread::panicking() {
            Ended::Error(HubError::Abandoned)
        } else {
            Ended::Completed
        });
    }
}

impl<T, E> fmt::Debug for BroadcastSender<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastSender")
            .field("capacity", &self.capacity())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
