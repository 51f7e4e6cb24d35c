//! What MQTT clients publish. Messages of QoS 0 that follow each other are put together as the lines of a
//! NATS client and published as such, so that all that holds for those holds for them.

use std::ops::Range;

use super::super::SessionId;
use super::super::Shard;
use super::super::permit::Permit;
use super::super::service::write_args;
use super::groups::Groups;
use super::kept::{HOLD, PUBLISH, RELEASE};
use super::names;
use super::session::Held;
use crate::accounts::Mapped;
use crate::auth::AccountId;
use crate::codec::mqtt::{
    Names, Property, Publish, Qos, Reason, Version, response_topic_of, topic_to_subject, with_ttl,
    write_headers, write_headers_of,
};
use crate::codec::nats::parse::Publish as NatsPublish;
use crate::exchange::message::{Context, Dispatch, Message as Framed};
use crate::exchange::router::RouteMemo;
use crate::jetstream::Message;
use crate::outbox::{Chunk, SHARED_BYTES_MIN};

/// Messages are gathered in a block of this size, or one of their own.
const GATHERED_BYTES: usize = 64 * 1024;
/// Headers that a stream takes, but for the line by which a message of QoS 2 is known again.
const KEPT_HEADER_BYTES_MAX: usize = 64 * 1024 - 1 - 128;

/// What is about to be published.
#[derive(Default)]
pub(in crate::shard) struct Outbound {
    names: Names,
    /// Where messages are gathered; empty until the first comes.
    chunk: Chunk,
    filled: usize,
    frames: Vec<Frame>,
    /// What is gathered has the names by which it is known.
    is_mapped: bool,
    /// Which groups have messages above QoS 0 from the log.
    pub(super) groups: Groups,
    /// Subject, reply and headers of the message at hand.
    subject: Vec<u8>,
    reply: Vec<u8>,
    headers: Vec<u8>,
}

/// Where a message lies in the chunk.
struct Frame {
    topic: Range<usize>,
    reply: Range<usize>,
    header_bytes: usize,
    args: Range<usize>,
    body: Range<usize>,
}

impl Outbound {
    /// Puts a message behind those that are there; false when it has to wait until they are gone.
    fn push(&mut self, payload: &[u8]) -> bool {
        /// More than the lengths in a line take.
        const SIZES_BYTES: usize = 64;
        let bytes = self.subject.len()
            + self.reply.len()
            + self.headers.len()
            + payload.len()
            + SIZES_BYTES;
        if self.filled + bytes > self.chunk.len() || Chunk::get_mut(&mut self.chunk).is_none() {
            if !self.frames.is_empty() {
                return false;
            }
            self.filled = 0;
            self.chunk = Chunk::new(vec![0; bytes.max(GATHERED_BYTES)].into_boxed_slice());
        }
        let Outbound {
            chunk,
            filled,
            subject,
            reply,
            headers,
            ..
        } = self;
        let Some(room) = Chunk::get_mut(chunk) else {
            return false;
        };
        let mut at = *filled;
        let mut put = |part: &[u8]| {
            room[at..at + part.len()].copy_from_slice(part);
            at += part.len();
            at - part.len()..at
        };
        let topic = put(subject);
        put(b" ");
        let reply_range = put(reply);
        if !reply.is_empty() {
            put(b" ");
        }
        let mut digits = itoa::Buffer::new();
        if !headers.is_empty() {
            put(digits.format(headers.len()).as_bytes());
            put(b" ");
        }
        put(digits.format(headers.len() + payload.len()).as_bytes());
        let end = put(b"\r\n").end;
        let headers_at = put(headers);
        put(payload);
        let body_end = put(b"\r\n").end;
        self.frames.push(Frame {
            topic: topic.clone(),
            reply: reply_range.clone(),
            header_bytes: headers.len(),
            args: reply_range.start..end,
            body: headers_at.start..body_end,
        });
        *filled = body_end;
        true
    }

    /// Forgets what was gathered. A block that somebody still refers to is left to him.
    fn clear(&mut self) {
        self.frames.clear();
        self.filled = 0;
        if self.chunk.len() > GATHERED_BYTES || Chunk::get_mut(&mut self.chunk).is_none() {
            self.chunk = Chunk::default();
        }
    }

