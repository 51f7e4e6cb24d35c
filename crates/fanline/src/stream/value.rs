use std::pin::Pin;
use std::task::{Context, Poll};

use super::park::block_on;
use super::policy::sealed::Event;
use super::queue::{Receiver, Rule, Sender, Taken, subscribe};
use crate::{AsyncSubject, IntoObservable, ObservableExt, Observer};

/// A future of the first value of a source; see [`first_value`](crate::ObservableExt::first_value).
///
/// The result is `Ok(None)` if the source completes, or is dropped, without a value. It is `Err` if the
/// source fails before the first value. If the future is polled again after it was ready, it returns
/// `Ok(None)`.
///
/// [`first_value`](crate::ObservableExt::first_value) subscribes at once and unsubscribes at the first
/// value. Dropping the future also unsubscribes.
///
/// ```
/// use fanline::ObservableExt;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let first = source.first_value();
/// tx.next(7);
/// tx.next(8);
/// # futures::executor::block_on(async move {
/// let Ok(value) = first.await; // the source cannot fail
/// assert_eq!(value, Some(7));
/// # });
/// ```
#[must_use = "nothing waits for the value unless the future is awaited"]
pub struct FirstValue<T, E> {
    receiver: Receiver<T, E>,
}

/// A future of the last value of a source; see [`last_value`](crate::ObservableExt::last_value).
///
/// The future is ready when the source ends. The result is `Ok` with the last value, `Ok(None)` if there was
/// no value, or `Err` if the source failed, even if it emitted values before. A source that is dropped
/// without completion or error counts as complete. If the future is polled again after it was ready, it
/// returns `Ok(None)`.
///
/// [`last_value`](crate::ObservableExt::last_value) subscribes at once; dropping the future unsubscribes. The
/// observer stores one value, and takes no lock per value.
///
/// ```
/// use fanline::ObservableExt;
///
/// let (mut tx, source) = fanline::subject::<u32>();
/// let last = source.last_value();
/// tx.next(7);
/// tx.next(8);
/// tx.complete();
/// assert_eq!(last.blocking_wait(), Ok(Some(8)));
/// ```
#[must_use = "nothing waits for the value unless the future is awaited"]
pub struct LastValue<T, E> {
    receiver: Receiver<T, E>,
}

impl<T, E> FirstValue<T, E> {
    pub(crate) fn new<S>(source: S) -> Self
    where
        S: IntoObservable<Item = T, Error = E>,
        T: Clone + Send + 'static,
        E: Clone + Send + 'static,
    {
        Self {
            receiver: subscribe(source, Rule::UNBOUNDED, |sender| First {
                sender: Some(sender),
            }),
        }
    }

    /// Blocks this thread until the result is available. Do not call it in asynchronous code: it would block
    /// all other tasks of the thread.
    ///
    /// # Errors
    ///
    /// The source's own error.
    pub fn blocking_wait(mut self) -> Result<Option<T>, E> {
        block_on(|context| poll_value(&mut self.receiver, context))
    }
}

impl<T, E> LastValue<T, E> {
    pub(crate) fn new<S>(source: S) -> Self
    where
        S: IntoObservable<Item = T, Error = E>,
        T: Clone + Send + 'static,
        E: Clone + Send + 'static,
    {
        Self {
            receiver: subscribe(source, Rule::UNBOUNDED, |sender| Last {
                value: None,
                sender,
            }),
        }
    }

    /// Blocks this thread until the result is available. Do not call it in asynchronous code: it would block
    /// all other tasks of the thread.
    ///
    /// # Errors
    ///
    /// The source's own error.
    pub fn blocking_wait(mut self) -> Result<Option<T>, E> {
        block_on(|context| poll_value(&mut self.receiver, context))
    }
}

impl<T, E> Future for FirstValue<T, E> {
    type Output = Result<Option<T>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        poll_value(&mut self.get_mut().receiver, context)
    }
}

impl<T, E> Future for LastValue<T, E> {
    type Output = Result<Option<T>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        poll_value(&mut self.get_mut().receiver, context)
    }
}

// Values and errors move in and out of the queue. They are never pinned in the queue.
impl<T, E> Unpin for FirstValue<T, E> {}
impl<T, E> Unpin for LastValue<T, E> {}

impl<T, E> std::fmt::Debug for FirstValue<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FirstValue").finish_non_exhaustive()
    }
}

impl<T, E> std::fmt::Debug for LastValue<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LastValue").finish_non_exhaustive()
    }
}

