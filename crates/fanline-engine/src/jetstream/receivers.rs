//! Index of deliver subjects, so that a changed subscription affects only the streams that push to it.

use std::collections::BTreeMap;

use super::streams::Key;
use crate::subject::Filter;

/// The deliver subjects of all push consumers.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    /// Number of consumers by subject and stream.
    consumers: BTreeMap<(Box<[u8]>, Key), usize>,
}

impl Receivers {
    /// Adds a push consumer of a stream, or removes one if `is_there` is `false`.
    pub(super) fn change(&mut self, key: Key, subject: Box<[u8]>, is_there: bool) {
        let entry = (subject, key);
        if is_there {
            *self.consumers.entry(entry).or_default() += 1;
        } else if let Some(count) = self.consumers.get_mut(&entry) {
            *count -= 1;
            if *count == 0 {
                self.consumers.remove(&entry);
            }
        }
    }

    /// Returns the streams that push to a subject that the filter matches. Most filters are literal and
    /// looked up directly. Filters with wildcards are compared with every deliver subject.
    pub(super) fn of(&self, filter: Filter<'_>) -> Vec<Key> {
        let mut keys: Vec<Key> = if filter.is_literal() {
            let subject: Box<[u8]> = filter.as_bytes().into();
            let range = self.consumers.range((subject.clone(), 0)..);
            let same = range.take_while(|((found, _), _)| *found == subject);
            same.map(|((_, key), _)| *key).collect()
        } else {
            let all = self.consumers.keys();
            let matching = all.filter(|(subject, _)| filter.matches(subject));
            matching.map(|(_, key)| *key).collect()
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_by_filter() {
        let mut receivers = Receivers::default();
        for (key, subject) in [(7, "d.a"), (7, "d.a"), (3, "d.b"), (9, "d.a"), (1, "e")] {
            receivers.change(key, subject.as_bytes().into(), true);
        }
        let check = |receivers: &Receivers, filter: &str, expected: &[Key]| {
            let filter = Filter::parse(filter.as_bytes()).unwrap();
            assert_eq!(receivers.of(filter), expected, "{filter:?}");
        };
        check(&receivers, "d.a", &[7, 9]);
        check(&receivers, "d", &[]);
        check(&receivers, "d.*", &[3, 7, 9]);
        check(&receivers, ">", &[1, 3, 7, 9]);
        receivers.change(7, b"d.a"[..].into(), false);
        check(&receivers, "d.a", &[7, 9]);
        receivers.change(7, b"d.a"[..].into(), false);
        receivers.change(7, b"d.a"[..].into(), false);
        check(&receivers, "d.a", &[9]);
    }
}
