//! A consumer's end.
#![expect(
    unsafe_code,
    reason = "elements are read in place, in front of the published position"
)]

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::{FusedStream, Stream};

use super::options::{SlowConsumer, Start};
use super::parked::Member;
use super::patience::Patience;
use super::ring::Lap;
use super::shared::{Shared, wake};
use crate::Observer;
use crate::hub::blocking::block_on;
use crate::hub::{BoxError, Ended, HubError, RecvError, TryRecvError};
use crate::sync::Ordering;

/// A consumer that always finds elements gives way to other tasks after so many, or after one round of
/// its hub (hazard 9).
const RUN_MIN: usize = 128;

/// The consuming end of a broadcast hub: every element from where it began, in order and without gaps;
/// see [`broadcast`](super::broadcast()).
///
/// Elements are taken one at a time, cloned ([`next`](Self::next), [`recv`](Self::recv), the
/// [`Stream`]) or in place ([`next_ref`](Self::next_ref)), or as many as lie together
/// ([`next_slice`](Self::next_slice), [`for_each_ref`](Self::for_each_ref)). An element that is lent is
/// kept until the consumer asks for the next one, or is dropped; meanwhile it counts as not received.
///
/// All of these are cancel safe: nothing is received by a future that is dropped before it is ready.
///
/// Dropping it leaves the hub. A clone is another consumer, which begins with what this one gets next.
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
/// drop(tx); // completes, and wakes whoever waits
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
    /// The next element. What is published is behind it while an element is lent.
    position: usize,
    /// Up to where elements can be taken without looking at anything but `watch`: no further than
    /// `tail`, nor than where the lap ends or other tasks have their turn. One element, where consumers
    /// can be cut off: they claim each anew.
    run_end: usize,
    /// The lap of the run.
    lap: Lap<T>,
    /// Something was lent, and may not have been given back.
    lent: bool,
    /// More is to be done for each element than in a usual hub.
    unusual: bool,
    /// The end of what is known to be there.
    tail: usize,
    /// Elements before other tasks have their turn, counted from `run_end`.
    run: usize,
    patience: Patience,
    missed: u64,
    /// Those of `missed` that `recv` has not told.
    untold: u64,
    end: Option<Ended<E>>,
}

impl<T, E> BroadcastReceiver<T, E> {
    pub(super) fn new(shared: Arc<Shared<T, E>>, start: Start) -> Self {
        let (member, waker) = shared.join(start);
        Self::of(shared, member, waker)
    }

    fn of(shared: Arc<Shared<T, E>>, member: Arc<Member>, waker: Option<Waker>) -> Self {
        // Relaxed: set by this thread.
        let position = member.position.load(Ordering::Relaxed);
        let receiver = Self {
            position,
            run_end: position,
            lap: shared.lap(position).0,
            lent: false,
            unusual: !shared.is_usual(),
            tail: position,
            run: shared.rules.capacity.max(RUN_MIN),
            patience: Patience::new(),
            missed: 0,
            untold: 0,
            end: None,
            member,
            shared,
        };
        // The user's code: if it panics, the receiver leaves again (hazard 6).
        wake(waker);
        receiver
    }

    /// The next element; `None` after completion, or when the hub failed, which
    /// [`error`](Self::error) tells.
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

