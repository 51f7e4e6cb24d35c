//! The producing end of a broadcast hub.
#![expect(
    unsafe_code,
    reason = "there is one producer, and it checks for room before it writes"
)]

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use futures_sink::Sink;

use super::options::OnSlow;
use super::shared::{Room, Shared};
use super::yield_backoff::YieldBackoff;
use crate::hub::blocking::block_on;
use crate::hub::deadline::Deadline;
use crate::hub::{BoxError, Ended, HubClosed, HubError, SendError, SendTimeoutError, TrySendError};
use crate::{Guard, Time};

/// Number of elements in a row after which the producer yields, so that other tasks of its executor run. If
/// the hub's capacity is larger, the capacity is used instead.
const RUN_MIN: usize = 128;

/// The producing end of a broadcast hub; see [`broadcast`](super::broadcast()).
///
/// `send`, `feed`, and their variants wait while the hub is full, that is, while the slowest consumer is
/// `capacity` elements behind. A consumer that polls finds new elements at once. Waiting consumers are woken
/// by [`flush`](Self::flush), when the hub is full, and with each [`send`](Self::send). If you feed several
/// elements and flush once, each consumer is woken once for all of them.
///
/// Dropping the sender completes the hub, like [`complete`](Self::complete). If the drop is part of a panic,
/// consumers get [`HubError::Abandoned`] instead.
///
/// The sender is also a [`Sink`], whose `close` completes the hub.
///
/// ```
/// use futures::{StreamExt, stream};
///
/// # futures::executor::block_on(async {
/// let (tx, hub) = fanline::hub::broadcast::<u64>(16);
/// let rx = hub.subscribe();
/// stream::iter(1..=3).map(Ok).forward(tx).await?;
/// assert_eq!(rx.collect::<Vec<_>>().await, [1, 2, 3]);
/// # Ok::<(), fanline::hub::HubClosed>(())
/// # }).unwrap();
/// ```
pub struct BroadcastSender<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    /// Position of the next element.
    tail: usize,
    /// First position for which there is no room, as far as the producer knows.
    limit: usize,
    /// End of the elements for which consumers were woken.
    flushed: usize,
    /// End of the elements that were dropped.
    dropped_to: usize,
    /// Number of elements that may still be sent before the next yield.
    run: usize,
    backoff: YieldBackoff,
    /// The deadline of the current wait for room, and the guard of its wake-up.
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
            backoff: YieldBackoff::new(),
            stall: None,
            shared,
        }
    }

    /// Waits for room, sends an element, and wakes waiting consumers.
    ///
    /// If the future is dropped before it is ready, the element is dropped unsent.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    #[inline]
    pub async fn send(&mut self, value: T) -> Result<(), SendError<T>> {
        self.feed(value).await?;
        self.flush();
        Ok(())
    }

    /// Waits for room and sends an element. Waiting consumers are woken by the next [`flush`](Self::flush),
    /// or when the hub is full.
    ///
    /// If the future is dropped before it is ready, the element is dropped unsent.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    #[inline]
    pub async fn feed(&mut self, value: T) -> Result<(), SendError<T>> {
        match poll_fn(|context| self.poll_room(context)).await {
            Ok(()) => {
                self.publish(value);
                Ok(())
            }
            Err(HubClosed) => Err(SendError(value)),
        }
    }

    /// Does the same as [`send`](Self::send), but gives up when the hub has been full for `timeout`. With a
    /// timeout of zero it does not wait.
    ///
    /// If the future is dropped before it is ready, the element is dropped unsent. The time is that of the
    /// hub's [`scheduler`](super::BroadcastOptions::scheduler).
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// use std::time::Duration;
    /// use fanline::hub::{SendTimeoutError, broadcast};
    ///
    /// let (mut tx, _hub) = broadcast::<u64>(1);
    /// let timeout = Duration::from_millis(1);
    /// assert_eq!(tx.send_timeout(1, timeout).await, Ok(()));
    /// assert_eq!(tx.send_timeout(2, timeout).await, Err(SendTimeoutError::Timeout(2)));
    /// # });
    /// ```
    ///
    /// # Errors
    ///
    /// If there was no room in time, or if the hub is closed; the error contains the element.
    pub async fn send_timeout(
        &mut self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut deadline = Deadline::new(&self.shared.rules.timer, timeout);
        let room = poll_fn(|context| deadline.poll(context, |context| self.poll_room(context)));
        let room = room.await;
        self.send_in_time(value, room)
    }

    /// Does the same as [`send_timeout`](Self::send_timeout), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If there was no room in time, or if the hub is closed; the error contains the element.
    pub fn blocking_send_timeout(
        &mut self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut deadline = Deadline::new(&self.shared.rules.timer, timeout);
        let room = block_on(|context| deadline.poll(context, |context| self.poll_room(context)));
        self.send_in_time(value, room)
    }

    fn send_in_time(
        &mut self,
        value: T,
        room: Option<Result<(), HubClosed>>,
    ) -> Result<(), SendTimeoutError<T>> {
        match room {
            Some(Ok(())) => {
                self.publish(value);
                self.flush();
                Ok(())
            }
            Some(Err(HubClosed)) => Err(SendTimeoutError::Closed(value)),
            // The last poll may have yielded although there was room.
            None => Ok(self.try_send(value)?),
        }
    }

    /// Waits for room for one element, and returns a permit that sends it without waiting. So an element need
    /// not exist before there is room for it.
    ///
    /// Cancel safe: if the future is dropped before it is ready, nothing is reserved. A permit that is dropped
    /// leaves the room to the next element.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let (mut tx, hub) = fanline::hub::broadcast::<String>(16);
    /// let mut rx = hub.subscribe();
    /// let permit = tx.reserve().await?;
    /// permit.send("made only now".to_owned()).unwrap();
    /// assert_eq!(rx.next().await.as_deref(), Some("made only now"));
    /// # Ok::<(), fanline::hub::HubClosed>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// If the hub is closed.
    pub async fn reserve(&mut self) -> Result<BroadcastPermit<'_, T, E>, HubClosed> {
        poll_fn(|context| self.poll_room(context)).await?;
        Ok(BroadcastPermit { sender: self })
    }

    /// Returns a permit for one element if there is room now.
    ///
    /// # Errors
    ///
    /// If there is no room, or the hub is closed.
    pub fn try_reserve(&mut self) -> Result<BroadcastPermit<'_, T, E>, TrySendError<()>> {
        match self.try_room() {
            Poll::Ready(Ok(())) => Ok(BroadcastPermit { sender: self }),
            Poll::Ready(Err(HubClosed)) => Err(TrySendError::Closed(())),
            Poll::Pending => Err(TrySendError::Full(())),
        }
    }

    /// Waits until the hub accepts no more elements: it was completed, failed, or killed, or it has no consumer
    /// and can get none. Wakes waiting consumers first, as [`flush`](Self::flush) does.
    ///
    /// Cancel safe: dropping the future has no effect.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let (mut tx, hub) = fanline::hub::broadcast::<u64>(16);
    /// drop(hub); // no consumer can subscribe any more
    /// tx.closed().await;
    /// # });
    /// ```
    pub async fn closed(&mut self) {
        self.flush();
        poll_fn(|context| self.poll_closed(context)).await;
    }

    /// Wakes waiting consumers if there are new elements. Never blocks.
    #[inline]
    pub fn flush(&mut self) {
        if self.flushed != self.tail {
            // Stored first, because a waker may panic.
            self.flushed = self.tail;
            self.shared.wake_parked();
        }
    }

    /// Does the same as [`send`](Self::send), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
    pub fn blocking_send(&mut self, value: T) -> Result<(), SendError<T>> {
        self.blocking_feed(value)?;
        self.flush();
        Ok(())
    }

    /// Does the same as [`feed`](Self::feed), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If the hub is closed; the error contains the element.
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
            Err(HubClosed) => Err(SendError(value)),
        }
    }

    /// Sends an element if there is room now, and wakes waiting consumers.
    ///
    /// # Errors
    ///
    /// If there is no room, or the hub is closed; the error contains the element.
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        match self.try_room() {
            Poll::Ready(Ok(())) => {
                self.publish(value);
                self.flush();
                Ok(())
            }
            Poll::Ready(Err(HubClosed)) => Err(TrySendError::Closed(value)),
            Poll::Pending => Err(TrySendError::Full(value)),
        }
    }

    /// Sends every item of a stream, and then completes. Consumers are woken when the hub is full and
    /// whenever the stream is pending.
    ///
    /// A stream cannot fail. If the stream is the receiver of another hub, it ends after a failure of that
    /// hub as it does after completion. To forward a failure, keep the receiver and check its
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
    /// If the hub is closed. The stream is dropped, and so is an item that was not sent.
    pub async fn attach<S>(mut self, stream: S) -> Result<(), HubClosed>
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
                    // Check, because the hub may be closed while the stream is pending.
                    if self.poll_closed(context).is_ready() {
                        return Poll::Ready(Err(HubClosed));
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

    /// Completes the hub. Consumers, including those that subscribe later, get the elements that were sent,
    /// and then the completion. Has no effect if the hub has already ended.
    pub fn complete(&mut self) {
        self.shared.end(Ended::Completed);
    }

    /// Fails the hub. Consumers, including those that subscribe later, get the error at once, before elements
    /// that they have not received. Has no effect if the hub has already ended.
    pub fn fail(&mut self, error: impl Into<E>) {
        let error = HubError::Failed(Arc::new(error.into()));
        self.shared.end(Ended::Error(error));
    }

    /// Ends the hub in the same way as another one has ended.
    pub(super) fn end(&self, end: Ended<E>) {
        self.shared.end(end);
    }

    /// Returns whether the hub accepts no more elements.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Returns the number of elements that the hub can store.
    pub fn capacity(&self) -> usize {
        self.shared.rules.capacity
    }

    /// Returns the number of consumers.
    pub fn receiver_count(&self) -> usize {
        self.shared.consumers()
    }

    /// Returns the [`id`](super::BroadcastReceiver::id) of each consumer, and the number of elements that it
    /// is behind.
    pub fn lags(&self) -> Vec<(u64, usize)> {
        self.shared.lags()
    }

    /// Drops elements that every consumer has received, except those for
    /// [`replay`](super::BroadcastOptions::replay). Without this call they are dropped when the producer needs
    /// their slots.
    pub fn release(&mut self) {
        // Leave `limit` as it is, because the head alone does not decide whether there is room.
        let stored = self.shared.look_for_stored(self.tail);
        if stored < self.tail.wrapping_sub(self.dropped_to) {
            let to = self.tail.wrapping_sub(stored);
            // SAFETY: this is the producer. `to` was at or before the head of the hub, and no consumer can join
            // before it any more.
            unsafe { self.shared.drop_to(&mut self.dropped_to, to) };
        }
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        self.tail != self.limit && !self.shared.is_closed()
    }

    /// Does the same as [`poll_room`](Self::poll_room), but neither waits nor yields.
    #[inline(always)]
    fn try_room(&mut self) -> Poll<Result<(), HubClosed>> {
        if self.has_room() {
            return Poll::Ready(Ok(()));
        }
        self.poll_room(&mut Context::from_waker(Waker::noop()))
    }

    /// Returns ready if there is room for an element, or if the hub is closed.
    #[inline(always)]
    pub(super) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        if self.run > 0 && self.has_room() {
            self.run -= 1;
            return Poll::Ready(Ok(()));
        }
        self.poll_more_room(context)
    }

    #[cold]
    #[inline(never)]
    fn poll_more_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        // Other tasks run after this call, whether it waits or yields. So wake consumers first.
        self.flush();
        let spent = self.run == 0;
        self.run = self.shared.rules.capacity.max(RUN_MIN);
        if spent && self.has_room() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            let mut waker = Some(context.waker().clone());
            let room = self.shared.room(self.tail, &mut waker, &mut self.backoff);
            match room {
                Room::Closed => return Poll::Ready(Err(HubClosed)),
                Room::From(head) => {
                    self.limit = head.wrapping_add(self.shared.rules.capacity);
                    self.stall = None;
                    return Poll::Ready(Ok(()));
                }
                Room::Yield => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Room::Wait => {
                    if !self.stop_waiting(context) {
                        return Poll::Pending;
                    }
                }
                Room::WaitForConsumers => {
                    // A consumer that joins starts a new deadline.
                    self.stall = None;
                    return Poll::Pending;
                }
            }
        }
    }

    /// Checks the deadline while there is no room. Returns whether consumers were revoked. If so, there may
    /// be room.
    fn stop_waiting(&mut self, context: &Context<'_>) -> bool {
        let OnSlow::Disconnect { after } = self.shared.rules.on_slow else {
            return false;
        };
        let timer = &self.shared.rules.timer;
        let due = match &self.stall {
            Some((due, _)) => *due,
            None => timer.after(after),
        };
        if timer.is_over(due) {
            let mut core = self.shared.lock();
            return self.shared.revoke_slowest(&mut core);
        }
        // The task that polls may have changed, so register its waker.
        self.stall = Some((due, timer.wake_at(due, context.waker().clone())));
        false
    }

    pub(super) fn poll_closed(&self, context: &Context<'_>) -> Poll<()> {
        let mut waker = Some(context.waker().clone());
        self.shared.closed_or_wait(&mut waker)
    }

    #[inline(always)]
    pub(super) fn publish(&mut self, value: T) {
        // SAFETY: there is one producer, and there is room, so every consumer's position is past the slot's
        // old element.
        let old = unsafe { self.shared.publish(self.tail, value, &mut self.dropped_to) };
        self.tail = self.tail.wrapping_add(1);
        // User code runs last, so that a panic in it leaves a consistent state.
        drop(old);
    }
}

