//! What MQTT clients subscribe to.

use serde_json::json;

use super::super::SessionId;
use super::super::Shard;
use super::groups::SHARE;
use super::kept::{Operation, Subscribing};
use super::names;
use super::note::{Note, Recall, Seat};
use super::session::{PARENT, Sub};
use crate::auth::overlap;
use crate::codec::mqtt::{
    NameError, Property, Qos, Reason, SessionRecord, Subscribe, SubscribeFilter, Subscription,
    Unsubscribe, filter_to_subject, parent_subject, split_shared,
};
use crate::subject::Filter;

/// Most filters of a consumer. Of more, some are joined to wider ones, and what these match besides is
/// passed by.
const CONSUMER_FILTERS_MAX: usize = 256;

impl Shard {
    /// SUBSCRIBE (3.8).
    pub(super) fn subscribe_mqtt(&mut self, id: SessionId, subscribe: &Subscribe<'_>) {
        let identifier = subscribe
            .properties
            .iter()
            .find_map(|property| match property {
                Property::SubscriptionId(identifier) => Some(identifier),
                _ => None,
            });
        let mut subscribing = Subscribing {
            packet_id: subscribe.packet_id,
            reasons: Vec::new(),
            recalls: Vec::new(),
        };
        for filter in subscribe.filters.iter() {
            let asked = Subscription {
                options: filter.options,
                identifier: identifier.unwrap_or(0),
            };
            let reason = match self.subscribe_one(id, &filter, asked) {
                Ok((qos, recall)) => {
                    subscribing.recalls.extend(recall);
                    Reason::granted(qos)
                }
                Err(reason) => reason,
            };
            subscribing.reasons.push(reason);
        }
        self.begin_operation(id, |parts| Operation::subscribe(subscribing, parts));
    }

    /// UNSUBSCRIBE (3.10).
    pub(super) fn unsubscribe_mqtt(&mut self, id: SessionId, unsubscribe: &Unsubscribe<'_>) {
        let filters = unsubscribe.filters.iter();
        let reasons: Vec<Reason> = filters
            .map(|filter| self.unsubscribe_one(id, filter.filter))
            .collect();
        let packet_id = unsubscribe.packet_id;
        let operation = |parts| Operation::unsubscribe(packet_id, reasons, parts);
        self.begin_operation(id, operation);
    }

