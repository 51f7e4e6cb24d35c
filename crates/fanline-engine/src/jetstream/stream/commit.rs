//! Group commit of a stream: what to sync, what a finished sync has made true, and the release of acknowledgements.
//!
//! Three steps, in this order: [`Stream::poll_sync`] requests syncs, [`Stream::handle_synced`] takes their results, and
//! [`Stream::release_acks`] sends what is true by then.

use std::time::Duration;

use super::Stream;
use super::append::refused;
use crate::jetstream::Port;
use crate::store::{DiskError, SyncId, SyncRequest};

impl Stream {
    /// Returns when [`poll_sync`](Stream::poll_sync) has something to do next though nothing happens.
    pub fn next_sync_at(&self) -> Option<Duration> {
        self.store.next_sync_at()
    }

    /// Returns what to sync now; to be polled until there is nothing.
    pub fn poll_sync(&mut self, now: Duration) -> Option<SyncRequest> {
        let request = self.store.poll_sync(now);
        match &request {
            Some(request) => self.barrier.note_asked(request.id),
            None if self.store.failure().is_none() => self.barrier.note_idle(),
            None => {}
        }
        request
    }

    /// Takes the result of a sync that [`poll_sync`](Self::poll_sync) has requested. Then `poll_sync` and
    /// [`release_acks`](Self::release_acks) are due.
    pub fn handle_synced(&mut self, id: SyncId, result: Result<(), DiskError>) {
        self.store.handle_synced(id, result);
        self.barrier.note_synced(id, result.is_ok());
        if result.is_ok() {
            self.consumers.handle_synced();
        }
    }

    /// Sends the acknowledgements of publishes that are durable by now; errors, if the disk fails.
    pub fn release_acks(&mut self, port: &mut dyn Port) {
        let durable = self.store.durable();
        self.acks.release(durable, port);
        self.consumers.handle_durable(durable);
        if let Some(error) = self.store.failure() {
            self.acks.fail(&refused(error.into()), port);
        }
    }

    /// Whether a sync is under way.
    pub(in crate::jetstream) fn is_syncing(&self) -> bool {
        self.barrier.is_syncing()
    }

    /// Whether acknowledgements wait for the disk.
    pub fn commits(&self) -> bool {
        self.store.commits()
    }

    /// Returns a mark for all that has been done to the log so far: that is on the disk once
    /// [`safe`](Self::safe) has reached it.
    pub fn mark(&mut self) -> u64 {
        self.store.request_sync();
        self.barrier.give()
    }

    /// Marks up to this one are on the disk.
    pub fn safe(&self) -> u64 {
        self.barrier.safe()
    }

    /// The states of its consumers are saved now: they are to be written when
    /// [`may_write_states`](Self::may_write_states) says so.
    pub(in crate::jetstream) fn note_states(&mut self) {
        if std::mem::take(&mut self.has_removed) {
            self.states_after = self.mark();
        }
    }

    /// Whether the log is as far on the disk as the saved states of consumers need. A consumer has passed over
    /// removed records: if a power cut brings them back, its state must not say that it has seen them.
    pub(in crate::jetstream) fn may_write_states(&self) -> bool {
        !self.commits() || self.safe() >= self.states_after
    }

    /// Why the disk does not take what is published; `None` when it does.
    pub fn failure(&self) -> Option<DiskError> {
        self.store.failure()
    }

    /// Writes and syncs everything, and waits for it: the stream is good for nothing else afterwards.
    ///
    /// # Errors
    /// The disk fails. What it has not taken is not acknowledged.
    pub fn close(&mut self, port: &mut dyn Port) -> Result<(), DiskError> {
        let closed = self.store.close();
        self.release_acks(port);
        closed
    }
}

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

    fn is_syncing(&self) -> bool {
        self.asked.is_some()
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
