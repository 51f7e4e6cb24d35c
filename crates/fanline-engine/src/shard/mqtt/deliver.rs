//! What MQTT clients are given.

use std::time::Duration;

use super::super::FanOut;
use super::super::SessionId;
use super::super::Shard;
use super::groups::{is_shared, member_place};
use super::kept::{Answers, UNKEPT};
use super::names;
use super::note::{Recalled, Retained};
use super::session::{Mqtt, Owned, REPLY_SID, Waiting, is_own_of_mqtt, place_in};
use crate::auth::AccountId;
use crate::codec::mqtt::{
    Delivery, Properties, Qos, Refused, Version, client_of, kept_id, qos_of, response_topic_of,
    topic_to_subject, ttl_of, was_retained, write_properties,
};
use crate::exchange::deliver::Waiting as RunMessage;
use crate::exchange::message::Message;
use crate::exchange::restriction::Restriction;
use crate::exchange::router::{Route, SubId};
use crate::jetstream::consumer::AckTopic;
use crate::outbox::{Chunk, Outbox};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A message apart.
pub(super) struct Parts<'a> {
    pub(super) headers: &'a [u8],
    pub(super) payload: &'a [u8],
    pub(super) reply: &'a [u8],
}

/// A message that passes by, and whose it is.
struct Passing<'a> {
    subject: &'a [u8],
    message: &'a Message<'a>,
    /// The receiver's own.
    is_own: bool,
    /// What its headers say of QoS and RETAIN counts.
    is_devices: bool,
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

    /// Whether it has properties for a client of 5.0.
    fn has_more(&self) -> bool {
        !self.headers.is_empty() || !self.reply.is_empty()
    }
}

impl FanOut<'_> {
    /// Queues a message for a subscription of an MQTT session; false when it does not get it.
    #[inline(never)]
    pub(in crate::shard) fn deliver_mqtt(
        &mut self,
        id: SubId,
        route: &Route,
        message: &Message<'_>,
    ) -> bool {
        let sub = self.subs.get(id);
        let session = &mut self.sessions[sub.session() as usize];
        let head = match message.head {
            [] => route.hmsg_head(),
            head => head,
        };
        let subject = head.strip_prefix(b"HMSG ").unwrap_or_default();
        let subject = subject.strip_suffix(b" ").unwrap_or_default();
        if is_own_of_mqtt(sub.sid()) {
            return self.deliver_from_keeper(id, subject, message);
        }
        self.outputs.lend_buffer(session);
        let Some(mqtt) = &mut session.kind.mqtt else {
            return false;
        };
        let passing = Passing {
            subject,
            message,
            is_own: self.origin.session == Some(sub.session()),
            is_devices: self.is_from_device,
        };
        let before = session.out.pending_bytes();
        let answers = &mut self.shared.answers;
        let Some(bytes) = mqtt.give(sub.sid(), &passing, answers, &mut session.out) else {
            self.outputs.reclaim(session);
            return false;
        };
        if message.reply_bytes > 0
            && mqtt.link.version() == Version::V5
            && let Some(restriction) = &mut session.restriction
        {
            restriction.note_reply(&message.args[..message.reply_bytes], self.outputs.now);
        }
        self.note_delivered(id, before, bytes);
        true
    }

    /// The same for what the keeper has sent: an answer, or a message that was kept for the session or for a group of
    /// which it is a member.
    #[inline(never)]
    fn deliver_from_keeper(&mut self, id: SubId, subject: &[u8], message: &Message<'_>) -> bool {
        let sub = self.subs.get(id);
        let session = &mut self.sessions[sub.session() as usize];
        let parts = Parts::of(message);
        if sub.sid() == REPLY_SID {
            let answers = &mut self.shared.answers;
            answers.note(sub.session(), subject, parts.payload);
            return true;
        }
        self.outputs.lend_buffer(session);
        let Some(mqtt) = &mut session.kind.mqtt else {
            return false;
        };
        let answers = &mut self.shared.answers;
        let prefix = names::MESSAGES_PREFIX.as_bytes();
        let subject = subject.strip_prefix(prefix).unwrap_or_default();
        // What a session may receive is looked at for what it is, and not for where it lies.
        let may_receive = |restriction: &Restriction| restriction.may_receive(subject, b"");
        if !session.restriction.as_deref().is_none_or(may_receive) {
            answers.acknowledge(session.account, parts.reply);
            self.outputs.reclaim(session);
            return true;
        }
        if mqtt.link.version() == Version::V5
            && let Some(restriction) = &mut session.restriction
        {
            note_response(restriction, parts.headers, self.outputs.now);
        }
        let now = i64::try_from(self.outputs.now.as_nanos()).unwrap_or(i64::MAX);
        let unix_nanos = mqtt.started_unix_nanos.saturating_add(now);
        let before = session.out.pending_bytes();
        let account = session.account;
        match member_place(sub.sid()) {
            Some(place) => {
                let whose = (sub.session(), account);
                mqtt.take_shared(whose, place, subject, &parts, unix_nanos, answers);
            }
            None => {
                let out = &mut session.out;
                let whose = (sub.session(), account);
                mqtt.take_kept(whose, subject, &parts, unix_nanos, answers, out);
            }
        }
        self.note_delivered(id, before, parts.payload.len());
        true
    }

    /// A session may have got something, that had so many bytes waiting before.
    #[inline]
    fn note_delivered(&mut self, id: SubId, before: usize, payload_bytes: usize) {
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

    /// The same for several that follow each other.
    pub(in crate::shard) fn deliver_run_mqtt(
        &mut self,
        id: SubId,
        route: &Route,
        chunk: &Chunk,
        run: &[RunMessage],
    ) {
        for waiting in run {
            let tail = &chunk[waiting.tail.clone()];
            let payload_bytes = usize::try_from(waiting.payload_bytes).unwrap_or(0);
            let body_at = tail.len().saturating_sub(payload_bytes + 2);
            let message = Message::framed(tail, body_at, 0, 0);
            self.deliver_mqtt(id, route, &message);
        }
    }
}

