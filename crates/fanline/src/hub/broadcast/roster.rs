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

    /// The consumer furthest behind, and how far it is from `head`, behind which nobody is.
    ///
    /// The last of those who are equal: executors run tasks in the order in which they were woken, so
    /// it is likely the last to move on. Whoever is still at `head` ends the search, so being asked
    /// again while nobody else has moved costs little.
    pub(super) fn slowest(&self, head: usize) -> Option<(&Arc<Member>, usize)> {
        let mut slowest: Option<(&Arc<Member>, usize)> = None;
        for member in self.members.iter().rev() {
            // Acquire: the consumer's reads before its position are over before the slots are written.
            let ahead = member.position.load(Ordering::Acquire).wrapping_sub(head);
            if slowest.is_none_or(|(_, least)| ahead < least) {
                slowest = Some((member, ahead));
                if ahead == 0 {
                    break;
                }
            }
        }
        slowest
    }
}
