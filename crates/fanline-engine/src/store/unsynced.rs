//! Records whose removal is not on the disk yet: a power cut may restore them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::commit::SyncId;

/// These records, tracked from the first query on.
#[derive(Default)]
pub(super) struct UnsyncedRemovals {
    is_tracking: bool,
    /// Removed since the last sync was requested.
    newer: BTreeSet<u64>,
    /// Removed before that: the sync under way covers them.
    requested: BTreeSet<u64>,
    /// Until this sync is done any record may be restored: all were removed, or tracking began later.
    unknown_until: Option<SyncId>,
}

impl UnsyncedRemovals {
    /// Begins to track. Until the sync `next` is done, any record may have been removed before.
    pub(super) fn track(&mut self, next: Option<SyncId>) {
        if !self.is_tracking {
            self.is_tracking = true;
            self.unknown_until = next;
        }
    }

    pub(super) fn note(&mut self, sequence: u64) {
        if self.is_tracking {
            self.newer.insert(sequence);
        }
    }

    /// Notes that every record was removed; the sync `next` is the first to cover that.
    pub(super) fn note_all(&mut self, next: SyncId) {
        self.unknown_until = Some(next);
    }

    /// Notes that a sync is requested.
    pub(super) fn request(&mut self) {
        self.requested.append(&mut self.newer);
    }

    /// Notes that a sync succeeded or failed.
    pub(super) fn finish(&mut self, id: SyncId, is_done: bool) {
        if is_done {
            self.requested.clear();
            self.unknown_until = self.unknown_until.filter(|until| until.0 > id.0);
        } else {
            self.newer.append(&mut self.requested);
        }
    }

    /// Whether one of these records may be restored.
    pub(super) fn has_any(&self, sequences: Range<u64>) -> bool {
        let has = |set: &BTreeSet<u64>| set.range(sequences.clone()).next().is_some();
        !sequences.is_empty()
            && (self.unknown_until.is_some() || has(&self.newer) || has(&self.requested))
    }
}