impl Mqtt {
    /// Gives a message that passes by to one of the session's subscriptions. How long its payload is, if it gets it.
    #[inline]
    fn give(
        &mut self,
        sid: &[u8],
        passing: &Passing<'_>,
        answers: &mut Answers,
        out: &mut Outbox,
    ) -> Option<usize> {
        let Passing {
            subject, message, ..
        } = *passing;
        let at = usize::try_from(place_in(sid)?).ok()?;
        let sub = self.subs.get(at)?.as_ref()?;
        if !self.link.is_open() || sub.is_open && subject.first() == Some(&b'$') {
            return None;
        }
        if passing.is_own && sub.asked.options.no_local {
            return None;
        }
        let parts = Parts::of(message);
        let mut retain = false;
        let version = self.link.version();
        self.properties.clear();
        if parts.has_more() {
            // What is kept for it is delivered by the session's consumer, or its group's.
            if passing.is_devices && sub.qos.min(qos_of(parts.headers)) != Qos::AtMostOnce {
                return None;
            }
            let shows_retain = passing.is_devices && sub.asked.options.as_published;
            retain = shows_retain && was_retained(parts.headers);
            if version == Version::V5 {
                let ttl = ttl_of(parts.headers);
                write_properties(parts.headers, parts.reply, ttl, &mut self.properties);
            }
        }
        let identifier = [sub.asked.identifier];
        let delivery = Delivery {
            topic: answers.topic(subject)?,
            qos: Qos::AtMostOnce,
            retain,
            properties: Properties::written(&self.properties),
            identifiers: if identifier[0] == 0 { &[] } else { &identifier },
            payload_bytes: parts.payload.len(),
            token: 0,
            packet_id: None,
            dup: false,
        };
        self.link.deliver(&delivery, out).ok()?;
        match &message.shared {
            Some((chunk, range)) => {
                out.refer(chunk, range.start + message.header_bytes..range.end - 2);
            }
            None => out.append(parts.payload),
        }
        Some(parts.payload.len())
    }

