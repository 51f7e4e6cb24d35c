//! Channels between tasks of one thread.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use openraft::OptionalSend;
use openraft::async_runtime::{self as api, RecvError, SendError, TryRecvError};

/// Tasks that wait for a change.
#[derive(Default)]
struct Waiters(RefCell<Vec<Waker>>);

impl Waiters {
    fn add(&self, context: &Context<'_>) {
        let mut wakers = self.0.borrow_mut();
        if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
    }

    fn wake(&self) {
        let wakers = std::mem::take(&mut *self.0.borrow_mut());
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Queues with limits, several senders, and one receiver.
pub(in super::super) struct Mpsc;

struct Queue<T> {
    messages: RefCell<VecDeque<T>>,
    limit: usize,
    senders: Cell<usize>,
    has_receiver: Cell<bool>,
    /// The receiver waits for messages, senders wait for room.
    receiver: Waiters,
    room: Waiters,
}

pub(in super::super) struct MpscSender<T>(Rc<Queue<T>>);
pub(in super::super) struct MpscReceiver<T>(Rc<Queue<T>>);
pub(in super::super) struct MpscWeakSender<T>(Rc<Queue<T>>);

impl api::Mpsc for Mpsc {
    type Sender<T: OptionalSend> = MpscSender<T>;
    type Receiver<T: OptionalSend> = MpscReceiver<T>;
    type WeakSender<T: OptionalSend> = MpscWeakSender<T>;

    fn channel<T: OptionalSend>(limit: usize) -> (MpscSender<T>, MpscReceiver<T>) {
        let queue = Rc::new(Queue {
            messages: RefCell::default(),
            limit,
            senders: Cell::new(1),
            has_receiver: Cell::new(true),
            receiver: Waiters::default(),
            room: Waiters::default(),
        });
        (MpscSender(queue.clone()), MpscReceiver(queue))
    }
}

impl<T> Clone for MpscSender<T> {
    fn clone(&self) -> Self {
        self.0.senders.set(self.0.senders.get() + 1);
        MpscSender(self.0.clone())
    }
}

impl<T> Drop for MpscSender<T> {
    fn drop(&mut self) {
        self.0.senders.set(self.0.senders.get() - 1);
        if self.0.senders.get() == 0 {
            self.0.receiver.wake();
        }
    }
}

impl<T> Drop for MpscReceiver<T> {
    fn drop(&mut self) {
        self.0.has_receiver.set(false);
        self.0.room.wake();
        let messages = std::mem::take(&mut *self.0.messages.borrow_mut());
        drop(messages);
    }
}

impl<T: OptionalSend> api::MpscSender<Mpsc, T> for MpscSender<T> {
    async fn send(&self, message: T) -> Result<(), SendError<T>> {
        let queue = &self.0;
        poll_fn(|context| {
            let is_full = queue.messages.borrow().len() >= queue.limit;
            if is_full && queue.has_receiver.get() {
                queue.room.add(context);
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        if !queue.has_receiver.get() {
            return Err(SendError(message));
        }
        queue.messages.borrow_mut().push_back(message);
        queue.receiver.wake();
        Ok(())
    }

    fn downgrade(&self) -> MpscWeakSender<T> {
        MpscWeakSender(self.0.clone())
    }
}

impl<T> MpscReceiver<T> {
    fn take(&self) -> Option<T> {
        let message = self.0.messages.borrow_mut().pop_front()?;
        self.0.room.wake();
        Some(message)
    }
}

impl<T: OptionalSend> api::MpscReceiver<T> for MpscReceiver<T> {
    async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| {
            if let Some(message) = self.take() {
                return Poll::Ready(Some(message));
            }
            if self.0.senders.get() == 0 {
                return Poll::Ready(None);
            }
            self.0.receiver.add(context);
            Poll::Pending
        })
        .await
    }

    fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.take().ok_or_else(|| match self.0.senders.get() {
            0 => TryRecvError::Disconnected,
            _ => TryRecvError::Empty,
        })
    }
}

impl<T> Clone for MpscWeakSender<T> {
    fn clone(&self) -> Self {
        MpscWeakSender(self.0.clone())
    }
}

impl<T: OptionalSend> api::MpscWeakSender<Mpsc, T> for MpscWeakSender<T> {
    fn upgrade(&self) -> Option<MpscSender<T>> {
        let senders = self.0.senders.get();
        (senders > 0).then(|| {
            self.0.senders.set(senders + 1);
            MpscSender(self.0.clone())
        })
    }
}

/// Channels for one value.
pub(in super::super) struct Oneshot;

struct Slot<T> {
    value: RefCell<Option<T>>,
    has_sender: Cell<bool>,
    has_receiver: Cell<bool>,
    receiver: Waiters,
}

pub(in super::super) struct OneshotSender<T>(Rc<Slot<T>>);
pub(in super::super) struct OneshotReceiver<T>(Rc<Slot<T>>);

impl api::Oneshot for Oneshot {
    type Sender<T: OptionalSend> = OneshotSender<T>;
    type Receiver<T: OptionalSend> = OneshotReceiver<T>;
    type ReceiverError = super::Dropped;

    fn channel<T: OptionalSend>() -> (OneshotSender<T>, OneshotReceiver<T>) {
        let slot = Rc::new(Slot {
            value: RefCell::new(None),
            has_sender: Cell::new(true),
            has_receiver: Cell::new(true),
            receiver: Waiters::default(),
        });
        (OneshotSender(slot.clone()), OneshotReceiver(slot))
    }
}

impl<T: OptionalSend> api::OneshotSender<T> for OneshotSender<T> {
    fn send(self, value: T) -> Result<(), T> {
        if !self.0.has_receiver.get() {
            return Err(value);
        }
        *self.0.value.borrow_mut() = Some(value);
        Ok(())
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        self.0.has_sender.set(false);
        self.0.receiver.wake();
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        self.0.has_receiver.set(false);
        let value = self.0.value.borrow_mut().take();
        drop(value);
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, super::Dropped>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(value) = self.0.value.borrow_mut().take() {
            return Poll::Ready(Ok(value));
        }
        if !self.0.has_sender.get() {
            return Poll::Ready(Err(super::Dropped));
        }
        self.0.receiver.add(context);
        Poll::Pending
    }
}

/// Values that are watched for changes.
pub(in super::super) struct Watch;

struct Watched<T> {
    value: RefCell<T>,
    version: Cell<u64>,
    senders: Cell<usize>,
    receivers: Cell<usize>,
    waiters: Waiters,
}

impl<T> Watched<T> {
    fn changed(&self) {
        self.version.set(self.version.get() + 1);
        self.waiters.wake();
    }
}

pub(in super::super) struct WatchSender<T>(Rc<Watched<T>>);
pub(in super::super) struct WatchReceiver<T> {
    watched: Rc<Watched<T>>,
    seen: u64,
}

impl api::Watch for Watch {
    type Sender<T: OptionalSend> = WatchSender<T>;
    type Receiver<T: OptionalSend> = WatchReceiver<T>;
    type Ref<'a, T: OptionalSend + 'a> = Ref<'a, T>;

    fn channel<T: OptionalSend>(value: T) -> (WatchSender<T>, WatchReceiver<T>) {
        let watched = Rc::new(Watched {
            value: RefCell::new(value),
            version: Cell::new(0),
            senders: Cell::new(1),
            receivers: Cell::new(1),
            waiters: Waiters::default(),
        });
        (
            WatchSender(watched.clone()),
            WatchReceiver { watched, seen: 0 },
        )
    }
}

impl<T> Clone for WatchSender<T> {
    fn clone(&self) -> Self {
        self.0.senders.set(self.0.senders.get() + 1);
        WatchSender(self.0.clone())
    }
}

impl<T> Drop for WatchSender<T> {
    fn drop(&mut self) {
        self.0.senders.set(self.0.senders.get() - 1);
        if self.0.senders.get() == 0 {
            self.0.waiters.wake();
        }
    }
}

impl<T: OptionalSend> api::WatchSender<Watch, T> for WatchSender<T> {
    fn send(&self, value: T) -> Result<(), api::watch::SendError<T>> {
        if self.0.receivers.get() == 0 {
            return Err(api::watch::SendError(value));
        }
        let before = self.0.value.replace(value);
        self.0.changed();
        drop(before);
        Ok(())
    }

    fn send_if_modified<F: FnOnce(&mut T) -> bool>(&self, modify: F) -> bool {
        let is_modified = modify(&mut self.0.value.borrow_mut());
        if is_modified {
            self.0.changed();
        }
        is_modified
    }

    fn borrow_watched(&self) -> Ref<'_, T> {
        self.0.value.borrow()
    }

    fn subscribe(&self) -> WatchReceiver<T> {
        self.0.receivers.set(self.0.receivers.get() + 1);
        WatchReceiver {
            watched: self.0.clone(),
            seen: self.0.version.get(),
        }
    }
}

impl<T> Clone for WatchReceiver<T> {
    fn clone(&self) -> Self {
        let receivers = &self.watched.receivers;
        receivers.set(receivers.get() + 1);
        WatchReceiver {
            watched: self.watched.clone(),
            seen: self.seen,
        }
    }
}

impl<T> Drop for WatchReceiver<T> {
    fn drop(&mut self) {
        let receivers = &self.watched.receivers;
        receivers.set(receivers.get() - 1);
    }
}

impl<T: OptionalSend> api::WatchReceiver<Watch, T> for WatchReceiver<T> {
    async fn changed(&mut self) -> Result<(), RecvError> {
        poll_fn(|context| {
            let version = self.watched.version.get();
            if version != self.seen {
                self.seen = version;
                return Poll::Ready(Ok(()));
            }
            if self.watched.senders.get() == 0 {
                return Poll::Ready(Err(RecvError(())));
            }
            self.watched.waiters.add(context);
            Poll::Pending
        })
        .await
    }

    fn borrow_watched(&self) -> Ref<'_, T> {
        self.watched.value.borrow()
    }

    fn borrow_and_update(&mut self) -> Ref<'_, T> {
        self.seen = self.watched.version.get();
        self.watched.value.borrow()
    }
}

/// A lock between tasks.
pub(in super::super) struct Mutex<T> {
    value: RefCell<T>,
    waiters: Waiters,
}

pub(in super::super) struct Guard<'a, T> {
    value: RefMut<'a, T>,
    waiters: &'a Waiters,
}

impl<T: OptionalSend + 'static> api::Mutex<T> for Mutex<T> {
    type Guard<'a> = Guard<'a, T>;

    fn new(value: T) -> Self {
        Mutex {
            value: RefCell::new(value),
            waiters: Waiters::default(),
        }
    }

    async fn lock(&self) -> Guard<'_, T> {
        poll_fn(|context| match self.value.try_borrow_mut() {
            Ok(value) => Poll::Ready(Guard {
                value,
                waiters: &self.waiters,
            }),
            Err(_) => {
                self.waiters.add(context);
                Poll::Pending
            }
        })
        .await
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // They run later, when the value is free. A waiter that was dropped since must not keep the others from it.
        self.waiters.wake();
    }
}
