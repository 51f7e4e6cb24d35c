//! SUBSCRIBE and UNSUBSCRIBE.

use super::consumer::ConsumerFilters;
use super::operations::{Operation, Suback};
use super::session_record::SessionRecord;
use super::shared_subscriptions::SHARE;
use super::state::{Mqtt, PARENT, Sub};
use super::{MqttSession, names};
use crate::codec::mqtt::{
    NameError, Property, Qos, Reason, Subscribe, SubscribeFilter, Subscription, Unsubscribe,
    filter_to_subject, parent_subject, split_shared,
};
use crate::subject::Filter;

impl MqttSession<'_> {
    /// Handles SUBSCRIBE (3.8).
    pub(super) fn subscribe(&mut self, subscribe: &Subscribe<'_>) {
        let identifier = subscribe
            .properties
            .iter()
            .find_map(|property| match property {
                Property::SubscriptionId(identifier) => Some(identifier),
                _ => None,
            });
        let mut suback = Suback {
            packet_id: subscribe.packet_id,
            reasons: Vec::new(),
            retained: Vec::new(),
        };
        for filter in subscribe.filters.iter() {
            let subscription = Subscription {
                options: filter.options,
                identifier: identifier.unwrap_or(0),
            };
            let reason = match self.subscribe_one(&filter, subscription) {
                Ok((qos, retained)) => {
                    suback.retained.extend(retained);
                    Reason::granted(qos)
                }
                Err(reason) => reason,
            };
            suback.reasons.push(reason);
        }
        self.begin_operation(|parts| Operation::subscribe(suback, parts));
    }

    /// Handles UNSUBSCRIBE (3.10).
    pub(super) fn unsubscribe(&mut self, unsubscribe: &Unsubscribe<'_>) {
        let filters = unsubscribe.filters.iter();
        let reasons: Vec<Reason> = filters
            .map(|filter| self.unsubscribe_one(filter.filter))
            .collect();
        let packet_id = unsubscribe.packet_id;
        self.begin_operation(|parts| Operation::unsubscribe(packet_id, reasons, parts));
    }

    /// Stores the changes of a request, and answers the request afterwards.
    fn begin_operation(&mut self, operation: impl FnOnce(usize) -> Operation) {
        let mqtt = self.state();
        let is_changed = mqtt.consumer != ConsumerFilters::of(mqtt.subs.iter().flatten());
        let is_persistent = mqtt.is_persistent();
        let groups = self.change_groups();
        let parts = usize::from(is_changed) + usize::from(is_persistent) + groups.len();
        let operation = operation(parts);
        if parts == 0 {
            return self.finish_operation(operation);
        }
        let number = self.state_mut().add_operation(operation);
        if is_changed {
            self.change_consumer(number);
        }
        for filter in groups {
            self.create_group_consumer(&filter, number);
        }
        if is_persistent {
            self.store_record(number);
        }
    }

    /// Adds or replaces one subscription. Returns the granted QoS, and the subscription's index if it
    /// receives retained messages.
    fn subscribe_one(
        &mut self,
        filter: &SubscribeFilter<'_>,
        subscription: Subscription,
    ) -> Result<(Qos, Option<u32>), Reason> {
        let sub = self.check_filter(filter.filter, subscription)?;
        let qos = sub.qos;
        let is_shared = sub.is_shared;
        let index = self.enter_sub(sub)?;
        let subscriptions = &mut self.state_mut().subscriptions;
        let receives_retained = subscriptions.insert(filter.filter, subscription, is_shared);
        Ok((qos, receives_retained.then_some(index)))
    }

    /// Checks a filter, and translates it.
    fn check_filter(&self, filter: &str, subscription: Subscription) -> Result<Sub, Reason> {
        let mqtt = self.state();
        let wrong = |_: NameError| Reason::TOPIC_FILTER_INVALID;
        let shared = split_shared(filter, mqtt.connection.version()).map_err(wrong)?;
        let mut subject = Vec::new();
        filter_to_subject(shared.filter, &mut subject).map_err(wrong)?;
        if Filter::parse(&subject).is_err() {
            return Err(Reason::TOPIC_FILTER_INVALID);
        }
        if subject.starts_with(names::INTERNAL_PREFIX) {
            return Err(self.denial());
        }
        let is_shared = !shared.group.is_empty();
        let granted = mqtt.connection.granted(subscription.options.qos);
        Ok(Sub {
            filter: filter.into(),
            starts_with_wildcard: matches!(subject.first(), Some(b'*' | b'>')) && {
                let first = subject.split(|b| *b == b'.').next();
                first.is_some_and(|first| first.len() == 1)
            },
            subject: subject.into(),
            is_shared,
            qos: granted,
            subscription,
        })
    }

    /// Returns the reason code of a denied permission. 0x80 reveals no more than that the request failed
    /// (3.9.3).
    pub(super) fn denial(&self) -> Reason {
        match self.broker.exchange.config.limits.mqtt.obscures_denials {
            true => Reason::UNSPECIFIED_ERROR,
            false => Reason::NOT_AUTHORIZED,
        }
    }

    /// Subscribes, unless the session has a subscription to this filter. Returns the index.
    fn enter_sub(&mut self, sub: Sub) -> Result<u32, Reason> {
        let mqtt = self.state_mut();
        if let Some(index) = mqtt.sub_indices.get(&sub.filter).copied() {
            mqtt.set_sub(index, sub);
            return Ok(index);
        }
        let index = mqtt.free_index()?;
        let group = match split_shared(&sub.filter, mqtt.connection.version()) {
            Ok(shared) => shared.group.as_bytes().to_vec(),
            Err(_) => Vec::new(),
        };
        let id = self.id;
        let broker = &mut *self.broker;
        let sid = index.to_string();
        if !broker
            .any(id)
            .permit_subscribe(&sub.subject, &group, sid.as_bytes())
        {
            return Err(self.denial());
        }
        if !broker.has_room_for_subscription(id) {
            return Err(Reason::QUOTA_EXCEEDED);
        }
        let subject = sub.subject.clone();
        let filter = sub.filter.clone();
        self.state_mut().set_sub(index, sub);
        let broker = &mut *self.broker;
        broker.enter_subscription(id, &subject, &group, sid.as_bytes());
        if let Some(parent) = parent_subject(&subject)
            && broker
                .any(id)
                .permit_subscribe(parent, &group, sid.as_bytes())
        {
            let sid = format!("{sid}{PARENT}");
            broker.enter_subscription(id, parent, &group, sid.as_bytes());
        }
        if !group.is_empty() {
            self.subscribe_to_group(index, &filter);
        }
        Ok(index)
    }

    fn unsubscribe_one(&mut self, filter: &str) -> Reason {
        let Some(index) = self.state_mut().remove_sub(filter) else {
            return Reason::NO_SUBSCRIPTION_EXISTED;
        };
        for sid in [
            index.to_string(),
            format!("{index}{PARENT}"),
            format!("{index}{SHARE}"),
        ] {
            let subs = &self.broker.exchange.subs;
            if let Some(sub) = subs.find(self.id.0, sid.as_bytes()) {
                self.broker.exchange.drop_subscription(sub);
            }
        }
        Reason::SUCCESS
    }

    /// Restores the subscriptions of a session that the client's permissions still allow.
    pub(super) fn resume_subscriptions(&mut self, record: &SessionRecord) {
        let subscriptions = record.subscriptions();
        for (filter, subscription) in subscriptions.iter() {
            if let Ok(sub) = self.check_filter(filter, *subscription)
                && self.enter_sub(sub).is_ok()
            {
                let subscriptions = &mut self.state_mut().subscriptions;
                subscriptions.insert(filter, *subscription, false);
            }
        }
        let in_memory = self.broker.exchange.config.limits.mqtt.consumers_in_memory;
        let mqtt = self.state_mut();
        // The consumer exists, because its creation was acknowledged.
        mqtt.is_consumer_in_memory = in_memory;
        mqtt.consumer = ConsumerFilters::of(mqtt.subs.iter().flatten());
    }
}

impl Mqtt {
    fn free_index(&self) -> Result<u32, Reason> {
        let free = self.subs.iter().position(Option::is_none);
        let index = free.unwrap_or(self.subs.len());
        u32::try_from(index).map_err(|_| Reason::QUOTA_EXCEEDED)
    }

    fn set_sub(&mut self, index: u32, sub: Sub) {
        self.sub_indices.insert(sub.filter.clone(), index);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match self.subs.get_mut(index) {
            Some(slot) => *slot = Some(sub),
            None => self.subs.push(Some(sub)),
        }
    }

    /// Removes the subscription to a filter. Returns its index.
    fn remove_sub(&mut self, filter: &str) -> Option<u32> {
        self.subscriptions.remove(filter);
        let index = self.sub_indices.remove(filter)?;
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(slot) = self.subs.get_mut(at) {
            *slot = None;
        }
        self.retained_requests
            .retain(|request| request.sub != index);
        Some(index)
    }
}