    /// The next element in place. It is kept for this consumer until the next call of anything that
    /// receives, or [`release`](Self::release).
    #[inline]
    pub fn next_ref(&mut self) -> NextRef<'_, T, E> {
        NextRef {
            receiver: Some(self),
        }
    }

    /// All elements that are there, in place, as far as they lie together: at least one. They are kept
    /// for this consumer until the next call of anything that receives, or [`release`](Self::release).
    #[inline]
    pub async fn next_slice(&mut self) -> Option<&[T]> {
        if poll_fn(|context| self.poll_available(context)).await {
            Some(self.lend_slice())
        } else {
            None
        }
    }

    /// Calls `each` with every element in place, until the end.
    ///
    /// An element counts as received when its call is over, or panics.
    pub async fn for_each_ref(&mut self, mut each: impl FnMut(&T)) {
        while poll_fn(|context| self.poll_available(context)).await {
            self.visit(&mut each);
        }
    }

    /// The next element, or why there is none: for consumers that may have missed some.
    ///
    /// # Errors
    ///
    /// At the end, and once each time elements were missed.
    pub async fn recv(&mut self) -> Result<T, RecvError<E>>
    where
        T: Clone,
    {
        let available = poll_fn(|context| self.poll_available(context)).await;
        if let Some(lagged) = self.tell_missed() {
            self.step_back();
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

    /// The next element if there is one now.
    ///
    /// # Errors
    ///
    /// When there is none yet, at the end, and once each time elements were missed.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError<E>>
    where
        T: Clone,
    {
        // Others have no turn by anything done here.
        self.run = self.run.max(1);
        let available = self.poll_available_with(None);
        if let Some(lagged) = self.tell_missed() {
            self.step_back();
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

    /// As [`next`](Self::next), and holds up this thread instead of a task.
    pub fn blocking_recv(&mut self) -> Option<T>
    where
        T: Clone,
    {
        block_on(|context| self.poll_clone(context))
    }

    /// As [`next_ref`](Self::next_ref), and holds up this thread instead of a task.
    pub fn blocking_recv_ref(&mut self) -> Option<&T> {
        block_on(|context| self.poll_available(context)).then(|| self.lend())
    }

    /// As [`next_slice`](Self::next_slice), and holds up this thread instead of a task.
    pub fn blocking_recv_slice(&mut self) -> Option<&[T]> {
        block_on(|context| self.poll_available(context)).then(|| self.lend_slice())
    }

    /// As [`for_each_ref`](Self::for_each_ref), and holds up this thread instead of a task.
    pub fn blocking_for_each_ref(&mut self, mut each: impl FnMut(&T)) {
        while block_on(|context| self.poll_available(context)) {
            self.visit(&mut each);
        }
    }

    /// Calls an observer with every element in place, and with the end, until then or until it wants no
    /// more. A subject is one, if its errors are [`HubError`].
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

    /// Gives back what was lent, without asking for more.
    pub fn release(&mut self) {
        self.lent = false;
        // With the claim, where there is one: after a panic of a clone nothing was lent, and yet claimed.
        self.step_back();
    }

    /// Why there are no more elements, after the end was seen; `None` before, and after completion.
    pub fn error(&self) -> Option<&HubError<E>> {
        match &self.end {
            None | Some(Ended::Completed) => None,
            Some(Ended::Error(error)) => Some(error),
        }
    }

    /// Whether the end was seen: nothing follows.
    pub fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// How many elements were sent that this consumer has not received. What is lent counts as received
    /// here, and not among the [`lags`](super::BroadcastHub::lags) of the hub, where it still takes room.
    pub fn lag(&self) -> usize {
        self.shared.tail().wrapping_sub(self.position)
    }

    /// How many elements were overwritten before this consumer came to them, since it began.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// What it is called among the [`lags`](super::BroadcastSender::lags) of its hub.
    pub fn id(&self) -> u64 {
        self.member.id
    }

    /// Polls for an element in place; as [`next_ref`](Self::next_ref).
    pub fn poll_next_ref(&mut self, context: &mut Context<'_>) -> Poll<Option<&T>> {
        match self.poll_available(context) {
            Poll::Ready(true) => Poll::Ready(Some(self.lend())),
            Poll::Ready(false) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    #[inline(always)]
    fn poll_clone(&mut self, context: &mut Context<'_>) -> Poll<Option<T>>
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
        // What was lent before is given back with this one.
        Poll::Ready(Some(self.take_clone()))
    }

    /// Whether there is an element at `position` that may be looked at.
    #[inline(always)]
    fn is_in_run(&self) -> bool {
        self.position != self.run_end && !self.shared.has_failed()
    }

    /// The element at `position`.
    ///
    /// # Safety
    ///
    /// There is one that may be looked at, and the consumer does not publish a position past this one
    /// while the reference lives.
    #[inline(always)]
    unsafe fn element<'a>(&self) -> &'a T {
        // loom checks how slots are used, and knows the ring only.
        #[cfg(all(test, fanline_loom))]
        {
            // SAFETY: says the caller.
            let element: *const T = unsafe { self.shared.get(self.position) };
            // SAFETY: as above.
            unsafe { &*element }
        }
        #[cfg(not(all(test, fanline_loom)))]
        {
            // SAFETY: a run lies in its lap; the rest says the caller.
            unsafe { self.lap.get(self.position) }
        }
    }

    /// Ready when `position` is in front of an element that this consumer may look at, or never will
    /// be. What was lent before is given back.
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
        // What was to be taken without a look and was not, does not count.
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
                self.patience.found();
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
            // The end first: what was published before it is seen then.
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
            // Out of elements: others had their turn, or have it now.
            self.run = self.shared.rules.capacity.max(RUN_MIN);
            let Some(context) = &context else {
                return Poll::Pending;
            };
            if self.patience.asks(self.shared.more_is_likely().into()) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.shared.parked.park(&self.member, context.waker());
            // Announced, fenced, and now once more: whoever published after this look sees the list.
            if !self.shared.is_closed() && self.shared.tail() == self.position {
                return Poll::Pending;
            }
        }
    }

    /// At an element that may be looked at: how many may be taken before the next look at more than
    /// `watch`.
    fn begin_run(&mut self) {
        let there = self.tail.wrapping_sub(self.position);
        let (lap, left) = self.shared.lap(self.position);
        let most = if self.shared.can_cut_off() { 1 } else { left };
        let count = there.min(self.run).min(most);
        self.run -= count;
        self.run_end = self.position.wrapping_add(count);
        self.lap = lap;
    }

    fn end_with(&mut self, end: Option<Ended<E>>) {
        // It is there before it is announced.
        self.end = Some(end.unwrap_or(Ended::Completed));
        // Nothing is received any more, and nothing held up.
        self.position = self.tail;
        self.run_end = self.tail;
        self.publish_position();
    }

    /// Says that it looks at elements, where consumers can be cut off; no, if it was. Then its position
    /// is another, or it has ended.
    fn claim(&mut self) -> bool {
        if !self.shared.can_cut_off() {
            return true;
        }
        self.member.claimed.store(true, Ordering::Relaxed);
        self.shared.fences.light();
        // Relaxed: the fence orders it against the claim; what follows is under the lock.
        if !self.member.revoked.load(Ordering::Relaxed) {
            return true;
        }
        self.member.claimed.store(false, Ordering::Release);
        match self.shared.rules.slow_consumer {
            SlowConsumer::Wait => {}
            SlowConsumer::Disconnect { .. } => {
                if self.shared.is_cut_off(&self.member) {
                    self.end_with(Some(Ended::Error(HubError::TooSlow)));
                }
            }
            SlowConsumer::Lag => {
                if let Some((position, waker)) = self.shared.rejoin(&self.member) {
                    let missed = position.wrapping_sub(self.position) as u64;
                    self.missed += missed;
                    self.untold += missed;
                    self.position = position;
                    self.run_end = position;
                    self.tail = self.shared.tail();
                    // The user's code: after it knows where it is (hazard 6).
                    wake(waker);
                }
            }
        }
        false
    }

    fn tell_missed(&mut self) -> Option<u64> {
        let untold = std::mem::take(&mut self.untold);
        (untold > 0).then_some(untold)
    }

    /// Does not look at the element that it may look at: so it holds up nobody until it asks again.
    fn step_back(&mut self) {
        self.run += self.run_end.wrapping_sub(self.position);
        self.run_end = self.position;
        self.publish_position();
    }

    /// Everything before `position` was received.
    #[inline(always)]
    fn publish_position(&self) {
        if self.unusual {
            self.shared.advance_unusual(&self.member, self.position);
        } else {
            self.shared.advance_usual(&self.member, self.position);
        }
    }

    /// After `poll_available` was ready.
    #[inline(always)]
    fn take_clone(&mut self) -> T
    where
        T: Clone,
    {
        // SAFETY: in the run, and not published before it is cloned. When `clone` panics, the element
        // was not received.
        let value = unsafe { self.element() }.clone();
        self.position = self.position.wrapping_add(1);
        self.publish_position();
        value
    }

    /// After `poll_available` was ready.
    #[inline(always)]
    fn lend(&mut self) -> &T {
        // SAFETY: in the run; the position is published by calls that end the borrow.
        let element = unsafe { self.element() };
        self.position = self.position.wrapping_add(1);
        self.lent = true;
        element
    }

    /// After `poll_available` was ready.
    #[inline(always)]
    fn lend_slice(&mut self) -> &[T] {
        debug_assert_ne!(self.position, self.tail);
        // SAFETY: as in `lend`; the whole of `tail` was seen, and one claim is for all.
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

    /// After `poll_available` was ready: `each` for what is there.
    #[inline(always)]
    fn visit(&mut self, each: &mut impl FnMut(&T)) {
        // SAFETY: as in `lend_slice`; not published before this is over.
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

/// The next element, cloned; see [`BroadcastReceiver::next`].
#[must_use = "futures do nothing unless they are awaited"]
#[derive(Debug)]
pub struct Next<'a, T, E = BoxError> {
    receiver: &'a mut BroadcastReceiver<T, E>,
}

impl<T: Clone, E> Future for Next<'_, T, E> {
    type Output = Option<T>;

    // Left to itself the compiler makes it a call, at half the speed.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.receiver.poll_clone(context)
    }
}

/// The next element, lent; see [`BroadcastReceiver::next_ref`].
#[must_use = "futures do nothing unless they are awaited"]
#[derive(Debug)]
pub struct NextRef<'a, T, E = BoxError> {
    /// Nothing after the element was given.
    receiver: Option<&'a mut BroadcastReceiver<T, E>>,
}

impl<'a, T, E> Future for NextRef<'a, T, E> {
    type Output = Option<&'a T>;

    /// # Panics
    ///
    /// When it is polled again after it was ready.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<&'a T>> {
        let receiver = self.receiver.take().expect("not polled after it was ready");
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

/// Counts elements as received even when a call panics.
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
        Self::of(self.shared.clone(), member, waker)
    }
}

impl<T, E> Drop for BroadcastReceiver<T, E> {
    fn drop(&mut self) {
        // What was lent was received: the borrow is over. Where it was cut off, the position is not its
        // own any more, and nobody looks.
        self.member.position.store(self.position, Ordering::Release);
        self.shared.leave(&self.member);
    }
}

impl<T, E> fmt::Debug for BroadcastReceiver<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastReceiver")
            .field("id", &self.id())
            .field("lag", &self.lag())
            .field("is_ended", &self.is_ended())
            .finish_non_exhaustive()
    }
}
