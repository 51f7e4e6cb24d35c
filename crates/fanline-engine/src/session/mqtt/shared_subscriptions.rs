//! Shared subscriptions above QoS 0 (4.8.2). Each has a consumer of `$MQTT_msgs` that delivers each message
//! to one member. When a member leaves, its unacknowledged QoS 1 messages go to another member. A member
//! claims a QoS 2 message before the message is sent, and the claim remains when the member leaves.

use std::collections::BTreeSet;
use std::time::Duration;

use hashbrown::HashMap;

use super::deliver::Stored;
use super::events::DeliveryEvents;
use super::expiry::Lifetime;
use super::messages::{ConsumerSettings, RegistryMessage, RequestAction, RequestId};
use super::queue::count_sent;
use super::records::ClaimedRecord;
use super::session_record::id_hash;
use super::state::{ClaimedMessage, Mqtt, QueuedMessage, RETAINED_TOKEN, Sub, sub_index};
use super::{MqttSession, names};
use crate::auth::AccountId;
use crate::codec::mqtt::{
    Qos, Reason, Version, filter_to_subject, parent_subject, qos_of, shared_id, split_shared,
    was_retained, write_properties,
};
use crate::jetstream::consumer::AckSubject;
use crate::subject::Filter;

/// Length of a member's queue beyond which messages are redelivered to another member.
const QUEUE_MAX: usize = 64;
/// Bit in the token of each message that arrived through a shared subscription.
pub(super) const SHARED_TOKEN: u64 = 1 << 62;
/// The queue group in which members subscribe to the deliver subject of their consumer.
const MEMBERS: &str = "members";
/// Suffix of the sid of a member's subscription to that deliver subject.
pub(super) const SHARE: &str = "s";
/// Makes a consumer redeliver a message to another member at once.
pub(super) const NAK: &[u8] = b"-NAK";
/// Makes a consumer redeliver a message after a second. The delay avoids a busy loop if all members are busy.
const NAK_LATER: &[u8] = br#"-NAK {"delay":1000000000}"#;
/// Acknowledgement timeout of a group's consumer: a year, so it never applies. A member that leaves always
/// sends an acknowledgement or a NAK.
const ACK_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The shared subscriptions with members above QoS 0, as one shard knows them.
#[derive(Default)]
pub(super) struct Groups {
    all: HashMap<AccountId, Vec<Group>>,
}

struct Group {
    /// `$share/<group>/<filter>`.
    filter: Box<str>,
    name: Vec<u8>,
    subject: Vec<u8>,
}

impl Group {
    fn parse(filter: &str) -> Option<Self> {
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
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the names of the groups whose consumers deliver a message.
    pub(super) fn of_subject(&self, account: AccountId, subject: &[u8]) -> Vec<Vec<u8>> {
        let all = self.all.get(&account).into_iter().flatten();
        all.filter(|group| group.matches(subject))
            .map(|group| group.name.clone())
            .collect()
    }

    /// Handles that a shared subscription has its first member above QoS 0, or has lost its last.
    pub(super) fn change(&mut self, account: AccountId, filter: &str, has_members: bool) {
        let groups = self.all.entry(account).or_default();
        groups.retain(|group| *group.filter != *filter);
        if has_members {
            groups.extend(Group::parse(filter));
        } else if groups.is_empty() {
            self.all.remove(&account);
        }
    }
}

/// What happens to a message that a group's consumer delivers to a member.
enum Fate {
    Queued,
    /// No client receives it.
    Dropped,
    /// Another member receives it.
    Refused,
}

/// Returns the index of the shared subscription whose deliver subject the session has subscribed to with this
/// sid.
pub(super) fn member_index(sid: &[u8]) -> Option<u32> {
    sub_index(sid.strip_suffix(SHARE.as_bytes())?)
}

/// Returns whether a message arrived through a shared subscription.
pub(super) fn is_shared(token: u64) -> bool {
    token & SHARED_TOKEN != 0 && token & RETAINED_TOKEN == 0
}

impl QueuedMessage {
    /// Returns whether the session has to claim the message before it is sent.
    pub(super) fn needs_claim(&self) -> bool {
        is_shared(self.token) && self.qos == Qos::ExactlyOnce && !self.is_claimed
    }
}

impl Mqtt {
    /// Queues a message that the consumer of a group delivers.
    pub(super) fn deliver_to_member(
        &mut self,
        index: u32,
        stored: &Stored<'_>,
        events: &mut DeliveryEvents,
    ) {
        let (account, ack_subject) = (stored.account, stored.parts.reply);
        match self.queue_as_member(index, stored, events) {
            Fate::Queued => events.wake(stored.session),
            Fate::Dropped => events.acknowledge(account, ack_subject),
            Fate::Refused => events.refuse(account, ack_subject, NAK_LATER),
        }
    }