    /// Has all kept that has changed, and answers then.
    fn begin_operation(&mut self, id: SessionId, operation: impl FnOnce(usize) -> Operation) {
        let is_changed = self.consumer_differs(id);
        let is_persistent = self.is_persistent(id);
        let groups = self.change_groups(id);
        let parts = usize::from(is_changed) + usize::from(is_persistent) + groups.len();
        let operation = operation(parts);
        if parts == 0 {
            return self.finish_operation(id, operation);
        }
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return;
        };
        let number = mqtt.operation(operation);
        if is_changed {
            self.change_consumer(id, number);
        }
        for filter in groups {
            self.make_group(id, &filter, number);
        }
        if is_persistent {
            self.keep_record(id, number);
        }
    }

    fn is_persistent(&self, id: SessionId) -> bool {
        let mqtt = self.broker.exchange.sessions[id.index()].kind.mqtt.as_ref();
        mqtt.is_some_and(|mqtt| mqtt.is_persistent())
    }

    /// Makes or replaces one subscription. Gives what was granted, and its place if retained messages are to be
    /// sent for it.
    fn subscribe_one(
        &mut self,
        id: SessionId,
        filter: &SubscribeFilter<'_>,
        asked: Subscription,
    ) -> Result<(Qos, Option<u32>), Reason> {
        let sub = self.checked_sub(id, filter.filter, asked)?;
        let qos = sub.qos;
        let is_shared = sub.is_shared;
        let at = self.enter_sub(id, sub)?;
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return Err(Reason::UNSPECIFIED_ERROR);
        };
        let is_recalled = mqtt.subscriptions.insert(filter.filter, asked, is_shared);
        Ok((qos, is_recalled.then_some(at)))
    }

    /// A filter as it is to be subscribed to, if it may be.
    fn checked_sub(&self, id: SessionId, filter: &str, asked: Subscription) -> Result<Sub, Reason> {
        let Some(mqtt) = &self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return Err(Reason::UNSPECIFIED_ERROR);
        };
        let wrong = |_: NameError| Reason::TOPIC_FILTER_INVALID;
        let shared = split_shared(filter, mqtt.link.version()).map_err(wrong)?;
        let mut subject = Vec::new();
        filter_to_subject(shared.filter, &mut subject).map_err(wrong)?;
        if Filter::parse(&subject).is_err() {
            return Err(Reason::TOPIC_FILTER_INVALID);
        }
        if subject.starts_with(names::OWN_PREFIX) {
            return Err(self.denial());
        }
        let is_shared = !shared.group.is_empty();
        let granted = mqtt.link.granted(asked.options.qos);
        Ok(Sub {
            filter: filter.into(),
            is_open: matches!(subject.first(), Some(b'*' | b'>')) && {
                let first = subject.split(|b| *b == b'.').next();
                first.is_some_and(|first| first.len() == 1)
            },
            subject: subject.into(),
            is_shared,
            qos: granted,
            asked,
        })
    }

    /// The reason for what permissions deny. 0x80 says no more than that it was not done (3.9.3).
    pub(super) fn denial(&self) -> Reason {
        match self.broker.exchange.config.limits.mqtt.obscures_denials {
            true => Reason::UNSPECIFIED_ERROR,
            false => Reason::NOT_AUTHORIZED,
        }
    }

    /// Subscribes, unless the session is subscribed to this filter already. Gives its place.
    fn enter_sub(&mut self, id: SessionId, sub: Sub) -> Result<u32, Reason> {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return Err(Reason::UNSPECIFIED_ERROR);
        };
        if let Some(at) = mqtt.places.get(&sub.filter).copied() {
            let index = usize::try_from(at).unwrap_or(usize::MAX);
            if let Some(place) = mqtt.subs.get_mut(index) {
                *place = Some(sub);
            }
            return Ok(at);
        }
        let free = mqtt.subs.iter().position(Option::is_none);
        let index = free.unwrap_or(mqtt.subs.len());
        let at = u32::try_from(index).map_err(|_| Reason::QUOTA_EXCEEDED)?;
        let group = match split_shared(&sub.filter, mqtt.link.version()) {
            Ok(shared) => shared.group.as_bytes().to_vec(),
            Err(_) => Vec::new(),
        };
        let subject = sub.subject.clone();
        let filter = sub.filter.clone();
        let sid = at.to_string();
        if !self.permit_subscribe(id, &subject, &group, sid.as_bytes()) {
            return Err(self.denial());
        }
        if !self.has_room_for_subscription(id) {
            return Err(Reason::QUOTA_EXCEEDED);
        }
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt {
            mqtt.places.insert(sub.filter.clone(), at);
            match free {
                Some(index) => mqtt.subs[index] = Some(sub),
                None => mqtt.subs.push(Some(sub)),
            }
        }
        self.enter_subscription(id, &subject, &group, sid.as_bytes());
        if let Some(parent) = parent_subject(&subject)
            && self.permit_subscribe(id, parent, &group, sid.as_bytes())
        {
            let sid = format!("{sid}{PARENT}");
            self.enter_subscription(id, parent, &group, sid.as_bytes());
        }
        if !group.is_empty() {
            self.listen_to_group(id, at, &filter);
        }
        Ok(at)
    }

    fn unsubscribe_one(&mut self, id: SessionId, filter: &str) -> Reason {
        let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt else {
            return Reason::UNSPECIFIED_ERROR;
        };
        mqtt.subscriptions.remove(filter);
        let Some(at) = mqtt.places.remove(filter) else {
            return Reason::NO_SUBSCRIPTION_EXISTED;
        };
        let index = usize::try_from(at).unwrap_or(usize::MAX);
        if let Some(place) = mqtt.subs.get_mut(index) {
            *place = None;
        }
        mqtt.recalls.retain(|recall| recall.at != at);
        for sid in [
            at.to_string(),
            format!("{at}{PARENT}"),
            format!("{at}{SHARE}"),
        ] {
            if let Some(sub) = self.broker.exchange.subs.find(id.0, sid.as_bytes()) {
                self.broker.exchange.drop_subscription(sub);
            }
        }
        Reason::SUCCESS
    }

    /// Subscribes to what a session had subscribed to, as far as that is allowed now.
    pub(super) fn resume_subscriptions(&mut self, id: SessionId, record: &SessionRecord) {
        let subscriptions = record.subscriptions();
        for (filter, asked) in subscriptions.iter() {
            if let Ok(sub) = self.checked_sub(id, filter, *asked)
                && self.enter_sub(id, sub).is_ok()
                && let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt
            {
                mqtt.subscriptions.insert(filter, *asked, false);
            }
        }
        let in_memory = self.broker.exchange.config.limits.mqtt.consumers_in_memory;
        if let Some(mqtt) = &mut self.broker.exchange.sessions[id.index()].kind.mqtt {
            // It is there, as it was acknowledged.
            mqtt.is_consumer_in_memory = in_memory;
            mqtt.consumer = Feed::of(mqtt.subs.iter().flatten());
        }
    }

    fn consumer_differs(&self, id: SessionId) -> bool {
        let mqtt = self.broker.exchange.sessions[id.index()].kind.mqtt.as_ref();
        mqtt.is_some_and(|mqtt| mqtt.consumer != Feed::of(mqtt.subs.iter().flatten()))
    }

    /// Has the session's consumer deliver what it wants now; `operation` goes on when it does.
    pub(super) fn change_consumer(&mut self, id: SessionId, operation: u32) {
        self.listen_to_replies(id);
        let settings = self.broker.exchange.config.limits.mqtt.clone();
        let session = &mut self.broker.exchange.sessions[id.index()];
        let (account, cid) = (session.account, session.cid);
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        mqtt.is_kept = true;
        let feed = Feed::of(mqtt.subs.iter().flatten());
        let had_none = mqtt.consumer.filters.is_empty();
        mqtt.consumer.clone_from(&feed);
        let hash = mqtt.hash.clone();
        if had_none {
            mqtt.is_consumer_in_memory = settings.consumers_in_memory || !mqtt.is_persistent();
        }
        let in_memory = mqtt.is_consumer_in_memory;
        let reply = format!("{}{cid}.k{operation}", names::REPLY_PREFIX);
        let (topic, body) = match feed.filters.is_empty() {
            true => (names::delete_consumer(&hash), String::new()),
            false => {
                let config = json!({
                    "stream_name": names::MESSAGES,
                    "config": {
                        "durable_name": hash,
                        "name": hash,
                        "deliver_policy": "new",
                        "ack_policy": "explicit",
                        "ack_wait": u64::try_from(settings.ack_wait.as_nanos()).unwrap_or(u64::MAX),
                        "max_deliver": -1,
                        "filter_subjects": feed.filters,
                        "replay_policy": "instant",
                        "max_ack_pending": settings.in_flight_max,
                        "deliver_subject": format!("{}{hash}", names::DELIVER_PREFIX),
                        "num_replicas": 0,
                        "mem_storage": in_memory,
                        "metadata": { "fanline.durable_only": feed.durable_only.to_string() },
                    },
                    "action": "",
                });
                (names::create_consumer(&hash), config.to_string())
            }
        };
        if had_none {
            self.listen_to_consumer(id);
        }
        let is_asked = self.publish_own(
            account,
            topic.as_bytes(),
            reply.as_bytes(),
            b"",
            body.as_bytes(),
        );
        if !is_asked {
            self.fail_operation(id, operation, Reason::IMPLEMENTATION_SPECIFIC_ERROR);
        }
    }

    /// Asks for the retained messages of subscriptions, one after the other.
    pub(super) fn begin_recalls(&mut self, id: SessionId, places: &[u32]) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let (account, cid) = (session.account, session.cid);
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        for at in places {
            let Some(sub) = mqtt.sub(*at) else {
                continue;
            };
            let kept = |subject: &[u8]| -> Box<[u8]> {
                [names::RETAINED_PREFIX.as_bytes(), subject].concat().into()
            };
            let parent = parent_subject(&sub.subject).map(kept);
            let filters = std::iter::once(kept(&sub.subject)).chain(parent).collect();
            mqtt.recalls.push_back(Recall {
                account,
                seat: Seat {
                    shard: self.broker.exchange.index,
                    session: id.0,
                    cid,
                },
                at: *at,
                filters,
                from: 0,
            });
        }
        self.recall_next(id);
    }

    /// Asks for more retained messages, if that is wanted and the client has taken those before.
    pub(in crate::shard) fn recall_next(&mut self, id: SessionId) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let Some(mqtt) = &mut session.kind.mqtt else {
            return;
        };
        if mqtt.is_recalling || !mqtt.waiting.is_empty() || !session.out.is_empty() {
            return;
        }
        if let Some(recall) = mqtt.recalls.pop_front() {
            mqtt.is_recalling = true;
            self.tell_keeper(Note::Recall(recall));
        }
    }
}