    /// Takes a message that its consumer delivers.
    fn take_kept(
        &mut self,
        (session, account): (u32, AccountId),
        subject: &[u8],
        parts: &Parts<'_>,
        unix_nanos: i64,
        answers: &mut Answers,
        out: &mut Outbox,
    ) {
        let Some(ack) = AckTopic::parse(parts.reply) else {
            return;
        };
        let packet_id = kept_id(ack.stream_sequence);
        let release = self.releases.get(&packet_id);
        if release.is_some_and(|release| release.token == ack.stream_sequence) {
            // It has arrived: only its acknowledgement was lost.
            return answers.note_arrived(session, packet_id);
        }
        // What was sent is sent again, whatever its age (MQTT-4.3.3-7).
        let was_sent = self.is_resumed && ack.deliveries > 1;
        let life = life_left(parts.headers, ack.unix_nanos, unix_nanos);
        let life = life.or_else(|| was_sent.then_some(Life::Seconds(0)));
        let wanted = self.wanted(subject, parts.headers);
        let topic = answers.topic(subject);
        let (Some((qos, retain)), Some(topic), Some(life)) = (wanted, topic, life) else {
            return answers.acknowledge(account, parts.reply);
        };
        self.properties.clear();
        if self.link.version() == Version::V5 {
            write_properties(parts.headers, b"", life.seconds(), &mut self.properties);
        }
        let sequence = ack.stream_sequence;
        let waiting = Waiting {
            topic: topic.into(),
            qos,
            retain,
            dup: ack.deliveries > 1,
            properties: self.properties.as_slice().into(),
            identifiers: self.identifiers.as_slice().into(),
            payload: parts.payload.into(),
            token: sequence,
            packet_id: Some(packet_id),
            ack: parts.reply.into(),
            ends_at: life.ends_at(unix_nanos),
            is_owned: false,
        };
        let is_there = |other: &Waiting| other.token == sequence;
        if self.waiting.iter().any(is_there) {
            return;
        }
        if !self.waiting.is_empty() {
            return self.waiting.push_back(waiting);
        }
        match self.send(&waiting, out) {
            Ok(()) | Err(Refused::UnderWay) => {}
            Err(Refused::NoRoom) => self.waiting.push_back(waiting),
            Err(Refused::TooLarge) => answers.acknowledge(account, parts.reply),
        }
    }

    /// With which QoS the session gets a message that is kept, and whether it is shown as retained; and the
    /// identifiers of the subscriptions that it is for. `None` when it gets it not at all.
    fn wanted(&mut self, subject: &[u8], headers: &[u8]) -> Option<(Qos, bool)> {
        let is_own = client_of(headers) == Some(self.hash.as_bytes());
        let published = qos_of(headers).max(Qos::AtLeastOnce);
        let mut found: Option<(Qos, bool)> = None;
        self.identifiers.clear();
        for sub in self.subs.iter().flatten() {
            let is_left_out = sub.is_shared || is_own && sub.asked.options.no_local;
            if sub.qos == Qos::AtMostOnce || is_left_out || !sub.matches(subject) {
                continue;
            }
            let (qos, as_published) = found.unwrap_or_default();
            found = Some((
                qos.max(sub.qos),
                as_published || sub.asked.options.as_published,
            ));
            if sub.asked.identifier != 0 {
                self.identifiers.push(sub.asked.identifier);
            }
        }
        let (qos, as_published) = found?;
        Some((qos.min(published), as_published && was_retained(headers)))
    }

    /// Sends a message above QoS 0, or a retained one.
    fn send(&mut self, message: &Waiting, out: &mut Outbox) -> Result<(), Refused> {
        if self.is_releasing(message.packet_id) {
            return Err(Refused::NoRoom);
        }
        let packet_id = self.link.deliver(&message.delivery(), out)?;
        out.append(&message.payload);
        if message.is_owned {
            let ack = message.ack.clone();
            self.owned.insert(message.token, Owned { packet_id, ack });
        } else if packet_id != 0 {
            if !message.ack.is_empty() {
                self.acks.insert(message.token, message.ack.clone());
            }
            if message.may_be_gone() && self.is_persistent() {
                let packet_id = Some(packet_id);
                let begun = Waiting {
                    packet_id,
                    ..message.clone()
                };
                self.begun.insert(message.token, begun);
            }
        }
        Ok(())
    }

    /// Sends a message that has its identifier; false when its client takes no such packet.
    pub(super) fn send_reserved(
        &mut self,
        packet_id: u16,
        message: &Waiting,
        out: &mut Outbox,
    ) -> bool {
        let is_sent = self
            .link
            .deliver_reserved(packet_id, &message.delivery(), out);
        if is_sent {
            out.append(&message.payload);
        }
        is_sent
    }

