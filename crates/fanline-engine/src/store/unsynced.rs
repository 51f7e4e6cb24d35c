//! Removed records whose removal is not on disk yet, so that a power cut may restore them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::commit::SyncId;

/// Sequences of removed records whose removal is not on disk yet, tracked from the first query on.
#[derive(Default)]
pub(super) struct UnsyncedRemovals {
    is_tracking: bool,
    /// Sequences removed since the last sync was requested.
    newer: BTreeSet<u64>,
    /// Sequences removed before the request of the current sync, which covers them.
    requested: BTreeSet<u64>,
    /// Until this sync is done, a power cut may restore any removed record, because all records were removed,
    /// or because some were removed before tracking began.
    unknown_until: Option<SyncId>,
}

impl UnsyncedRemovals {
    /// Begins to track. Earlier removals are unknown, so any record may be restored until the sync `next` is
    /// done.
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

    /// Registers the removal of all records, which the sync `next` will cover.
    pub(super) fn note_all(&mut self, next: SyncId) {
        self.unknown_until = Some(next);
    }

    /// Registers that a sync is requested.
    pub(super) fn request(&mut self) {
        self.requested.append(&mut self.newer);
    }

    /// Registers that a sync has succeeded or failed.
    pub(super) fn finish(&mut self, id: SyncId, is_done: bool) {
        if is_done {
            self.requested.clear();
            self.unknown_until = self.unknown_until.filter(|until| until.0 > id.0);
        } else {
            self.newer.append(&mut self.requested);
        }
    }

    /// Returns whether a power cut may restore one of these records.
    pub(super) fn has_any(&self, sequences: Range<u64>) -> bool {
        let has = |set: &BTreeSet<u64>| set.range(sequences.clone()).next().is_some();
        !sequences.is_empty()
            && (self.unknown_until.is_some() || has(&self.newer) || has(&self.requested))
    }
}