    /// Translates the topic of a message, its response topic and its properties.
    fn translate(&mut self, topic: &str, publish: &Publish<'_>, client: Option<&str>) -> bool {
        self.subject.clear();
        self.reply.clear();
        self.headers.clear();
        match self.names.subject(topic) {
            Ok(subject) => self.subject.extend_from_slice(subject),
            Err(_) => return false,
        }
        let is_plain = publish.properties.is_empty() && publish.packet_id == 0 && !publish.retain;
        if is_plain && client.is_none() {
            return true;
        }
        match client {
            Some(client) => write_headers_of(publish, client, &mut self.headers),
            None => write_headers(publish, &mut self.headers),
        }
        for property in publish.properties.iter() {
            if let Property::ResponseTopic(topic) = property
                && topic_to_subject(topic, &mut self.reply).is_err()
            {
                self.reply.clear();
            }
        }
        true
    }
}

impl Shard {
    /// Takes a message of QoS 0, to be published with those that follow.
    pub(super) fn gather(&mut self, id: SessionId, publish: &Publish<'_>) {
        if self.translate_for(id, publish) {
            self.push_translated(id, publish.payload);
        }
    }

    fn push_translated(&mut self, id: SessionId, payload: &[u8]) {
        if self.mqtt.push(payload) {
            return;
        }
        // What it says itself stays while the others go.
        let own = [
            &mut self.mqtt.subject,
            &mut self.mqtt.reply,
            &mut self.mqtt.headers,
        ];
        let own = own.map(std::mem::take);
        self.publish_gathered(id);
        [self.mqtt.subject, self.mqtt.reply, self.mqtt.headers] = own;
        self.mqtt.push(payload);
    }

    /// Translates what a client publishes; ends its connection when that cannot be.
    fn translate_for(&mut self, id: SessionId, publish: &Publish<'_>) -> bool {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let bytes_max = session.parse_limits.payload_bytes_max;
        let Some(mqtt) = &session.kind.mqtt else {
            return false;
        };
        let topic = mqtt.link.topic_of(publish);
        let client = mqtt.has_no_local().then_some(&*mqtt.hash);
        let client = client.filter(|_| publish.packet_id != 0);
        if !self.mqtt.translate(topic, publish, client) {
            let why = "a topic has a character that subjects cannot have";
            self.end_because(id, Reason::TOPIC_NAME_INVALID, why);
            return false;
        }
        if self.mqtt.headers.len() + publish.payload.len() > bytes_max {
            self.end_because(id, Reason::PACKET_TOO_LARGE, "a message is too large");
            return false;
        }
        if self.mqtt.subject.starts_with(names::OWN_PREFIX) {
            self.end_because(id, Reason::NOT_AUTHORIZED, "a topic is the server's own");
            return false;
        }
        true
    }

    /// Publishes what was gathered.
    pub(super) fn publish_gathered(&mut self, id: SessionId) {
        self.publish_frames(id, false, Vec::new());
    }

    fn publish_frames(&mut self, id: SessionId, is_from_device: bool, mut served: Vec<Vec<u8>>) {
        if self.mqtt.frames.is_empty() {
            return;
        }
        let mut frames = std::mem::take(&mut self.mqtt.frames);
        let chunk = Chunk::clone(&self.mqtt.chunk);
        let mut intake = self.begin_intake(id, &chunk);
        intake.is_mapped &= !self.mqtt.is_mapped;
        // What has its other name was permitted, perhaps this once as an answer: nothing else is by that.
        let memo = intake.memo;
        let was_permitted = self.mqtt.is_mapped && intake.is_restricted;
        if was_permitted {
            intake.is_restricted = false;
            intake.memo = RouteMemo::default();
        }
        for frame in &frames {
            let from = frame.topic.start;
            let publish = NatsPublish {
                topic: &chunk[frame.topic.clone()],
                reply: &chunk[frame.reply.clone()],
                header_bytes: frame.header_bytes,
                args: frame.args.start - from..frame.args.end - from,
                body: frame.body.start - from..frame.body.end - from,
            };
            let context = Context {
                is_from_device,
                served: (!served.is_empty()).then_some(&mut served),
                ..Context::default()
            };
            self.publish(&mut intake, &publish, from, context);
        }
        self.broker.exchange.end_run(&intake);
        if was_permitted {
            intake.memo = memo;
        }
        self.end_intake(&intake);
        drop(chunk);
        frames.clear();
        self.mqtt.frames = frames;
        self.mqtt.clear();
    }

