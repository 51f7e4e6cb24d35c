//! How far the log is on the disk, for what has no sequence: removals and purges.

use crate::store::SyncId;

/// Marks in the log, and which of them are on the disk.
#[derive(Default)]
pub(super) struct Barrier {
    given: u64,
    /// The sync that is under way, and the mark that it covers.
    asked: Option<(SyncId, u64)>,
    safe: u64,
}

impl Barrier {
    /// A mark for all that has been done so far.
    pub(super) fn give(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    /// Marks up to this one are on the disk.
    pub(super) fn safe(&self) -> u64 {
        self.safe
    }

    /// A sync begins, which covers all that has been done.
    pub(super) fn note_asked(&mut self, id: SyncId) {
        self.asked = Some((id, self.given));
    }

    /// There is nothing to be brought to the disk, unless that is being done.
    pub(super) fn note_idle(&mut self) {
        if self.asked.is_none() {
            self.safe = self.given;
        }
    }

    /// A sync has ended.
    pub(super) fn note_synced(&mut self, id: SyncId, is_done: bool) {
        let asked = self.asked.take_if(|(asked, _)| *asked == id);
        if let Some((_, mark)) = asked.filter(|_| is_done) {
            self.safe = mark;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_safe_when_a_sync_that_began_after_it_is_done() {
        let mut barrier = Barrier::default();
        let first = barrier.give();
        barrier.note_asked(SyncId(1));
        let second = barrier.give();
        barrier.note_idle();
        assert_eq!(barrier.safe(), 0);
        barrier.note_synced(SyncId(1), true);
        assert_eq!(barrier.safe(), first);
        barrier.note_asked(SyncId(2));
        barrier.note_synced(SyncId(2), false);
        assert_eq!(barrier.safe(), first);
        barrier.note_idle();
        assert_eq!(barrier.safe(), second);
    }
}
