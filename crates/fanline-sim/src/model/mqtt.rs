//! MQTT messages of QoS 1 and 2: sessions receive each message of QoS 1 at least once, and of QoS 2 exactly
//! once.

use std::collections::BTreeMap;

use crate::violation::{Invariant, Outcome, violation};

/// A published message.
#[derive(Clone, Debug)]
struct Message {
    account: usize,
    qos: u8,
    at: u64,
    /// Whether its publisher has the last acknowledgement.
    is_acknowledged: bool,
}

/// The subscription of a session to all of these messages.
#[derive(Clone, Debug)]
struct Session {
    account: usize,
    /// The step in which the client received the SUBACK.
    visible_at: Option<u64>,
    counts: BTreeMap<u64, u32>,
}

/// All messages above QoS 0, and the sessions that subscribe to them.
#[derive(Debug, Default)]
pub(crate) struct MqttModel {
    messages: BTreeMap<u64, Message>,
    sessions: BTreeMap<usize, Session>,
}

impl MqttModel {
    pub(crate) fn publish(&mut self, message: u64, account: usize, qos: u8, at: u64) {
        let message_of = Message {
            account,
            qos,
            at,
            is_acknowledged: false,
        };
        self.messages.insert(message, message_of);
    }

    pub(crate) fn acknowledge(&mut self, message: u64) {
        if let Some(message) = self.messages.get_mut(&message) {
            message.is_acknowledged = true;
        }
    }

    /// Notes that a device has begun to subscribe.
    pub(crate) fn subscribe(&mut self, device: usize, account: usize) {
        let session = || Session {
            account,
            visible_at: None,
            counts: BTreeMap::new(),
        };
        self.sessions.entry(device).or_insert_with(session);
    }

    pub(crate) fn is_subscribed(&self, device: usize) -> bool {
        self.sessions.contains_key(&device)
    }

    pub(crate) fn subscribed(&mut self, device: usize, at: u64) {
        if let Some(session) = self.sessions.get_mut(&device) {
            session.visible_at.get_or_insert(at);
        }
    }

    /// Notes the end of a session.
    pub(crate) fn end_session(&mut self, device: usize) {
        self.sessions.remove(&device);
    }

    /// Notes that a session may have ended before its SUBACK.
    pub(crate) fn disconnect(&mut self, device: usize) {
        if self
            .sessions
            .get(&device)
            .is_some_and(|session| session.visible_at.is_none())
        {
            self.end_session(device);
        }
    }

    /// Checks a message that a device has received for the first time, or again at QoS 1.
    pub(crate) fn deliver(&mut self, device: usize, message: u64, qos: u8) -> Outcome {
        let Some(published) = self.messages.get(&message) else {
            let text = format!("device {device} received the unknown message {message}");
            return violation(Invariant::Mqtt, text);
        };
        let Some(session) = self.sessions.get_mut(&device) else {
            // A message for a subscription whose SUBACK was lost with its connection.
            return Ok(());
        };
        if session.account != published.account {
            let text = format!("device {device} received message {message} of another account");
            return violation(Invariant::Isolation, text);
        }
        if qos > published.qos {
            let text = format!("device {device} received message {message} with QoS {qos}");
            return violation(Invariant::Mqtt, text);
        }
        let count = session.counts.entry(message).or_default();
        *count += 1;
        if qos == 2 && *count > 1 {
            let text = format!("device {device} received message {message} of QoS 2 twice");
            return violation(Invariant::Mqtt, text);
        }
        Ok(())
    }

    /// Checks that connected devices have received everything.
    pub(crate) fn check_quiet(&self, is_connected: impl Fn(usize) -> bool) -> Outcome {
        for (device, session) in self
            .sessions
            .iter()
            .filter(|(device, _)| is_connected(**device))
        {
            let is_owed = |message: &Message| {
                message.is_acknowledged
                    && message.account == session.account
                    && session.visible_at.is_some_and(|at| at < message.at)
            };
            let mut owed = self.messages.iter().filter(|(_, message)| is_owed(message));
            if let Some((id, message)) = owed.find(|(id, _)| !session.counts.contains_key(*id)) {
                let text = format!(
                    "message {id} of QoS {} and step {} did not reach device {device}, subscribed since step {:?}",
                    message.qos, message.at, session.visible_at
                );
                return violation(Invariant::Mqtt, text);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_repeated_messages_are_found() {
        let mut model = MqttModel::default();
        model.subscribe(0, 0);
        model.subscribed(0, 5);
        model.publish(10, 0, 2, 6);
        assert_eq!(model.check_quiet(|_| true), Ok(()));
        model.acknowledge(10);
        assert_eq!(model.check_quiet(|_| false), Ok(()));
        assert!(model.check_quiet(|_| true).is_err());
        assert_eq!(model.deliver(0, 10, 2), Ok(()));
        assert_eq!(model.check_quiet(|_| true), Ok(()));
        assert!(model.deliver(0, 10, 2).is_err());
        assert!(model.deliver(0, 11, 1).is_err());
    }
}
