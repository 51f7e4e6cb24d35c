//! The state that a connection's task, its handles, and its subscriptions share.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use bytes::BytesMut;
use tokio::sync::{Notify, broadcast, oneshot};

use super::codec;
use super::error::{ClientError, Disconnect};
use super::info::ServerInfo;
use super::limits::{EVENTS_MAX, WRITE_BUFFER_BYTES_MAX};
use super::lock;
use super::message::Message;
use super::queue::SubscriptionQueue;

/// An event of a connection that belongs to no call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The server sent `-ERR`, for example because a permission is missing.
    ServerError(String),
    /// The server is about to stop. The application should connect to another server.
    LameDuck,
    /// The connection is closed. No event follows.
    Disconnected(Disconnect),
}

pub(super) struct Shared {
    outgoing: Mutex<Outgoing>,
    /// Notified when the connection's task has taken the buffer, and when the connection is closed.
    room: Notify,
    routes: Mutex<Routes>,
    info: Mutex<Arc<ServerInfo>>,
    /// Number of INFOs received after the first, so that a reader knows whether the INFO has changed.
    info_changes: AtomicU64,
    pub(super) events: broadcast::Sender<Event>,
}

/// Pending output, and the flushes that wait for a PONG. Both are under one lock, so that each PONG reaches
/// the flush that sent its PING.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) buffer: BytesMut,
    /// Flushes that wait for a PONG, in the order of their PINGs. `None` stands for the PING of a keep-alive.
    pub(super) pongs: VecDeque<Option<oneshot::Sender<()>>>,
    /// Waker of the writing task, while it sleeps.
    pub(super) driver: Option<Waker>,
    /// Whether to close the connection after the buffer was written.
    pub(super) finish: bool,
    /// The reason why the connection is closed; `None` while it is open.
    pub(super) closed: Option<Disconnect>,
}

/// The receivers of messages.
#[derive(Default)]
pub(super) struct Routes {
    sid_last: u64,
    request_last: u64,
    by_sid: HashMap<u64, Route>,
    requests: HashMap<u64, oneshot::Sender<Message>>,
}

/// A receiver of a message, which the caller must notify after it has released its locks.
pub(super) enum Wakeup {
    Subscriber(Waker),
    Requester(oneshot::Sender<Message>, Message),
}

enum Route {
    Subscription {
        queue: Arc<SubscriptionQueue>,
        delivered: u64,
        max: Option<u64>,
    },
    Requests,
}

impl Shared {
    pub(super) fn new(info: ServerInfo) -> Self {
        Shared {
            outgoing: Mutex::default(),
            room: Notify::new(),
            routes: Mutex::default(),
            info: Mutex::new(Arc::new(info)),
            info_changes: AtomicU64::new(0),
            events: broadcast::channel(EVENTS_MAX).0,
        }
    }

    pub(super) fn info(&self) -> Arc<ServerInfo> {
        Arc::clone(&lock(&self.info))
    }