/// What a session's consumer delivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Feed {
    /// Those of the session's subscriptions above QoS 0. None overlaps another.
    pub(super) filters: Vec<String>,
    /// Only what is durable. If a message of QoS 2 came that a power cut takes back, its publisher would send it again,
    /// and it would come a second time.
    durable_only: bool,
}

impl Feed {
    fn of<'a>(subs: impl Iterator<Item = &'a Sub>) -> Self {
        // What is kept for a group has a consumer of its own.
        let wanted = subs.filter(|sub| sub.qos != Qos::AtMostOnce && !sub.is_shared);
        let wanted: Vec<&Sub> = wanted.collect();
        Feed {
            durable_only: wanted.iter().any(|sub| sub.qos == Qos::ExactlyOnce),
            filters: consumer_filters(&wanted),
        }
    }
}

fn consumer_filters(wanted: &[&Sub]) -> Vec<String> {
    let mut filters: Vec<String> = Vec::new();
    for sub in wanted {
        let text = String::from_utf8_lossy(&sub.subject).into_owned();
        let parent = parent_subject(text.as_bytes());
        let parent = parent.map(|parent| String::from_utf8_lossy(parent).into_owned());
        for filter in std::iter::once(text).chain(parent) {
            join(&mut filters, filter);
        }
    }
    while filters.len() > CONSUMER_FILTERS_MAX {
        let (Some(one), Some(other)) = (filters.pop(), filters.pop()) else {
            break;
        };
        join(&mut filters, wider(&one, &other));
    }
    filters.sort_unstable();
    let prefixed = |filter: &String| format!("{}{filter}", names::MESSAGES_PREFIX);
    filters.iter().map(prefixed).collect()
}