    /// The same for one message whose headers say with which QoS, and which passes by whom it is kept for.
    fn publish_as_device(&mut self, id: SessionId, subject: &[u8], qos: Qos) {
        let account = self.broker.exchange.sessions[id.index()].account;
        let served = self.groups_served(account, subject, qos);
        self.mqtt.is_mapped = true;
        self.publish_frames(id, true, served);
        self.mqtt.is_mapped = false;
    }

    /// Gives what was translated its other name, if it has one: the same for those who get it now and for what is
    /// kept of it. False when it goes nowhere.
    fn map_translated(&mut self, account: AccountId) -> bool {
        if !self.broker.accounts.is_mapped(account) {
            return true;
        }
        let subject = std::mem::take(&mut self.mqtt.subject);
        let mut renamed = Vec::new();
        let mapped = self.broker.rename(account, &subject, &mut renamed);
        self.mqtt.subject = match mapped {
            Mapped::Renamed => renamed,
            Mapped::Unchanged | Mapped::Lost => subject,
        };
        !matches!(mapped, Mapped::Lost)
    }

    /// Takes a message above QoS 0 or one that is retained: it goes to whoever wants it now, and is kept for those
    /// who are to get it surely.
    pub(super) fn publish_kept(&mut self, id: SessionId, publish: &Publish<'_>) {
        if !self.translate_for(id, publish) {
            return;
        }
        let account = self.broker.exchange.sessions[id.index()].account;
        if !self.map_translated(account) {
            if publish.packet_id != 0 {
                self.stored(id, PUBLISH, publish.packet_id, Reason::SUCCESS);
            }
            return;
        }
        if !self.permit_translated(id, publish, PUBLISH) {
            return;
        }
        if let Some(reason) = self.unkeepable().filter(|_| publish.packet_id != 0) {
            return self.stored(id, PUBLISH, publish.packet_id, reason);
        }
        let subject = std::mem::take(&mut self.mqtt.subject);
        let headers = std::mem::take(&mut self.mqtt.headers);
        self.mqtt.subject.extend_from_slice(&subject);
        self.mqtt.headers.extend_from_slice(&headers);
        self.push_translated(id, publish.payload);
        self.publish_as_device(id, &subject, publish.qos);
        if publish.packet_id == 0 {
            self.retain(account, &subject, b"", &headers, publish.payload);
            return;
        }
        self.listen_to_replies(id);
        let packet_id = publish.packet_id;
        self.await_storing(id, PUBLISH, packet_id, 1 + u8::from(publish.retain));
        self.store(id, PUBLISH, packet_id, &subject, &headers, publish.payload);
        if publish.retain {
            let reply = self.reply_topic(id, PUBLISH, packet_id);
            if !self.retain(
                account,
                &subject,
                reply.as_bytes(),
                &headers,
                publish.payload,
            ) {
                self.stored(
                    id,
                    PUBLISH,
                    packet_id,
                    Reason::IMPLEMENTATION_SPECIFIC_ERROR,
                );
            }
        }
    }

    /// Why the log could not keep what was translated. What is held of QoS 2 is looked at before it is held: when it is
    /// released there is no word for a failure.
    fn unkeepable(&self) -> Option<Reason> {
        if self.mqtt.subject.len() > names::KEPT_SUBJECT_BYTES_MAX {
            return Some(Reason::TOPIC_NAME_INVALID);
        }
        (self.mqtt.headers.len() > KEPT_HEADER_BYTES_MAX).then_some(Reason::QUOTA_EXCEEDED)
    }

    /// Whether a client may publish what was translated, by its other name if it has one; answers when not. 3.1.1 has
    /// no word for it, so that there the message is acknowledged and lost (its 3.3.5).
    fn permit_translated(&mut self, id: SessionId, publish: &Publish<'_>, kind: u8) -> bool {
        if self.broker.exchange.sessions[id.index()]
            .restriction
            .is_none()
        {
            return true;
        }
        let subject = std::mem::take(&mut self.mqtt.subject);
        let permit = self.permit_publish(id, &subject);
        self.mqtt.subject = subject;
        if permit != Permit::Denied {
            return true;
        }
        let denial = self.denial();
        let session = &mut self.broker.exchange.sessions[id.index()];
        let before = session.out.pending_bytes();
        if let Some(mqtt) = &mut session.kind.mqtt {
            let reason = match mqtt.link.version() {
                Version::V4 => Reason::SUCCESS,
                Version::V5 => denial,
            };
            let packet_id = publish.packet_id;
            match kind {
                _ if packet_id == 0 => {}
                HOLD => {
                    mqtt.link.held(packet_id, reason, &mut session.out);
                }
                _ => {
                    mqtt.link.acknowledge(packet_id, reason, &mut session.out);
                }
            }
        }
        self.note_written(id, before);
        false
    }

