//! MQTT sessions (`docs/decisions/0020`). A message that an MQTT client publishes takes the same route and
//! fan-out as a NATS message. Messages above QoS 0 and session state are stored in streams of the account. A
//! session publishes records to these streams, and a consumer delivers stored messages to it.
//!
//! [`MqttSession`] is the handle by which a shard calls one session; [`Mqtt`] (`state.rs`) is the session's
//! state. `input.rs` dispatches packets. `connect.rs` and `close.rs` begin and end a session. `publish.rs`,
//! `subscribe.rs`, and `deliver.rs` handle the packets of these names. `acks.rs`, `releases.rs`, and
//! `operations.rs` delay a packet until the state that it confirms is on the disk. `shared_subscriptions.rs`
//! is a member's side of groups above QoS 0. `registry/` runs next to the JetStream service. `messages.rs`
//! defines the messages between shards and the registry.

mod acks;
mod close;
mod connect;
mod consumer;
mod deliver;
mod events;
mod expiry;
mod input;
mod messages;
mod names;
mod operations;
mod outbound;
#[cfg(test)]
mod power_cut_tests;
mod publish;
mod queue;
mod records;
mod registry;
mod releases;
mod retained;
mod session_record;
mod shared_subscriptions;
mod state;
mod subscribe;
#[cfg(test)]
mod tests;

use crate::auth::AccountId;
use crate::codec::mqtt::Ended;
use crate::codec::nats::error::CloseReason;
use crate::exchange::session::SessionId;
use crate::jetstream::Message;
use crate::outbox::Outbox;
use crate::session::Broker;
use crate::session::{AnySession, Kind, Session};
use messages::{ConnectionId, Request, RequestAction, RequestId};
use outbound::OutboundQueue;
use shared_subscriptions::Groups;

pub(crate) use events::{DeliveryEvents, handle_events};
pub(crate) use messages::{RegistryMessage, handle_message};
pub(crate) use registry::{Connections, Context, ServicePorts, SessionRegistry};
pub(crate) use state::{Mqtt, is_internal_sid};

/// State that all MQTT sessions of a shard share.
#[derive(Default)]
pub(crate) struct MqttSessions {
    pub(crate) events: DeliveryEvents,
    outbound: OutboundQueue,
    /// Shared subscriptions that have members above QoS 0.
    groups: Groups,
}

/// One MQTT session, with the broker that it uses.
pub(crate) struct MqttSession<'a> {
    broker: &'a mut Broker,
    id: SessionId,
}

impl<'a> MqttSession<'a> {
    /// Returns the session of a connection, unless the connection is gone or speaks another protocol.
    #[inline]
    pub(crate) fn of(broker: &'a mut Broker, id: SessionId) -> Option<Self> {
        let session = broker.exchange.sessions.get(id.index())?;
        session.kind.is_mqtt().then_some(MqttSession { broker, id })
    }

    /// Returns the session of a connection that speaks MQTT.
    #[inline]
    pub(super) fn new(broker: &'a mut Broker, id: SessionId) -> Self {
        MqttSession { broker, id }
    }

