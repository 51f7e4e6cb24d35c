//! Subscriptions: bounded streams of messages.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::Connection;
use super::codec;
use super::error::ClientError;
use super::message::Message;
use super::queue::SubscriptionQueue;

/// A subscription to the subjects that match a filter. Messages of one publisher arrive in order. Dropping
/// the subscription unsubscribes.
///
/// It ends when it is drained, when its maximum number of messages is reached, or when the connection is
/// closed. Messages that do not fit into its queue ([limits](super::limits)) are dropped and counted; see
/// [`dropped`](Subscription::dropped).
pub struct Subscription {
    pub(super) connection: Arc<Connection>,
    pub(super) queue: Arc<SubscriptionQueue>,
    pub(super) sid: u64,
    /// Messages that were taken from the queue and not returned yet.
    pub(super) batch: VecDeque<Message>,
}

impl Subscription {
    /// Waits for the next message. Returns `None` when the subscription has ended. Cancel safe: no message is
    /// lost.
    pub async fn next(&mut self) -> Option<Message> {
        std::future::poll_fn(|context| self.poll_message(context)).await
    }

    /// Returns the number of messages that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Unsubscribes now and discards queued messages.
    pub fn unsubscribe(self) {
        drop(self);
    }

    /// Unsubscribes after `max` messages in total, or now if the subscription has already received that many.
    ///
    /// # Errors
    ///
    /// [`ClientError::Disconnected`].
    pub async fn unsubscribe_after(&mut self, max: u64) -> Result<(), ClientError> {
        let shared = &self.connection.shared;
        if shared.with_routes(|routes| routes.limit(self.sid, max)) {
            shared.unsubscribe(self.sid);
            return Ok(());
        }
        let sid = self.sid;
        shared
            .send(|outgoing| codec::encode_unsubscribe(&mut outgoing.buffer, sid, Some(max)))
            .await
    }

    /// Unsubscribes and waits until all messages have arrived that the server had sent before. They can still
    /// be read.
    ///
    /// # Errors
    ///
    /// [`ClientError::Disconnected`].
    pub async fn drain(&mut self) -> Result<(), ClientError> {
        let shared = &self.connection.shared;
        let sid = self.sid;
        shared
            .send(|outgoing| codec::encode_unsubscribe(&mut outgoing.buffer, sid, None))
            .await?;
        self.connection.flush().await?;
        let waker = shared.with_routes(|routes| routes.remove(sid));
        if let Some(Some(waker)) = waker {
            waker.wake();
        }
        Ok(())
    }

    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Message>> {
        if self.batch.is_empty() {
            ready!(self.queue.poll_take(context, &mut self.batch));
        }
        Poll::Ready(self.batch.pop_front())
    }
}

impl Stream for Subscription {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        self.poll_message(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.connection.shared.unsubscribe(self.sid);
    }
}
