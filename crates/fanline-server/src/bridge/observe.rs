//! Sources of messages from subjects of the server, for observers in this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fanline::{OnPanic, Source, Subject};
use futures_core::Stream;

use super::codec::{Decode, PANICKED};
use super::connection::{Connection, Inner};
use super::fault::{BridgeError, Fault};
use super::receivers::Receive;
use crate::client::subject::check_filter;
use crate::client::{Event, Inlet, Message, Subscription};

/// Largest size in bytes of the subscription id in a protocol line, including a space.
const ID_FIELD_BYTES: usize = 21;

/// Decodes messages, and passes the values to observers.
struct Observed<T: Send + Sync + 'static, C> {
    subject: Subject<T>,
    codec: C,
    inner: Arc<Inner>,
}

impl<T: Send + Sync + 'static, C: Decode<T>> Receive for Observed<T, C> {
    fn receive(&self, message: &Message) {
        // A panic must not end the task that reads messages, or unwind into the publisher.
        let decoded = catch_unwind(AssertUnwindSafe(|| self.codec.decode(message)));
        match decoded.unwrap_or_else(|_| Err(PANICKED.into())) {
            Ok(value) => self.subject.next(value),
            Err(reason) => self.inner.report(Fault::Decode {
                subject: message.subject().to_owned(),
                reason: reason.to_string(),
            }),
        }
    }

    fn complete(&self) {
        self.subject.complete();
    }

    fn is_reachable(&self) -> bool {
        self.subject.is_reachable()
    }
}

/// Returns a source of the values of messages that match a filter.
pub(super) fn observe<T, C>(
    connection: &Arc<Connection>,
    filter: &str,
    codec: C,
) -> Result<Source<T>, BridgeError>
where
    T: Send + Sync + 'static,
    C: Decode<T>,
{
    let observed = Arc::new(Observed {
        // An observer that panics is removed, as in the library. The panic does not continue in the emitter.
        subject: Subject::new().on_observer_panic(OnPanic::Ignore),
        codec,
        inner: Arc::clone(&connection.inner),
    });
    let source = observed.subject.source();
    let subscription = subscribe(connection, filter)?;
    let receiver: Arc<dyn Receive> = observed;
    // The task keeps the bridge open. It ends when the source is no longer reachable.
    let forwarding = forward_messages(
        Arc::clone(connection),
        subscription,
        filter.to_owned(),
        Arc::clone(&receiver),
    );
    let task = connection.inner.spawn(forwarding);
    connection.inner.receivers.add(filter, receiver, Some(task));
    connection.inner.note_receiver();
    Ok(source)
}

/// Passes messages from the server to a receiver.
async fn forward_messages(
    connection: Arc<Connection>,
    mut subscription: Subscription,
    filter: String,
    receiver: Arc<dyn Receive>,
) {
    let mut dropped = 0;
    while let Some(message) = subscription.next().await {
        receiver.receive(&message);
        let dropped_now = subscription.dropped();
        if dropped_now != dropped {
            connection.inner.report(Fault::Dropped {
                filter: filter.clone(),
                messages: dropped_now - dropped,
            });
            dropped = dropped_now;
        }
    }
    receiver.complete();
}

/// Subscribes, and waits until the server has processed the subscription.
fn subscribe(connection: &Connection, filter: &str) -> Result<Subscription, BridgeError> {
    check_filter(filter)?;
    connection.inner.check_line(filter.len() + ID_FIELD_BYTES)?;
    let (client, filter) = (connection.inner.client.clone(), filter.to_owned());
    connection.inner.call(async move {
        let mut events = client.events();
        let subscription = client.subscribe(&filter).await?;
        client.flush().await?;
        let refused = format!("Subscription to \"{filter}\"");
        while let Ok(event) = events.try_recv() {
            if let Event::ServerError(text) = event
                && text.contains(&refused)
            {
                return Err(BridgeError::NotAllowed(text));
            }
        }
        Ok(subscription)
    })
}

/// Messages as a stream, for asynchronous code and for hubs. Dropping it unsubscribes.
///
/// Unread messages wait in a bounded queue ([limits](crate::client::limits)). Messages that do not fit are
/// dropped and counted. To lose no messages, read a [stream](super::BridgedStream::records), which stores
/// unread messages.
pub struct Messages {
    subscription: Subscription,
    id: u64,
    connection: Arc<Connection>,
}

impl Messages {
    /// Waits for the next message. Returns `None` at the end. Cancel safe: no message is lost.
    pub async fn next(&mut self) -> Option<Message> {
        self.subscription.next().await
    }

    /// Waits for the next message, and blocks this thread.
    pub fn blocking_next(&mut self) -> Option<Message> {
        super::blocking::wait(self.next())
    }

    /// Returns the number of messages dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.subscription.dropped()
    }
}

impl Stream for Messages {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        Pin::new(&mut self.subscription).poll_next(context)
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.connection.inner.receivers.remove(self.id);
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").finish_non_exhaustive()
    }
}

/// A receiver that adds messages from publishers of the same bridge to the subscription's queue.
struct InProcessInlet(Inlet);

impl Receive for InProcessInlet {
    fn receive(&self, message: &Message) {
        self.0.push(message.clone());
    }
}

/// Returns a stream of the messages that match a filter.
pub(super) fn messages(
    connection: &Arc<Connection>,
    filter: &str,
) -> Result<Messages, BridgeError> {
    let subscription = subscribe(connection, filter)?;
    let inlet = Arc::new(InProcessInlet(subscription.inlet()));
    let id = connection.inner.receivers.add(filter, inlet, None);
    Ok(Messages {
        subscription,
        id,
        connection: Arc::clone(connection),
    })
}
