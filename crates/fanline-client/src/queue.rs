//! The bounded queue between a connection and one of its subscriptions.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use super::limits::{SUBSCRIPTION_BYTES_MAX, SUBSCRIPTION_MESSAGES_MAX};
use super::lock;
use super::message::Message;
use std::sync::Mutex;

/// The queue of a subscription. The connection adds messages, and the subscription takes them in batches.
#[derive(Default)]
pub(super) struct SubscriptionQueue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    bytes: usize,
    dropped: u64,
    closed: bool,
    waker: Option<Waker>,
}

impl SubscriptionQueue {
    /// Adds a message, or counts it as dropped if the queue is full. The caller must wake the returned waker
    /// without holding a lock.
    pub(super) fn push(&self, message: Message) -> Option<Waker> {
        let mut state = lock(&self.state);
        let bytes = state.bytes + message.queued_bytes();
        if state.closed {
            return None;
        }
        if state.messages.len() >= SUBSCRIPTION_MESSAGES_MAX || bytes > SUBSCRIPTION_BYTES_MAX {
            state.dropped += 1;
            return None;
        }
        state.bytes = bytes;
        state.messages.push_back(message);
        state.waker.take()
    }

    /// Closes the queue for new messages. Queued messages can still be taken.
    pub(super) fn close(&self) -> Option<Waker> {
        let mut state = lock(&self.state);
        state.closed = true;
        state.waker.take()
    }

    /// Moves all messages into `batch`, which must be empty. If the result is ready and `batch` is still
    /// empty, the queue has ended.
    pub(super) fn poll_take(
        &self,
        context: &mut Context<'_>,
        batch: &mut VecDeque<Message>,
    ) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.messages.is_empty() {
            if state.closed {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        std::mem::swap(&mut state.messages, batch);
        state.bytes = 0;
        Poll::Ready(())
    }

    /// Returns the number of dropped messages.
    pub(super) fn dropped(&self) -> u64 {
        lock(&self.state).dropped
    }
}
