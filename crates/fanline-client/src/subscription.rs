//! A subscription: a bounded stream of messages.

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

/// Messages that match a filter, in the order of each publisher. Dropping it unsubscribes.
///
/// It ends when it is drained, when its maximum is reached, and when the connection is gone. What
/// does not fit into its queue ([limits](super::limits)) is dropped and counted, see
/// [`dropped`](Subscription::dropped).
pub struct Subscription {
    pub(super) connection: Arc<Connection>,
    pub(super) queue: Arc<SubscriptionQueue>,
    pub(super) sid: u64,
    /// Taken from the queue and not yet handed out.
    pub(super) batch: VecDeque<Message>,
}

impl Subscription {
    /// The next message, or `None` at the end. Cancel safe: no message is lost.
    pub async fn next(&mut self) -> Option<Message> {
        std::future::poll_fn(|context| self.poll_message(context)).await
    }

    /// How many messages were dropped because they came faster than they were taken.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Ends it now. What has arrived and was not taken is discarded.
    pub fn unsubscribe(self) {
        drop(self);
    }

    /// Ends it after `max` messages, counted from the beginning, or now if it has had as many.
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

    /// Asks the server for no more, and waits until all that it had sent has arrived. Then the
    /// stream gives what is left, and ends.
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

    /// Where messages can be put beside those that the server sends.
    #[doc(hidden)]
    pub fn inlet(&self) -> Inlet {
        Inlet(Arc::clone(&self.queue))
    }

    #[doc(hidden)]
    pub fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Message>> {
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

/// The way into a subscription's queue, for messages that stay in the process.
#[doc(hidden)]
pub struct Inlet(Arc<SubscriptionQueue>);

impl Inlet {
    /// Adds a message. What does not fit is dropped and counted, as it is when the server sends it.
    pub fn push(&self, message: Message) {
        if let Some(waker) = self.0.push(message) {
            waker.wake();
        }
    }
}
