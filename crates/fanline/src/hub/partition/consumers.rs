//! The consumers, as a partitioner sees them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::lane::Lane;

/// One consumer, as the partitioner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Never another's; the later it came the larger.
    pub id: i64,
    /// How many elements wait for it.
    pub queued: usize,
}

impl Consumer {
    fn of(lane: &Lane) -> Self {
        Self {
            id: lane.id,
            queued: lane.queued(),
        }
    }
}

/// The consumers in the order in which they came. Who they are is fixed; how many elements wait for
/// each is looked up when it is asked, and as it was a moment ago.
#[derive(Clone, Default)]
pub struct Consumers {
    /// By id as well, since ids grow.
    list: Vec<Arc<Lane>>,
    /// Where in the slots of the hub each one's queue is.
    by_id: HashMap<i64, Entry, BuildHasherDefault<IdHasher>>,
}

#[derive(Clone)]
struct Entry {
    lane: Arc<Lane>,
    slot: usize,
}

impl Consumers {
    /// How many there are; never 0 for a partitioner.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> ConsumersIter<'_> {
        ConsumersIter(self.list.iter())
    }

    /// The one with that index.
    pub fn get(&self, index: usize) -> Option<Consumer> {
        self.list.get(index).map(|lane| Consumer::of(lane))
    }

    /// The id of the one with that index, counted around: for round robin and hashes.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn id_at(&self, index: usize) -> i64 {
        self.list[index % self.list.len()].id
    }

    /// How many elements wait for the consumer with that id, if it is there.
    pub fn queued(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).map(|entry| entry.lane.queued())
    }

    // ---- For the hub.

    pub(super) fn lanes(&self) -> &[Arc<Lane>] {
        &self.list
    }

    /// Adds one that came after all others.
    pub(super) fn add(&mut self, lane: Arc<Lane>, slot: usize) {
        debug_assert!(self.list.last().is_none_or(|last| last.id < lane.id));
        let entry = Entry {
            lane: Arc::clone(&lane),
            slot,
        };
        self.by_id.insert(lane.id, entry);
        self.list.push(lane);
    }

    /// The slot of the one that is gone.
    pub(super) fn remove(&mut self, id: i64) -> Option<usize> {
        let entry = self.by_id.remove(&id)?;
        if let Ok(index) = self.list.binary_search_by_key(&id, |lane| lane.id) {
            self.list.remove(index);
        }
        Some(entry.slot)
    }

    /// The slot of the one with that id.
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

/// Goes over [`Consumers`].
#[derive(Clone)]
pub struct ConsumersIter<'a>(std::slice::Iter<'a, Arc<Lane>>);

impl Iterator for ConsumersIter<'_> {
    type Item = Consumer;

    fn next(&mut self) -> Option<Consumer> {
        self.0.next().map(|lane| Consumer::of(lane))
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

/// For ids, which are ours and count up: spreads them over high and low bits, and no more.
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
        // 2^64 divided by the golden ratio: neighbours come to lie far apart.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }
}
