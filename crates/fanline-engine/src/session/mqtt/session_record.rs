//! The record of a session: JSON in `$MQTT_sess`, described in `docs/formats/mqtt.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::state::Mqtt;
use crate::codec::mqtt::{
    Qos, RetainHandling, Subscription, SubscriptionOptions, Subscriptions, Version, Will,
    check_filter, split_shared,
};

/// Number of digits of an id hash.
const HASH_DIGITS: usize = 16;

/// Returns the token that stands for a client id in subjects. A client id may contain characters that
/// subjects cannot contain.
pub(super) fn id_hash(client_id: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let hash = digest(&SHA256, client_id.as_bytes());
    let nibbles = hash.as_ref().iter().flat_map(|b| [b >> 4, b & 0x0F]);
    let digits = nibbles.map(|nibble| char::from(DIGITS[usize::from(nibble)]));
    digits.take(HASH_DIGITS).collect()
}

/// The record of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    /// Client id.
    pub(super) id: String,
    /// Always false; nats-server writes it.
    #[serde(default)]
    clean: bool,
    /// The QoS of each filter.
    #[serde(default)]
    subs: BTreeMap<String, u8>,
    /// Other subscription options, by filter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    options: BTreeMap<String, OptionsRecord>,
    /// Protocol level.
    #[serde(default)]
    version: u8,
    /// Session expiry in seconds after the connection ends; `None` means that the session never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expiry: Option<u32>,
    /// Time at which the connection ended, in seconds since 1970 UTC; `None` while the client is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended_at: Option<u64>,
    /// The will that must still be published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    will: Option<WillRecord>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OptionsRecord {
    #[serde(default, skip_serializing_if = "is_false")]
    no_local: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    as_published: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    retain_handling: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    identifier: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WillRecord {
    topic: String,
    /// Payload in Base64.
    payload: String,
    qos: u8,
    retain: bool,
    /// Property block in Base64.
    properties: String,
    /// Due time in seconds since 1970 UTC; 0 while the client is connected.
    at: u64,
    /// Will Delay Interval in seconds.
    #[serde(default, skip_serializing_if = "is_none")]
    delay: u64,
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_none(seconds: &u64) -> bool {
    *seconds == 0
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl SessionRecord {
    /// Returns the record of a session that is connected.
    pub(super) fn of(mqtt: &Mqtt) -> Self {
        let connection = &mqtt.connection;
        let (version, expiry) = (connection.version(), connection.session_expiry());
        SessionRecord::new(&mqtt.client_id, version, expiry, &mqtt.subscriptions)
    }

    fn new(client_id: &str, version: Version, expiry: u32, subscriptions: &Subscriptions) -> Self {
        let mut record = SessionRecord {
            id: client_id.to_owned(),
            version: version.level(),
            expiry: (expiry != u32::MAX).then_some(expiry),
            ..SessionRecord::default()
        };
        for (filter, subscription) in subscriptions.iter() {
            let asked = &subscription.options;
            record.subs.insert(filter.to_owned(), asked.qos.bits());
            let options = OptionsRecord {
                no_local: asked.no_local,
                as_published: asked.as_published,
                retain_handling: match asked.retain_handling {
                    RetainHandling::Always => 0,
                    RetainHandling::IfNew => 1,
                    RetainHandling::Never => 2,
                },
                identifier: subscription.identifier,
            };
            if options != OptionsRecord::default() {
                record.options.insert(filter.to_owned(), options);
            }
        }
        record
    }

    /// Decodes a record. A client without a readable record gets a new session.
    pub(super) fn decode(json: &[u8]) -> Option<Self> {
        let record: SessionRecord = serde_json::from_slice(json).ok()?;
        (!record.id.is_empty()).then_some(record)
    }

    /// Encodes the record.
    pub(super) fn encode(&self) -> Vec<u8> {
        // Texts, numbers, and maps with text keys always serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the client's protocol version.
    pub(super) fn version(&self) -> Version {
        match self.version {
            5 => Version::V5,
            _ => Version::V4,
        }
    }

    /// Returns the subscriptions whose filters are valid.
    pub(super) fn subscriptions(&self) -> Subscriptions {
        let version = self.version();
        let mut all = Subscriptions::default();
        for (filter, qos) in &self.subs {
            let Ok(shared) = split_shared(filter, version) else {
                continue;
            };
            let (Ok(()), Some(qos)) = (check_filter(shared.filter), Qos::from_bits(*qos)) else {
                continue;
            };
            let stored = self.options.get(filter).cloned().unwrap_or_default();
            let options = SubscriptionOptions {
                qos,
                no_local: stored.no_local,
                as_published: stored.as_published,
                retain_handling: match stored.retain_handling {
                    1 => RetainHandling::IfNew,
                    2 => RetainHandling::Never,
                    _ => RetainHandling::Always,
                },
            };
            let identifier = stored.identifier;
            let subscription = Subscription {
                options,
                identifier,
            };
            all.insert(filter, subscription, !shared.group.is_empty());
        }
        all
    }

    /// Sets the will and its due time, in seconds since 1970 UTC. The time is 0 while the client is
    /// connected.
    pub(super) fn set_will(&mut self, will: Option<(&Will, u64)>) {
        self.will = will.map(|(will, at)| WillRecord {
            topic: will.topic.to_string(),
            payload: STANDARD.encode(&will.payload),
            qos: will.qos.bits(),
            retain: will.retain,
            properties: STANDARD.encode(&will.properties),
            at,
            delay: will.delay.as_secs(),
        });
    }

    /// Returns the will and its due time.
    pub(super) fn will(&self) -> Option<(Will, u64)> {
        let stored = self.will.as_ref()?;
        let will = Will {
            topic: stored.topic.as_str().into(),
            payload: STANDARD.decode(&stored.payload).ok()?.into(),
            qos: Qos::from_bits(stored.qos)?,
            retain: stored.retain,
            properties: STANDARD.decode(&stored.properties).ok()?.into(),
            delay: Duration::from_secs(stored.delay),
        };
        Some((will, stored.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes() {
        // The SHA-256 of the empty string begins with these digits.
        assert_eq!(id_hash(""), "e3b0c44298fc1c14");
        assert_ne!(id_hash("a"), id_hash("b"));
    }

    #[test]
    fn session_survives_its_record() {
        let mut subscriptions = Subscriptions::default();
        let mut subscription = Subscription::default();
        subscriptions.insert("a/#", subscription, false);
        subscription.identifier = 7;
        subscription.options = SubscriptionOptions {
            qos: Qos::ExactlyOnce,
            no_local: false,
            as_published: true,
            retain_handling: RetainHandling::IfNew,
        };
        subscriptions.insert("$share/g/b", subscription, true);
        let mut record = SessionRecord::new("device", Version::V5, 60, &subscriptions);
        record.ended_at = Some(1000);
        let will = Will {
            topic: "gone".into(),
            payload: (*b"\0\xff").into(),
            qos: Qos::AtLeastOnce,
            retain: true,
            properties: Box::default(),
            delay: Duration::from_secs(10),
        };
        record.set_will(Some((&will, 1010)));
        let back = SessionRecord::decode(&record.encode()).unwrap();
        assert_eq!(back, record);
        assert_eq!(back.subscriptions(), subscriptions);
        assert_eq!(back.will(), Some((will, 1010)));
        assert_eq!(back.version(), Version::V5);
    }

    #[test]
    fn decode_rejects_other_json() {
        for wrong in ["", "{}", "[]", "{\"id\":\"\"}", "{\"id\":1}"] {
            assert_eq!(SessionRecord::decode(wrong.as_bytes()), None, "{wrong}");
        }
        let json = br#"{"id":"a","subs":{"x/#/y":1,"ok":1,"bad":3},"more":[]}"#;
        let record = SessionRecord::decode(json).unwrap();
        let subscriptions = record.subscriptions();
        assert_eq!(
            subscriptions
                .iter()
                .map(|(filter, _)| filter)
                .collect::<Vec<_>>(),
            ["ok"]
        );
        assert_eq!((record.expiry, record.version()), (None, Version::V4));
    }
}