    fn queue_as_member(
        &mut self,
        index: u32,
        stored: &Stored<'_>,
        events: &mut DeliveryEvents,
    ) -> Fate {
        let Stored {
            subject,
            parts,
            unix_nanos,
            ..
        } = *stored;
        let Some(ack) = AckSubject::parse(parts.reply) else {
            return Fate::Dropped;
        };
        let is_busy = self.queue.len() >= QUEUE_MAX;
        let Some(sub) = self.sub(index).filter(|_| !is_busy) else {
            return Fate::Refused;
        };
        let lifetime = Lifetime::left(parts.headers, ack.unix_nanos, unix_nanos);
        let is_hidden = sub.hides(subject);
        let (Some(lifetime), Some(topic), false) = (lifetime, events.topic(subject), is_hidden)
        else {
            return Fate::Dropped;
        };
        let subscription = sub.subscription;
        let qos = sub.qos.min(qos_of(parts.headers));
        let mut properties = Vec::new();
        if self.connection.version() == Version::V5 {
            write_properties(parts.headers, b"", lifetime.seconds(), &mut properties);
        }
        let token = self.next_shared_token();
        self.queue.push_back(QueuedMessage {
            topic: topic.into(),
            qos,
            retain: subscription.options.as_published && was_retained(parts.headers),
            // The client may have received the message before it resumed its session.
            dup: self.is_resumed && ack.deliveries > 1,
            properties: properties.into(),
            identifiers: Some(subscription.identifier)
                .filter(|i| *i != 0)
                .into_iter()
                .collect(),
            payload: parts.payload.into(),
            token,
            packet_id: (qos != Qos::AtMostOnce).then(|| shared_id(ack.stream_sequence)),
            ack_subject: parts.reply.into(),
            expires_at: lifetime.expires_at(unix_nanos),
            is_claimed: false,
        });
        Fate::Queued
    }

    /// Takes the messages that go to other members when this member leaves. Returns their acknowledgement
    /// subjects.
    fn take_unclaimed(&mut self) -> Vec<Box<[u8]>> {
        let is_shared = |token: &u64| is_shared(*token);
        let in_flight = self.ack_subjects.extract_if(|token, _| is_shared(token));
        let mut all: Vec<Box<[u8]>> = in_flight.map(|(_, subject)| subject).collect();
        let queued = std::mem::take(&mut self.queue).into_iter();
        let claiming = std::mem::take(&mut self.claiming).into_values();
        let left = queued.chain(claiming);
        all.extend(
            left.filter_map(|m| (is_shared(&m.token) && !m.is_claimed).then_some(m.ack_subject)),
        );
        all
    }

    /// Updates the set of shared subscriptions above QoS 0. Returns those that the session has joined, and
    /// those it has left.
    fn update_groups(&mut self) -> (Vec<Box<str>>, Vec<Box<str>>) {
        let is_member = |sub: &&Sub| sub.is_shared && sub.qos != Qos::AtMostOnce;
        let members = self.subs.iter().flatten().filter(is_member);
        let groups: BTreeSet<Box<str>> = members.map(|sub| sub.filter.clone()).collect();
        let joined = groups.difference(&self.groups).cloned().collect();
        let left = self.groups.difference(&groups).cloned().collect();
        self.groups = groups;
        (joined, left)
    }
}

impl MqttSession<'_> {
    /// Subscribes a member to the deliver subject of its group's consumer.
    pub(super) fn subscribe_to_group(&mut self, index: u32, filter: &str) {
        let subject = format!("{}{}", names::MEMBER_PREFIX, id_hash(filter));
        let sid = format!("{index}{SHARE}");
        let (subject, group) = (subject.as_bytes(), MEMBERS.as_bytes());
        (self.broker).enter_subscription(self.id, subject, group, sid.as_bytes());
    }

    /// Notifies the registry of the shared subscriptions above QoS 0 that the session has joined and left.
    /// Returns the joined ones, whose consumers the caller creates.
    pub(super) fn change_groups(&mut self) -> Vec<Box<str>> {
        let (joined, left) = self.state_mut().update_groups();
        for (filters, is_member) in [(&joined, true), (&left, false)] {
            for filter in filters {
                let member = RegistryMessage::Member {
                    key: self.key(),
                    filter: filter.clone(),
                    is_member,
                };
                self.send_to_registry(member);
            }
        }
        joined
    }

