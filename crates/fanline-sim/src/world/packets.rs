//! What MQTT clients read.

use super::devices::{PLAIN_SID, Subscribing};
use super::{CloseReason, Invariant, Outcome, Violation, World, violation};
use crate::client::{Publish, number_at};
use crate::model::{Claim, Delivered};

impl World {
    /// Lets a device read up to `bytes` bytes. Returns whether there was anything.
    pub(super) fn read_device(&mut self, at: usize, bytes: usize) -> Result<bool, Violation> {
        let Some(link) = &mut self.devices[at].link else {
            return Ok(false);
        };
        let connection = link.connection;
        let Some(socket) = self.server.socket(connection) else {
            return Ok(false);
        };
        let new = socket.read_at_client(bytes);
        if new.is_empty() {
            let is_gone = socket.is_server_gone;
            if is_gone {
                self.lose_device(at)?;
            }
            return Ok(is_gone);
        }
        link.reader.push(&new);
        loop {
            let link = self.devices[at].link.as_mut();
            let Some((first, body)) = link.and_then(|link| link.reader.next()) else {
                return Ok(true);
            };
            self.note(|| format!("device {at} receives {first:#x} {body:?}"));
            self.handle_packet(at, first, &body)?;
        }
    }

    fn lose_device(&mut self, at: usize) -> Outcome {
        let connection = self.devices[at].link.as_ref().map(|link| link.connection);
        let reason = connection.and_then(|connection| self.server.ended(connection));
        self.drop_device(at, true);
        // Its connection before this one may have sent its CONNECT later.
        let is_taken_over = reason == Some(CloseReason::DuplicateClientId);
        if is_taken_over || reason.is_some_and(CloseReason::is_slow_consumer) {
            return Ok(());
        }
        let text = format!("the server closed the connection of device {at}: {reason:?}");
        violation(Invariant::Correctness, text)
    }

    fn handle_packet(&mut self, at: usize, first: u8, body: &[u8]) -> Outcome {
        let id = number_at(body, 0).unwrap_or_default();
        let device = &mut self.devices[at];
        match first >> 4 {
            2 => return self.handle_connack(at, body),
            3 => return self.take_publish(at, first, body),
            // PUBACK and PUBCOMP.
            4 | 7 => {
                if let Some(sent) = device.sent.remove(&id) {
                    self.mqtt.acknowledge(sent.message);
                    self.retained.acknowledge(sent.message, self.step);
                    self.covered.mqtt += 1;
                }
            }
            5 => {
                if let Some(sent) = device.sent.get_mut(&id) {
                    sent.is_received = true;
                }
                device.say(0x62, &id.to_be_bytes());
            }
            6 => {
                device.begun.remove(&id);
                device.say(0x70, &id.to_be_bytes());
            }
            9 => return self.handle_suback(at, id, body),
            13 => {
                let Some(link) = &mut device.link else {
                    return Ok(());
                };
                let (key, claims) = (link.key, link.pings.pop_front().unwrap_or_default());
                for claim in claims {
                    self.core.claim(key, &claim, self.step);
                }
            }
            _ => {
                let text = format!("device {at} received {first:#x} {body:?}");
                return violation(Invariant::Correctness, text);
            }
        }
        Ok(())
    }

    /// Resumes the handshakes of a session (MQTT-4.4.0-1).
    fn handle_connack(&mut self, at: usize, body: &[u8]) -> Outcome {
        let device = &mut self.devices[at];
        let is_present = body.first() == Some(&1);
        if body.get(1) != Some(&0) {
            return violation(
                Invariant::Correctness,
                format!("device {at}: CONNACK {body:?}"),
            );
        }
        if device.is_known && !is_present || is_present && !device.is_persistent {
            let text = format!(
                "device {at}: session present {is_present}, known {}",
                device.is_known
            );
            return violation(Invariant::Mqtt, text);
        }
        device.is_known = device.is_persistent;
        if let Some(link) = &mut device.link {
            link.is_in = true;
            if device
                .plain
                .is_some_and(|(_, is_acknowledged)| is_acknowledged)
            {
                let key = link.key;
                self.core.claim(key, &Claim::Visible(PLAIN_SID), self.step);
            }
        }
        if !is_present {
            device.begun.clear();
        }
        for (id, sent) in device.sent.clone() {
            match sent.is_received {
                true => device.say(0x62, &id.to_be_bytes()),
                false => device.queue_publish(id, true),
            }
        }
        Ok(())
    }

    fn handle_suback(&mut self, at: usize, id: u16, body: &[u8]) -> Outcome {
        if body.get(2).is_none_or(|code| *code > 2) {
            return violation(
                Invariant::Correctness,
                format!("device {at}: SUBACK {body:?}"),
            );
        }
        let step = self.step;
        let device = &mut self.devices[at];
        let Some(link) = &mut device.link else {
            return Ok(());
        };
        match link.subscribing.remove(&id) {
            Some(Subscribing::Plain) => {
                let key = link.key;
                if let Some((_, is_acknowledged)) = &mut device.plain {
                    *is_acknowledged = true;
                }
                self.core.claim(key, &Claim::Visible(PLAIN_SID), step);
            }
            Some(Subscribing::Retained) => self.retained.subscribed(at),
            Some(Subscribing::Durable) => self.mqtt.subscribed(at, step),
            None => {
                let text = format!("device {at}: SUBACK {id} without SUBSCRIBE");
                return violation(Invariant::Correctness, text);
            }
        }
        Ok(())
    }

    fn take_publish(&mut self, at: usize, first: u8, body: &[u8]) -> Outcome {
        let wrong = || format!("device {at} received {first:#x} {body:?}");
        let Some(publish) = Publish::read(first, body) else {
            return violation(Invariant::Correctness, wrong());
        };
        let mut words = publish.payload.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (Some(message), Some(account)) = (number(), number()) else {
            return violation(Invariant::Correctness, wrong());
        };
        let device = &mut self.devices[at];
        let Some(link) = &device.link else {
            return Ok(());
        };
        if publish.topic.starts_with("s/") {
            return self.core.deliver(&Delivered {
                key: (link.key, PLAIN_SID),
                subject: &publish.topic.replace('/', "."),
                message,
                account: usize::try_from(account).unwrap_or_default(),
            });
        }
        let id = publish.id;
        match publish.qos {
            1 => device.say(0x40, &id.to_be_bytes()),
            2 => {
                let begun = device.begun.insert(id, message);
                device.say(0x50, &id.to_be_bytes());
                match begun {
                    Some(other) if other != message => {
                        let text =
                            format!("device {at}: id {id} is message {message}, and {other}");
                        return violation(Invariant::Mqtt, text);
                    }
                    Some(_) => return Ok(()),
                    None => {}
                }
            }
            _ => {}
        }
        if publish.topic.starts_with("r/") {
            let account = device.account;
            return self.retained.receive(at, account, message);
        }
        self.mqtt.deliver(at, message, publish.qos)
    }

    /// Checks that the handshakes of connected devices are complete.
    pub(super) fn check_devices(&mut self) -> Outcome {
        for (at, device) in self.devices.iter().enumerate() {
            let Some(link) = &device.link else {
                continue;
            };
            if !link.is_in || !device.sent.is_empty() || !link.subscribing.is_empty() {
                let text = format!(
                    "device {at}: in {}, waits for {:?}",
                    link.is_in, device.sent
                );
                return violation(Invariant::Liveness, text);
            }
        }
        self.retained.check_quiet()?;
        let devices = &self.devices;
        self.mqtt
            .check_quiet(|device| devices[device].link.is_some())
    }
}
