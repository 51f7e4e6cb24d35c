//! A session as it is kept: the JSON of `$MQTT_sess`, described in `docs/formats/mqtt.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::subscription::{RetainHandling, Subscription, SubscriptionOptions, Subscriptions};
use super::topic::{check_filter, split_shared};
use super::verb::Will;
use super::{Qos, Version};

/// How many digits an id hash has.
const HASH_DIGITS: usize = 16;

/// What a client id is called in subjects, which cannot hold every id.
pub fn id_hash(client_id: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let hash = digest(&SHA256, client_id.as_bytes());
    let nibbles = hash.as_ref().iter().flat_map(|b| [b >> 4, b & 0x0F]);
    let digits = nibbles.map(|nibble| char::from(DIGITS[usize::from(nibble)]));
    digits.take(HASH_DIGITS).collect()
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Client id.
    pub id: String,
    /// Never true of a session that is kept; nats-server writes it.
    #[serde(default)]
    pub clean: bool,
    /// The QoS of each filter.
    #[serde(default)]
    subs: BTreeMap<String, u8>,
    /// What else was asked for, by filter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    options: BTreeMap<String, OptionsRecord>,
    /// Protocol level.
    #[serde(default)]
    version: u8,
    /// Seconds after its connection ended; `None` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<u32>,
    /// Seconds since 1970 UTC when its connection ended; `None` while it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// The will that is still to be sent.
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
    /// Base64.
    payload: String,
    qos: u8,
    retain: bool,
    /// Base64 of the block.
    properties: String,
    /// Seconds since 1970 UTC; 0 while its client is connected.
    at: u64,
    /// Seconds that it waits when its client is gone.
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
    /// Of a session that is connected.
    pub fn new(
        client_id: &str,
        version: Version,
        expiry: u32,
        subscriptions: &Subscriptions,
    ) -> Self {
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

    /// Reads one; `None` for what is none, whose session is new then.
    pub fn decode(json: &[u8]) -> Option<Self> {
        let record: SessionRecord = serde_json::from_slice(json).ok()?;
        (!record.id.is_empty()).then_some(record)
    }

    /// As it is kept.
    pub fn encode(&self) -> Vec<u8> {
        // Texts, numbers and maps with texts as keys are always JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Which text its client obeyed.
    pub fn version(&self) -> Version {
        match self.version {
            5 => Version::V5,
            _ => Version::V4,
        }
    }

    /// What it has subscribed to, as far as these are filters.
    pub fn subscriptions(&self) -> Subscriptions {
        let version = self.version();
        let mut all = Subscriptions::default();
        for (filter, qos) in &self.subs {
            let Ok(shared) = split_shared(filter, version) else {
                continue;
            };
            let (Ok(()), Some(qos)) = (check_filter(shared.filter), Qos::from_bits(*qos)) else {
                continue;
            };
            let kept = self.options.get(filter).cloned().unwrap_or_default();
            let options = SubscriptionOptions {
                qos,
                no_local: kept.no_local,
                as_published: kept.as_published,
                retain_handling: match kept.retain_handling {
                    1 => RetainHandling::IfNew,
                    2 => RetainHandling::Never,
                    _ => RetainHandling::Always,
                },
            };
            let identifier = kept.identifier;
            let subscription = Subscription {
                options,
                identifier,
            };
            all.insert(filter, subscription, !shared.group.is_empty());
        }
        all
    }

    /// Notes a will that waits until then, in seconds since 1970 UTC, or that of a client that is connected, with 0.
    pub fn set_will(&mut self, will: Option<(&Will, u64)>) {
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

    /// The will that waits, and until when.
    pub fn will(&self) -> Option<(Will, u64)> {
        let kept = self.will.as_ref()?;
        let will = Will {
            topic: kept.topic.as_str().into(),
            payload: STANDARD.decode(&kept.payload).ok()?.into(),
            qos: Qos::from_bits(kept.qos)?,
            retain: kept.retain,
            properties: STANDARD.decode(&kept.properties).ok()?.into(),
            delay: Duration::from_secs(kept.delay),
        };
        Some((will, kept.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes() {
        // The SHA-256 of nothing begins so.
        assert_eq!(id_hash(""), "e3b0c44298fc1c14");
        assert_ne!(id_hash("a"), id_hash("b"));
    }

    #[test]
    fn a_session_comes_back() {
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
    fn what_is_no_session_is_none() {
        for wrong in ["", "{}", "[]", "{\"id\":\"\"}", "{\"id\":1}"] {
            assert_eq!(SessionRecord::decode(wrong.as_bytes()), None, "{wrong}");
        }
        let json = br#"{"id":"a","subs":{"x/#/y":1,"ok":1,"bad":3},"more":[]}"#;
        let record = SessionRecord::decode(json).unwrap();
        let kept = record.subscriptions();
        assert_eq!(
            kept.iter().map(|(filter, _)| filter).collect::<Vec<_>>(),
            ["ok"]
        );
        assert_eq!((record.expiry, record.version()), (None, Version::V4));
    }
}