/// Awaits the last value of the subject. The future is ready when the subject has ended. The result is
/// `Ok(None)` if the subject completed without a value, and `Err` if it failed.
///
/// If the subject is disposed of, or if all handles are dropped before it has completed or failed, the result
/// is `Ok(None)`. To keep the handle, await a reference to it.
///
/// ```
/// let answer = fanline::AsyncSubject::<u32>::new();
/// let receiver = answer.clone();
/// let thread = std::thread::spawn(move || {
///     answer.next(42);
///     answer.complete();
/// });
/// # futures::executor::block_on(async move {
/// let Ok(value) = receiver.await; // the subject cannot fail
/// assert_eq!(value, Some(42));
/// # });
/// # thread.join().unwrap();
/// ```
impl<T, E> IntoFuture for AsyncSubject<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    type Output = Result<Option<T>, E>;
    type IntoFuture = LastValue<T, E>;

    fn into_future(self) -> LastValue<T, E> {
        self.last_value()
    }
}

/// Awaits the last value without consuming the handle.
impl<T, E> IntoFuture for &AsyncSubject<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    type Output = Result<Option<T>, E>;
    type IntoFuture = LastValue<T, E>;

    fn into_future(self) -> LastValue<T, E> {
        self.source().last_value()
    }
}

impl<T, E> AsyncSubject<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    /// Blocks this thread until the subject has ended, and returns the last value, or `None` if there is no
    /// value. Asynchronous code must await the subject instead.
    ///
    /// ```
    /// let answer = fanline::AsyncSubject::<u32>::new();
    /// answer.next(42);
    /// answer.complete();
    /// assert_eq!(answer.blocking_wait(), Ok(Some(42)));
    /// ```
    ///
    /// # Errors
    ///
    /// The subject's own error.
    pub fn blocking_wait(&self) -> Result<Option<T>, E> {
        self.source().last_value().blocking_wait()
    }
}

/// Polls for the result. The queue has at most one value, because [`First`] and [`Last`] push at most one.
fn poll_value<T, E>(
    receiver: &mut Receiver<T, E>,
    context: &Context<'_>,
) -> Poll<Result<Option<T>, E>> {
    Poll::Ready(match std::task::ready!(receiver.poll(context)) {
        Taken::Event(Event::Value(value)) => {
            receiver.unsubscribe();
            Ok(Some(value))
        }
        Taken::Event(Event::Lost(_) | Event::Overflow) | Taken::End => Ok(None),
        Taken::Error(error) => Err(error),
    })
}

struct First<T, E> {
    /// `None` after the first value. Dropping the sender ends the queue.
    sender: Option<Sender<T, E>>,
}

impl<T: Clone, E: Clone> Observer<T, E> for First<T, E> {
    fn next(&mut self, value: &T) {
        if let Some(mut sender) = self.sender.take() {
            sender.push(value.clone());
        }
    }

    fn next_owned(&mut self, value: T) {
        if let Some(mut sender) = self.sender.take() {
            sender.push(value);
        }
    }

    fn error(&mut self, error: &E) {
        if let Some(mut sender) = self.sender.take() {
            sender.fail(error.clone());
        }
    }

    fn complete(&mut self) {
        self.sender = None;
    }

    fn is_closed(&self) -> bool {
        self.sender.as_ref().is_none_or(Sender::is_queue_closed)
    }
}

struct Last<T, E> {
    value: Option<T>,
    sender: Sender<T, E>,
}

impl<T, E> Last<T, E> {
    fn send(&mut self) {
        if let Some(value) = self.value.take() {
            self.sender.push(value);
        }
        self.sender.finish();
    }
}

impl<T: Clone, E: Clone> Observer<T, E> for Last<T, E> {
    fn next(&mut self, value: &T) {
        self.value = Some(value.clone());
    }

    fn next_owned(&mut self, value: T) {
        self.value = Some(value);
    }

    /// Stores, and clones, only the last value.
    fn next_slice(&mut self, values: &[T]) {
        if let Some(value) = values.last() {
            self.value = Some(value.clone());
        }
    }

    fn error(&mut self, error: &E) {
        self.value = None;
        self.sender.fail(error.clone());
    }

    fn complete(&mut self) {
        self.send();
    }

    fn is_closed(&self) -> bool {
        self.sender.is_queue_closed()
    }
}

impl<T, E> Drop for Last<T, E> {
    /// Ends the queue when the source drops its observer without completion or error.
    fn drop(&mut self) {
        self.send();
    }
}