    /// Whether the PUBREL of an earlier message with this identifier is kept. After a power cut it would be taken for
    /// that of the next message.
    fn is_releasing(&self, packet_id: Option<u16>) -> bool {
        packet_id.is_some_and(|packet_id| self.releases.contains_key(&packet_id))
    }
}

impl Waiting {
    fn delivery(&self) -> Delivery<'_> {
        Delivery {
            topic: &self.topic,
            qos: self.qos,
            retain: self.retain,
            properties: Properties::written(&self.properties),
            identifiers: &self.identifiers,
            payload_bytes: self.payload.len(),
            token: self.token,
            packet_id: self.packet_id,
            dup: self.dup,
        }
    }

    /// Whether the log may not have it when its client comes back.
    fn may_be_gone(&self) -> bool {
        let is_unkept = self.token & UNKEPT != 0;
        is_unkept || self.ends_at.is_some() && !is_shared(self.token)
    }

    /// Says how much of its life is left after it has waited (MQTT-3.3.2-6); false when nothing is (MQTT-3.3.2-5). What
    /// was sent is sent again, whatever its age (MQTT-4.3.3-7).
    fn age(&mut self, now: i64) -> bool {
        /// Message Expiry Interval, which is written before all others.
        const EXPIRY: u8 = 2;
        let was_sent = self.dup && !is_shared(self.token);
        let Some(ends_at) = self.ends_at.filter(|_| !was_sent) else {
            return true;
        };
        let left = ends_at.saturating_sub(now);
        let seconds = left.saturating_add(NANOS_PER_SECOND - 1) / NANOS_PER_SECOND;
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        if let [EXPIRY, interval @ ..] = &mut *self.properties
            && let Some(interval) = interval.get_mut(..4)
        {
            interval.copy_from_slice(&seconds.to_be_bytes());
        }
        left > 0
    }
}

/// Takes note of where a message that was kept may be answered (`allow_responses`).
#[cold]
fn note_response(restriction: &mut Restriction, headers: &[u8], now: Duration) {
    let mut subject = Vec::new();
    if let Some(topic) = response_topic_of(headers)
        && topic_to_subject(topic, &mut subject).is_ok()
    {
        restriction.note_reply(&subject, now);
    }
}

/// How long a message lives on.
pub(super) enum Life {
    Endless,
    Seconds(u32),
}

impl Life {
    pub(super) fn seconds(&self) -> Option<u32> {
        match self {
            Life::Endless => None,
            Life::Seconds(seconds) => Some(*seconds),
        }
    }

    /// When it is over, in nanoseconds since 1970 UTC.
    pub(super) fn ends_at(&self, now: i64) -> Option<i64> {
        let nanos = i64::from(self.seconds()?) * NANOS_PER_SECOND;
        Some(now.saturating_add(nanos))
    }
}

/// What is left of the life of a message (MQTT-3.3.2-6); `None` when it is over (MQTT-3.3.2-5).
pub(super) fn life_left(headers: &[u8], stored_at: i64, now: i64) -> Option<Life> {
    let Some(ttl) = ttl_of(headers) else {
        return Some(Life::Endless);
    };
    let age = now.saturating_sub(stored_at).max(0) / NANOS_PER_SECOND;
    let left = ttl.checked_sub(u32::try_from(age).unwrap_or(u32::MAX))?;
    (left > 0).then_some(Life::Seconds(left))
}

impl Shard {
    /// Delivers what had to wait, as far as there is room.
    pub(super) fn deliver_waiting(&mut self, id: SessionId) {
        let now = i64::try_from(self.broker.exchange.outputs.now.as_nanos()).unwrap_or(i64::MAX);
        let before = self.broker.exchange.sessions[id.index()]
            .out
            .pending_bytes();
        while let Some((packet_id, message)) = self.deliver_next(id, now) {
            match message {
                Some(message) => self.own_message(id, packet_id, message),
                None => {
                    self.disown(id, packet_id, b"");
                }
            }
        }
        self.note_written(id, before);
        // Should nothing have been written, nobody else asks for more.
        self.recall_next(id);
    }

