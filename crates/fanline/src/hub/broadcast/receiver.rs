//! The consuming end of a broadcast hub.
#![expect(
    unsafe_code,
    reason = "elements at or after the published position are read in place"
)]

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::{FusedStream, Stream};

use super::options::{OnSlow, Start};
use super::parked::Member;
use super::ring::Lap;
use super::shared::{Shared, wake};
use super::yield_backoff::YieldBackoff;
use crate::Observer;
use crate::hub::blocking::block_on;
use crate::hub::deadline::Deadline;
use crate::hub::{BoxError, Ended, HubError, RecvError, RecvTimeoutError, TryRecvError};
use crate::sync::Ordering;

/// Number of elements in a row after which a consumer yields, so that other tasks of its executor run. If the
/// hub's capacity is larger, the capacity is used instead.
const RUN_MIN: usize = 128;

/// The consuming end of a broadcast hub. The consumer gets every element after its start, in order and
/// without gaps; see [`broadcast`](super::broadcast()).
///
/// The consumer receives elements one at a time, cloned ([`next`](Self::next), [`recv`](Self::recv), the
/// [`Stream`]) or in place ([`next_ref`](Self::next_ref)), or as many as are contiguous
/// ([`next_slice`](Self::next_slice), [`for_each_ref`](Self::for_each_ref)). A lent element stays stored
/// until the consumer requests the next one or is dropped. Until then it counts as not received.
///
/// All of these methods are cancel safe: a future that is dropped before it is ready has received nothing.
///
/// Dropping the receiver leaves the hub. A clone is another consumer, which starts at the next element of the
/// original.
///
/// ```
/// use futures::StreamExt;
///
/// # futures::executor::block_on(async {
/// let (mut tx, hub) = fanline::hub::broadcast::<u64>(16);
/// let (rx, mut in_place) = (hub.subscribe(), hub.subscribe());
/// for value in 1..=4 {
///     tx.feed(value).await?;
/// }
/// drop(tx); // completes, and wakes waiting consumers
/// let doubled: Vec<u64> = rx.map(|value| 2 * value).collect().await;
/// assert_eq!(doubled, [2, 4, 6, 8]);
/// let mut sum = 0_u64;
/// in_place.for_each_ref(|value| sum += *value).await;
/// assert_eq!(sum, 10);
/// # Ok::<(), fanline::hub::SendError<u64>>(())
/// # }).unwrap();
/// ```
pub struct BroadcastReceiver<T, E = BoxError> {
    shared: Arc<Shared<T, E>>,
    member: Arc<Member>,
    /// Position of the next element. While an element is lent, the position in `member` is smaller.
    position: usize,
    /// End of the run. A run is the elements that this consumer can take without another check of the tail.
    /// It ends at `tail`, at the end of the lap, or where the consumer must yield, whichever comes first. If
    /// consumers can be revoked, they claim each element separately, so a run is only one element.
    run_end: usize,
    /// The pass over the ring in which the run lies.
    lap: Lap<T>,
    /// Whether elements may still be lent.
    lent: bool,
    /// Whether each element needs more work than in most hubs; see [`Shared::is_usual`].
    unusual: bool,
    /// End of the elements that this consumer knows to exist.
    tail: usize,
    /// Number of elements from `run_end` to the next yield.
    run: usize,
    backoff: YieldBackoff,
    lost: u64,
    /// The part of `lost` that `recv` and `try_recv` have not reported yet.
    unreported: u64,
    end: Option<Ended<E>>,
}