    /// Returns the handle with the operations that all kinds of sessions share.
    #[inline]
    fn any(&mut self) -> AnySession<'_> {
        self.broker.any(self.id)
    }

    /// Returns the session of a connection, unless the connection is gone or about to be closed.
    fn connected(broker: &'a mut Broker, connection: ConnectionId) -> Option<Self> {
        let index = usize::try_from(connection.session).ok()?;
        let session = broker.exchange.sessions.get(index)?;
        let is_it = session.cid == connection.cid && session.ending.is_none();
        let id = SessionId::from_index(index);
        if !is_it {
            return None;
        }
        MqttSession::of(broker, id)
    }

    fn session(&self) -> &Session {
        &self.broker.exchange.sessions[self.id.index()]
    }

    fn session_mut(&mut self) -> &mut Session {
        &mut self.broker.exchange.sessions[self.id.index()]
    }

    fn state(&self) -> &Mqtt {
        match &self.session().kind {
            Kind::Mqtt(mqtt) => mqtt,
            _ => not_mqtt(),
        }
    }

    fn state_mut(&mut self) -> &mut Mqtt {
        parts(self.session_mut()).0
    }

    fn account(&self) -> AccountId {
        self.session().account
    }

    fn connection_id(&self) -> ConnectionId {
        ConnectionId {
            shard: self.broker.exchange.index,
            session: self.id.0,
            cid: self.session().cid,
        }
    }

    /// Writes packets and counts their bytes.
    fn write<R>(&mut self, write: impl FnOnce(&mut Mqtt, &mut Outbox) -> R) -> R {
        let before = self.begin_write();
        let (mqtt, out) = parts(self.session_mut());
        let result = write(mqtt, out);
        self.count_written(before);
        result
    }

    /// Lends a buffer to the client before a write that may produce output. Returns the number of pending bytes,
    /// for [`count_written`](Self::count_written).
    ///
    /// A buffer that the outbox allocates itself would also become a spare buffer after the write, so that each
    /// write would add one.
    fn begin_write(&mut self) -> usize {
        let exchange = &mut self.broker.exchange;
        let session = &mut exchange.sessions[self.id.index()];
        exchange.outputs.lend_buffer(session);
        session.out.pending_bytes()
    }

    /// Writes a packet and counts its bytes. Ends the connection if `write` requires it.
    fn write_or_end(&mut self, write: impl FnOnce(&mut Mqtt, &mut Outbox) -> Option<Ended>) {
        if let Some(ended) = self.write(write) {
            self.end_with(ended);
        }
    }

    /// Counts the output for a client that had `before` bytes pending.
    fn count_written(&mut self, before: usize) {
        let exchange = &mut self.broker.exchange;
        let session = &mut exchange.sessions[self.id.index()];
        if session.out.pending_bytes() > before {
            exchange.outputs.mark_dirty(self.id.0, session);
            exchange.outputs.count_produced(self.id.0, session, before);
            // A client that sends requests and never reads the answers is a slow consumer too.
            if std::mem::take(&mut exchange.outputs.overflowed) {
                self.close_connection(CloseReason::SlowConsumerPendingBytes);
            }
        } else {
            exchange.outputs.reclaim(session);
        }
    }

    fn close_connection(&mut self, reason: CloseReason) {
        self.broker.end(self.id, reason);
    }

    /// Publishes an internal message in the session's account. Returns whether it has a subscriber.
    fn publish_internal(&mut self, message: &Message<'_>) -> bool {
        let account = self.account();
        publish::publish_internal(self.broker, account, message)
    }

    /// Publishes a record to a stream. The answer arrives as `request`. Returns whether the record has a
    /// subscriber.
    fn publish_record(&mut self, subject: &str, request: Option<RequestId>, record: &[u8]) -> bool {
        let reply = request.map(|request| self.reply_subject(request));
        self.publish_internal(&Message {
            subject: subject.as_bytes(),
            reply: reply.unwrap_or_default().as_bytes(),
            payload: record,
            ..Message::default()
        })
    }

    /// Returns the reply subject for a request of this session.
    fn reply_subject(&self, request: RequestId) -> String {
        request.reply_subject(self.session().cid)
    }

    /// Acknowledges a stored message at its consumer. Returns whether the acknowledgement has a subscriber.
    fn acknowledge_stored(&mut self, subject: &[u8], reply: &[u8], word: &[u8]) -> bool {
        self.publish_internal(&Message {
            subject,
            reply,
            payload: word,
            ..Message::default()
        })
    }

    /// Sends a request to the JetStream service. Without `id` there is no answer.
    fn request(&mut self, id: Option<RequestId>, action: RequestAction) {
        let request = Request {
            account: self.account(),
            cid: self.session().cid,
            id,
            action,
        };
        self.send_to_registry(RegistryMessage::Request(Box::new(request)));
    }

    fn send_to_registry(&mut self, message: RegistryMessage) {
        // The batch to the JetStream service follows the batches to all shards.
        if let Some(batch) = self.broker.exchange.outgoing.last_mut() {
            batch.push_notification(message);
        }
    }
}

/// Returns a session's state, and the output that its packets are written to.
fn parts(session: &mut Session) -> (&mut Mqtt, &mut Outbox) {
    match &mut session.kind {
        Kind::Mqtt(mqtt) => (mqtt, &mut session.out),
        _ => not_mqtt(),
    }
}

/// Panics for a session that is expected to be MQTT but has another protocol. A connection never changes its
/// protocol, so this function is never called.
#[cold]
fn not_mqtt() -> ! {
    unreachable!("the handle of an MQTT session was made for another connection")
}
