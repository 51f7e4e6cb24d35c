//! The set of consumers that a partitioner sees.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::lane::Lane;

/// One consumer, as the partitioner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Consumer {
    /// Id of the consumer. Ids grow and are never reused.
    pub id: i64,
    /// Number of elements queued for the consumer.
    pub queued: usize,
}

impl Consumer {
    fn from_lane(lane: &Lane) -> Self {
        Self {
            id: lane.id,
            queued: lane.queued(),
        }
    }
}

/// The consumers in the order in which they subscribed. The set does not change. The number of queued
/// elements is read on each call, and may have changed when the caller uses it.
#[derive(Clone, Default)]
pub struct Consumers {
    /// Also sorted by id, because ids grow.
    list: Vec<Arc<Lane>>,
    /// The lane of each consumer, and the index of its queue in the router.
    by_id: HashMap<i64, Entry, BuildHasherDefault<IdHasher>>,
}

#[derive(Clone)]
struct Entry {
    lane: Arc<Lane>,
    slot: usize,
}

impl Consumers {
    /// Returns the number of consumers. In a call of the partitioner, the number is never 0.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there is no consumer.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns an iterator over all consumers.
    pub fn iter(&self) -> ConsumersIter<'_> {
        ConsumersIter(self.list.iter())
    }

    /// Returns the consumer at an index.
    pub fn get(&self, index: usize) -> Option<Consumer> {
        self.list.get(index).map(|lane| Consumer::from_lane(lane))
    }

    /// Returns the id of the consumer at `index` modulo the number of consumers. Useful for round robin and
    /// hashes.
    ///
    /// # Panics
    ///
    /// If there is no consumer.
    pub fn id_at(&self, index: usize) -> i64 {
        self.list[index % self.list.len()].id
    }

    /// Returns the number of elements queued for a consumer, or `None` if no consumer has this id.
    pub fn queued(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).map(|entry| entry.lane.queued())
    }

    // ---- Used by the hub.

    pub(super) fn lanes(&self) -> &[Arc<Lane>] {
        &self.list
    }

    /// Adds the consumer that subscribed last.
    pub(super) fn add(&mut self, lane: Arc<Lane>, slot: usize) {
        debug_assert!(self.list.last().is_none_or(|last| last.id < lane.id));
        let entry = Entry {
            lane: Arc::clone(&lane),
            slot,
        };
        self.by_id.insert(lane.id, entry);
        self.list.push(lane);
    }

    /// Removes a consumer, and returns the index of its queue.
    pub(super) fn remove(&mut self, id: i64) -> Option<usize> {
        let entry = self.by_id.remove(&id)?;
        if let Ok(index) = self.list.binary_search_by_key(&id, |lane| lane.id) {
            self.list.remove(index);
        }
        Some(entry.slot)
    }

    /// Returns the index of a consumer's queue in the router.
    #[inline]
    pub(super) fn slot(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).map(|entry| entry.slot)
    }
}

impl fmt::Debug for Consumers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// An iterator over [`Consumers`].
#[derive(Clone)]
pub struct ConsumersIter<'a>(std::slice::Iter<'a, Arc<Lane>>);

impl Iterator for ConsumersIter<'_> {
    type Item = Consumer;

    fn next(&mut self) -> Option<Consumer> {
        self.0.next().map(|lane| Consumer::from_lane(lane))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for ConsumersIter<'_> {}

impl fmt::Debug for ConsumersIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a> IntoIterator for &'a Consumers {
    type Item = Consumer;
    type IntoIter = ConsumersIter<'a>;

    fn into_iter(self) -> ConsumersIter<'a> {
        self.iter()
    }
}

/// A hasher for ids. The hub assigns ids sequentially, so the hasher only spreads them over high and low
/// bits.
#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio, so that adjacent ids get distant hashes.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }
}
