//! Delivery of messages to MQTT sessions.

use std::time::Duration;

use super::events::DeliveryEvents;
use super::expiry::Lifetime;
use super::names;
use super::shared_subscriptions::member_index;
use super::state::{Mqtt, QueuedMessage, is_internal_sid, sub_index};
use crate::auth::AccountId;
use crate::codec::mqtt::{
    Delivery, Properties, Qos, Refused, Version, client_of, qos_of, response_topic_of, stored_id,
    topic_to_subject, ttl_of, was_retained, write_properties,
};
use crate::exchange::deliver::RunMessage;
use crate::exchange::message::Message;
use crate::exchange::restriction::Restriction;
use crate::exchange::router::{Route, SubId};
use crate::jetstream::consumer::AckSubject;
use crate::outbox::{Chunk, Outbox};
use crate::session::{FanOut, Kind};

/// The parts of a message.
pub(super) struct Parts<'a> {
    pub(super) headers: &'a [u8],
    pub(super) payload: &'a [u8],
    pub(super) reply: &'a [u8],
}

/// A message that is being published, for one session.
struct Published<'a> {
    subject: &'a [u8],
    message: &'a Message<'a>,
    /// Whether the session itself published the message.
    is_own: bool,
    /// Whether an MQTT client published the message. Only then are its headers for QoS and RETAIN used.
    is_from_device: bool,
}

/// A message that a consumer delivers to a session.
pub(super) struct Stored<'a> {
    pub(super) session: u32,
    pub(super) account: AccountId,
    pub(super) subject: &'a [u8],
    pub(super) parts: &'a Parts<'a>,
    /// Current time in nanoseconds since 1970 UTC.
    pub(super) unix_nanos: i64,
}

impl<'a> Parts<'a> {
    fn of(message: &Message<'a>) -> Self {
        let (headers, rest) = message.body.split_at(message.header_bytes);
        Parts {
            headers,
            payload: &rest[..rest.len() - 2],
            reply: &message.args[..message.reply_bytes],
        }
    }

    /// Returns whether an MQTT 5.0 client receives properties with the message.
    fn has_properties(&self) -> bool {
        !self.headers.is_empty() || !self.reply.is_empty()
    }
}

