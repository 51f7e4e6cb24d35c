//! Subjects on which streams receive copies from remote origins.

use hashbrown::HashMap;

use super::streams::Key;

/// The subjects on which each stream receives copies.
#[derive(Debug, Default)]
pub(super) struct Inlets {
    by_topic: HashMap<Box<[u8]>, Key>,
    by_stream: HashMap<Key, Vec<Box<[u8]>>>,
}

impl Inlets {
    /// Returns the stream that receives messages on this subject.
    pub(super) fn stream(&self, topic: &[u8]) -> Option<Key> {
        self.by_topic.get(topic).copied()
    }

    /// Sets the subjects of a stream, replacing its earlier ones.
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
    fn set_replaces_earlier_subjects() {
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
