//! Shared subscriptions above QoS 0 (4.8.2). A consumer of `$MQTT_msgs` keeps for each of them what none of its
//! members has, and gives each message to one: what is not acknowledged of QoS 1 goes to another member when that
//! one leaves; what is of QoS 2 is the member's own from before it is sent.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use serde_json::json;

use super::super::SessionId;
use super::super::Shard;
use super::deliver::{Parts, life_left};
use super::kept::{Answers, OWN};
use super::names;
use super::note::Note;
use super::session::{Mqtt, Owned, Sub, Waiting};
use crate::auth::AccountId;
use crate::codec::mqtt::{
    Qos, Reason, SessionKey, Version, filter_to_subject, id_hash, parent_subject, qos_of,
    shared_id, split_shared, was_retained, write_properties,
};
use crate::jetstream::consumer::AckTopic;
use crate::subject::Filter;

/// Messages of groups that wait for room at one member. One more is passed on.
const WAITING_MAX: usize = 64;
/// Tokens of messages that came to a member of a group.
pub(super) const SHARED: u64 = 1 << 62;
/// The queue group in which members wait for what their consumer delivers.
const MEMBERS: &[u8] = b"members";
/// What the sid of a member's subscription to that ends with.
pub(super) const SHARE: &str = "s";
/// To a consumer: another member is to have it at once.
pub(super) const PASS_ON: &[u8] = b"-NAK";
/// The same in a second, so that a group whose members are all busy does not spin.
const PASS_ON_LATER: &[u8] = br#"-NAK {"delay":1000000000}"#;
/// A consumer of a group hands nothing out again by time, as no member goes without a word: a year.
const ACK_WAIT_NANOS: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// The groups that have members above QoS 0, as a shard knows them.
#[derive(Default)]
pub(in crate::shard) struct Groups {
    all: HashMap<AccountId, Vec<Group>>,
}

struct Group {
    /// `$share/<group>/<filter>`, by which it is known.
    filter: Box<str>,
    name: Vec<u8>,
    subject: Vec<u8>,
}

impl Group {
    fn of(filter: &str) -> Option<Self> {
        let shared = split_shared(filter, Version::V5).ok()?;
        let mut subject = Vec::new();
        filter_to_subject(shared.filter, &mut subject).ok()?;
        Some(Group {
            filter: filter.into(),
            name: shared.group.as_bytes().into(),
            subject,
        })
    }

    fn matches(&self, subject: &[u8]) -> bool {
        let matches = Filter::parse(&self.subject).is_ok_and(|filter| filter.matches(subject));
        matches || parent_subject(&self.subject) == Some(subject)
    }
}

impl Groups {
    /// The names of those that have a message by their consumer.
    fn of_subject(&self, account: AccountId, subject: &[u8]) -> Vec<Vec<u8>> {
        let all = self.all.get(&account).into_iter().flatten();
        all.filter(|group| group.matches(subject))
            .map(|group| group.name.clone())
            .collect()
    }
}

/// What became of a message of a group that was given to a member.
enum Taken {
    /// It waits for its turn.
    Waits,
    /// Nobody gets it.
    Dropped,
    /// Another member is to have it.
    PassedOn,
}

/// Which subscription a sid stands for, if it is that of a member of its group.
pub(super) fn member_place(sid: &[u8]) -> Option<u32> {
    super::session::place_in(sid.strip_suffix(SHARE.as_bytes())?)
}

impl Mqtt {
    /// Takes what the consumer of a group delivers.
    pub(super) fn take_shared(
        &mut self,
        (session, account): (u32, AccountId),
        place: u32,
        subject: &[u8],
        parts: &Parts<'_>,
        unix_nanos: i64,
        answers: &mut Answers,
    ) {
        match self.take_as_member(place, subject, parts, unix_nanos, answers) {
            Taken::Waits => answers.wake(session),
            Taken::Dropped => answers.acknowledge(account, parts.reply),
            Taken::PassedOn => answers.refuse(account, parts.reply, PASS_ON_LATER),
        }
    }

