//! What a connection's task, its handles and its subscriptions share.

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

/// Something that happened to a connection and that nobody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The server said `-ERR`, for instance because a permission is missing.
    ServerError(String),
    /// The server is about to stop: connect elsewhere.
    LameDuck,
    /// The connection is gone; nothing follows.
    Disconnected(Disconnect),
}

pub(super) struct Shared {
    outgoing: Mutex<Outgoing>,
    /// Told when the connection's task has taken the buffer, and when the connection is gone.
    room: Notify,
    routes: Mutex<Routes>,
    info: Mutex<Arc<ServerInfo>>,
    /// Counts what the server has told of itself, so that who has looked knows whether to look again.
    info_changes: AtomicU64,
    pub(super) events: broadcast::Sender<Event>,
}

/// What waits to be written, and for what. One lock, so that a PONG meets its own waiter.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) buffer: BytesMut,
    /// Whoever waits for a PONG, in the order of the PINGs; `None` is a keep-alive's.
    pub(super) pongs: VecDeque<Option<oneshot::Sender<()>>>,
    /// The task that writes, while it sleeps.
    pub(super) driver: Option<Waker>,
    /// End the connection once the buffer is written.
    pub(super) finish: bool,
    /// Set when the connection is gone.
    pub(super) closed: Option<Disconnect>,
}

/// Who gets what arrives.
#[derive(Default)]
pub(super) struct Routes {
    sid_last: u64,
    request_last: u64,
    by_sid: HashMap<u64, Route>,
    requests: HashMap<u64, oneshot::Sender<Message>>,
}

/// Who has to be told of a delivery, once no lock is held.
pub(super) enum Told {
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
            // Nobody may be listening: that is not an error.
            let _ = self.events.send(Event::LameDuck);
        }
        *lock(&self.info) = Arc::new(info);
        // Release: who sees the count sees the INFO, though it takes the lock for it anyway.
        self.info_changes.fetch_add(1, Ordering::Release);
    }

    /// How often the server has told of itself anew.
    pub(super) fn info_changes(&self) -> u64 {
        // Acquire pairs with the Release of a change.
        self.info_changes.load(Ordering::Acquire)
    }

    /// Lets `append` write to the buffer as soon as there is room in it.
    pub(super) async fn send(
        &self,
        mut append: impl FnMut(&mut Outgoing),
    ) -> Result<(), ClientError> {
        loop {
            if self.try_send(&mut append)? {
                return Ok(());
            }
            let mut room = std::pin::pin!(self.room.notified());
            // Registered before the second look: room made in between is not missed.
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

    /// Lets `append` write to the buffer if less than `bytes_max` are in it, and says whether it did.
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

    /// For the few bytes that must go out even when the buffer is full; no-op when closed.
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

    /// The connection's side of the buffer.
    pub(super) fn with_outgoing<T>(&self, look: impl FnOnce(&mut Outgoing) -> T) -> T {
        look(&mut lock(&self.outgoing))
    }

    pub(super) fn tell_room(&self) {
        self.room.notify_waiters();
    }

    /// Ends the connection once what is buffered is written.
    pub(super) fn finish(&self) {
        self.send_now(|outgoing| outgoing.finish = true);
    }

    /// Marks the connection as gone and tells everybody who waits.
    pub(super) fn close(&self, reason: Disconnect) {
        let pongs = {
            let mut outgoing = lock(&self.outgoing);
            outgoing.closed = Some(reason.clone());
            outgoing.buffer = BytesMut::new();
            std::mem::take(&mut outgoing.pongs)
        };
        drop(pongs);
        self.room.notify_waiters();
        // Senders of pending requests are dropped with the routes: their waiters see the end.
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

    /// Waits until the connection is gone.
    pub(super) async fn closed(&self) -> Disconnect {
        loop {
            let mut told = std::pin::pin!(self.room.notified());
            told.as_mut().enable();
            if let Some(reason) = self.disconnect() {
                return reason;
            }
            told.await;
        }
    }

    pub(super) fn with_routes<T>(&self, look: impl FnOnce(&mut Routes) -> T) -> T {
        look(&mut lock(&self.routes))
    }

    /// Stops deliveries to `sid` and tells the server.
    pub(super) fn unsubscribe(&self, sid: u64) {
        if let Some(waker) = self.with_routes(|routes| routes.remove(sid)) {
            wake(waker);
            self.send_now(|outgoing| codec::encode_unsubscribe(&mut outgoing.buffer, sid, None));
        }
    }
}

impl Routes {
    /// A new route to a subscription's queue.
    pub(super) fn add_subscription(&mut self, queue: Arc<SubscriptionQueue>) -> u64 {
        self.add(Route::Subscription {
            queue,
            delivered: 0,
            max: None,
        })
    }

    /// The route of answers to requests.
    pub(super) fn add_request_inbox(&mut self) -> u64 {
        self.add(Route::Requests)
    }

    fn add(&mut self, route: Route) -> u64 {
        self.sid_last += 1;
        self.by_sid.insert(self.sid_last, route);
        self.sid_last
    }

    /// Removes a route if it is there; its subscription has to be woken.
    pub(super) fn remove(&mut self, sid: u64) -> Option<Option<Waker>> {
        match self.by_sid.remove(&sid)? {
            Route::Subscription { queue, .. } => Some(queue.close()),
            Route::Requests => Some(None),
        }
    }

    /// Every subscription, for a drain.
    pub(super) fn subscription_sids(&self) -> Vec<u64> {
        let is_subscription = |route: &Route| matches!(route, Route::Subscription { .. });
        let sids = self
            .by_sid
            .iter()
            .filter(|(_, route)| is_subscription(route));
        sids.map(|(sid, _)| *sid).collect()
    }

    /// Ends a subscription after `max` deliveries in all; true when it has had them already.
    pub(super) fn limit(&mut self, sid: u64, limit: u64) -> bool {
        match self.by_sid.get_mut(&sid) {
            Some(Route::Subscription { delivered, max, .. }) => {
                *max = Some(limit);
                *delivered >= limit
            }
            _ => true,
        }
    }

    /// Hands a message to whom it belongs; the caller tells whom it gets. What nobody waits for
    /// any more is dropped: it was on its way when the subscription ended.
    pub(super) fn deliver(&mut self, sid: u64, message: Message) -> Option<Told> {
        match self.by_sid.get_mut(&sid)? {
            Route::Requests => {
                let id = message.topic().rsplit('.').next()?.parse().ok()?;
                Some(Told::Requester(self.requests.remove(&id)?, message))
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
                    return waker.or(closed).map(Told::Subscriber);
                }
                waker.map(Told::Subscriber)
            }
        }
    }

    /// A new request, and where its answer will arrive.
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
