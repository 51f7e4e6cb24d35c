//! The system account: monitoring by request, and events.
//!
//! A client in this process, bound to the system account, subscribes to what can be asked; who asks is
//! told what monitoring tells over HTTP, by the same code. What users of other accounts ask comes here
//! over imports that every account has, with the name of the account in the subject.

mod answers;
mod claims;
mod endpoints;
mod envelope;
mod events;
mod options;
mod statsz;
mod subscribers;
mod telling;
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
use endpoints::Asked;
use envelope::Envelope;

/// Events that wait to be told. More are not told: who comes and goes must not be held up by it.
pub(crate) const EVENTS_MAX: usize = 16 * 1024;

/// Answers for the server in the system account.
pub(crate) struct System {
    client: Client,
    monitor: Rc<Monitor>,
    envelope: Envelope,
}

/// The server's own client is gone, and the server with it.
struct Gone;

impl System {
    /// Subscribes to everything that can be asked; from then on requests are answered and events told, on
    /// tasks of this thread.
    ///
    /// # Errors
    /// When the client is gone.
    pub(crate) async fn start(
        client: Client,
        monitor: Rc<Monitor>,
        events: mpsc::Receiver<ConnectionEvent>,
    ) -> Result<Rc<Self>, ClientError> {
        let system = Rc::new(System {
            client,
            monitor,
            envelope: Envelope::default(),
        });
        for (subject, asked) in endpoints::subjects(system.monitor.server_id()) {
            let requests = system.client.subscribe(&subject).await?;
            tokio::task::spawn_local(Rc::clone(&system).answer_all(requests, asked));
        }
        system.serve_claims().await?;
        system.client.flush().await?;
        tokio::task::spawn_local(Rc::clone(&system).tell(events));
        Ok(system)
    }

    /// Answers the requests of one subject.
    async fn answer_all(self: Rc<Self>, mut requests: Subscription, asked: Asked) {
        while let Some(request) = requests.next().await {
            if request.reply().is_none() {
                continue;
            }
            let Some(answer) = self.answer(&request, asked).await else {
                continue;
            };
            if self.reply(&request, &answer).await.is_err() {
                return;
            }
        }
    }

    /// Sends an answer, packed if that was asked for; if it is too large for a message, that. Who waits for
    /// none gets none.
    async fn reply(&self, request: &Message, answer: &Value) -> Result<(), Gone> {
        let Some(to) = request.reply() else {
            return Ok(());
        };
        match self
            .client
            .publish_message(&packed(request, to, answer))
            .await
        {
            Err(error @ ClientError::PayloadTooLarge { .. }) => {
                let refusal = self
                    .envelope
                    .refusal(&self.monitor, 500, &error.to_string());
                self.say(to, &refusal).await
            }
            sent => unless_gone(to, sent),
        }
    }

    async fn say(&self, subject: &str, body: &Value) -> Result<(), Gone> {
        let sent = self.client.publish(subject, body.to_string()).await;
        unless_gone(subject, sent)
    }
}

/// An answer as whoever asks takes it.
fn packed(request: &Message, to: &str, answer: &Value) -> OutgoingMessage {
    let mut message = OutgoingMessage {
        subject: to.into(),
        ..OutgoingMessage::default()
    };
    let body = answer.to_string().into_bytes();
    let accepted = request
        .headers()
        .and_then(|headers| headers.get(ACCEPT_ENCODING));
    message.payload = match accepted.map(Encoding::wanted) {
        Some(encoding) if said(&mut message.headers, encoding) => encoding.pack(body).into(),
        _ => body.into(),
    };
    message
}

/// Says how an answer is packed; whether that could be said.
fn said(headers: &mut Headers, encoding: Encoding) -> bool {
    headers.append(CONTENT_ENCODING, encoding.name()).is_ok()
}

/// What cannot be sent, as when an account's name cannot stand in a subject, is left out.
fn unless_gone(subject: &str, sent: Result<(), ClientError>) -> Result<(), Gone> {
    match sent {
        Ok(()) => Ok(()),
        Err(ClientError::Disconnected(_)) => Err(Gone),
        Err(error) => {
            debug!("{subject} was not told: {error}");
            Ok(())
        }
    }
}
