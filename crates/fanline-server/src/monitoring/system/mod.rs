//! The system account: monitoring by request, and events.
//!
//! A system client subscribes to all requests. The code of monitoring over HTTP makes the responses. Requests
//! of other accounts arrive over implicit imports of every account, with the account's name in the subject.

mod answers;
mod broadcast;
mod claims;
mod endpoints;
mod envelope;
mod events;
mod interest;
mod options;
mod peers;
mod publishing;
mod statsz;
mod subscribers;
#[cfg(test)]
mod tests;
mod user;

use std::rc::Rc;

use fanline_engine::encoding::{ACCEPT_ENCODING, CONTENT_ENCODING, Encoding};
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::debug;

use super::Monitor;
use crate::client::{Client, ClientError, Headers, Message, OutgoingMessage, Subscription};
use crate::ipc::ConnectionEvent;
use broadcast::Broadcast;
use endpoints::Operation;
use envelope::Envelope;
use peers::Peers;

/// Largest number of pending events. Further events are dropped, so that events never delay connections.
pub(crate) const EVENTS_MAX: usize = 16 * 1024;

/// The server's services in the system account.
pub(crate) struct System {
    client: Client,
    monitor: Rc<Monitor>,
    envelope: Envelope,
    broadcast: Broadcast,
    peers: Peers,
}

/// The system client is disconnected, because the server stops.
struct Disconnected;

impl System {
    /// Subscribes to all requests, and starts tasks on this thread that respond to requests and publish
    /// events.
    ///
    /// # Errors
    ///
    /// Fails if the client is disconnected.
    pub(crate) async fn start(
        client: Client,
        monitor: Rc<Monitor>,
        events: mpsc::Receiver<ConnectionEvent>,
    ) -> Result<Rc<Self>, ClientError> {
        let system = Rc::new(System {
            client,
            monitor,
            envelope: Envelope::default(),
            broadcast: Broadcast::default(),
            peers: Peers::default(),
        });
        for (subject, operation) in endpoints::subjects(system.monitor.server_id()) {
            let requests = system.client.subscribe(&subject).await?;
            tokio::task::spawn_local(Rc::clone(&system).answer_all(requests, operation));
        }
        system.serve_claims().await?;
        if system.is_clustered() {
            system.follow_peers().await?;
            tokio::task::spawn_local(Rc::clone(&system).compare_interest());
        }
        tokio::task::spawn_local(Rc::clone(&system).follow_access());
        system.client.flush().await?;
        tokio::task::spawn_local(Rc::clone(&system).publish_events(events));
        Ok(system)
    }

    /// Returns whether the server is a member of a cluster, or connected to other clusters.
    fn is_clustered(&self) -> bool {
        let options = self.monitor.shared.options();
        options.cluster.is_some() || options.gateway.is_some()
    }

    /// Responds to the requests of one subject.
    async fn answer_all(self: Rc<Self>, mut requests: Subscription, operation: Operation) {
        while let Some(request) = requests.next().await {
            if request.reply().is_none() {
                if operation == Operation::Statsz {
                    self.broadcast.request(true);
                }
                continue;
            }
            let Some(answer) = self.answer(&request, operation).await else {
                continue;
            };
            if self.reply(&request, &answer).await.is_err() {
                return;
            }
        }
    }

    /// Sends a response, compressed if the request asks for it. If the response is larger than a message may
    /// be, an error is sent instead. Without a reply subject, nothing is sent.
    async fn reply(&self, request: &Message, answer: &Value) -> Result<(), Disconnected> {
        let Some(to) = request.reply() else {
            return Ok(());
        };
        match self
            .client
            .publish_message(&encoded_response(request, to, answer))
            .await
        {
            Err(error @ ClientError::PayloadTooLarge { .. }) => {
                let refusal = self
                    .envelope
                    .refusal(&self.monitor, 500, &error.to_string());
                self.publish(to, &refusal).await
            }
            sent => unless_disconnected(to, sent),
        }
    }

    async fn publish(&self, subject: &str, body: &Value) -> Result<(), Disconnected> {
        let sent = self.client.publish(subject, body.to_string()).await;
        unless_disconnected(subject, sent)
    }
}

/// Returns a response in the requested encoding.
fn encoded_response(request: &Message, to: &str, answer: &Value) -> OutgoingMessage {
    let mut message = OutgoingMessage {
        subject: to.into(),
        ..OutgoingMessage::default()
    };
    let body = answer.to_string().into_bytes();
    let accepted = request
        .headers()
        .and_then(|headers| headers.get(ACCEPT_ENCODING));
    message.payload = match accepted.map(Encoding::wanted) {
        Some(encoding) if set_encoding(&mut message.headers, encoding) => {
            encoding.pack(body).into()
        }
        _ => body.into(),
    };
    message
}

/// Sets the encoding header. Returns whether that was possible.
fn set_encoding(headers: &mut Headers, encoding: Encoding) -> bool {
    headers.append(CONTENT_ENCODING, encoding.name()).is_ok()
}

/// Ignores messages that cannot be sent, for instance because an account's name is not a valid token of a
/// subject. Fails only if the client is disconnected.
fn unless_disconnected(subject: &str, sent: Result<(), ClientError>) -> Result<(), Disconnected> {
    match sent {
        Ok(()) => Ok(()),
        Err(ClientError::Disconnected(_)) => Err(Disconnected),
        Err(error) => {
            debug!("{subject} was not published: {error}");
            Ok(())
        }
    }
}
