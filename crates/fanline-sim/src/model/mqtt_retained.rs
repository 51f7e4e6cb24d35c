//! Retained MQTT messages: a new subscriber receives the newest of each topic.

use std::collections::BTreeMap;

use crate::violation::{Invariant, Outcome, violation};

/// A retained message.
#[derive(Clone, Debug)]
struct Value {
    account: usize,
    topic: &'static str,
    at: u64,
    acknowledged_at: Option<u64>,
}

/// A subscription to all retained topics since all was quiet.
#[derive(Clone, Debug)]
struct Subscribed {
    account: usize,
    /// The step in which the client began to write SUBSCRIBE.
    at: u64,
    has_suback: bool,
    received: Vec<u64>,
}

/// All retained messages, and the subscriptions since all was quiet.
#[derive(Debug, Default)]
pub(crate) struct RetainedModel {
    values: BTreeMap<u64, Value>,
    subscribed: BTreeMap<usize, Subscribed>,
}

impl RetainedModel {
    pub(crate) fn publish(&mut self, message: u64, account: usize, topic: &'static str, at: u64) {
        let value = Value {
            account,
            topic,
            at,
            acknowledged_at: None,
        };
        self.values.insert(message, value);
    }

    pub(crate) fn acknowledge(&mut self, message: u64, at: u64) {
        if let Some(value) = self.values.get_mut(&message) {
            value.acknowledged_at = Some(at);
        }
    }

    /// Notes that a device has begun to subscribe.
    pub(crate) fn subscribe(&mut self, device: usize, account: usize, at: u64) {
        let subscribed = Subscribed {
            account,
            at,
            has_suback: false,
            received: Vec::new(),
        };
        self.subscribed.insert(device, subscribed);
    }

    pub(crate) fn subscribed(&mut self, device: usize) {
        if let Some(subscribed) = self.subscribed.get_mut(&device) {
            subscribed.has_suback = true;
        }
    }

    pub(crate) fn disconnect(&mut self, device: usize) {
        self.subscribed.remove(&device);
    }

    /// Checks a message that a device of an account has received.
    pub(crate) fn receive(&mut self, device: usize, account: usize, message: u64) -> Outcome {
        let Some(value) = self.values.get(&message) else {
            let text = format!("device {device} received the unknown message {message}");
            return violation(Invariant::Mqtt, text);
        };
        if value.account != account {
            let text = format!("device {device} received message {message} of another account");
            return violation(Invariant::Isolation, text);
        }
        if let Some(subscribed) = self.subscribed.get_mut(&device) {
            subscribed.received.push(message);
        }
        Ok(())
    }

    /// Checks that new subscribers have received the newest message of each topic.
    pub(crate) fn check_quiet(&mut self) -> Outcome {
        for (device, subscribed) in std::mem::take(&mut self.subscribed) {
            if !subscribed.has_suback {
                continue;
            }
            for (id, value) in &self.values {
                let is_owed = value.account == subscribed.account
                    && value.acknowledged_at.is_some_and(|at| at < subscribed.at);
                let is_as_new = |other: &&u64| {
                    self.values.get(*other).is_some_and(|other| {
                        other.topic == value.topic
                            && other.acknowledged_at.is_none_or(|at| at >= value.at)
                    })
                };
                if is_owed && !subscribed.received.iter().any(|id| is_as_new(&id)) {
                    let text = format!(
                        "device {device}, which subscribed at step {}, did not receive the retained message {id} to {} of step {}, nor a newer one, but {:?}",
                        subscribed.at, value.topic, value.at, subscribed.received
                    );
                    return violation(Invariant::Mqtt, text);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_missing_messages_are_found() {
        let model = || {
            let mut model = RetainedModel::default();
            model.publish(10, 0, "r/a", 1);
            model.acknowledge(10, 2);
            model.publish(11, 0, "r/a", 3);
            model.acknowledge(11, 4);
            model.subscribe(0, 0, 5);
            model.subscribed(0);
            model
        };
        assert!(model().check_quiet().is_err());
        let mut old = model();
        assert_eq!(old.receive(0, 0, 10), Ok(()));
        assert!(old.check_quiet().is_err());
        let mut new = model();
        assert_eq!(new.receive(0, 0, 11), Ok(()));
        assert_eq!(new.check_quiet(), Ok(()));
        assert!(new.receive(0, 1, 11).is_err());
    }
}
