//! Interest that was announced to other servers.

use hashbrown::HashMap;

use crate::jetstream::is_for_delegates;
use crate::slack::Slack;

/// A filter with an optional queue group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The filter, a space, and the queue group. No filter contains a space.
    bytes: Box<[u8]>,
    filter_bytes: u32,
}

impl Key {
    pub(crate) fn new(filter: &[u8], queue: &[u8]) -> Self {
        let mark_bytes = usize::from(!queue.is_empty());
        let mut bytes = Vec::with_capacity(filter.len() + mark_bytes + queue.len());
        Key::write(filter, queue, &mut bytes);
        Key {
            bytes: bytes.into(),
            filter_bytes: u32::try_from(filter.len()).unwrap_or(u32::MAX),
        }
    }

    /// Appends the filter and the queue group as one byte string.
    pub(crate) fn write(filter: &[u8], queue: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(filter);
        if !queue.is_empty() {
            to.push(b' ');
            to.extend_from_slice(queue);
        }
    }

    /// Returns the filter and the queue group as one byte string.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn filter(&self) -> &[u8] {
        &self.bytes[..self.filter_bytes as usize]
    }

    /// Returns the queue group; empty without one.
    pub(crate) fn queue(&self) -> &[u8] {
        (self.bytes.get(self.filter_bytes as usize + 1..)).unwrap_or_default()
    }
}

/// The weights that were announced, each with its key.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    weights: HashMap<Key, u32>,
    /// Number of keys that only servers without JetStream use.
    delegates: usize,
    slack: Slack,
}

impl Announced {
    /// Records the current weight of a key. Returns whether it must be announced, because it has changed.
    pub(crate) fn record(&mut self, key: &Key, weight: u32) -> bool {
        if weight == 0 {
            let was_announced = self.weights.remove(key).is_some();
            if was_announced && is_for_delegates(key.filter(), key.queue()) {
                self.delegates -= 1;
            }
            if (self.slack).is_due(self.weights.len(), self.weights.capacity()) {
                self.weights.shrink_to_fit();
            }
            return was_announced;
        }
        match self.weights.get_mut(key) {
            Some(known) => std::mem::replace(known, weight) != weight,
            None => {
                self.weights.insert(key.clone(), weight);
                self.delegates += usize::from(is_for_delegates(key.filter(), key.queue()));
                true
            }
        }
    }

    /// Returns the announced weight of a key.
    pub(crate) fn weight(&self, key: &Key) -> u32 {
        self.weights.get(key).copied().unwrap_or(0)
    }

    /// Returns the announced weights.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, u32)> {
        self.weights.iter().map(|(key, weight)| (key, *weight))
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Returns the number of keys that only servers without JetStream use.
    pub(crate) fn delegates(&self) -> usize {
        self.delegates
    }

    /// Returns the filters that were announced, with their queue groups.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.weights.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_announced() {
        let mut announced = Announced::default();
        let delegates = Key::new(b"$JS.API.>", b"_js_");
        let (plain, group) = (Key::new(b"a.b", b""), Key::new(b"a.b", b"q"));
        assert_eq!((plain.filter(), plain.queue()), (&b"a.b"[..], &b""[..]));
        assert_eq!((group.filter(), group.queue()), (&b"a.b"[..], &b"q"[..]));
        for (key, weight, expected) in [
            (&plain, 0, false),
            (&plain, 1, true),
            (&plain, 1, false),
            (&group, 2, true),
            (&group, 3, true),
            (&group, 3, false),
            (&group, 0, true),
            (&plain, 0, true),
            (&plain, 0, false),
        ] {
            assert_eq!(announced.record(key, weight), expected, "{key:?} {weight}");
        }
        assert_eq!(announced.keys().count(), 0);
        for (weight, expected) in [(1, (1, 1)), (2, (1, 1)), (0, (0, 0)), (0, (0, 0))] {
            announced.record(&delegates, weight);
            assert_eq!((announced.len(), announced.delegates()), expected);
        }
    }
}
