//! Where the streams that copy from elsewhere are spoken to by their origins.

use hashbrown::HashMap;

use super::streams::Key;

/// Topics that one stream listens to, and nobody else.
#[derive(Debug, Default)]
pub(super) struct Inlets {
    by_topic: HashMap<Box<[u8]>, Key>,
    by_stream: HashMap<Key, Vec<Box<[u8]>>>,
}

impl Inlets {
    /// The stream that a message to this topic is for.
    pub(super) fn stream(&self, topic: &[u8]) -> Option<Key> {
        self.by_topic.get(topic).copied()
    }

    /// A stream listens to these from now on, and to no other.
    pub(super) fn set(&mut self, key: Key, topics: Vec<Box<[u8]>>) {
        for topic in self.by_stream.remove(&key).unwrap_or_default() {
            self.by_topic.remove(&topic);
        }
        if topics.is_empty() {
            return;
        }
        for topic in &topics {
            self.by_topic.insert(topic.clone(), key);
        }
        self.by_stream.insert(key, topics);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_those_it_said_last() {
        let mut inlets = Inlets::default();
        let topics = |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect();
        inlets.set(1, topics(&["a", "b"]));
        inlets.set(2, topics(&["c"]));
        inlets.set(1, topics(&["b", "d"]));
        let found = ["a", "b", "c", "d"].map(|topic| inlets.stream(topic.as_bytes()));
        assert_eq!(found, [None, Some(1), Some(2), Some(1)]);
        inlets.set(1, Vec::new());
        assert_eq!(inlets.stream(b"b"), None);
        assert_eq!(inlets.by_stream.len(), 1);
    }
}
