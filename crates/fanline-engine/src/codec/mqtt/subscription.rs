//! What a session has subscribed to.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Qos;

/// What retained messages a subscription asks for (3.8.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetainHandling {
    /// 0: whenever it is made.
    #[default]
    Always,
    /// 1: when it is new.
    IfNew,
    /// 2: none.
    Never,
}

/// The byte behind a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionOptions {
    /// The most that is delivered with.
    pub qos: Qos,
    /// Not what the client itself has published.
    pub no_local: bool,
    /// RETAIN stays as it was published.
    pub as_published: bool,
    /// Which retained messages.
    pub retain_handling: RetainHandling,
}

impl SubscriptionOptions {
    /// None when a QoS or a retain handling is 3. Reserved bits are not looked at.
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

    /// Returns RETAIN as a client of this subscription sees it (MQTT-3.3.1-8, -12 and -13): always set for a message
    /// that is sent because the subscription was made; otherwise as it was published, if the subscription requests
    /// that.
    pub fn shows_retain(self, was_published_with: bool, is_sent_as_retained: bool) -> bool {
        is_sent_as_retained || (self.as_published && was_published_with)
    }

    /// As it is on the wire.
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
    /// As the client asked.
    pub options: SubscriptionOptions,
    /// What it wants told with each message (3.8.2.1.2); 0 is none.
    pub identifier: u32,
}

/// All of a session, by filter as the client wrote it, `$share/…` included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscriptions {
    all: BTreeMap<Box<str>, Subscription>,
}

impl Subscriptions {
    /// Makes a subscription, or replaces the one with the same filter (MQTT-3.8.4-3). Returns whether
    /// retained messages are to be sent for it (MQTT-3.3.1-9 to -11); never for a shared one (4.8.2).
    pub fn insert(&mut self, filter: &str, subscription: Subscription, is_shared: bool) -> bool {
        let is_new = match self.all.entry(filter.into()) {
            Entry::Vacant(place) => {
                place.insert(subscription);
                true
            }
            Entry::Occupied(mut place) => {
                place.insert(subscription);
                false
            }
        };
        let is_asked = match subscription.options.retain_handling {
            RetainHandling::Always => true,
            RetainHandling::IfNew => is_new,
            RetainHandling::Never => false,
        };
        is_asked && !is_shared
    }

    /// Takes one away; whether it was there (3.11.3: else 0x11).
    pub fn remove(&mut self, filter: &str) -> bool {
        self.all.remove(filter).is_some()
    }

    /// One of them.
    pub fn get(&self, filter: &str) -> Option<&Subscription> {
        self.all.get(filter)
    }

    /// Each, in the order of their filters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Subscription)> {
        self.all
            .iter()
            .map(|(filter, subscription)| (&**filter, subscription))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
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
    fn retain_is_shown_as_asked() {
        let plain = SubscriptionOptions::default();
        let mut as_published = plain;
        as_published.as_published = true;
        // Options, published with RETAIN, sent as a retained message, shown.
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
    fn retained_messages_are_sent_as_asked() {
        // First and second subscribe, shared or not.
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