    /// The same up to a message that is to be kept as the session's own before it is sent, or was kept so and
    /// cannot be sent.
    fn deliver_next(&mut self, id: SessionId, now: i64) -> Option<(u16, Option<Waiting>)> {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let mqtt = session
            .kind
            .mqtt
            .as_mut()
            .filter(|mqtt| mqtt.link.is_open())?;
        let now = mqtt.started_unix_nanos.saturating_add(now);
        while let Some(mut message) = mqtt.waiting.pop_front() {
            if !message.age(now) {
                self.broker
                    .exchange
                    .shared
                    .answers
                    .discard(account, &message);
                continue;
            }
            if let Some(packet_id) = message.packet_id.filter(|id| mqtt.is_releasing(Some(*id))) {
                // If its confirmation was lost, it is asked for again.
                self.broker
                    .exchange
                    .shared
                    .answers
                    .note_arrived(id.0, packet_id);
                mqtt.waiting.push_front(message);
                return None;
            }
            let is_shared = is_shared(message.token) && message.qos == Qos::ExactlyOnce;
            if let Some(packet_id) = message.packet_id.filter(|_| is_shared && !message.is_owned) {
                if mqtt.link.reserve(message.token, packet_id) {
                    return Some((packet_id, Some(message)));
                }
                mqtt.waiting.push_front(message);
                return None;
            }
            match mqtt.send(&message, &mut session.out) {
                Ok(()) => {
                    session.out_msgs += 1;
                    session.out_bytes += message.payload.len() as u64;
                    if message.qos == Qos::AtMostOnce {
                        self.broker
                            .exchange
                            .shared
                            .answers
                            .discard(account, &message);
                    }
                }
                Err(Refused::NoRoom) => {
                    mqtt.waiting.push_front(message);
                    return None;
                }
                Err(Refused::UnderWay) => {}
                Err(Refused::TooLarge) if message.is_owned => {
                    return Some((message.packet_id?, None));
                }
                Err(Refused::TooLarge) => self
                    .broker
                    .exchange
                    .shared
                    .answers
                    .discard(account, &message),
            }
        }
        None
    }

    /// Delivers retained messages that were asked for.
    pub(super) fn deliver_recalled(&mut self, id: SessionId, recalled: &Recalled) {
        let now = i64::try_from(self.broker.exchange.outputs.now.as_nanos()).unwrap_or(i64::MAX);
        let recall = &recalled.recall;
        let mqtt = self.broker.exchange.sessions[id.index()].kind.mqtt.as_ref();
        let sub = mqtt.and_then(|mqtt| mqtt.sub(recall.at));
        // Meanwhile its place may have become another's.
        let is_wanted = sub.is_some_and(|sub| recall.is_for(&sub.subject));
        if is_wanted {
            for message in &recalled.messages {
                self.deliver_retained(id, recall.at, message, now);
            }
        }
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt {
            mqtt.is_recalling = false;
            if recalled.has_more && is_wanted {
                mqtt.recalls.push_front(recall.clone());
            }
        }
        self.deliver_waiting(id);
    }

    fn deliver_retained(&mut self, id: SessionId, at: u32, message: &Retained, now: i64) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let restriction = session.restriction.as_ref();
        if restriction.is_some_and(|restriction| !restriction.may_receive(&message.subject, b"")) {
            return;
        }
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        let unix_nanos = mqtt.started_unix_nanos.saturating_add(now);
        let life = life_left(&message.headers, message.unix_nanos, unix_nanos);
        let version = mqtt.link.version();
        let (Some(sub), Some(life)) = (mqtt.sub(at), life) else {
            return;
        };
        if sub.is_open && message.subject.first() == Some(&b'$') {
            return;
        }
        let Some(topic) = self.broker.exchange.shared.answers.topic(&message.subject) else {
            return;
        };
        let mut properties = Vec::new();
        if version == Version::V5 {
            write_properties(&message.headers, b"", life.seconds(), &mut properties);
        }
        let identifier = Some(sub.asked.identifier).filter(|identifier| *identifier != 0);
        let waiting = Waiting {
            topic: topic.into(),
            qos: sub.qos.min(qos_of(&message.headers)),
            // MQTT-3.3.1-8: it is sent because of a new subscription.
            retain: true,
            dup: false,
            properties: properties.into(),
            identifiers: identifier.into_iter().collect(),
            payload: message.payload.clone(),
            token: UNKEPT | message.sequence,
            packet_id: None,
            ack: Box::default(),
            ends_at: life.ends_at(unix_nanos),
            is_owned: false,
        };
        mqtt.waiting.push_back(waiting);
    }
}