impl FanOut<'_> {
    /// Queues a message for a subscription of an MQTT session. Returns false when the session does not
    /// receive it.
    #[inline(never)]
    pub(crate) fn deliver_mqtt(&mut self, id: SubId, route: &Route, message: &Message<'_>) -> bool {
        let sub = self.subs.get(id);
        let session = &mut self.sessions[sub.session() as usize];
        let head = match message.head {
            [] => route.hmsg_head(),
            head => head,
        };
        let subject = head.strip_prefix(b"HMSG ").unwrap_or_default();
        let subject = subject.strip_suffix(b" ").unwrap_or_default();
        if is_internal_sid(sub.sid()) {
            return self.deliver_stored(id, subject, message);
        }
        self.outputs.lend_buffer(session);
        let Kind::Mqtt(mqtt) = &mut session.kind else {
            return false;
        };
        let published = Published {
            subject,
            message,
            is_own: self.origin.session == Some(sub.session()),
            is_from_device: self.is_from_device,
        };
        let before = session.out.pending_bytes();
        let events = &mut self.shared.mqtt.events;
        let Some(bytes) = mqtt.deliver(sub.sid(), &published, events, &mut session.out) else {
            self.outputs.reclaim(session);
            return false;
        };
        if message.reply_bytes > 0
            && mqtt.connection.version() == Version::V5
            && let Some(restriction) = &mut session.restriction
        {
            restriction.record_reply(&message.args[..message.reply_bytes], self.outputs.now);
        }
        self.count_delivered(id, before, bytes);
        true
    }

    /// Queues a message that the session's consumer, or the consumer of a shared subscription, delivers.
    #[inline(never)]
    fn deliver_stored(&mut self, id: SubId, subject: &[u8], message: &Message<'_>) -> bool {
        let sub = self.subs.get(id);
        let session = &mut self.sessions[sub.session() as usize];
        let parts = Parts::of(message);
        self.outputs.lend_buffer(session);
        let Kind::Mqtt(mqtt) = &mut session.kind else {
            return false;
        };
        let events = &mut self.shared.mqtt.events;
        let prefix = names::MESSAGES_PREFIX.as_bytes();
        let subject = subject.strip_prefix(prefix).unwrap_or_default();
        // Permissions apply to the subject that the message was published to.
        let may_receive = |restriction: &Restriction| restriction.may_receive(subject, b"");
        if !session.restriction.as_deref().is_none_or(may_receive) {
            events.acknowledge(session.account, parts.reply);
            self.outputs.reclaim(session);
            return true;
        }
        if mqtt.connection.version() == Version::V5
            && let Some(restriction) = &mut session.restriction
        {
            permit_response(restriction, parts.headers, self.outputs.now);
        }
        let now = i64::try_from(self.outputs.now.as_nanos()).unwrap_or(i64::MAX);
        let before = session.out.pending_bytes();
        let stored = Stored {
            session: sub.session(),
            account: session.account,
            subject,
            parts: &parts,
            unix_nanos: mqtt.started_unix_nanos.saturating_add(now),
        };
        match member_index(sub.sid()) {
            Some(index) => mqtt.deliver_to_member(index, &stored, events),
            None => mqtt.deliver_stored(&stored, events, &mut session.out),
        }
        self.count_delivered(id, before, parts.payload.len());
        true
    }

    /// Counts the output of a delivery for a session that had `before` bytes pending.
    #[inline]
    fn count_delivered(&mut self, id: SubId, before: usize, payload_bytes: usize) {
        let sub = self.subs.get_mut(id);
        let session = &mut self.sessions[sub.session() as usize];
        if session.out.pending_bytes() > before {
            self.outputs.mark_dirty(sub.session(), session);
            session.out_msgs += 1;
            session.out_bytes += payload_bytes as u64;
            self.outputs.count_produced(sub.session(), session, before);
        } else {
            self.outputs.reclaim(session);
        }
        sub.count();
    }

    /// Queues several successive messages with the same route.
    pub(crate) fn deliver_run_mqtt(
        &mut self,
        id: SubId,
        route: &Route,
        chunk: &Chunk,
        run: &[RunMessage],
    ) {
        for run_message in run {
            let tail = &chunk[run_message.tail.clone()];
            let payload_bytes = usize::try_from(run_message.payload_bytes).unwrap_or(0);
            let body_at = tail.len().saturating_sub(payload_bytes + 2);
            let message = Message::framed(tail, body_at, 0, 0);
            self.deliver_mqtt(id, route, &message);
        }
    }
}

impl Mqtt {
    /// Writes a message for one of the client's subscriptions. Returns the length of its payload, or `None`
    /// if the session does not receive the message.
    #[inline]
    fn deliver(
        &mut self,
        sid: &[u8],
        published: &Published<'_>,
        events: &mut DeliveryEvents,
        out: &mut Outbox,
    ) -> Option<usize> {
        let Published {
            subject, message, ..
        } = *published;
        let index = usize::try_from(sub_index(sid)?).ok()?;
        let sub = self.subs.get(index)?.as_ref()?;
        if !self.connection.is_open() || sub.hides(subject) {
            return None;
        }
        if published.is_own && sub.subscription.options.no_local {
            return None;
        }
        let parts = Parts::of(message);
        let mut retain = false;
        let version = self.connection.version();
        self.properties.clear();
        if parts.has_properties() {
            // Messages above QoS 0 are delivered by the consumer of the session or of its group.
            let is_from_device = published.is_from_device;
            if is_from_device && sub.qos.min(qos_of(parts.headers)) != Qos::AtMostOnce {
                return None;
            }
            let shows_retain = is_from_device && sub.subscription.options.as_published;
            retain = shows_retain && was_retained(parts.headers);
            if version == Version::V5 {
                let ttl = ttl_of(parts.headers);
                write_properties(parts.headers, parts.reply, ttl, &mut self.properties);
            }
        }
        let identifier = [sub.subscription.identifier];
        let delivery = Delivery {
            topic: events.topic(subject)?,
            qos: Qos::AtMostOnce,
            retain,
            properties: Properties::written(&self.properties),
            identifiers: if identifier[0] == 0 { &[] } else { &identifier },
            payload_bytes: parts.payload.len(),
            token: 0,
            packet_id: None,
            dup: false,
        };
        self.connection.deliver(&delivery, out).ok()?;
        match &message.shared {
            Some((chunk, range)) => {
                out.refer(chunk, range.start + message.header_bytes..range.end - 2);
            }
            None => out.append(parts.payload),
        }
        Some(parts.payload.len())
    }

