//! The subscriptions of a session.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Qos;

/// When retained messages are sent for a subscription (3.8.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetainHandling {
    /// 0: at each SUBSCRIBE.
    #[default]
    Always,
    /// 1: if the subscription is new.
    IfNew,
    /// 2: never.
    Never,
}

/// The options byte that follows a filter in SUBSCRIBE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionOptions {
    /// Maximum QoS of delivered messages.
    pub qos: Qos,
    /// No Local: whether the client does not receive its own messages.
    pub no_local: bool,
    /// Retain As Published: whether messages keep the RETAIN flag with which they were published.
    pub as_published: bool,
    /// When retained messages are sent.
    pub retain_handling: RetainHandling,
}

impl SubscriptionOptions {
    /// Parses the options byte. Returns `None` if QoS or retain handling is 3. Does not check reserved bits.
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        let retain_handling = match (byte >> 4) & 0x03 {
            0 => RetainHandling::Always,
            1 => RetainHandling::IfNew,
            2 => RetainHandling::Never,
            _ => return None,
        };
        Some(SubscriptionOptions {
            qos: Qos::from_bits(byte & 0x03)?,
            no_local: byte & 0x04 != 0,
            as_published: byte & 0x08 != 0,
            retain_handling,
        })
    }

    /// Returns the RETAIN flag that a client of this subscription receives (MQTT-3.3.1-8, -12 and -13). The
    /// flag is set for a retained message that is sent because the subscription is new. For any other
    /// message, the flag is set only if the publisher set it and the subscription has Retain As Published.
    pub fn shows_retain(self, was_published_with: bool, is_sent_as_retained: bool) -> bool {
        is_sent_as_retained || (self.as_published && was_published_with)
    }

    /// Returns the options byte.
    pub fn byte(self) -> u8 {
        let retain_handling = match self.retain_handling {
            RetainHandling::Always => 0,
            RetainHandling::IfNew => 0x10,
            RetainHandling::Never => 0x20,
        };
        let no_local = u8::from(self.no_local) << 2;
        let as_published = u8::from(self.as_published) << 3;
        self.qos.bits() | no_local | as_published | retain_handling
    }
}

/// One subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// The options that the client requested.
    pub options: SubscriptionOptions,
    /// Subscription identifier, which each delivered message contains (3.8.2.1.2); 0 means no identifier.
    pub identifier: u32,
}

/// All subscriptions of a session, by filter as the client wrote it, with `$share/…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscriptions {
    all: BTreeMap<Box<str>, Subscription>,
}

impl Subscriptions {
    /// Adds a subscription, or replaces the one with the same filter (MQTT-3.8.4-3). Returns whether retained
    /// messages must be sent for it (MQTT-3.3.1-9 to -11), which is never the case for a shared one (4.8.2).
    pub fn insert(&mut self, filter: &str, subscription: Subscription, is_shared: bool) -> bool {
        let is_new = match self.all.entry(filter.into()) {
            Entry::Vacant(entry) => {
                entry.insert(subscription);
                true
            }
            Entry::Occupied(mut entry) => {
                entry.insert(subscription);
                false
            }
        };
        let is_requested = match subscription.options.retain_handling {
            RetainHandling::Always => true,
            RetainHandling::IfNew => is_new,
            RetainHandling::Never => false,
        };
        is_requested && !is_shared
    }

    /// Removes a subscription. Returns false if there is none (3.11.3: 0x11).
    pub fn remove(&mut self, filter: &str) -> bool {
        self.all.remove(filter).is_some()
    }

    /// Returns the subscription of a filter.
    pub fn get(&self, filter: &str) -> Option<&Subscription> {
        self.all.get(filter)
    }

    /// Returns all subscriptions, sorted by filter.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Subscription)> {
        self.all
            .iter()
            .map(|(filter, subscription)| (&**filter, subscription))
    }

    /// Returns the number of subscriptions.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there are no subscriptions.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_a_byte() {
        for byte in 0..=0x3F_u8 {
            let is_wrong = byte & 0x03 == 3 || byte & 0x30 == 0x30;
            let options = SubscriptionOptions::from_byte(byte);
            assert_eq!(options.is_none(), is_wrong, "{byte:#x}");
            if let Some(options) = options {
                assert_eq!(options.byte(), byte);
            }
        }
    }

    #[test]
    fn retain_flag_follows_retain_as_published() {
        let plain = SubscriptionOptions::default();
        let mut as_published = plain;
        as_published.as_published = true;
        // Columns: options, whether the message was published with RETAIN, whether it is sent as a retained
        // message, and the RETAIN flag that the client receives.
        for (options, published, retained, shown) in [
            (plain, true, false, false),
            (plain, true, true, true),
            (as_published, true, false, true),
            (as_published, false, false, false),
        ] {
            assert_eq!(options.shows_retain(published, retained), shown);
        }
    }

    #[test]
    fn retained_messages_follow_retain_handling() {
        // Columns: retain handling, whether the subscription is shared, and the results of the first and the
        // second SUBSCRIBE.
        for (handling, shared, wanted) in [
            (RetainHandling::Always, false, [true, true]),
            (RetainHandling::IfNew, false, [true, false]),
            (RetainHandling::Never, false, [false, false]),
            (RetainHandling::Always, true, [false, false]),
        ] {
            let mut all = Subscriptions::default();
            let mut subscription = Subscription::default();
            subscription.options.retain_handling = handling;
            let sent = [(); 2].map(|()| all.insert("a/b", subscription, shared));
            assert_eq!(sent, wanted, "{handling:?}");
            assert!(all.remove("a/b") && !all.remove("a/b"));
        }
    }
}
