//! Group commit of a stream: requests syncs, takes their results, and sends acknowledgements.
//!
//! The order of calls: [`Stream::poll_sync`] requests syncs, [`Stream::handle_synced`] takes their results,
//! and [`Stream::release_acks`] sends acknowledgements of records that are durable then.

use std::time::Duration;

use super::Stream;
use super::acks::Ack;
use super::append::refused;
use crate::jetstream::Port;
use crate::store::{DiskError, SyncId, SyncRequest};

impl Stream {
    /// Returns the time at which to call [`poll_sync`](Stream::poll_sync) even if there is no other event.
    pub fn next_sync_at(&self) -> Option<Duration> {
        self.store.next_sync_at()
    }

    /// Returns the next sync to perform. Call it until it returns `None`.
    pub fn poll_sync(&mut self, now: Duration) -> Option<SyncRequest> {
        let request = self.store.poll_sync(now);
        match &request {
            Some(request) => self.sync_marks.note_requested(request.id),
            None if self.store.failure().is_none() => self.sync_marks.note_idle(),
            None => {}
        }
        request
    }

    /// Takes the result of a sync that [`poll_sync`](Self::poll_sync) requested. Call `poll_sync` and
    /// [`release_acks`](Self::release_acks) afterwards.
    pub fn handle_synced(&mut self, id: SyncId, result: Result<(), DiskError>) {
        self.store.handle_synced(id, result);
        self.sync_marks.note_synced(id, result.is_ok());
        if result.is_ok() {
            self.consumers.handle_synced();
        }
    }

    /// Sends an answer when the log is durable up to its sequence. A stream with interest retention and no
    /// consumer assigns a sequence, but stores no record for it. The answer then waits only for the records
    /// before this sequence.
    pub(super) fn send_ack(&mut self, ack: Ack<'_>, port: &mut dyn Port) {
        let until = ack.until.min(self.store.appended());
        self.acks
            .send(&Ack { until, ..ack }, self.store.durable(), port);
    }

    /// Sends the acknowledgements of publishes whose records are durable now, or errors if the disk fails.
    pub fn release_acks(&mut self, port: &mut dyn Port) {
        let durable = self.store.durable();
        self.acks.release(durable, port);
        self.consumers.handle_durable(durable);
        if let Some(error) = self.store.failure() {
            self.acks.fail(&refused(error.into()), port);
        }
    }

    /// Returns whether a sync is under way.
    pub(in crate::jetstream) fn is_syncing(&self) -> bool {
        self.sync_marks.is_syncing()
    }

    /// Returns whether acknowledgements wait for a sync. Those of a replicated stream wait until what they confirm is
    /// written, and the caller replicates it before they leave.
    pub fn commits(&self) -> bool {
        self.store.commits() || self.config.is_replicated()
    }

    /// Requests a sync of all changes of the log so far, and returns a mark (a number) for them. The changes
    /// are on disk when [`durable_mark`](Self::durable_mark) has reached the mark.
    pub fn mark(&mut self) -> u64 {
        self.store.request_sync();
        self.sync_marks.next_mark()
    }

    /// Returns the mark up to which changes of the log are on disk.
    pub fn durable_mark(&self) -> u64 {
        self.sync_marks.durable_mark()
    }

    /// Call this when states of consumers are passed to the documents. If records were removed, delays
    /// writing the states until [`may_write_states`](Self::may_write_states) returns `true`.
    pub(in crate::jetstream) fn note_states(&mut self) {
        if std::mem::take(&mut self.has_removed) {
            self.states_after = self.mark();
        }
    }

    /// Returns whether enough of the log is on disk to write the states of consumers. Consumers skip removed
    /// records, so their states count them as delivered. The removals must be on disk first. Otherwise a
    /// power cut could restore records that are then never delivered.
    pub(in crate::jetstream) fn may_write_states(&self) -> bool {
        !self.commits() || self.durable_mark() >= self.states_after
    }

    /// Returns the disk error because of which the stream refuses new messages; `None` while it accepts them.
    pub fn failure(&self) -> Option<DiskError> {
        self.store.failure()
    }

    /// Writes and syncs everything, and blocks until it is done. The stream is unusable afterwards.
    ///
    /// # Errors
    /// The disk fails. Records that are not on disk are not acknowledged.
    pub fn close(&mut self, port: &mut dyn Port) -> Result<(), DiskError> {
        let closed = self.store.close();
        self.release_acks(port);
        closed
    }
}

/// Assigns increasing numbers (marks) to changes of the log, and tracks up to which mark the changes are on
/// disk.
#[derive(Default)]
pub(super) struct SyncMarks {
    last_mark: u64,
    /// The current sync, and the mark up to which it covers changes.
    in_flight: Option<(SyncId, u64)>,
    durable_mark: u64,
}

impl SyncMarks {
    /// Returns a mark for all changes so far.
    pub(super) fn next_mark(&mut self) -> u64 {
        self.last_mark += 1;
        self.last_mark
    }

    /// Returns the mark up to which changes are on disk.
    pub(super) fn durable_mark(&self) -> u64 {
        self.durable_mark
    }

    /// Registers the beginning of a sync, which covers all changes so far.
    pub(super) fn note_requested(&mut self, id: SyncId) {
        self.in_flight = Some((id, self.last_mark));
    }

    fn is_syncing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Registers that nothing is left to sync. If no sync is under way, all changes are on disk.
    pub(super) fn note_idle(&mut self) {
        if self.in_flight.is_none() {
            self.durable_mark = self.last_mark;
        }
    }

    /// Registers the end of a sync.
    pub(super) fn note_synced(&mut self, id: SyncId, is_done: bool) {
        let in_flight = self.in_flight.take_if(|(in_flight, _)| *in_flight == id);
        if let Some((_, mark)) = in_flight.filter(|_| is_done) {
            self.durable_mark = mark;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_durable_after_a_later_sync() {
        let mut marks = SyncMarks::default();
        let first = marks.next_mark();
        marks.note_requested(SyncId(1));
        let second = marks.next_mark();
        marks.note_idle();
        assert_eq!(marks.durable_mark(), 0);
        marks.note_synced(SyncId(1), true);
        assert_eq!(marks.durable_mark(), first);
        marks.note_requested(SyncId(2));
        marks.note_synced(SyncId(2), false);
        assert_eq!(marks.durable_mark(), first);
        marks.note_idle();
        assert_eq!(marks.durable_mark(), second);
    }
}