    fn take_as_member(
        &mut self,
        place: u32,
        subject: &[u8],
        parts: &Parts<'_>,
        unix_nanos: i64,
        answers: &mut Answers,
    ) -> Taken {
        let Some(ack) = AckTopic::parse(parts.reply) else {
            return Taken::Dropped;
        };
        let is_busy = self.waiting.len() >= WAITING_MAX;
        let Some(sub) = self.sub(place).filter(|_| !is_busy) else {
            return Taken::PassedOn;
        };
        let is_hidden = sub.is_open && subject.first() == Some(&b'$');
        let life = life_left(parts.headers, ack.unix_nanos, unix_nanos);
        let (Some(life), Some(topic), false) = (life, answers.topic(subject), is_hidden) else {
            return Taken::Dropped;
        };
        let asked = sub.asked;
        let qos = sub.qos.min(qos_of(parts.headers));
        let mut properties = Vec::new();
        if self.link.version() == Version::V5 {
            write_properties(parts.headers, b"", life.seconds(), &mut properties);
        }
        self.shared_token = self.shared_token.wrapping_add(1);
        self.waiting.push_back(Waiting {
            topic: topic.into(),
            qos,
            retain: asked.options.as_published && was_retained(parts.headers),
            // It may have been this client's before, when it has come back.
            dup: self.is_resumed && ack.deliveries > 1,
            properties: properties.into(),
            identifiers: Some(asked.identifier)
                .filter(|i| *i != 0)
                .into_iter()
                .collect(),
            payload: parts.payload.into(),
            token: SHARED | self.shared_token,
            packet_id: (qos != Qos::AtMostOnce).then(|| shared_id(ack.stream_sequence)),
            ack: parts.reply.into(),
            ends_at: life.ends_at(unix_nanos),
            is_owned: false,
        });
        Taken::Waits
    }

    /// What a member had that goes to others when it leaves, as acknowledgements.
    fn take_shared_back(&mut self) -> Vec<Box<[u8]>> {
        let is_shared = |token: &u64| is_shared(*token);
        let under_way = self.acks.extract_if(|token, _| is_shared(token));
        let mut all: Vec<Box<[u8]>> = under_way.map(|(_, ack)| ack).collect();
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let owning = std::mem::take(&mut self.owning).into_values();
        let left = waiting.chain(owning);
        all.extend(left.filter_map(|w| (is_shared(&w.token) && !w.is_owned).then_some(w.ack)));
        all
    }
}

/// Whether a message came to a member of a group.
pub(super) fn is_shared(token: u64) -> bool {
    token & SHARED != 0 && token & super::kept::UNKEPT == 0
}

impl Shard {
    /// A group has its first member above QoS 0, or none any more.
    pub(super) fn know_group(&mut self, account: AccountId, filter: &str, is_there: bool) {
        let groups = self.mqtt.groups.all.entry(account).or_default();
        groups.retain(|group| *group.filter != *filter);
        if is_there {
            groups.extend(Group::of(filter));
        } else if groups.is_empty() {
            self.mqtt.groups.all.remove(&account);
        }
    }

    /// The groups for which a message is stored, so that it passes them by.
    pub(super) fn groups_served(
        &self,
        account: AccountId,
        subject: &[u8],
        qos: Qos,
    ) -> Vec<Vec<u8>> {
        if qos == Qos::AtMostOnce || self.mqtt.groups.all.is_empty() {
            return Vec::new();
        }
        self.mqtt.groups.of_subject(account, subject)
    }

    /// A member waits for what its group's consumer delivers.
    pub(super) fn listen_to_group(&mut self, id: SessionId, at: u32, filter: &str) {
        let subject = format!("{}{}", names::MEMBER_PREFIX, id_hash(filter));
        let sid = format!("{at}{SHARE}");
        self.enter_subscription(id, subject.as_bytes(), MEMBERS, sid.as_bytes());
    }