/// Room for one element in a broadcast hub; made by [`BroadcastSender::reserve`]. Dropping the permit leaves the
/// room to the next element.
#[must_use = "a permit that is dropped sends nothing"]
pub struct BroadcastPermit<'a, T, E = BoxError> {
    /// The sender has room, and only the sender uses it up.
    sender: &'a mut BroadcastSender<T, E>,
}

impl<T, E> BroadcastPermit<'_, T, E> {
    /// Sends an element, and wakes waiting consumers. Never waits.
    ///
    /// # Errors
    ///
    /// If the hub was closed after the permit was made; the error contains the element.
    pub fn send(mut self, value: T) -> Result<(), SendError<T>> {
        self.push(value)?;
        self.sender.flush();
        Ok(())
    }

    /// Sends an element. Waiting consumers are woken by the next [`flush`](BroadcastSender::flush), or when the
    /// hub is full. Never waits.
    ///
    /// # Errors
    ///
    /// If the hub was closed after the permit was made; the error contains the element.
    pub fn feed(mut self, value: T) -> Result<(), SendError<T>> {
        self.push(value)
    }

    fn push(&mut self, value: T) -> Result<(), SendError<T>> {
        if self.sender.is_closed() {
            return Err(SendError(value));
        }
        self.sender.publish(value);
        Ok(())
    }
}

impl<T, E> fmt::Debug for BroadcastPermit<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastPermit").finish_non_exhaustive()
    }
}

impl<T, E> Sink<T> for BroadcastSender<T, E> {
    type Error = HubClosed;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        self.get_mut().poll_room(context)
    }

    /// Feeds an element.
    ///
    /// # Panics
    ///
    /// If there is no room, because `poll_ready` was not called before.
    fn start_send(self: Pin<&mut Self>, value: T) -> Result<(), HubClosed> {
        let this = self.get_mut();
        if this.shared.is_closed() {
            return Err(HubClosed);
        }
        assert!(
            this.tail != this.limit,
            "`start_send` called before `poll_ready` was ready"
        );
        this.publish(value);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<(), HubClosed>> {
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
