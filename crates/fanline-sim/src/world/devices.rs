//! MQTT clients: their connections, and what they write.

use std::collections::{BTreeMap, VecDeque};

use super::World;
use crate::accounts::{ACCOUNTS, PASSWORD};
use crate::client::{ClientKey, MqttReader, packet, push_text};
use crate::model::Claim;
use crate::server::ConnectionKey;
use fanline_engine::auth::ConnectionKind;

/// Devices of a world.
const DEVICES: usize = 3;

/// Number of unwritten bytes above which a device starts no new action.
const OUT_BYTES_MAX: usize = 4 * 1024;

/// Subscription id (SID) that the model of plain messages uses for a device's subscription at QoS 0.
pub(super) const PLAIN_SID: u64 = 1;

/// What the acknowledgement of a subscription proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subscribing {
    /// At QoS 0 to subjects of plain messages.
    Plain,
    /// Above QoS 0.
    Durable,
    /// To retained messages.
    Retained,
}

/// A message that a device publishes above QoS 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) message: u64,
    pub(super) qos: u8,
    pub(super) topic: &'static str,
    pub(super) is_retained: bool,
    /// Whether PUBREC has arrived.
    pub(super) is_received: bool,
}

/// The connection of a device.
pub(super) struct DeviceLink {
    pub(super) key: ClientKey,
    pub(super) connection: ConnectionKey,
    pub(super) out: VecDeque<u8>,
    pub(super) reader: MqttReader,
    /// Whether CONNACK has arrived.
    pub(super) is_in: bool,
    pub(super) pings: VecDeque<Vec<Claim>>,
    pub(super) claims: Vec<Claim>,
    pub(super) subscribing: BTreeMap<u16, Subscribing>,
    pub(super) has_plain: bool,
    pub(super) will: Option<Will>,
}

/// A message that the server publishes when a device disconnects without a DISCONNECT.
#[derive(Clone, Debug)]
pub(super) struct Will {
    /// Its publisher, for the model.
    key: ClientKey,
    message: u64,
    subject: String,
}

/// A device, with the part of the session that it stores.
pub(super) struct Device {
    name: String,
    pub(super) account: usize,
    pub(super) is_persistent: bool,
    /// Whether the server has confirmed its persistent session.
    pub(super) is_known: bool,
    pub(super) link: Option<DeviceLink>,
    pub(super) sent: BTreeMap<u16, Sent>,
    /// Messages of QoS 2 without PUBREL, by packet identifier.
    pub(super) begun: BTreeMap<u16, u64>,
    /// The filter at QoS 0 that a persistent session may have, and whether its SUBACK has arrived.
    pub(super) plain: Option<(&'static str, bool)>,
    next_id: u16,
}

impl Device {
    pub(super) fn all(mut choose: impl FnMut(usize) -> usize) -> Vec<Self> {
        let device = |number| Device {
            name: format!("device{number}"),
            account: choose(ACCOUNTS.len()),
            is_persistent: choose(3) > 0,
            is_known: false,
            link: None,
            sent: BTreeMap::new(),
            begun: BTreeMap::new(),
            plain: None,
            next_id: 1,
        };
        (0..DEVICES).map(device).collect()
    }

    /// Queues a packet.
    pub(super) fn say(&mut self, first: u8, body: &[u8]) {
        if let Some(link) = &mut self.link {
            link.out.extend(packet(first, body));
        }
    }

    pub(super) fn take_id(&mut self) -> u16 {
        self.next_id = self.next_id % 50 + 1;
        self.next_id
    }

    /// Queues a message above QoS 0, maybe again.
    pub(super) fn queue_publish(&mut self, id: u16, is_again: bool) {
        let Some(sent) = self.sent.get(&id) else {
            return;
        };
        let mut body = Vec::new();
        push_text(&mut body, sent.topic);
        body.extend(id.to_be_bytes());
        body.extend(format!("{} {} ", sent.message, self.account).as_bytes());
        let first = 0x30 | sent.qos << 1 | u8::from(is_again) << 3 | u8::from(sent.is_retained);
        self.say(first, &body);
    }
}

impl World {
    /// Lets a device queue something to write, or connect.
    pub(super) fn act_as_device(&mut self) {
        let at = self.dice.below(self.devices.len());
        let Some(link) = &self.devices[at].link else {
            if self.dice.one_in(3) {
                self.connect_device(at);
            }
            return;
        };
        if !link.is_in || link.out.len() > OUT_BYTES_MAX {
            return;
        }
        match self.dice.below(20) {
            0..4 => self.publish_plain(at),
            4..10 => self.publish_durable(at),
            10..12 => self.subscribe_plain(at),
            12..14 => self.subscribe_durable(at),
            14 => self.subscribe_retained(at),
            15 => self.publish_retained(at),
            16 => self.disconnect_device(at),
            _ => self.ping_device(at),
        }
    }

