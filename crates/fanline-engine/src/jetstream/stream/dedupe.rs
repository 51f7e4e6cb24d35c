//! Ids of recent messages, so that a message published twice is stored once.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::Stream;
use crate::headers::find;
use crate::short_bytes::ShortBytes;
use crate::store::{Filters, StoreError};

/// The message ids in a stream's duplicate window, oldest first. The table contains the positions of ids in
/// that order, counted from the first id ever inserted.
#[derive(Default)]
pub(super) struct Dedupe {
    order: VecDeque<RecentId>,
    /// Position of the first id in `order`.
    front: u64,
    places: HashTable<u64>,
    hash_builder: DefaultHashBuilder,
}

struct RecentId {
    id: ShortBytes,
    sequence: u64,
    unix_nanos: i64,
}

impl Dedupe {
    /// Adds an id that is not present. Times must not go back by much from one call to the next.
    pub(super) fn insert(&mut self, id: &[u8], sequence: u64, unix_nanos: i64) {
        let place = self.front + self.order.len() as u64;
        let hash = self.hash_builder.hash_one(id);
        self.order.push_back(RecentId {
            id: ShortBytes::from(id),
            sequence,
            unix_nanos,
        });
        let (order, front, hash_builder) = (&self.order, self.front, &self.hash_builder);
        self.places.insert_unique(hash, place, |place| {
            hash_builder.hash_one(at(order, front, *place).id.as_slice())
        });
    }

    /// Returns the sequence of an id, if it was stored after `oldest_unix_nanos`.
    pub(super) fn find(&self, id: &[u8], oldest_unix_nanos: i64) -> Option<u64> {
        let hash = self.hash_builder.hash_one(id);
        let seen = |place: &u64| at(&self.order, self.front, *place);
        let place = self
            .places
            .find(hash, |place| seen(place).id.as_slice() == id)?;
        let seen = seen(place);
        (seen.unix_nanos > oldest_unix_nanos).then_some(seen.sequence)
    }

    /// Removes the ids that were stored at or before a time.
    pub(super) fn expire(&mut self, oldest_unix_nanos: i64) {
        while let Some(seen) = self.order.front() {
            if seen.unix_nanos > oldest_unix_nanos {
                break;
            }
            let hash = self.hash_builder.hash_one(seen.id.as_slice());
            let front = self.front;
            if let Ok(entry) = self.places.find_entry(hash, |place| *place == front) {
                entry.remove();
            }
            self.order.pop_front();
            self.front += 1;
        }
    }

    /// Returns the time of the oldest id.
    pub(super) fn oldest(&self) -> Option<i64> {
        self.order.front().map(|seen| seen.unix_nanos)
    }
}

fn at(order: &VecDeque<RecentId>, front: u64, place: u64) -> &RecentId {
    let index = usize::try_from(place - front).unwrap_or(usize::MAX);
    &order[index]
}

impl Stream {
    /// Returns the time up to which ids have expired.
    pub(super) fn oldest_id(&self) -> i64 {
        self.clock
            .unix_nanos
            .saturating_sub(self.config.duplicate_window.0)
    }

    /// Returns the sequence of an earlier message with this id in the duplicate window.
    pub(super) fn find_duplicate(&mut self, id: &[u8]) -> Option<u64> {
        if self.config.duplicate_window.is_zero() {
            return None;
        }
        let oldest = self.oldest_id();
        if self.dedupe.is_none() {
            // If the log cannot be read, the id counts as new, and the next message tries again.
            self.dedupe = Some(self.recover_ids(oldest).ok()?);
        }
        let dedupe = self.dedupe.as_mut()?;
        dedupe.expire(oldest);
        dedupe.find(id, oldest)
    }

    /// Reads the ids of recent records from the log.
    fn recover_ids(&mut self, oldest: i64) -> Result<Dedupe, StoreError> {
        let mut dedupe = Dedupe::default();
        let mut everything = Filters::default();
        let mut from = self.store.sequence_at(oldest.saturating_add(1))?;
        while let Some(sequence) = self.store.next_matching(&mut everything, from)? {
            from = sequence + 1;
            match self.store.read(sequence) {
                Ok(Some(record)) => {
                    let id = find(record.headers, b"Nats-Msg-Id");
                    if let Some(id) = id.filter(|id| !id.is_empty())
                        && dedupe.find(id, oldest).is_none()
                    {
                        dedupe.insert(id, sequence, record.unix_nanos);
                    }
                }
                Ok(None) | Err(StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(dedupe)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_model(ids in prop::collection::vec((0_u8..30, 0_i64..4), 1..300)) {
            const WINDOW: i64 = 20;
            let (mut dedupe, mut model) = (Dedupe::default(), BTreeMap::new());
            let mut now = 0;
            for (sequence, (id, pause)) in (1_u64..).zip(ids) {
                now += pause;
                model.retain(|_, (_, at)| *at > now - WINDOW);
                let id = id.to_string().repeat(usize::from(id));
                let found = dedupe.find(id.as_bytes(), now - WINDOW);
                prop_assert_eq!(found, model.get(&id).map(|(sequence, _)| *sequence));
                dedupe.expire(now - WINDOW);
                prop_assert_eq!(dedupe.oldest(), model.values().map(|(_, at)| *at).min());
                if found.is_none() {
                    dedupe.insert(id.as_bytes(), sequence, now);
                    model.insert(id, (sequence, now));
                }
                prop_assert_eq!(dedupe.places.len(), model.len());
            }
        }
    }
}
