//! A set of deadlines with fast access to the earliest one.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

/// At most one deadline per key. A deadline is the time since the server started.
#[derive(Clone, Debug)]
pub(crate) struct Timers<K> {
    deadlines: HashMap<K, Duration>,
    queue: BTreeSet<(Duration, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Timers {
            deadlines: HashMap::new(),
            queue: BTreeSet::new(),
        }
    }
}

impl<K: Clone + Hash + Ord> Timers<K> {
    /// Sets or removes the deadline of a key.
    pub(crate) fn set(&mut self, key: K, at: Option<Duration>) {
        let before = match at {
            Some(at) => self.deadlines.insert(key.clone(), at),
            None => self.deadlines.remove(&key),
        };
        if before != at {
            if let Some(before) = before {
                self.queue.remove(&(before, key.clone()));
            }
            self.queue.extend(at.map(|at| (at, key)));
        }
    }

    /// Sets the deadline of a key, unless it has an earlier one.
    pub(crate) fn set_earlier(&mut self, key: K, at: Duration) {
        if self.deadlines.get(&key).is_none_or(|before| at < *before) {
            self.set(key, Some(at));
        }
    }

    /// Returns the first deadline.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Returns the key with the first deadline.
    pub(crate) fn first(&self) -> Option<&K> {
        self.queue.first().map(|(_, key)| key)
    }

    /// Removes the first deadline if it is due at `now`, and returns its key.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<K> {
        self.next().filter(|at| *at <= now)?;
        let (_, key) = self.queue.pop_first()?;
        self.deadlines.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_deadline() {
        let at = Duration::from_secs;
        let mut timers = Timers::default();
        for (key, deadline) in [('a', 3), ('b', 2), ('c', 2), ('a', 1), ('d', 9), ('c', 4)] {
            timers.set(key, Some(at(deadline)));
        }
        timers.set('d', None);
        timers.set('e', None);
        timers.set_earlier('a', at(2));
        timers.set_earlier('c', at(3));
        timers.set_earlier('f', at(5));
        assert_eq!((timers.next(), timers.first()), (Some(at(1)), Some(&'a')));
        assert_eq!(timers.pop(at(0)), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop(at(3))).collect();
        assert_eq!(due, ['a', 'b', 'c']);
        assert_eq!((timers.next(), timers.first()), (Some(at(5)), Some(&'f')));
        timers.set('a', Some(at(1)));
        assert_eq!(timers.pop(at(9)), Some('a'));
    }
}
