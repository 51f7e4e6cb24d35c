//! Who the consumers of a hub are; only under the hub's lock.

use std::sync::Arc;

use super::parked::Member;
use crate::sync::Ordering;

/// Members in no order. Joining and leaving move one entry at most, and looking for the slowest goes
/// over those only who are there.
#[derive(Default)]
pub(super) struct Roster {
    members: Vec<Arc<Member>>,
}

impl Roster {
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn add(&mut self, member: Arc<Member>) {
        // Relaxed: under the lock, as all that is read of it.
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

    /// How far the consumer furthest behind is from `head`, behind which nobody is.
    ///
    /// From the last on, as executors run tasks in the order in which they were woken, so that it is likely
    /// to move on last. Whoever is still at `head` ends the search, so being asked again while nobody else
    /// has moved costs little.
    pub(super) fn slowest(&self, head: usize) -> Option<usize> {
        let mut slowest = None;
        for member in self.members.iter().rev() {
            // Acquire: the consumer's reads before its position are over before the slots are written.
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

    /// The last one before a place, at a position like that, and its place.
    pub(super) fn last_before(
        &self,
        place: usize,
        is_there: impl Fn(usize) -> bool,
    ) -> Option<(usize, &Member)> {
        let before = &self.members[..place.min(self.members.len())];
        // Relaxed: looked at again.
        let place = before
            .iter()
            .rposition(|member| is_there(member.position.load(Ordering::Relaxed)))?;
        Some((place, &before[place]))
    }
}