    /// Tells the keeper of which groups a session is a member above QoS 0 by now; gives those that are new, whose
    /// consumers are to be made.
    pub(super) fn change_groups(&mut self, id: SessionId) -> Vec<Box<str>> {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = &mut session.kind.mqtt else {
            return Vec::new();
        };
        let is_member = |sub: &&Sub| sub.is_shared && sub.qos != Qos::AtMostOnce;
        let members = mqtt.subs.iter().flatten().filter(is_member);
        let groups: BTreeSet<Box<str>> = members.map(|sub| sub.filter.clone()).collect();
        let before = std::mem::replace(&mut mqtt.groups, groups.clone());
        let key = SessionKey {
            account,
            client_id: mqtt.client_id.clone(),
        };
        let joined: Vec<Box<str>> = groups.difference(&before).cloned().collect();
        for (filter, is_member) in (joined.iter().map(|filter| (filter, true)))
            .chain(before.difference(&groups).map(|filter| (filter, false)))
        {
            self.tell_keeper(Note::Member {
                key: key.clone(),
                filter: filter.clone(),
                is_member,
            });
        }
        joined
    }

    /// Has a group's consumer made, if it is not there; `operation` goes on when it is.
    pub(super) fn make_group(&mut self, id: SessionId, filter: &str, operation: u32) {
        let Some(group) = Group::of(filter) else {
            return self.fail_operation(id, operation, Reason::TOPIC_FILTER_INVALID);
        };
        self.listen_to_replies(id);
        let settings = &self.broker.exchange.config.limits.mqtt;
        let hash = id_hash(filter);
        let name = names::group_consumer(&hash);
        let subject = String::from_utf8_lossy(&group.subject).into_owned();
        let parent =
            parent_subject(&group.subject).map(|p| String::from_utf8_lossy(p).into_owned());
        let filters = std::iter::once(subject).chain(parent);
        let filters: Vec<String> = filters
            .map(|filter| format!("{}{filter}", names::MESSAGES_PREFIX))
            .collect();
        let config = json!({
            "stream_name": names::MESSAGES,
            "config": {
                "durable_name": name,
                "name": name,
                "deliver_policy": "new",
                "ack_policy": "explicit",
                "ack_wait": ACK_WAIT_NANOS,
                "max_deliver": -1,
                "filter_subjects": filters,
                "replay_policy": "instant",
                "max_ack_pending": settings.in_flight_max,
                "deliver_subject": format!("{}{hash}", names::MEMBER_PREFIX),
                "deliver_group": String::from_utf8_lossy(MEMBERS),
                "num_replicas": 0,
                "mem_storage": settings.consumers_in_memory,
                // A message of QoS 2 that a power cut took back would come to another member as well.
                "metadata": { "fanline.durable_only": "true" },
            },
            "action": "",
        });
        let session = &self.broker.exchange.sessions[id.index()];
        let (account, cid) = (session.account, session.cid);
        let reply = format!("{}{cid}.k{operation}", names::REPLY_PREFIX);
        let topic = names::create_consumer(&name);
        let body = config.to_string();
        let (topic, body, reply) = (topic.as_bytes(), body.as_bytes(), reply.as_bytes());
        if !self.publish_own(account, topic, reply, b"", body) {
            self.fail_operation(id, operation, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// A message of QoS 2 is about to be sent to a member: that it is nobody else's is kept first (MQTT-4.8.2-4, -5).
    pub(super) fn own_message(&mut self, id: SessionId, packet_id: u16, message: Waiting) {
        self.listen_to_replies(id);
        let reply = self.reply_topic(id, OWN, packet_id);
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        mqtt.is_kept = true;
        let topic = names::owned(&mqtt.hash, packet_id);
        let record = message.encode();
        mqtt.owning.insert(packet_id, message);
        if !self.publish_own(account, topic.as_bytes(), reply.as_bytes(), b"", &record) {
            self.send_owned(id, packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// It is on the disk whose a message is, or will not be.
    pub(super) fn send_owned(&mut self, id: SessionId, packet_id: u16, reason: Reason) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let before = session.out.pending_bytes();
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        let Some(message) = mqtt.owning.remove(&packet_id) else {
            return;
        };
        if reason.is_failure() {
            mqtt.link.unreserve(packet_id);
            self.publish_own(account, &message.ack, b"", b"", PASS_ON_LATER);
            return;
        }
        let is_sent = mqtt.send_reserved(packet_id, &message, &mut session.out);
        if is_sent {
            session.out_msgs += 1;
            session.out_bytes += message.payload.len() as u64;
        }
        self.note_written(id, before);
        self.publish_own(account, &message.ack, b"", b"", b"");
        if !is_sent {
            self.disown(id, packet_id, b"");
        } else if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt {
            let ack = message.ack;
            mqtt.owned.insert(message.token, Owned { packet_id, ack });
        }
    }

    /// A message is done with, whose it was kept.
    pub(super) fn disown(&mut self, id: SessionId, packet_id: u16, reply: &[u8]) -> bool {
        let session = &self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = &session.kind.mqtt else {
            return false;
        };
        let (topic, body) = names::purge(names::SHARED, &names::owned(&mqtt.hash, packet_id));
        self.publish_own(account, topic.as_bytes(), reply, b"", body.as_bytes())
    }

    /// A connection is gone: what was begun and may be gone when its client is back is kept for it (MQTT-4.4.0-1).
    pub(super) fn keep_begun_messages(&mut self, id: SessionId) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = session
            .kind
            .mqtt
            .as_mut()
            .filter(|mqtt| mqtt.is_persistent())
        else {
            return;
        };
        let hash = mqtt.hash.clone();
        for message in std::mem::take(&mut mqtt.begun).into_values() {
            if let Some(packet_id) = message.packet_id {
                let topic = names::owned(&hash, packet_id);
                self.publish_own(account, topic.as_bytes(), b"", b"", &message.encode());
            }
        }
    }

    /// A connection is gone: what it had of groups and was not sent for good goes to other members.
    pub(super) fn leave_groups(&mut self, id: SessionId) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let account = session.account;
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        let owning: Vec<u16> = mqtt.owning.keys().copied().collect();
        for ack in mqtt.take_shared_back() {
            self.publish_own(account, &ack, b"", b"", PASS_ON);
        }
        for packet_id in owning {
            self.disown(id, packet_id, b"");
        }
    }
}

impl Waiting {
    /// As it is kept: version 1, RETAIN and whether it has QoS 1, the identifier of its subscription, the lengths of
    /// acknowledgement, topic and properties, and these with the payload.
    pub(super) fn encode(&self) -> Vec<u8> {
        let bytes = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes();
        let identifier = self.identifiers.first().copied().unwrap_or(0);
        let flags = u8::from(self.retain) | u8::from(self.qos == Qos::AtLeastOnce) << 1;
        let mut kept = vec![1, flags];
        kept.extend_from_slice(&identifier.to_le_bytes());
        let parts = [&self.ack, self.topic.as_bytes(), &self.properties];
        for part in parts {
            kept.extend_from_slice(&bytes(part));
        }
        for part in parts {
            kept.extend_from_slice(part);
        }
        kept.extend_from_slice(&self.payload);
        kept
    }

    /// Reads one back, to be sent again.
    pub(super) fn decode(kept: &[u8], token: u64, packet_id: u16) -> Option<Self> {
        let (head, rest) = kept.split_at_checked(18)?;
        let number = |at: usize| {
            let bytes = head.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let length = |at: usize| usize::try_from(number(at)?).ok();
        let (ack, rest) = rest.split_at_checked(length(6)?)?;
        let (topic, rest) = rest.split_at_checked(length(10)?)?;
        let (properties, payload) = rest.split_at_checked(length(14)?)?;
        let identifier = Some(number(2)?).filter(|identifier| *identifier != 0);
        (head[0] == 1).then_some(Waiting {
            topic: std::str::from_utf8(topic).ok()?.into(),
            qos: match head[1] & 2 != 0 {
                true => Qos::AtLeastOnce,
                false => Qos::ExactlyOnce,
            },
            retain: head[1] & 1 != 0,
            dup: true,
            properties: properties.into(),
            identifiers: identifier.into_iter().collect(),
            payload: payload.into(),
            token,
            packet_id: Some(packet_id),
            ack: ack.into(),
            // What was sent is sent again, whatever its age (MQTT-4.3.3-7).
            ends_at: None,
            is_owned: true,
        })
    }

    /// How the consumer that delivered it is told that it is a session's own.
    pub(super) fn ack_in(kept: &[u8]) -> Option<&[u8]> {
        let length = kept.get(6..10)?.try_into().ok().map(u32::from_le_bytes)?;
        let (_, rest) = kept.split_at_checked(18)?;
        let (ack, _) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        (kept[0] == 1 && AckTopic::parse(ack).is_some()).then_some(ack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: &[u8] = b"$JS.ACK.$MQTT_msgs.share_a.1.7.3.1700000000000000000.0";

    fn owned(dup: bool, ack: &[u8], is_owned: bool) -> Waiting {
        Waiting {
            topic: "a/b".into(),
            qos: Qos::ExactlyOnce,
            retain: true,
            dup,
            properties: (*b"\x01\x01").into(),
            identifiers: [300].into(),
            payload: (*b"hello").into(),
            token: SHARED | 1,
            packet_id: Some(60_000),
            ack: ack.into(),
            ends_at: None,
            is_owned,
        }
    }

    #[test]
    fn what_is_owned_comes_back() {
        let kept = owned(false, ACK, false).encode();
        let back = Waiting::decode(&kept, SHARED | 1, 60_000);
        assert_eq!(back, Some(owned(true, ACK, true)));
        assert_eq!(Waiting::ack_in(&kept), Some(ACK));
        let once = |dup: bool, ack: &'static [u8], is_owned: bool| Waiting {
            qos: Qos::AtLeastOnce,
            ..owned(dup, ack, is_owned)
        };
        let back = Waiting::decode(&once(false, ACK, false).encode(), SHARED | 1, 60_000);
        assert_eq!(back, Some(once(true, ACK, true)));
        let head_bytes = 18 + ACK.len() + 3 + 2;
        for end in 0..head_bytes {
            assert_eq!(Waiting::decode(&kept[..end], SHARED, 1), None, "{end}");
        }
        assert_eq!(
            Waiting::decode(&[&[2], &kept[1..]].concat(), SHARED, 1),
            None
        );
    }

    #[test]
    fn groups_are_found_by_what_is_published() {
        let mut groups = Groups::default();
        let all = ["$share/g/a/+", "$share/h/a/#", "$share/g/b"];
        let all = all.into_iter().filter_map(Group::of).collect();
        groups.all.insert(AccountId::GLOBAL, all);
        let names = |subject: &[u8]| groups.of_subject(AccountId::GLOBAL, subject);
        assert_eq!(names(b"a.b"), [b"g".to_vec(), b"h".to_vec()]);
        assert_eq!(names(b"a"), [b"h".to_vec()]);
        assert_eq!(names(b"b"), [b"g".to_vec()]);
        assert!(names(b"c").is_empty());
    }

    #[test]
    fn sids_of_members() {
        let sids = [&b"12s"[..], b"12", b"12p", b"i"].map(member_place);
        assert_eq!(sids, [Some(12), None, None, None]);
    }
}