    /// Takes a message of QoS 2, which is held until it is released.
    pub(super) fn hold_message(&mut self, id: SessionId, publish: &Publish<'_>) {
        if !self.translate_for(id, publish) {
            return;
        }
        let account = self.broker.exchange.sessions[id.index()].account;
        if !self.map_translated(account) {
            return self.stored(id, HOLD, publish.packet_id, Reason::SUCCESS);
        }
        if !self.permit_translated(id, publish, HOLD) {
            return;
        }
        if let Some(reason) = self.unkeepable() {
            return self.stored(id, HOLD, publish.packet_id, reason);
        }
        let held = Held {
            sequence: 0,
            retain: publish.retain,
            subject: self.mqtt.subject.as_slice().into(),
            headers: self.mqtt.headers.as_slice().into(),
            payload: publish.payload.into(),
        };
        let packet_id = publish.packet_id;
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let kept = mqtt.is_persistent().then(|| held.encode());
        mqtt.held.insert(packet_id, held);
        let topic = names::held(&mqtt.hash, packet_id);
        let Some(kept) = kept else {
            return self.stored(id, HOLD, packet_id, Reason::SUCCESS);
        };
        mqtt.is_kept = true;
        self.listen_to_replies(id);
        self.await_storing(id, HOLD, packet_id, 1);
        let reply = self.reply_topic(id, HOLD, packet_id);
        if !self.publish_own(account, topic.as_bytes(), reply.as_bytes(), b"", &kept) {
            self.stored(id, HOLD, packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// Publishes a message of QoS 2 that is held.
    pub(super) fn release_message(&mut self, id: SessionId, packet_id: u16) {
        let Some(mqtt) = &self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        // A client may not publish it any more than it could: it went then.
        let Some(held) = mqtt.held.get(&packet_id).cloned() else {
            return self.stored(id, RELEASE, packet_id, Reason::SUCCESS);
        };
        let hash = mqtt.hash.clone();
        self.mqtt.subject.clear();
        self.mqtt.reply.clear();
        self.mqtt.headers.clear();
        self.mqtt.subject.extend_from_slice(&held.subject);
        self.mqtt.headers.extend_from_slice(&held.headers);
        if let Some(topic) = response_topic_of(&held.headers)
            && topic_to_subject(topic, &mut self.mqtt.reply).is_err()
        {
            self.mqtt.reply.clear();
        }
        self.push_translated(id, &held.payload);
        self.publish_as_device(id, &held.subject, Qos::ExactlyOnce);
        self.listen_to_replies(id);
        self.await_storing(id, RELEASE, packet_id, 1 + u8::from(held.retain));
        let mut headers = held.headers.to_vec();
        if held.sequence > 0 {
            // A crash between this and the removal of what is held does not send it twice.
            headers.truncate(headers.len().saturating_sub(2));
            let sequence = held.sequence;
            let line = format!("Nats-Msg-Id: mqtt.{hash}.{packet_id}.{sequence}\r\n\r\n");
            headers.extend_from_slice(line.as_bytes());
        }
        self.store(
            id,
            RELEASE,
            packet_id,
            &held.subject,
            &headers,
            &held.payload,
        );
        if held.retain {
            let account = self.broker.exchange.sessions[id.index()].account;
            let reply = self.reply_topic(id, RELEASE, packet_id);
            let (subject, payload) = (&held.subject, &held.payload);
            if !self.retain(account, subject, reply.as_bytes(), &held.headers, payload) {
                self.stored(
                    id,
                    RELEASE,
                    packet_id,
                    Reason::IMPLEMENTATION_SPECIFIC_ERROR,
                );
            }
        }
    }

    /// Keeps a message for all sessions that want it surely.
    fn store(
        &mut self,
        id: SessionId,
        kind: u8,
        packet_id: u16,
        subject: &[u8],
        headers: &[u8],
        payload: &[u8],
    ) {
        let account = self.broker.exchange.sessions[id.index()].account;
        let reply = self.reply_topic(id, kind, packet_id);
        let topic = [names::MESSAGES_PREFIX.as_bytes(), subject].concat();
        let headers = with_ttl(headers);
        if !self.publish_own(account, &topic, reply.as_bytes(), &headers, payload) {
            self.stored(id, kind, packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// Keeps a retained message, or with an empty payload the one before no longer (3.3.1.3).
    fn retain(
        &mut self,
        account: AccountId,
        subject: &[u8],
        reply: &[u8],
        headers: &[u8],
        payload: &[u8],
    ) -> bool {
        let topic = [names::RETAINED_PREFIX.as_bytes(), subject].concat();
        if !payload.is_empty() {
            return self.publish_own(account, &topic, reply, &with_ttl(headers), payload);
        }
        let (topic, body) = names::purge(names::RETAINED, &String::from_utf8_lossy(&topic));
        self.publish_own(account, topic.as_bytes(), reply, b"", body.as_bytes())
    }

    /// Publishes for one who is gone, whose id hash is told if it has a subscription with No Local.
    pub(super) fn publish_for(
        &mut self,
        account: AccountId,
        publish: &Publish<'_>,
        client: Option<&str>,
    ) {
        // With which QoS, is said by the headers; nobody waits for an acknowledgement.
        if !self.mqtt.translate(publish.topic, publish, None) || !self.map_translated(account) {
            return;
        }
        let mut headers = Vec::new();
        match client.filter(|_| publish.qos != Qos::AtMostOnce) {
            Some(client) => write_headers_of(publish, client, &mut headers),
            None => write_headers(publish, &mut headers),
        }
        let subject = self.mqtt.subject.clone();
        let reply = self.mqtt.reply.clone();
        let mut served = self.groups_served(account, &subject, publish.qos);
        let context = Context {
            is_from_device: true,
            served: Some(&mut served),
            ..Context::default()
        };
        let message = Message {
            topic: &subject,
            reply: &reply,
            headers: &headers,
            payload: publish.payload,
            ..Message::default()
        };
        self.publish_message(account, &message, context);
        if publish.qos != Qos::AtMostOnce {
            let topic = [names::MESSAGES_PREFIX.as_bytes(), &subject].concat();
            self.publish_own(account, &topic, b"", &with_ttl(&headers), publish.payload);
        }
        if publish.retain {
            self.retain(account, &subject, b"", &headers, publish.payload);
        }
    }

    /// Publishes something of the server's own. Whether anybody wants it.
    pub(super) fn publish_own(
        &mut self,
        account: AccountId,
        topic: &[u8],
        reply: &[u8],
        headers: &[u8],
        payload: &[u8],
    ) -> bool {
        let message = Message {
            topic,
            reply,
            headers,
            payload,
            ..Message::default()
        };
        self.publish_message(account, &message, Context::default())
    }

    fn publish_message(
        &mut self,
        account: AccountId,
        message: &Message<'_>,
        context: Context<'_>,
    ) -> bool {
        let mut tail = std::mem::take(&mut self.broker.exchange.scratch);
        tail.clear();
        write_args(&mut tail, message);
        let args_bytes = tail.len();
        for part in [message.headers, message.payload, b"\r\n"] {
            tail.extend_from_slice(part);
        }
        let (reply_bytes, header_bytes) = (message.reply.len(), message.headers.len());
        let mut framed = Framed::framed(&tail, args_bytes, reply_bytes, header_bytes);
        let body = framed.body;
        let chunk;
        if body.len() >= SHARED_BYTES_MIN {
            chunk = Chunk::new(body.into());
            framed.shared = Some((&chunk, 0..body.len()));
        }
        let mut dispatch = Dispatch {
            context,
            ..Dispatch::own(account, message.topic, &framed)
        };
        let is_wanted = (self.broker).dispatch(&mut dispatch, &mut RouteMemo::default());
        self.broker.exchange.scratch = tail;
        is_wanted
    }

    /// Where the keeper answers.
    pub(super) fn reply_topic(&self, id: SessionId, kind: u8, number: u16) -> String {
        let cid = self.broker.exchange.sessions[id.index()].cid;
        format!("{}{cid}.{}{number}", names::REPLY_PREFIX, char::from(kind))
    }
}