    pub(super) fn connect_device(&mut self, at: usize) {
        let shard = self.dice.below(self.server.shards());
        let room = [200, 1 << 20][self.dice.below(2)];
        let connection = self.server.connect(shard, ConnectionKind::Mqtt, room);
        self.clients_opened += 1;
        let key = ClientKey(self.clients_opened);
        let will = self.dice.one_in(3).then(|| self.make_will());
        let device = &mut self.devices[at];
        let flags =
            0xC0 | if device.is_persistent { 0 } else { 2 } | if will.is_some() { 4 } else { 0 };
        let mut body = b"\0\x04MQTT\x04".to_vec();
        body.extend([flags, 0, 0]);
        push_text(&mut body, &device.name);
        if let Some(will) = &will {
            push_text(&mut body, &will.subject.replace('.', "/"));
            push_text(&mut body, &format!("{} {} ", will.message, device.account));
        }
        push_text(&mut body, &ACCOUNTS[device.account].to_lowercase());
        push_text(&mut body, PASSWORD);
        device.link = Some(DeviceLink {
            key,
            connection,
            out: packet(0x10, &body).into(),
            reader: MqttReader::default(),
            is_in: false,
            pings: VecDeque::new(),
            claims: Vec::new(),
            subscribing: BTreeMap::new(),
            has_plain: device.plain.is_some(),
            will,
        });
        if !device.is_persistent {
            device.sent.clear();
            device.begun.clear();
        }
        let account = device.account;
        if let Some((filter, _)) = device.plain {
            self.core
                .subscribe((key, PLAIN_SID), account, filter, None, true);
        }
        self.register_will(at);
        self.note(|| format!("device {at} connects to shard {shard} as {key:?}"));
    }

    fn make_will(&mut self) -> Will {
        self.messages += 1;
        self.clients_opened += 1;
        Will {
            key: ClientKey(self.clients_opened),
            message: self.messages,
            subject: self.subject(),
        }
    }

    /// Notes that the will of a device may be published from now on.
    pub(super) fn register_will(&mut self, at: usize) {
        let Device { account, link, .. } = &self.devices[at];
        if let Some(DeviceLink {
            will: Some(will), ..
        }) = link
        {
            self.core
                .publish(will.key, *account, &will.subject, will.message, self.step);
        }
    }

    pub(super) fn ping_device(&mut self, at: usize) {
        let device = &mut self.devices[at];
        device.say(0xC0, &[]);
        if let Some(link) = &mut device.link {
            link.pings.push_back(std::mem::take(&mut link.claims));
        }
    }

    /// Lets a device end its connection with a DISCONNECT, which discards its will.
    fn disconnect_device(&mut self, at: usize) {
        self.devices[at].say(0xE0, &[]);
        if let Some(link) = &mut self.devices[at].link {
            link.will = None;
        }
        while self.write_device(at, usize::MAX) {}
        self.drop_device(at, false);
    }

    /// Closes the connection of a device from its side. The server publishes its will.
    pub(super) fn break_device(&mut self, at: usize) {
        let abrupt = self.dice.one_in(2);
        let connection = self.devices[at].link.as_ref().map(|link| link.connection);
        if connection.is_none_or(|connection| self.server.ended(connection).is_some()) {
            return;
        }
        self.register_will(at);
        if let Some(link) = &self.devices[at].link
            // Without CONNACK, the server may not know of the will.
            && link.is_in
            && let Some(will) = &link.will
        {
            self.core
                .claim(will.key, &Claim::Published(will.message), self.step);
        }
        self.drop_device(at, abrupt);
    }

    /// Closes the connection of a device.
    pub(super) fn drop_device(&mut self, at: usize, abrupt: bool) {
        let Some(link) = self.devices[at].link.take() else {
            return;
        };
        self.server.hang_up(link.connection, abrupt);
        self.core.disconnect(link.key);
        self.forget_connection(at);
        self.note(|| format!("device {at} is disconnected, abruptly: {abrupt}"));
    }

    /// Handles the end of a device's connection in the model of its session.
    pub(super) fn forget_connection(&mut self, at: usize) {
        self.devices[at].link = None;
        self.retained.disconnect(at);
        match self.devices[at].is_persistent {
            true => self.mqtt.disconnect(at),
            false => self.mqtt.end_session(at),
        }
    }

    /// Lets a device write up to `bytes` bytes. Returns whether there were any.
    pub(super) fn write_device(&mut self, at: usize, bytes: usize) -> bool {
        let Some(link) = &mut self.devices[at].link else {
            return false;
        };
        let length = bytes.min(link.out.len());
        let Some(socket) = self.server.socket(link.connection) else {
            return false;
        };
        if length == 0 || socket.is_server_gone {
            return false;
        }
        socket.to_server.extend(link.out.drain(..length));
        true
    }
}