impl<T, E> BroadcastReceiver<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>, start: Start) -> Self {
        let (member, waker) = shared.join(start);
        Self::with_member(shared, member, waker)
    }

    fn with_member(shared: Arc<Shared<T, E>>, member: Arc<Member>, waker: Option<Waker>) -> Self {
        // Relaxed: this thread stored the position.
        let position = member.position.load(Ordering::Relaxed);
        let receiver = Self {
            position,
            run_end: position,
            lap: shared.lap(position).0,
            lent: false,
            unusual: !shared.is_usual(),
            tail: position,
            run: shared.rules.capacity.max(RUN_MIN),
            backoff: YieldBackoff::new(),
            lost: 0,
            unreported: 0,
            end: None,
            member,
            shared,
        };
        // The waker is user code. If it panics, the receiver is dropped and leaves the hub again.
        wake(waker);
        receiver
    }

    /// Returns the next element, or `None` after completion or a failure of the hub; see
    /// [`error`](Self::error).
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "as in `StreamExt`, and not an iterator"
    )]
    pub fn next(&mut self) -> Next<'_, T, E>
    where
        T: Clone,
    {
        Next { receiver: self }
    }

    /// Lends the next element. The hub keeps it stored until this consumer's next receiving call or
    /// [`release`](Self::release).
    #[inline]
    pub fn next_ref(&mut self) -> NextRef<'_, T, E> {
        NextRef {
            receiver: Some(self),
        }
    }

    /// Lends all available elements that are contiguous, at least one. The hub keeps them stored until this
    /// consumer's next receiving call or [`release`](Self::release).
    #[inline]
    pub async fn next_slice(&mut self) -> Option<&[T]> {
        if poll_fn(|context| self.poll_available(context)).await {
            Some(self.lend_slice())
        } else {
            None
        }
    }

    /// Calls `each` with a reference to every element, until the hub ends.
    ///
    /// An element counts as received when its call returns or panics.
    pub async fn for_each_ref(&mut self, mut each: impl FnMut(&T)) {
        while poll_fn(|context| self.poll_available(context)).await {
            self.visit(&mut each);
        }
    }

    /// Returns the next element, or the reason why there is none. Consumers that may miss elements use this
    /// method, because it reports the number of lost elements.
    ///
    /// # Errors
    ///
    /// If the hub has ended, and once each time elements were lost.
    pub async fn recv(&mut self) -> Result<T, RecvError<E>>
    where
        T: Clone,
    {
        let available = poll_fn(|context| self.poll_available(context)).await;
        self.received(available)
    }

    /// Does the same as [`recv`](Self::recv), but gives up when no element has arrived for `timeout`. With a
    /// timeout of zero it does not wait. The time is that of the hub's
    /// [`scheduler`](super::BroadcastOptions::scheduler).
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// use std::time::Duration;
    /// use fanline::hub::{RecvTimeoutError, broadcast};
    ///
    /// let (mut tx, hub) = broadcast::<u64>(16);
    /// let mut rx = hub.subscribe();
    /// let timeout = Duration::from_millis(1);
    /// assert!(matches!(rx.recv_timeout(timeout).await, Err(RecvTimeoutError::Timeout)));
    /// tx.send(1).await?;
    /// assert_eq!(rx.recv_timeout(timeout).await.ok(), Some(1));
    /// # Ok::<(), fanline::hub::SendError<u64>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// If no element arrived in time, if the hub has ended, and once each time elements were lost.
    pub async fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError<E>>
    where
        T: Clone,
    {
        let mut deadline = Deadline::new(&self.shared.rules.timer, timeout);
        let available =
            poll_fn(|context| deadline.poll(context, |context| self.poll_available(context))).await;
        self.received_in_time(available)
    }

    /// Does the same as [`recv_timeout`](Self::recv_timeout), but blocks the thread.
    ///
    /// # Errors
    ///
    /// If no element arrived in time, if the hub has ended, and once each time elements were lost.
    pub fn blocking_recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError<E>>
    where
        T: Clone,
    {
        let mut deadline = Deadline::new(&self.shared.rules.timer, timeout);
        let available =
            block_on(|context| deadline.poll(context, |context| self.poll_available(context)));
        self.received_in_time(available)
    }

    fn received_in_time(&mut self, available: Option<bool>) -> Result<T, RecvTimeoutError<E>>
    where
        T: Clone,
    {
        match available {
            Some(available) => Ok(self.received(available)?),
            // The last poll may have yielded although there was an element.
            None => Ok(self.try_recv()?),
        }
    }

    fn received(&mut self, available: bool) -> Result<T, RecvError<E>>
    where
        T: Clone,
    {
        if let Some(lagged) = self.take_unreported() {
            self.end_run();
            return Err(RecvError::Lagged(lagged));
        }
        if available {
            return Ok(self.take_clone());
        }
        Err(match self.error() {
            None => RecvError::Completed,
            Some(error) => RecvError::Failed(error.clone()),
        })
    }

    /// Returns the next element, if one is available now.
    ///
    /// # Errors
    ///
    /// If no element is available, if the hub has ended, and once each time elements were lost.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError<E>>
    where
        T: Clone,
    {
        // This call does not yield, so allow at least one element before the next yield.
        self.run = self.run.max(1);
        let available = self.poll_available_with(None);
        if let Some(lagged) = self.take_unreported() {
            self.end_run();
            return Err(TryRecvError::Lagged(lagged));
        }
        match available {
            Poll::Ready(true) => Ok(self.take_clone()),
            Poll::Ready(false) => Err(match self.error() {
                None => TryRecvError::Completed,
                Some(error) => TryRecvError::Failed(error.clone()),
            }),
            Poll::Pending => Err(TryRecvError::Empty),
        }
    }

    /// Does the same as [`next`](Self::next), but blocks the thread.
    pub fn blocking_recv(&mut self) -> Option<T>
    where
        T: Clone,
    {
        block_on(|context| self.poll_clone(context))
    }

    /// Does the same as [`next_ref`](Self::next_ref), but blocks the thread.
    pub fn blocking_recv_ref(&mut self) -> Option<&T> {
        block_on(|context| self.poll_available(context)).then(|| self.lend())
    }

    /// Does the same as [`next_slice`](Self::next_slice), but blocks the thread.
    pub fn blocking_recv_slice(&mut self) -> Option<&[T]> {
        block_on(|context| self.poll_available(context)).then(|| self.lend_slice())
    }

    /// Does the same as [`for_each_ref`](Self::for_each_ref), but blocks the thread.
    pub fn blocking_for_each_ref(&mut self, mut each: impl FnMut(&T)) {
        while block_on(|context| self.poll_available(context)) {
            self.visit(&mut each);
        }
    }

    /// Calls an observer with a reference to every element, and then with the completion or the error of the
    /// hub. Stops earlier if the observer is closed. A subject can be the observer, if its error type is
    /// [`HubError`].
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// use fanline::hub::HubError;
    ///
    /// let (mut tx, hub) = fanline::hub::broadcast::<u64>(16);
    /// let rx = hub.subscribe();
    /// let (subject, source) = fanline::subject_with_error::<u64, HubError>();
    /// let observer = fanline::observer(|value: &u64| println!("{value}"))
    ///     .on_error(|error: &HubError| println!("{error}"));
    /// let guard = source.subscribe_with(observer);
    /// tx.send(1).await?;
    /// drop(tx);
    /// rx.attach(subject).await;
    /// # drop(guard);
    /// # Ok::<(), fanline::hub::SendError<u64>>(())
    /// # }).unwrap();
    /// ```
    pub async fn attach<O: Observer<T, HubError<E>>>(mut self, mut observer: O) {
        while !observer.is_closed() {
            if !poll_fn(|context| self.poll_available(context)).await {
                match self.error() {
                    None => observer.complete(),
                    Some(error) => observer.error(error),
                }
                return;
            }
            observer.next_slice(self.lend_slice());
        }
    }

    /// Ends the loan of elements, without requesting further elements.
    pub fn release(&mut self) {
        self.lent = false;
        // Also end a claim: after a panic in `clone`, an element is claimed but not lent.
        self.end_run();
    }

    /// Returns the error, if the consumer has seen the hub fail. Before that, and after completion, returns
    /// `None`.
    pub fn error(&self) -> Option<&HubError<E>> {
        match &self.end {
            None | Some(Ended::Completed) => None,
            Some(Ended::Error(error)) => Some(error),
        }
    }

    /// Returns the end of the hub, if the consumer has seen it.
    pub(super) fn end(&self) -> Option<&Ended<E>> {
        self.end.as_ref()
    }

    /// Returns whether the consumer has seen the end of the hub. No element follows then.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the number of elements that were sent and not received. A lent element counts as received
    /// here, but not in the hub's [`lags`](super::BroadcastHub::lags), because it still occupies its slot.
    pub fn lag(&self) -> usize {
        self.shared.tail().wrapping_sub(self.position)
    }

    /// Returns the number of elements since this consumer's start that the hub dropped before the consumer
    /// received them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the id under which the hub's [`lags`](super::BroadcastSender::lags) lists this consumer.
    pub fn id(&self) -> u64 {
        self.member.id
    }

    /// Polls for an element in place, like [`next_ref`](Self::next_ref).
    pub fn poll_next_ref(&mut self, context: &mut Context<'_>) -> Poll<Option<&T>> {
        match self.poll_available(context) {
            Poll::Ready(true) => Poll::Ready(Some(self.lend())),
            Poll::Ready(false) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    #[inline(always)]
    pub(super) fn poll_clone(&mut self, context: &mut Context<'_>) -> Poll<Option<T>>
    where
        T: Clone,
    {
        if !self.is_in_run() {
            match self.poll_more(Some(context)) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        // This also ends the loan of earlier elements.
        Poll::Ready(Some(self.take_clone()))
    }

    /// Returns whether the element at `position` exists and may be read.
    #[inline(always)]
    fn is_in_run(&self) -> bool {
        self.position != self.run_end && !self.shared.has_failed()
    }

    /// Returns the element at `position`.
    ///
    /// # Safety
    ///
    /// The element exists and may be read. While the reference lives, the consumer does not publish a
    /// position past the element.
    #[inline(always)]
    unsafe fn element<'a>(&self) -> &'a T {
        // Under loom, read through the ring, because only the ring's methods check the use of slots.
        #[cfg(all(test, fanline_loom))]
        {
            // SAFETY: guaranteed by the caller.
            let element: *const T = unsafe { self.shared.get(self.position) };
            // SAFETY: as above.
            unsafe { &*element }
        }
        #[cfg(not(all(test, fanline_loom)))]
        {
            // SAFETY: a run lies within its lap; the caller guarantees the rest.
            unsafe { self.lap.get(self.position) }
        }
    }

    /// Returns ready if this consumer may read the element at `position`, or if the hub has ended. Ends the
    /// loan of earlier elements.
    #[inline(always)]
    fn poll_available(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        self.poll_available_with(Some(context))
    }

    #[inline(always)]
    fn poll_available_with(&mut self, context: Option<&mut Context<'_>>) -> Poll<bool> {
        if self.lent {
            self.lent = false;
            self.publish_position();
        }
        if self.is_in_run() {
            return Poll::Ready(true);
        }
        self.poll_more(context)
    }

    #[cold]
    #[inline(never)]
    fn poll_more(&mut self, context: Option<&mut Context<'_>>) -> Poll<bool> {
        if self.lent {
            self.release();
        }
        // Move the unused part of the run back to `run`.
        self.run += self.run_end.wrapping_sub(self.position);
        self.run_end = self.position;
        loop {
            if self.end.is_some() {
                return Poll::Ready(false);
            }
            if self.shared.has_failed() {
                let end = self.shared.lock().end.clone();
                self.end_with(end);
                continue;
            }
            if self.position != self.tail {
                self.backoff.found();
                if self.run == 0 {
                    self.run = self.shared.rules.capacity.max(RUN_MIN);
                    if let Some(context) = context {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                if self.claim() {
                    self.begin_run();
                    return Poll::Ready(true);
                }
                continue;
            }
            // Check first whether the hub is closed. If it is, this consumer sees all elements that were
            // published before the hub was closed.
            let closed = self.shared.is_closed();
            self.tail = self.shared.tail();
            if self.position != self.tail {
                continue;
            }
            if closed {
                let end = self.shared.lock().end.clone();
                self.end_with(end);
                continue;
            }
            // There are no elements, so other tasks run next in any case.
            self.run = self.shared.rules.capacity.max(RUN_MIN);
            let Some(context) = &context else {
                return Poll::Pending;
            };
            if self
                .backoff
                .should_yield(self.shared.more_is_likely().into())
            {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.shared.parked.park(&self.member, context.waker());
            // The consumer is in the list now, and `park` has executed a fence. Check once more: a producer
            // that publishes after this check sees this consumer in the list.
            if !self.shared.is_closed() && self.shared.tail() == self.position {
                return Poll::Pending;
            }
        }
    }

    /// Starts a run at an element that may be read. Sets the end of the elements that can be taken without
    /// another check of the tail.
    fn begin_run(&mut self) {
        let there = self.tail.wrapping_sub(self.position);
        let (lap, left) = self.shared.lap(self.position);
        let most = if self.shared.can_revoke() { 1 } else { left };
        let count = there.min(self.run).min(most);
        self.run -= count;
        self.run_end = self.position.wrapping_add(count);
        self.lap = lap;
    }

    fn end_with(&mut self, end: Option<Ended<E>>) {
        // Store the end of the hub before the position is published.
        self.end = Some(end.unwrap_or(Ended::Completed));
        // This consumer receives nothing more, so the hub must not store elements for it.
        self.position = self.tail;
        self.run_end = self.tail;
        self.publish_position();
    }

    /// Claims the right to read elements, if consumers can be revoked. Returns false if this consumer was
    /// revoked. Then the consumer has resumed at another position, or has ended.
    fn claim(&mut self) -> bool {
        if !self.shared.can_revoke() {
            return true;
        }
        self.member.claimed.store(true, Ordering::Relaxed);
        self.shared.fences.light();
        // Relaxed: the fence above orders this load after the store of the claim. If the consumer was
        // revoked, the code below takes the lock.
        if !self.member.revoked.load(Ordering::Relaxed) {
            return true;
        }
        self.member.claimed.store(false, Ordering::Release);
        match self.shared.rules.on_slow {
            OnSlow::Wait => {}
            OnSlow::Disconnect { .. } => {
                if self.shared.is_revoked(&self.member) {
                    self.end_with(Some(Ended::Error(HubError::TooSlow)));
                }
            }
            OnSlow::DropOldest => {
                if let Some((position, waker)) = self.shared.rejoin(&self.member) {
                    let lost = position.wrapping_sub(self.position) as u64;
                    self.lost += lost;
                    self.unreported += lost;
                    self.position = position;
                    self.run_end = position;
                    self.tail = self.shared.tail();
                    // The waker is user code, so it runs only after the new position is stored.
                    wake(waker);
                }
            }
        }
        false
    }

    fn take_unreported(&mut self) -> Option<u64> {
        let unreported = std::mem::take(&mut self.unreported);
        (unreported > 0).then_some(unreported)
    }

    /// Ends the run without reading the rest of it, so that this consumer holds no element until it polls
    /// again.
    fn end_run(&mut self) {
        self.run += self.run_end.wrapping_sub(self.position);
        self.run_end = self.position;
        self.publish_position();
    }

    /// Publishes that this consumer has received everything before `position`.
    #[inline(always)]
    fn publish_position(&self) {
        if self.unusual {
            self.shared.advance_unusual(&self.member, self.position);
        } else {
            self.shared.advance_usual(&self.member, self.position);
        }
    }

    /// Clones the element at `position`. Called only after `poll_available` was ready.
    #[inline(always)]
    fn take_clone(&mut self) -> T
    where
        T: Clone,
    {
        // SAFETY: the element is in the run, and the position past it is published only after the clone. If
        // `clone` panics, the element counts as not received.
        let value = unsafe { self.element() }.clone();
        self.position = self.position.wrapping_add(1);
        self.publish_position();
        value
    }

    /// Lends the element at `position`. Called only after `poll_available` was ready.
    #[inline(always)]
    fn lend(&mut self) -> &T {
        // SAFETY: the element is in the run. The methods that publish a position past it need `&mut self`, so
        // the returned reference is no longer in use then.
        let element = unsafe { self.element() };
        self.position = self.position.wrapping_add(1);
        self.lent = true;
        element
    }

    /// Lends all contiguous elements. Called only after `poll_available` was ready.
    #[inline(always)]
    fn lend_slice(&mut self) -> &[T] {
        debug_assert_ne!(self.position, self.tail);
        // SAFETY: as in `lend`; all elements up to `tail` are visible, and one claim covers all of them.
        let slice = unsafe { self.shared.slice(self.position, self.tail) };
        self.position = self.position.wrapping_add(slice.len());
        let more = self.position.wrapping_sub(self.run_end);
        if more <= slice.len() {
            self.run = self.run.saturating_sub(more);
            self.run_end = self.position;
        }
        self.lent = true;
        slice
    }

    /// Calls `each` for all contiguous elements. Called only after `poll_available` was ready.
    #[inline(always)]
    fn visit(&mut self, each: &mut impl FnMut(&T)) {
        // SAFETY: as in `lend_slice`. No position past these elements is published before the loop ends.
        let slice = unsafe { self.shared.slice(self.position, self.tail) };
        self.lent = true;
        let mut seen = Seen {
            position: &mut self.position,
            run_end: &mut self.run_end,
            count: 0,
        };
        for value in slice {
            seen.count += 1;
            each(value);
        }
        self.run = self.run.saturating_sub(slice.len());
    }
}

/// A future that returns a clone of the next element; see [`BroadcastReceiver::next`].
#[must_use = "futures do nothing unless they are awaited"]
#[derive(Debug)]
pub struct Next<'a, T, E = BoxError> {
    receiver: &'a mut BroadcastReceiver<T, E>,
}

impl<T: Clone, E> Future for Next<'_, T, E> {
    type Output = Option<T>;

    // Without this attribute, the compiler emits a call, which halves the speed.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.receiver.poll_clone(context)
    }
}

/// A future that lends the next element; see [`BroadcastReceiver::next_ref`].
#[must_use = "futures do nothing unless they are awaited"]
#[derive(Debug)]
pub struct NextRef<'a, T, E = BoxError> {
    /// `None` after the element was returned.
    receiver: Option<&'a mut BroadcastReceiver<T, E>>,
}

impl<'a, T, E> Future for NextRef<'a, T, E> {
    type Output = Option<&'a T>;

    /// # Panics
    ///
    /// If the future is polled again after it was ready.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<&'a T>> {
        let receiver = self
            .receiver
            .take()
            .expect("`NextRef` polled after it was ready");
        match receiver.poll_available(context) {
            Poll::Ready(true) => Poll::Ready(Some(receiver.lend())),
            Poll::Ready(false) => Poll::Ready(None),
            Poll::Pending => {
                self.receiver = Some(receiver);
                Poll::Pending
            }
        }
    }
}

/// A drop guard that counts elements as received, even if a call panics.
struct Seen<'a> {
    position: &'a mut usize,
    run_end: &'a mut usize,
    count: usize,
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        *self.position = self.position.wrapping_add(self.count);
        *self.run_end = *self.position;
    }
}

impl<T: Clone, E> Stream for BroadcastReceiver<T, E> {
    type Item = T;

    #[inline(always)]
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_clone(context)
    }
}

impl<T: Clone, E> FusedStream for BroadcastReceiver<T, E> {
    fn is_terminated(&self) -> bool {
        self.end.is_some()
    }
}

impl<T, E> Unpin for BroadcastReceiver<T, E> {}

impl<T, E> Clone for BroadcastReceiver<T, E> {
    fn clone(&self) -> Self {
        let (member, waker) = self.shared.join_beside(&self.member, self.position);
        Self::with_member(self.shared.clone(), member, waker)
    }
}

impl<T, E> Drop for BroadcastReceiver<T, E> {
    fn drop(&mut self) {
        // Lent elements count as received, because the borrow has ended. If the consumer was revoked, `leave`
        // does not read the position.
        self.member.position.store(self.position, Ordering::Release);
        self.shared.leave(&self.member);
    }
}

impl<T, E> fmt::Debug for BroadcastReceiver<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastReceiver")
            .field("id", &self.id())
            .field("lag", &self.lag())
            .field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}