    pub(super) fn set_info(&self, info: ServerInfo) {
        if info.lame_duck {
            // It is not an error if no receiver of events exists.
            let _ = self.events.send(Event::LameDuck);
        }
        *lock(&self.info) = Arc::new(info);
        // The INFO is replaced before the count grows. Release: a thread that reads the new count with
        // Acquire, and then the INFO, gets the new INFO. The mutex of the INFO alone would ensure this, too.
        self.info_changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of INFOs after the first.
    pub(super) fn info_changes(&self) -> u64 {
        // Acquire: pairs with the Release of the change.
        self.info_changes.load(Ordering::Acquire)
    }

    /// Waits while the buffer is full, then calls `append` on it.
    pub(super) async fn send(
        &self,
        mut append: impl FnMut(&mut Outgoing),
    ) -> Result<(), ClientError> {
        loop {
            if self.try_send(&mut append)? {
                return Ok(());
            }
            let mut room = std::pin::pin!(self.room.notified());
            // Register for notifications before the second attempt. So if the buffer is emptied after this
            // attempt, the notification is not lost.
            room.as_mut().enable();
            if self.try_send(&mut append)? {
                return Ok(());
            }
            room.await;
        }
    }

    fn try_send(&self, append: &mut impl FnMut(&mut Outgoing)) -> Result<bool, ClientError> {
        self.try_send_within(WRITE_BUFFER_BYTES_MAX, append)
    }

    /// Calls `append` on the buffer if it has fewer than `bytes_max` bytes. Returns whether `append` was
    /// called.
    pub(super) fn try_send_within(
        &self,
        bytes_max: usize,
        append: &mut impl FnMut(&mut Outgoing),
    ) -> Result<bool, ClientError> {
        let driver = {
            let mut outgoing = lock(&self.outgoing);
            if let Some(reason) = &outgoing.closed {
                return Err(ClientError::Disconnected(reason.clone()));
            }
            if outgoing.finish {
                return Err(ClientError::Disconnected(Disconnect::Closed));
            }
            if outgoing.buffer.len() >= bytes_max {
                return Ok(false);
            }
            append(&mut outgoing);
            outgoing.driver.take()
        };
        wake(driver);
        Ok(true)
    }

    /// Calls `append` on the buffer even if it is full, to add a few bytes. Does nothing if the connection is
    /// closed.
    pub(super) fn send_now(&self, append: impl FnOnce(&mut Outgoing)) {
        let driver = {
            let mut outgoing = lock(&self.outgoing);
            if outgoing.closed.is_some() {
                return;
            }
            append(&mut outgoing);
            outgoing.driver.take()
        };
        wake(driver);
    }

    /// Gives the connection's task access to the buffer.
    pub(super) fn with_outgoing<T>(&self, look: impl FnOnce(&mut Outgoing) -> T) -> T {
        look(&mut lock(&self.outgoing))
    }

    pub(super) fn notify_room(&self) {
        self.room.notify_waiters();
    }

    /// Makes the task close the connection after the buffer was written.
    pub(super) fn finish(&self) {
        self.send_now(|outgoing| outgoing.finish = true);
    }

    /// Marks the connection as closed and wakes all waiters.
    pub(super) fn close(&self, reason: Disconnect) {
        let pongs = {
            let mut outgoing = lock(&self.outgoing);
            outgoing.closed = Some(reason.clone());
            outgoing.buffer = BytesMut::new();
            std::mem::take(&mut outgoing.pongs)
        };
        drop(pongs);
        self.room.notify_waiters();
        // Dropping the routes drops the senders of pending requests, which ends the wait of the requesters.
        let routes = std::mem::take(&mut *lock(&self.routes));
        for route in routes.by_sid.into_values() {
            if let Route::Subscription { queue, .. } = route {
                wake(queue.close());
            }
        }
        let _ = self.events.send(Event::Disconnected(reason));
    }

    pub(super) fn disconnect(&self) -> Option<Disconnect> {
        lock(&self.outgoing).closed.clone()
    }

    /// Waits until the connection is closed.
    pub(super) async fn closed(&self) -> Disconnect {
        loop {
            let mut changed = std::pin::pin!(self.room.notified());
            changed.as_mut().enable();
            if let Some(reason) = self.disconnect() {
                return reason;
            }
            changed.await;
        }
    }

    pub(super) fn with_routes<T>(&self, look: impl FnOnce(&mut Routes) -> T) -> T {
        look(&mut lock(&self.routes))
    }

    /// Stops deliveries to the subscription `sid` and sends UNSUB.
    pub(super) fn unsubscribe(&self, sid: u64) {
        if let Some(waker) = self.with_routes(|routes| routes.remove(sid)) {
            wake(waker);
            self.send_now(|outgoing| codec::encode_unsubscribe(&mut outgoing.buffer, sid, None));
        }
    }
}

impl Routes {
    /// Adds a route to a subscription's queue.
    pub(super) fn add_subscription(&mut self, queue: Arc<SubscriptionQueue>) -> u64 {
        self.add(Route::Subscription {
            queue,
            delivered: 0,
            max: None,
        })
    }

    /// Adds the route of replies to requests.
    pub(super) fn add_request_inbox(&mut self) -> u64 {
        self.add(Route::Requests)
    }

    fn add(&mut self, route: Route) -> u64 {
        self.sid_last += 1;
        self.by_sid.insert(self.sid_last, route);
        self.sid_last
    }

    /// Removes a route. Returns `None` if it does not exist. Otherwise returns the waker of the task that
    /// waits for its messages, if there is one; the caller must wake it.
    pub(super) fn remove(&mut self, sid: u64) -> Option<Option<Waker>> {
        match self.by_sid.remove(&sid)? {
            Route::Subscription { queue, .. } => Some(queue.close()),
            Route::Requests => Some(None),
        }
    }

    /// Returns the sid of every subscription, to drain them.
    pub(super) fn subscription_sids(&self) -> Vec<u64> {
        let is_subscription = |route: &Route| matches!(route, Route::Subscription { .. });
        let sids = self
            .by_sid
            .iter()
            .filter(|(_, route)| is_subscription(route));
        sids.map(|(sid, _)| *sid).collect()
    }

    /// Ends a subscription after `limit` deliveries in total. Returns true if it has already had that many or
    /// more deliveries, or if it does not exist.
    pub(super) fn limit(&mut self, sid: u64, limit: u64) -> bool {
        match self.by_sid.get_mut(&sid) {
            Some(Route::Subscription { delivered, max, .. }) => {
                *max = Some(limit);
                *delivered >= limit
            }
            _ => true,
        }
    }

    /// Delivers a message. The caller notifies the returned receiver. A message without a receiver is
    /// dropped, because it was in transit when its subscription ended.
    pub(super) fn deliver(&mut self, sid: u64, message: Message) -> Option<Wakeup> {
        match self.by_sid.get_mut(&sid)? {
            Route::Requests => {
                let id = message.subject().rsplit('.').next()?.parse().ok()?;
                Some(Wakeup::Requester(self.requests.remove(&id)?, message))
            }
            Route::Subscription {
                queue,
                delivered,
                max,
            } => {
                let waker = queue.push(message);
                *delivered += 1;
                if max.is_some_and(|max| *delivered >= max) {
                    let closed = self.remove(sid).flatten();
                    return waker.or(closed).map(Wakeup::Subscriber);
                }
                waker.map(Wakeup::Subscriber)
            }
        }
    }

    /// Adds a request, and returns its number and the receiver of its reply.
    pub(super) fn add_request(&mut self) -> (u64, oneshot::Receiver<Message>) {
        let (sender, receiver) = oneshot::channel();
        self.request_last += 1;
        self.requests.insert(self.request_last, sender);
        (self.request_last, receiver)
    }

    pub(super) fn remove_request(&mut self, id: u64) {
        self.requests.remove(&id);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
