//! Group commit of a stream: what to sync, what a finished sync makes durable, and the release of
//! acknowledgements.
//!
//! In this order: [`Stream::poll_sync`] requests syncs, [`Stream::handle_synced`] takes their results, and
//! [`Stream::release_acks`] sends what is durable by then.

use std::time::Duration;

use super::Stream;
use super::acks::Ack;
use super::append::refused;
use crate::jetstream::Port;
use crate::store::{DiskError, SyncId, SyncRequest};

impl Stream {
    /// Returns when to call [`poll_sync`](Stream::poll_sync) even if nothing happens.
    pub fn next_sync_at(&self) -> Option<Duration> {
        self.store.next_sync_at()
    }

    /// Returns what to sync now; call it until it returns `None`.
    pub fn poll_sync(&mut self, now: Duration) -> Option<SyncRequest> {
        let request = self.store.poll_sync(now);
        match &request {
            Some(request) => self.barrier.note_requested(request.id),
            None if self.store.failure().is_none() => self.barrier.note_idle(),
            None => {}
        }
        request
    }

    /// Takes the result of a sync that [`poll_sync`](Self::poll_sync) requested. Call `poll_sync` and
    /// [`release_acks`](Self::release_acks) afterwards.
    pub fn handle_synced(&mut self, id: SyncId, result: Result<(), DiskError>) {
        self.store.handle_synced(id, result);
        self.barrier.note_synced(id, result.is_ok());
        if result.is_ok() {
            self.consumers.handle_synced();
        }
    }

    /// Sends an answer when the log is durable up to its sequence. A sequence without a record, which an interest
    /// stream without consumers assigns, has nothing to wait for but the records before it.
    pub(super) fn send_ack(&mut self, ack: Ack<'_>, port: &mut dyn Port) {
        let until = ack.until.min(self.store.appended());
        self.acks
            .send(&Ack { until, ..ack }, self.store.durable(), port);
    }

    /// Sends the acknowledgements of publishes that are durable now, or errors if the disk fails.
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

    /// Whether acknowledgements wait for a sync.
    pub fn commits(&self) -> bool {
        self.store.commits()
    }

    /// Returns a mark for all changes of the log so far. They are on the disk once [`safe`](Self::safe) has
    /// reached it.
    pub fn mark(&mut self) -> u64 {
        self.store.request_sync();
        self.barrier.next_mark()
    }

    /// Returns the mark up to which changes are on the disk.
    pub fn safe(&self) -> u64 {
        self.barrier.safe()
    }

    /// Notes that the states of its consumers are being saved; they may be written when
    /// [`may_write_states`](Self::may_write_states) returns `true`.
    pub(in crate::jetstream) fn note_states(&mut self) {
        if std::mem::take(&mut self.has_removed) {
            self.states_after = self.mark();
        }
    }

    /// Whether enough of the log is on the disk to write the saved states of consumers. A consumer skips
    /// removed records: if a power cut restores them, its state must not claim to have seen them.
    pub(in crate::jetstream) fn may_write_states(&self) -> bool {
        !self.commits() || self.safe() >= self.states_after
    }

    /// Returns why the disk refuses publishes; `None` while it accepts them.
    pub fn failure(&self) -> Option<DiskError> {
        self.store.failure()
    }

    /// Writes and syncs everything, and blocks until it is done. The stream is unusable afterwards.
    ///
    /// # Errors
    /// The disk fails. Records that it has not stored are not acknowledged.
    pub fn close(&mut self, port: &mut dyn Port) -> Result<(), DiskError> {
        let closed = self.store.close();
        self.release_acks(port);
        closed
    }
}

/// Marks in the log, and which of them are on the disk.
#[derive(Default)]
pub(super) struct Barrier {
    last_mark: u64,
    /// The sync under way, and the mark that it covers.
    in_flight: Option<(SyncId, u64)>,
    safe: u64,
}

impl Barrier {
    /// Returns a mark for all changes so far.
    pub(super) fn next_mark(&mut self) -> u64 {
        self.last_mark += 1;
        self.last_mark
    }

    /// Returns the mark up to which changes are on the disk.
    pub(super) fn safe(&self) -> u64 {
        self.safe
    }

    /// Notes the beginning of a sync, which covers all changes so far.
    pub(super) fn note_requested(&mut self, id: SyncId) {
        self.in_flight = Some((id, self.last_mark));
    }

    fn is_syncing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Notes that there is nothing to sync, unless a sync is under way.
    pub(super) fn note_idle(&mut self) {
        if self.in_flight.is_none() {
            self.safe = self.last_mark;
        }
    }

    /// Notes the end of a sync.
    pub(super) fn note_synced(&mut self, id: SyncId, is_done: bool) {
        let in_flight = self.in_flight.take_if(|(in_flight, _)| *in_flight == id);
        if let Some((_, mark)) = in_flight.filter(|_| is_done) {
            self.safe = mark;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_safe_after_a_later_sync() {
        let mut barrier = Barrier::default();
        let first = barrier.next_mark();
        barrier.note_requested(SyncId(1));
        let second = barrier.next_mark();
        barrier.note_idle();
        assert_eq!(barrier.safe(), 0);
        barrier.note_synced(SyncId(1), true);
        assert_eq!(barrier.safe(), first);
        barrier.note_requested(SyncId(2));
        barrier.note_synced(SyncId(2), false);
        assert_eq!(barrier.safe(), first);
        barrier.note_idle();
        assert_eq!(barrier.safe(), second);
    }
}