    /// Sends or queues a message that the session's consumer delivers.
    fn deliver_stored(
        &mut self,
        stored: &Stored<'_>,
        events: &mut DeliveryEvents,
        out: &mut Outbox,
    ) {
        let Stored {
            account,
            subject,
            parts,
            unix_nanos,
            ..
        } = *stored;
        let Some(ack) = AckSubject::parse(parts.reply) else {
            return;
        };
        let sequence = ack.stream_sequence;
        let packet_id = stored_id(sequence);
        let release = self.releases.get(&packet_id);
        if release.is_some_and(|release| release.token == sequence) {
            // The client has the message, but the acknowledgement to the consumer was lost.
            return events.record_redelivered(stored.session, packet_id);
        }
        // A message that was already sent is sent again, even if it has expired (MQTT-4.3.3-7).
        let was_sent = self.is_resumed && ack.deliveries > 1;
        let lifetime = Lifetime::left(parts.headers, ack.unix_nanos, unix_nanos);
        let lifetime = lifetime.or_else(|| was_sent.then_some(Lifetime::Seconds(0)));
        let matched = self.match_stored(subject, parts.headers);
        let topic = events.topic(subject);
        let (Some((qos, retain)), Some(topic), Some(lifetime)) = (matched, topic, lifetime) else {
            return events.acknowledge(account, parts.reply);
        };
        self.properties.clear();
        if self.connection.version() == Version::V5 {
            write_properties(parts.headers, b"", lifetime.seconds(), &mut self.properties);
        }
        let message = QueuedMessage {
            topic: topic.into(),
            qos,
            retain,
            dup: ack.deliveries > 1,
            properties: self.properties.as_slice().into(),
            identifiers: self.identifiers.as_slice().into(),
            payload: parts.payload.into(),
            token: sequence,
            packet_id: Some(packet_id),
            ack_subject: parts.reply.into(),
            expires_at: lifetime.expires_at(unix_nanos),
            is_claimed: false,
        };
        if self.queue.iter().any(|other| other.token == sequence) {
            return;
        }
        if !self.queue.is_empty() {
            return self.queue.push_back(message);
        }
        match self.send(&message, out) {
            Ok(()) | Err(Refused::UnderWay) => {}
            Err(Refused::NoRoom) => self.queue.push_back(message),
            Err(Refused::TooLarge) => events.acknowledge(account, parts.reply),
        }
    }

    /// Matches a stored message with the client's subscriptions, and collects their identifiers. Returns the
    /// message's QoS and RETAIN flag, or `None` without a match.
    fn match_stored(&mut self, subject: &[u8], headers: &[u8]) -> Option<(Qos, bool)> {
        let is_own = client_of(headers) == Some(self.id_hash.as_bytes());
        let published = qos_of(headers).max(Qos::AtLeastOnce);
        let mut found: Option<(Qos, bool)> = None;
        self.identifiers.clear();
        for sub in self.subs.iter().flatten() {
            let is_left_out = sub.is_shared || is_own && sub.subscription.options.no_local;
            if sub.qos == Qos::AtMostOnce || is_left_out || !sub.matches(subject) {
                continue;
            }
            let (qos, as_published) = found.unwrap_or_default();
            found = Some((
                qos.max(sub.qos),
                as_published || sub.subscription.options.as_published,
            ));
            if sub.subscription.identifier != 0 {
                self.identifiers.push(sub.subscription.identifier);
            }
        }
        let (qos, as_published) = found?;
        Some((qos.min(published), as_published && was_retained(headers)))
    }
}

/// Permits the client to respond to a stored message (`allow_responses`).
#[cold]
fn permit_response(restriction: &mut Restriction, headers: &[u8], now: Duration) {
    let mut subject = Vec::new();
    if let Some(topic) = response_topic_of(headers)
        && topic_to_subject(topic, &mut subject).is_ok()
    {
        restriction.record_reply(&subject, now);
    }
}
