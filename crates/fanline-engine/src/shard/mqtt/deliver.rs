//! What MQTT clients are given.

use super::super::Shard;
use super::super::deliver::{FanOut, Message};
use super::super::run::Waiting as RunMessage;
use super::super::session::SessionId;
use super::kept::{Answers, UNKEPT};
use super::names;
use super::note::{Recalled, Retained};
use super::session::{DELIVER_SID, Mqtt, REPLY_SID, Waiting, place_in};
use crate::access::AccountId;
use crate::jetstream::consumer::AckTopic;
use crate::mqtt::{
    Delivery, Properties, Qos, Refused, Version, client_of, kept_id, qos_of, ttl_of, was_retained,
    write_properties,
};
use crate::outbox::{Chunk, Outbox};
use crate::router::{Route, SubId};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Messages of groups that wait for room at one member. One with more is passed over.
const SHARED_WAITING_MAX: usize = 1024;

/// A message apart.
struct Parts<'a> {
    headers: &'a [u8],
    payload: &'a [u8],
    reply: &'a [u8],
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
        let Some(mqtt) = &mut session.mqtt else {
            return false;
        };
        let answers = &mut self.pending.mqtt;
        let before = session.out.pending_bytes();
        let payload_bytes = match sub.sid() {
            REPLY_SID => {
                let parts = Parts::of(message);
                answers.note(sub.session(), subject, parts.payload);
                return true;
            }
            DELIVER_SID => {
                let parts = Parts::of(message);
                let now = self.pending.now.as_nanos();
                let now = i64::try_from(now).unwrap_or(i64::MAX);
                let unix_nanos = mqtt.started_unix_nanos.saturating_add(now);
                let account = session.account;
                mqtt.take_kept(
                    subject,
                    &parts,
                    account,
                    unix_nanos,
                    answers,
                    &mut session.out,
                );
                parts.payload.len()
            }
            sid => {
                let is_own = self.origin.session == Some(sub.session());
                let Some(bytes) =
                    mqtt.give(sid, subject, message, is_own, answers, &mut session.out)
                else {
                    return false;
                };
                bytes
            }
        };
        if session.out.pending_bytes() > before {
            self.pending.mark_dirty(sub.session(), session);
            session.out_msgs += 1;
            session.out_bytes += payload_bytes as u64;
            self.pending.count_produced(sub.session(), session, before);
        }
        self.subs.get_mut(id).count();
        true
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
            let (args, body) = tail.split_at(body_at);
            let message = Message {
                head: &[],
                reply_bytes: 0,
                header_bytes: 0,
                args,
                body,
                tail,
                shared: None,
            };
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
        subject: &[u8],
        message: &Message<'_>,
        is_own: bool,
        answers: &mut Answers,
        out: &mut Outbox,
    ) -> Option<usize> {
        let at = usize::try_from(place_in(sid)?).ok()?;
        let sub = self.subs.get(at)?.as_ref()?;
        if !self.link.is_open() || sub.is_open && subject.first() == Some(&b'$') {
            return None;
        }
        if is_own && sub.asked.options.no_local {
            return None;
        }
        let parts = Parts::of(message);
        let mut retain = false;
        let version = self.link.version();
        self.properties.clear();
        if parts.has_more() {
            let qos = sub.qos.min(qos_of(parts.headers));
            if qos != Qos::AtMostOnce && sub.is_shared {
                return self.give_shared(at, subject, &parts, qos, answers, out);
            }
            // The session's consumer delivers what is kept for it.
            if qos != Qos::AtMostOnce {
                return None;
            }
            retain = sub.asked.options.as_published && was_retained(parts.headers);
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

    /// Gives a message above QoS 0 to a member of a group. Nobody keeps it for the group, so that a member that
    /// goes away takes it along.
    fn give_shared(
        &mut self,
        at: usize,
        subject: &[u8],
        parts: &Parts<'_>,
        qos: Qos,
        answers: &mut Answers,
        out: &mut Outbox,
    ) -> Option<usize> {
        if self.waiting.len() >= SHARED_WAITING_MAX {
            return None;
        }
        let asked = self.subs.get(at)?.as_ref()?.asked;
        self.properties.clear();
        if self.link.version() == Version::V5 {
            let ttl = ttl_of(parts.headers);
            write_properties(parts.headers, parts.reply, ttl, &mut self.properties);
        }
        let identifier = Some(asked.identifier).filter(|identifier| *identifier != 0);
        self.shared_token = self.shared_token.wrapping_add(1);
        let message = Waiting {
            topic: answers.topic(subject)?.into(),
            qos,
            retain: asked.options.as_published && was_retained(parts.headers),
            dup: false,
            properties: self.properties.as_slice().into(),
            identifiers: identifier.into_iter().collect(),
            payload: parts.payload.into(),
            token: UNKEPT | self.shared_token,
            packet_id: None,
            ack: Box::default(),
        };
        let refused = match self.waiting.is_empty() {
            true => self.send(&message, out).err(),
            false => Some(Refused::NoRoom),
        };
        match refused {
            None => {}
            Some(Refused::NoRoom) => self.waiting.push_back(message),
            Some(_) => return None,
        }
        Some(parts.payload.len())
    }

    /// Takes a message that its consumer delivers.
    fn take_kept(
        &mut self,
        subject: &[u8],
        parts: &Parts<'_>,
        account: AccountId,
        unix_nanos: i64,
        answers: &mut Answers,
        out: &mut Outbox,
    ) {
        let Some(ack) = AckTopic::parse(parts.reply) else {
            return;
        };
        let prefix = names::MESSAGES_PREFIX.as_bytes();
        let stored_at = parts.reply.rsplit(|b| *b == b'.').nth(1);
        let stored_at = stored_at.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let life = life_left(parts.headers, stored_at.unwrap_or(unix_nanos), unix_nanos);
        let subject = subject.strip_prefix(prefix).unwrap_or_default();
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
            packet_id: Some(kept_id(sequence)),
            ack: parts.reply.into(),
        };
        let is_there = |other: &Waiting| other.token == sequence;
        if self.waiting.iter().any(is_there) {
            return;
        }
        if !self.waiting.is_empty() {
            return self.waiting.push_back(waiting);
        }
        match self.send(&waiting, out) {
            Ok(()) => {}
            Err(Refused::NoRoom) => self.waiting.push_back(waiting),
            Err(Refused::UnderWay) => {
                // It has arrived, as its PUBREL is kept: only that was forgotten.
                if self.releases.contains_key(&kept_id(sequence)) {
                    answers.acknowledge(account, parts.reply);
                }
            }
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
        let delivery = Delivery {
            topic: &message.topic,
            qos: message.qos,
            retain: message.retain,
            properties: Properties::written(&message.properties),
            identifiers: &message.identifiers,
            payload_bytes: message.payload.len(),
            token: message.token,
            packet_id: message.packet_id,
            dup: message.dup,
        };
        self.link.deliver(&delivery, out)?;
        out.append(&message.payload);
        if !message.ack.is_empty() {
            self.acks.insert(message.token, message.ack.clone());
        }
        Ok(())
    }
}

/// How long a message lives on.
enum Life {
    Endless,
    Seconds(u32),
}

impl Life {
    fn seconds(&self) -> Option<u32> {
        match self {
            Life::Endless => None,
            Life::Seconds(seconds) => Some(*seconds),
        }
    }
}

/// What is left of the life of a message (MQTT-3.3.2-6); `None` when it is over (MQTT-3.3.2-5).
fn life_left(headers: &[u8], stored_at: i64, now: i64) -> Option<Life> {
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
        let session = &mut self.sessions[id.index()];
        let account = session.account;
        let before = session.out.pending_bytes();
        let Some(mqtt) = &mut session.mqtt else {
            return;
        };
        while let Some(message) = mqtt.waiting.pop_front() {
            match mqtt.send(&message, &mut session.out) {
                Ok(()) => {
                    session.out_msgs += 1;
                    session.out_bytes += message.payload.len() as u64;
                }
                Err(Refused::NoRoom) => {
                    mqtt.waiting.push_front(message);
                    break;
                }
                Err(Refused::UnderWay) => {}
                Err(Refused::TooLarge) if message.ack.is_empty() => {}
                Err(Refused::TooLarge) => {
                    self.pending.mqtt.acknowledge(account, &message.ack);
                }
            }
        }
        self.note_written(id, before);
    }

    /// Delivers retained messages that were asked for.
    pub(super) fn deliver_recalled(&mut self, id: SessionId, recalled: &Recalled) {
        let now = i64::try_from(self.pending.now.as_nanos()).unwrap_or(i64::MAX);
        for message in &recalled.messages {
            self.deliver_retained(id, recalled.recall.at, message, now);
        }
        self.deliver_waiting(id);
        if let Some(mqtt) = &mut self.sessions[id.index()].mqtt {
            mqtt.is_recalling = false;
            if recalled.has_more {
                mqtt.recalls.push_front(recalled.recall.clone());
            }
        }
        self.recall_next(id);
    }

    fn deliver_retained(&mut self, id: SessionId, at: u32, message: &Retained, now: i64) {
        let session = &mut self.sessions[id.index()];
        let restriction = session.restriction.as_ref();
        if restriction.is_some_and(|restriction| !restriction.may_receive(&message.subject, b"")) {
            return;
        }
        let Some(mqtt) = &mut session.mqtt else {
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
        let Some(topic) = self.pending.mqtt.topic(&message.subject) else {
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
        };
        mqtt.waiting.push_back(waiting);
    }
}
