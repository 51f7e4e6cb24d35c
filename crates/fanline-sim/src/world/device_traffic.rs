//! What MQTT clients publish, and their subscriptions.

use super::World;
use super::devices::{PLAIN_SID, Sent, Subscribing};
use crate::client::push_text;
use crate::model::Claim;

/// Messages above QoS 0 that a device has on their way.
const IN_FLIGHT_MAX: usize = 4;

impl World {
    /// Publishes at QoS 0 to the subjects of plain messages.
    pub(super) fn publish_plain(&mut self, at: usize) {
        let subject = self.subject();
        self.messages += 1;
        let (message, step) = (self.messages, self.step);
        let device = &mut self.devices[at];
        let account = device.account;
        let mut body = Vec::new();
        push_text(&mut body, &subject.replace('.', "/"));
        body.extend(format!("{message} {account} ").as_bytes());
        device.say(0x30, &body);
        if let Some(link) = &mut device.link {
            link.claims.push(Claim::Published(message));
            self.core
                .publish(link.key, account, &subject, message, step);
        }
        self.note(|| format!("device {at} publishes message {message} to {subject}"));
    }

    pub(super) fn publish_durable(&mut self, at: usize) {
        let qos = if self.dice.one_in(2) { 1 } else { 2 };
        let device = &mut self.devices[at];
        if device.sent.len() >= IN_FLIGHT_MAX {
            return;
        }
        let id = device.take_id();
        if device.sent.contains_key(&id) {
            return;
        }
        self.messages += 1;
        let sent = Sent {
            message: self.messages,
            qos,
            topic: "m/a",
            is_retained: false,
            is_received: false,
        };
        device.sent.insert(id, sent);
        device.queue_publish(id, false);
        let (account, message) = (device.account, self.messages);
        self.mqtt.publish(message, account, qos, self.step);
        self.note(|| format!("device {at} publishes message {message} with QoS {qos}, id {id}"));
    }

    pub(super) fn subscribe_plain(&mut self, at: usize) {
        let device = &mut self.devices[at];
        let id = device.take_id();
        let account = device.account;
        let Some(link) = &mut device.link else {
            return;
        };
        if std::mem::replace(&mut link.has_plain, true) {
            return;
        }
        link.subscribing.insert(id, Subscribing::Plain);
        let key = link.key;
        let (topic, filter) =
            [("s/#", "s.>"), ("s/+/a", "s.*.a"), ("s/b/c", "s.b.c")][self.dice.below(3)];
        let mut body = id.to_be_bytes().to_vec();
        push_text(&mut body, topic);
        body.push(0);
        device.say(0x82, &body);
        if device.is_persistent {
            device.plain = Some((filter, false));
        }
        self.core
            .subscribe((key, PLAIN_SID), account, filter, None, true);
        self.note(|| format!("device {at} subscribes to {topic}, id {id}"));
    }

    pub(super) fn subscribe_durable(&mut self, at: usize) {
        let qos = if self.dice.one_in(2) { 1 } else { 2 };
        if self.mqtt.is_subscribed(at) {
            return;
        }
        let device = &mut self.devices[at];
        let id = device.take_id();
        let account = device.account;
        if let Some(link) = &mut device.link {
            link.subscribing.insert(id, Subscribing::Durable);
        }
        let mut body = id.to_be_bytes().to_vec();
        push_text(&mut body, "m/#");
        body.push(qos);
        device.say(0x82, &body);
        self.mqtt.subscribe(at, account);
        self.note(|| format!("device {at} subscribes with QoS {qos}, id {id}"));
    }

    pub(super) fn publish_retained(&mut self, at: usize) {
        let topic = ["r/a", "r/b"][self.dice.below(2)];
        let device = &mut self.devices[at];
        let id = device.take_id();
        if device.sent.len() >= IN_FLIGHT_MAX || device.sent.contains_key(&id) {
            return;
        }
        self.messages += 1;
        let (account, message) = (device.account, self.messages);
        let sent = Sent {
            message,
            qos: 1,
            topic,
            is_retained: true,
            is_received: false,
        };
        device.sent.insert(id, sent);
        device.queue_publish(id, false);
        self.retained.publish(message, account, topic, self.step);
        self.note(|| format!("device {at} publishes the retained message {message} to {topic}"));
    }

    pub(super) fn subscribe_retained(&mut self, at: usize) {
        let device = &mut self.devices[at];
        let (id, account) = (device.take_id(), device.account);
        let Some(link) = &mut device.link else {
            return;
        };
        let mut pending = link.subscribing.values();
        if pending.any(|of| *of == Subscribing::Retained) {
            return;
        }
        link.subscribing.insert(id, Subscribing::Retained);
        let mut body = id.to_be_bytes().to_vec();
        push_text(&mut body, "r/#");
        body.push(1);
        device.say(0x82, &body);
        self.retained.subscribe(at, account, self.step);
        self.note(|| format!("device {at} subscribes to retained messages, id {id}"));
    }
}
