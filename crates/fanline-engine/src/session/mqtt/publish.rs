//! Messages that MQTT clients publish. Messages of QoS 0 go through the outbound queue. They are published
//! like messages of a NATS client, so the same rules apply. Other messages are also stored.

use super::acks::AckKind;
use super::messages::{RegistryMessage, Request, RequestAction, RequestId};
use super::outbound::Translated;
use super::records::ReceivedMessage;
use super::{MqttSession, names};
use crate::accounts::Mapped;
use crate::auth::AccountId;
use crate::codec::mqtt::{Publish, Qos, Reason, Version, Will, response_topic_of, with_ttl};
use crate::codec::nats::args;
use crate::exchange::message::{Context, Dispatch, Message as Framed};
use crate::exchange::router::RouteMemo;
use crate::jetstream::Message;
use crate::outbox::{Chunk, SHARED_BYTES_MIN};
use crate::session::Broker;
use crate::session::permit::Permit;

/// Largest size in bytes of headers that a stream stores, minus the header that deduplicates a QoS 2 message.
const STORED_HEADER_BYTES_MAX: usize = 64 * 1024 - 1 - 128;

/// Whether the account's mappings were applied to the subjects of queued messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subjects {
    AsPublished,
    Mapped,
}

impl MqttSession<'_> {
    /// Handles a message of QoS 0, which is published together with the following ones.
    pub(super) fn enqueue_publish(&mut self, publish: &Publish<'_>) {
        let mut message = std::mem::take(&mut self.broker.exchange.shared.mqtt.outbound.buffers);
        if self.translate(publish, &mut message) {
            self.enqueue(&message, publish.payload);
        }
        self.broker.exchange.shared.mqtt.outbound.buffers = message;
    }

    fn enqueue(&mut self, message: &Translated, payload: &[u8]) {
        if !self
            .broker
            .exchange
            .shared
            .mqtt
            .outbound
            .push(message, payload)
        {
            self.publish_outbound();
            self.broker
                .exchange
                .shared
                .mqtt
                .outbound
                .push(message, payload);
        }
    }

    /// Translates a message of the client. Closes the connection if that is not possible.
    fn translate(&mut self, publish: &Publish<'_>, message: &mut Translated) -> bool {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let bytes_max = session.parse_limits.payload_bytes_max;
        let mqtt = session.kind.mqtt().unwrap_or_else(|| super::not_mqtt());
        let topic = mqtt.connection.topic_of(publish);
        let client = mqtt.has_no_local().then_some(&*mqtt.id_hash);
        let client = client.filter(|_| publish.packet_id != 0);
        let outbound = &mut self.broker.exchange.shared.mqtt.outbound;
        if !outbound.translate(topic, publish, client, message) {
            let text = "the topic contains white space or a control character, which subjects cannot contain";
            self.end_because(Reason::TOPIC_NAME_INVALID, text);
            return false;
        }
        if message.headers.len() + publish.payload.len() > bytes_max {
            self.end_because(
                Reason::PACKET_TOO_LARGE,
                "the message exceeds the maximum payload",
            );
            return false;
        }
        if message.subject.starts_with(names::INTERNAL_PREFIX) {
            self.end_because(
                Reason::NOT_AUTHORIZED,
                "the topic is reserved for the server",
            );
            return false;
        }
        true
    }

    /// Publishes the outbound queue.
    pub(super) fn publish_outbound(&mut self) {
        self.publish_queued(Subjects::AsPublished, Vec::new());
    }

    /// Publishes the outbound queue. The queue groups in `served` are skipped: their consumers deliver the
    /// messages.
    fn publish_queued(&mut self, subjects: Subjects, mut served: Vec<Vec<u8>>) {
        if self.broker.exchange.shared.mqtt.outbound.is_empty() {
            return;
        }
        let broker = &mut *self.broker;
        let (frames, chunk) = broker.exchange.shared.mqtt.outbound.take();
        let mut intake = broker.begin_intake(self.id, &chunk);
        // A mapped subject was checked before, and perhaps permitted only once, as a response. Therefore
        // other messages must use neither the permission nor the cached route.
        let memo = intake.memo;
        let was_permitted = subjects == Subjects::Mapped && intake.is_restricted;
        if subjects == Subjects::Mapped {
            intake.is_mapped = false;
        }
        if was_permitted {
            intake.is_restricted = false;
            intake.memo = RouteMemo::default();
        }
        for frame in &frames {
            let context = Context {
                // Only `publish_as_device` maps messages before it queues them.
                is_from_device: subjects == Subjects::Mapped,
                served: (!served.is_empty()).then_some(&mut served),
                ..Context::default()
            };
            let publish = frame.publish(&chunk);
            (broker.any(self.id)).publish(&mut intake, &publish, frame.from(), context);
        }
        broker.exchange.end_run(&intake);
        if was_permitted {
            intake.memo = memo;
        }
        broker.end_intake(&intake);
        drop(chunk);
        broker.exchange.shared.mqtt.outbound.restore(frames);
    }

    /// Publishes a message above QoS 0, or one that is retained, to its subscribers.
    fn publish_as_device(&mut self, message: &Translated, payload: &[u8], qos: Qos) {
        self.enqueue(message, payload);
        let account = self.account();
        let served = groups_served(self.broker, account, &message.subject, qos);
        self.publish_queued(Subjects::Mapped, served);
    }

    /// Handles a message of QoS 1, or a retained one of QoS 0: publishes and stores it.
    pub(super) fn publish_stored(&mut self, publish: &Publish<'_>) {
        let mut message = std::mem::take(&mut self.broker.exchange.shared.mqtt.outbound.buffers);
        if self.admit_publish(publish, AckKind::Publish, &mut message) {
            self.publish_admitted(publish, &message);
        }
        self.broker.exchange.shared.mqtt.outbound.buffers = message;
    }

    /// Translates and maps a message. Checks whether it may be published and can be stored; if not, answers
    /// the client.
    fn admit_publish(
        &mut self,
        publish: &Publish<'_>,
        kind: AckKind,
        message: &mut Translated,
    ) -> bool {
        if !self.translate(publish, message) {
            return false;
        }
        let packet_id = publish.packet_id;
        let account = self.account();
        if !map(self.broker, account, &mut message.subject) {
            if packet_id != 0 {
                self.stored(kind, packet_id, Reason::SUCCESS);
            }
            return false;
        }
        if !self.permit(publish, &message.subject, kind) {
            return false;
        }
        match cannot_store(message).filter(|_| packet_id != 0) {
            Some(reason) => self.stored(kind, packet_id, reason),
            None => return true,
        }
        false
    }

    fn publish_admitted(&mut self, publish: &Publish<'_>, message: &Translated) {
        let Translated {
            subject, headers, ..
        } = message;
        self.publish_as_device(message, publish.payload, publish.qos);
        let packet_id = publish.packet_id;
        if packet_id == 0 {
            let account = self.account();
            retain(self.broker, account, subject, headers, publish.payload);
            return;
        }
        let streams = 1 + u8::from(publish.retain);
        self.state_mut()
            .await_stored(AckKind::Publish, packet_id, streams);
        self.store(
            AckKind::Publish,
            packet_id,
            subject,
            headers,
            publish.payload,
        );
        if publish.retain {
            self.store_retained(
                AckKind::Publish,
                packet_id,
                subject,
                headers,
                publish.payload,
            );
        }
    }

    /// Returns whether the client may publish to a subject; if not, answers the client. MQTT 3.1.1 has no
    /// reason code for a denial: the message is acknowledged and dropped (section 3.3.5 of 3.1.1).
    fn permit(&mut self, publish: &Publish<'_>, subject: &[u8], kind: AckKind) -> bool {
        if self.session().restriction.is_none() {
            return true;
        }
        if self.any().permit_publish(subject) != Permit::Denied {
            return true;
        }
        let reason = match self.state().connection.version() {
            Version::V4 => Reason::SUCCESS,
            Version::V5 => self.denial(),
        };
        let packet_id = publish.packet_id;
        self.write(|mqtt, out| match kind {
            _ if packet_id == 0 => None,
            AckKind::Receive => mqtt.connection.stored(packet_id, reason, out),
            _ => mqtt.connection.acknowledge(packet_id, reason, out),
        });
        false
    }

    /// Handles a message of QoS 2, which is published at its PUBREL.
    pub(super) fn receive_message(&mut self, publish: &Publish<'_>) {
        let mut message = std::mem::take(&mut self.broker.exchange.shared.mqtt.outbound.buffers);
        // Storage limits are checked now, because PUBCOMP has no reason code for them.
        if self.admit_publish(publish, AckKind::Receive, &mut message) {
            self.store_received(publish, &message);
        }
        self.broker.exchange.shared.mqtt.outbound.buffers = message;
    }

    fn store_received(&mut self, publish: &Publish<'_>, message: &Translated) {
        let received = ReceivedMessage {
            sequence: 0,
            retain: publish.retain,
            subject: message.subject.as_slice().into(),
            headers: message.headers.as_slice().into(),
            payload: publish.payload.into(),
        };
        let packet_id = publish.packet_id;
        let mqtt = self.state_mut();
        let record = mqtt.is_persistent().then(|| received.encode());
        mqtt.received.insert(packet_id, received);
        let Some(record) = record else {
            return self.stored(AckKind::Receive, packet_id, Reason::SUCCESS);
        };
        mqtt.has_records = true;
        mqtt.await_stored(AckKind::Receive, packet_id, 1);
        let subject = names::received(&mqtt.id_hash, packet_id);
        let request = RequestId::Store(AckKind::Receive, packet_id);
        if !self.publish_record(&subject, Some(request), &record) {
            let reason = Reason::IMPLEMENTATION_SPECIFIC_ERROR;
            self.stored(AckKind::Receive, packet_id, reason);
        }
    }

    /// Handles PUBREL: publishes and stores a message of QoS 2.
    pub(super) fn release_message(&mut self, packet_id: u16) {
        let mqtt = self.state_mut();
        // Permissions were checked when the message arrived.
        let Some(received) = mqtt.received.get(&packet_id).cloned() else {
            return self.stored(AckKind::Release, packet_id, Reason::SUCCESS);
        };
        mqtt.await_stored(AckKind::Release, packet_id, 1 + u8::from(received.retain));
        let id_hash = mqtt.id_hash.clone();
        let mut message = std::mem::take(&mut self.broker.exchange.shared.mqtt.outbound.buffers);
        message.clear();
        message.subject.extend_from_slice(&received.subject);
        message.headers.extend_from_slice(&received.headers);
        if let Some(topic) = response_topic_of(&received.headers) {
            message.set_response_topic(topic);
        }
        self.publish_as_device(&message, &received.payload, Qos::ExactlyOnce);
        self.broker.exchange.shared.mqtt.outbound.buffers = message;
        let mut headers = received.headers.to_vec();
        if received.sequence > 0 {
            // If a crash happens before the record is removed, the message is stored again, and the stream
            // recognizes the duplicate.
            headers.truncate(headers.len().saturating_sub(2));
            let sequence = received.sequence;
            let line = format!("Nats-Msg-Id: mqtt.{id_hash}.{packet_id}.{sequence}\r\n\r\n");
            headers.extend_from_slice(line.as_bytes());
        }
        let (subject, payload) = (&received.subject, &received.payload);
        self.store(AckKind::Release, packet_id, subject, &headers, payload);
        if received.retain {
            let headers = &received.headers;
            self.store_retained(AckKind::Release, packet_id, subject, headers, payload);
        }
    }

    /// Stores a message for all sessions that have a subscription above QoS 0.
    fn store(
        &mut self,
        kind: AckKind,
        packet_id: u16,
        subject: &[u8],
        headers: &[u8],
        payload: &[u8],
    ) {
        let reply = self.reply_subject(RequestId::Store(kind, packet_id));
        let is_wanted = self.publish_internal(&Message {
            subject: &[names::MESSAGES_PREFIX.as_bytes(), subject].concat(),
            reply: reply.as_bytes(),
            headers: &with_ttl(headers),
            payload,
            ..Message::default()
        });
        if !is_wanted {
            self.stored(kind, packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// Stores a retained message. An empty payload removes the retained message of the topic (3.3.1.3).
    fn store_retained(
        &mut self,
        kind: AckKind,
        packet_id: u16,
        subject: &[u8],
        headers: &[u8],
        payload: &[u8],
    ) {
        let request = RequestId::Store(kind, packet_id);
        if payload.is_empty() {
            return self.request(Some(request), remove_retained(subject));
        }
        let reply = self.reply_subject(request);
        let is_wanted = self.publish_internal(&Message {
            subject: &[names::RETAINED_PREFIX.as_bytes(), subject].concat(),
            reply: reply.as_bytes(),
            headers: &with_ttl(headers),
            payload,
            ..Message::default()
        });
        if !is_wanted {
            self.stored(kind, packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }
}

/// Returns the reason why the log cannot store a message; `None` if it can.
fn cannot_store(message: &Translated) -> Option<Reason> {
    if message.subject.len() > names::STORED_SUBJECT_BYTES_MAX {
        return Some(Reason::TOPIC_NAME_INVALID);
    }
    (message.headers.len() > STORED_HEADER_BYTES_MAX).then_some(Reason::QUOTA_EXCEEDED)
}

/// Applies the account's mappings to a subject. Returns false if the mappings drop the message.
fn map(broker: &mut Broker, account: AccountId, subject: &mut Vec<u8>) -> bool {
    if !broker.accounts.is_mapped(account) {
        return true;
    }
    let mut renamed = Vec::new();
    match broker.rename(account, subject, &mut renamed) {
        Mapped::Renamed => *subject = renamed,
        Mapped::Unchanged => {}
        Mapped::Lost => return false,
    }
    true
}

/// Returns the names of the groups whose consumers deliver a message.
fn groups_served(broker: &Broker, account: AccountId, subject: &[u8], qos: Qos) -> Vec<Vec<u8>> {
    let groups = &broker.exchange.shared.mqtt.groups;
    if qos == Qos::AtMostOnce || groups.is_empty() {
        return Vec::new();
    }
    groups.of_subject(account, subject)
}

/// Publishes the will of a disconnected client. Also stores it if it is retained or above QoS 0, without
/// waiting for the acknowledgement. `client` is the client's id hash.
pub(super) fn publish_will(broker: &mut Broker, account: AccountId, will: &Will, client: &str) {
    let publish = &will.publish();
    let client = Some(client).filter(|_| publish.qos != Qos::AtMostOnce);
    let mut message = Translated::default();
    let outbound = &mut broker.exchange.shared.mqtt.outbound;
    if !outbound.translate(publish.topic, publish, client, &mut message)
        || !map(broker, account, &mut message.subject)
    {
        return;
    }
    let Translated {
        subject,
        reply,
        headers,
    } = &message;
    let message = Message {
        subject,
        reply,
        headers,
        payload: publish.payload,
        ..Message::default()
    };
    let mut served = groups_served(broker, account, subject, publish.qos);
    let context = Context {
        is_from_device: true,
        served: (!served.is_empty()).then_some(&mut served),
        ..Context::default()
    };
    publish_with(broker, account, &message, context);
    if publish.qos != Qos::AtMostOnce {
        let stored = Message {
            subject: &[names::MESSAGES_PREFIX.as_bytes(), subject].concat(),
            reply: b"",
            headers: &with_ttl(headers),
            ..message
        };
        publish_internal(broker, account, &stored);
    }
    if publish.retain {
        retain(broker, account, subject, headers, publish.payload);
    }
}

/// Stores a retained message without waiting for the result. An empty payload removes the retained message of
/// the topic (3.3.1.3).
fn retain(broker: &mut Broker, account: AccountId, subject: &[u8], headers: &[u8], payload: &[u8]) {
    if payload.is_empty() {
        let request = Request {
            account,
            cid: 0,
            id: None,
            action: remove_retained(subject),
        };
        if let Some(batch) = broker.exchange.outgoing.last_mut() {
            batch.push_notification(RegistryMessage::Request(Box::new(request)));
        }
        return;
    }
    let message = Message {
        subject: &[names::RETAINED_PREFIX.as_bytes(), subject].concat(),
        headers: &with_ttl(headers),
        payload,
        ..Message::default()
    };
    publish_internal(broker, account, &message);
}

fn remove_retained(subject: &[u8]) -> RequestAction {
    RequestAction::Purge {
        stream: names::RETAINED,
        filter: format!(
            "{}{}",
            names::RETAINED_PREFIX,
            String::from_utf8_lossy(subject)
        ),
    }
}

/// Publishes a message of the server itself. Returns whether the message has a subscriber.
pub(super) fn publish_internal(
    broker: &mut Broker,
    account: AccountId,
    message: &Message<'_>,
) -> bool {
    publish_with(broker, account, message, Context::default())
}

fn publish_with(
    broker: &mut Broker,
    account: AccountId,
    message: &Message<'_>,
    context: Context<'_>,
) -> bool {
    let (reply, header_bytes) = (message.reply, message.headers.len());
    let mut tail = std::mem::take(&mut broker.exchange.scratch);
    tail.clear();
    let total_bytes = header_bytes + message.payload.len();
    args::write_args(&mut tail, reply, header_bytes, total_bytes);
    let args_bytes = tail.len();
    for part in [message.headers, message.payload, b"\r\n"] {
        tail.extend_from_slice(part);
    }
    let mut framed = Framed::framed(&tail, args_bytes, reply.len(), header_bytes);
    let body = framed.body;
    let chunk;
    if body.len() >= SHARED_BYTES_MIN {
        chunk = Chunk::new(body.into());
        framed.shared = Some((&chunk, 0..body.len()));
    }
    let mut dispatch = Dispatch {
        context,
        ..Dispatch::own(account, message.subject, &framed)
    };
    let is_wanted = broker.dispatch(&mut dispatch, &mut RouteMemo::default());
    broker.exchange.scratch = tail;
    is_wanted
}
