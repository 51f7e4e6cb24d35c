//! Subjects on which streams receive copies from remote origins.

use hashbrown::HashMap;

use super::streams::Key;

/// The subjects on which each stream receives copies.
#[derive(Debug, Default)]
pub(super) struct OriginInboxes {
    by_subject: HashMap<Box<[u8]>, Key>,
    by_stream: HashMap<Key, Vec<Box<[u8]>>>,
}

impl OriginInboxes {
    /// Returns the stream that receives messages on this subject.
    pub(super) fn stream(&self, subject: &[u8]) -> Option<Key> {
        self.by_subject.get(subject).copied()
    }

    /// Sets the subjects of a stream, replacing its earlier ones.
    pub(super) fn set(&mut self, key: Key, subjects: Vec<Box<[u8]>>) {
        for subject in self.by_stream.remove(&key).unwrap_or_default() {
            self.by_subject.remove(&subject);
        }
        if subjects.is_empty() {
            return;
        }
        for subject in &subjects {
            self.by_subject.insert(subject.clone(), key);
        }
        self.by_stream.insert(key, subjects);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_replaces_earlier_subjects() {
        let mut inboxes = OriginInboxes::default();
        let subjects = |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect();
        inboxes.set(1, subjects(&["a", "b"]));
        inboxes.set(2, subjects(&["c"]));
        inboxes.set(1, subjects(&["b", "d"]));
        let found = ["a", "b", "c", "d"].map(|subject| inboxes.stream(subject.as_bytes()));
        assert_eq!(found, [None, Some(1), Some(2), Some(1)]);
        inboxes.set(1, Vec::new());
        assert_eq!(inboxes.stream(b"b"), None);
        assert_eq!(inboxes.by_stream.len(), 1);
    }
}
