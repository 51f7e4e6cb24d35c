//! The registry of a hub's consumers. Used only under the hub's lock.

use std::sync::Arc;

use super::parked::Member;
use crate::sync::Ordering;

/// The hub's members, in no particular order. Joining or leaving moves at most one entry.
#[derive(Default)]
pub(super) struct ConsumerRegistry {
    members: Vec<Arc<Member>>,
}

impl ConsumerRegistry {
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn add(&mut self, member: Arc<Member>) {
        // Relaxed: under the lock, like every use of the index.
        member.index.store(self.members.len(), Ordering::Relaxed);
        self.members.push(member);
    }

    pub(super) fn remove(&mut self, member: &Member) -> Arc<Member> {
        let index = member.index.load(Ordering::Relaxed);
        let removed = self.members.swap_remove(index);
        debug_assert_eq!(removed.id, member.id);
        if let Some(moved) = self.members.get(index) {
            moved.index.store(index, Ordering::Relaxed);
        }
        removed
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.members.iter()
    }

    /// Returns how far the slowest consumer is ahead of `head`. No consumer is behind `head`.
    ///
    /// Searches backwards, because executors run tasks in the order of their wake-ups, so the last member is
    /// likely the slowest. A member at `head` ends the search, so a repeated search is cheap while that
    /// member does not move.
    pub(super) fn slowest(&self, head: usize) -> Option<usize> {
        let mut slowest = None;
        for member in self.members.iter().rev() {
            // Acquire: the consumer's reads of the slots before its position happen before the producer's
            // next writes to these slots.
            let ahead = member.position.load(Ordering::Acquire).wrapping_sub(head);
            if slowest.is_none_or(|least| ahead < least) {
                slowest = Some(ahead);
                if ahead == 0 {
                    break;
                }
            }
        }
        slowest
    }

    /// Returns the last member before `index` whose position matches, and its index.
    pub(super) fn last_before(
        &self,
        index: usize,
        matches: impl Fn(usize) -> bool,
    ) -> Option<(usize, &Member)> {
        let before = &self.members[..index.min(self.members.len())];
        // Relaxed: the caller checks the position again.
        let index = before
            .iter()
            .rposition(|member| matches(member.position.load(Ordering::Relaxed)))?;
        Some((index, &before[index]))
    }
}