    /// Creates the consumer of a group, as a part of an operation. An existing consumer stays as it is.
    pub(super) fn create_group_consumer(&mut self, filter: &str, operation: u32) {
        let Some(group) = Group::parse(filter) else {
            return self.fail_operation(operation, Reason::TOPIC_FILTER_INVALID);
        };
        let settings = &self.broker.exchange.config.limits.mqtt;
        let hash = id_hash(filter);
        let subjects = std::iter::once(&*group.subject).chain(parent_subject(&group.subject));
        let filters = subjects.map(|subject| {
            let subject = String::from_utf8_lossy(subject);
            format!("{}{subject}", names::MESSAGES_PREFIX)
        });
        let consumer = ConsumerSettings {
            name: names::group_consumer(&hash),
            filters: filters.collect(),
            deliver_subject: format!("{}{hash}", names::MEMBER_PREFIX),
            deliver_group: Some(MEMBERS),
            ack_wait: ACK_WAIT,
            ack_pending_max: settings.in_flight_max,
            in_memory: settings.consumers_in_memory,
            // If a power cut removed a QoS 2 message, its publisher would send it again, and another member
            // could receive it.
            durable_only: true,
        };
        let request = RequestId::Consumer(operation);
        self.request(Some(request), RequestAction::PutConsumer(consumer));
    }

    /// Stores that only this session delivers a QoS 2 message (MQTT-4.8.2-4, -5). The message is sent
    /// afterwards.
    pub(super) fn claim(&mut self, packet_id: u16, message: QueuedMessage) {
        let mqtt = self.state_mut();
        mqtt.has_records = true;
        let subject = names::claimed(&mqtt.id_hash, packet_id);
        let record = ClaimedRecord::encode(&message);
        mqtt.claiming.insert(packet_id, message);
        if !self.publish_record(&subject, Some(RequestId::Claim(packet_id)), &record) {
            self.deliver_claimed(packet_id, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// Sends a message whose claim is stored. If the claim could not be stored, another member receives the
    /// message.
    pub(super) fn deliver_claimed(&mut self, packet_id: u16, reason: Reason) {
        let mqtt = self.state_mut();
        let Some(message) = mqtt.claiming.remove(&packet_id) else {
            return;
        };
        if reason.is_failure() {
            mqtt.connection.unreserve(packet_id);
            self.acknowledge_stored(&message.ack_subject, b"", NAK_LATER);
            return;
        }
        let is_sent = self.write(|mqtt, out| mqtt.send_reserved(packet_id, &message, out));
        if is_sent {
            count_sent(self.session_mut(), &message);
        }
        self.acknowledge_stored(&message.ack_subject, b"", b"");
        if !is_sent {
            self.remove_claim(packet_id, None);
            return;
        }
        let ack_subject = message.ack_subject;
        let claimed = ClaimedMessage {
            packet_id,
            ack_subject,
        };
        self.state_mut().claimed.insert(message.token, claimed);
    }

    /// Removes the record of a claimed message. `request` is the id of the answer, if the session waits for
    /// it.
    pub(super) fn remove_claim(&mut self, packet_id: u16, request: Option<RequestId>) {
        let purge = RequestAction::Purge {
            stream: names::SHARED,
            filter: names::claimed(&self.state().id_hash, packet_id),
        };
        self.request(request, purge);
    }

    /// Stores copies of those messages in flight that may be missing in the log when the client resumes the
    /// session (MQTT-4.4.0-1).
    pub(super) fn store_unlogged(&mut self) {
        let mqtt = self.state_mut();
        if !mqtt.is_persistent() {
            return;
        }
        let id_hash = mqtt.id_hash.clone();
        for message in std::mem::take(&mut mqtt.unlogged).into_values() {
            if let Some(packet_id) = message.packet_id {
                let subject = names::claimed(&id_hash, packet_id);
                self.publish_record(&subject, None, &ClaimedRecord::encode(&message));
            }
        }
    }

    /// Passes messages of groups to other members when a connection is closed.
    pub(super) fn leave_groups(&mut self) {
        let mqtt = self.state_mut();
        let claiming: Vec<u16> = mqtt.claiming.keys().copied().collect();
        for ack_subject in mqtt.take_unclaimed() {
            self.acknowledge_stored(&ack_subject, b"", NAK);
        }
        for packet_id in claiming {
            self.remove_claim(packet_id, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_a_subject() {
        let mut groups = Groups::default();
        let all = ["$share/g/a/+", "$share/h/a/#", "$share/g/b"];
        for filter in all {
            groups.change(AccountId::GLOBAL, filter, true);
        }
        let names = |subject: &[u8]| groups.of_subject(AccountId::GLOBAL, subject);
        assert_eq!(names(b"a.b"), [b"g".to_vec(), b"h".to_vec()]);
        assert_eq!(names(b"a"), [b"h".to_vec()]);
        assert_eq!(names(b"b"), [b"g".to_vec()]);
        assert!(names(b"c").is_empty());
        for filter in all {
            groups.change(AccountId::GLOBAL, filter, false);
        }
        assert!(groups.is_empty());
    }

    #[test]
    fn sids_of_members() {
        let sids = [&b"12s"[..], b"12", b"12p", b"i"].map(member_index);
        assert_eq!(sids, [Some(12), None, None, None]);
    }
}