/// Adds a filter; those that it overlaps are joined with it to a wider one.
fn join(filters: &mut Vec<String>, filter: String) {
    let mut filter = filter;
    while let Some(at) = filters.iter().position(|other| overlap(other, &filter)) {
        let other = filters.swap_remove(at);
        filter = wider(&other, &filter);
    }
    filters.push(filter);
}

/// A filter that matches all that either does.
fn wider(one: &str, other: &str) -> String {
    let mut tokens: Vec<&str> = Vec::new();
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => break,
            (Some(a), Some(b)) if a == b => tokens.push(a),
            (Some(a), Some(b)) if a != ">" && b != ">" => tokens.push("*"),
            // What is shorter is matched by `>` only when something is left to match.
            (Some(_), Some(_)) => {
                tokens.push(">");
                break;
            }
            (None, Some(_)) | (Some(_), None) => {
                tokens.pop();
                tokens.push(">");
                break;
            }
        }
    }
    tokens.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_a_consumer_do_not_overlap() {
        let check = |wanted: &[&str], expected: &[&str]| {
            let mut filters = Vec::new();
            for filter in wanted {
                join(&mut filters, (*filter).to_owned());
            }
            filters.sort_unstable();
            assert_eq!(filters, expected, "{wanted:?}");
            for (at, one) in filters.iter().enumerate() {
                assert!(filters[at + 1..].iter().all(|other| !overlap(one, other)));
            }
        };
        check(&["a", "b"], &["a", "b"]);
        check(&["a.b", "a.*"], &["a.*"]);
        check(&["a.>", "a", "a.b.c"], &["a", "a.>"]);
        check(&["a.*.c", "a.b.*"], &["a.*.*"]);
        check(&["a.*.c", "x", "a.b.>"], &["a.*.>", "x"]);
        check(&["a", ">"], &[">"]);
    }
}
