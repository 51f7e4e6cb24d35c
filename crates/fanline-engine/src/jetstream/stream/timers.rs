//! What happens by time, and when the disk has answered.

use std::time::Duration;

use super::Stream;
use super::append::refused;
use crate::jetstream::{Now, Port};
use crate::store::{DiskError, StoreError, SyncId, SyncRequest};

/// After which time a log whose next expiry could not be read is asked again.
const RETRY: Duration = Duration::from_secs(1);

impl Stream {
    /// When [`handle_timeout`](Stream::handle_timeout) has something to do next, since the server started.
    pub fn next_timeout(&mut self) -> Option<Duration> {
        let expiry = match self.store.next_expiry() {
            Ok(expiry) => expiry.map(|at| self.since_start(at)),
            Err(_) => Some(self.clock.since_start + RETRY),
        };
        let window = self.config.duplicate_window.0;
        let oldest = self.dedupe.as_ref().and_then(|dedupe| dedupe.oldest());
        [
            expiry,
            oldest.map(|oldest| self.since_start(oldest.saturating_add(window))),
            self.schedules.next().map(|due| self.since_start(due)),
            self.atomic.next_timeout(),
            self.fast.next_timeout(),
            self.consumers.next_timeout(),
            self.next_asking(),
            self.next_keeping(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what is due: expiry, schedules, batches that are given up, consumers. Then [`settle`](Stream::settle)
    /// is due.
    pub fn handle_timeout(&mut self, now: Now, port: &mut dyn Port) {
        self.clock = now;
        // What cannot be read now is expired next time.
        let _ = self.store.expire(now.unix_nanos);
        self.settle_removed(port);
        let oldest = self.oldest_id();
        if let Some(dedupe) = &mut self.dedupe {
            dedupe.expire(oldest);
        }
        self.fire_schedules(port);
        self.expire_batches(port);
        self.fast.expire(now.since_start);
        self.with_consumers(now, port, |consumers, context| {
            consumers.handle_timeout(context)
        });
    }

    /// When [`next_sync`](Stream::next_sync) has something to do next though nothing happens.
    pub fn next_sync_at(&self) -> Option<Duration> {
        self.store.next_sync_at()
    }

    /// What is to be brought to the disk now, so that what waits can be acknowledged; to be asked until
    /// there is nothing. Only then is acknowledged what has come true, while the disk is busy already.
    pub fn next_sync(&mut self, now: Duration, port: &mut dyn Port) -> Option<SyncRequest> {
        let request = self.store.next_sync(now);
        match &request {
            Some(request) => self.barrier.note_asked(request.id),
            None if self.store.failure().is_none() => self.barrier.note_idle(),
            None => {}
        }
        if request.is_none() {
            self.answer_waiting(port);
        }
        request
    }

    /// Whether what is told of it waits for the disk.
    pub fn commits(&self) -> bool {
        self.store.commits()
    }

    /// A mark for all that has been done to its log so far: that is on the disk once
    /// [`safe`](Self::safe) has reached it.
    pub fn mark(&mut self) -> u64 {
        self.store.hasten();
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

    /// Brings all to the disk, and waits for it: the stream is good for nothing else afterwards.
    ///
    /// # Errors
    /// The disk fails. What it has not taken is not acknowledged.
    pub fn close(&mut self, port: &mut dyn Port) -> Result<(), DiskError> {
        let closed = self.store.close();
        self.answer_waiting(port);
        closed
    }

    /// The disk has done, or failed to do, what was asked for. What has come true is told by
    /// [`next_sync`](Self::next_sync), which is to be asked after this.
    pub fn handle_synced(
        &mut self,
        id: SyncId,
        result: Result<(), DiskError>,
        port: &mut dyn Port,
    ) {
        self.store.synced(id, result);
        self.barrier.note_synced(id, result.is_ok());
        match result {
            Ok(()) => self.consumers.handle_synced(),
            Err(_) => self.answer_waiting(port),
        }
    }

    /// Answers the publishes of which it is known what has become of them.
    fn answer_waiting(&mut self, port: &mut dyn Port) {
        let durable = self.store.durable();
        self.acks.release(durable, port);
        self.consumers.handle_durable(durable);
        if let Some(error) = self.store.failure() {
            self.acks.fail(&refused(error.into()), port);
        }
    }

    /// Ids that came before this are forgotten.
    fn oldest_id(&self) -> i64 {
        self.clock
            .unix_nanos
            .saturating_sub(self.config.duplicate_window.0)
    }

    /// Under which sequence a message with this id was stored within the duplicate window.
    pub(super) fn find_duplicate(&mut self, id: &[u8]) -> Option<u64> {
        if self.config.duplicate_window.is_zero() {
            return None;
        }
        let oldest = self.oldest_id();
        if self.dedupe.is_none() {
            // If the log cannot be read it is tried again with the next message.
            self.dedupe = Some(self.recover_ids(oldest).ok()?);
        }
        let dedupe = self.dedupe.as_mut()?;
        dedupe.expire(oldest);
        dedupe.find(id, oldest)
    }

    /// The ids of the records that are young enough.
    fn recover_ids(&mut self, oldest: i64) -> Result<super::dedupe::Dedupe, StoreError> {
        let mut dedupe = super::dedupe::Dedupe::default();
        let mut everything = crate::store::Filters::default();
        let mut from = self.store.sequence_at(oldest.saturating_add(1))?;
        while let Some(sequence) = self.store.next_matching(&mut everything, from)? {
            from = sequence + 1;
            match self.store.read(sequence) {
                Ok(Some(record)) => {
                    let id = crate::headers::find(record.headers, b"Nats-Msg-Id");
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

    /// A point in time as the timers count.
    fn since_start(&self, unix_nanos: i64) -> Duration {
        let ahead = unix_nanos.saturating_sub(self.clock.unix_nanos);
        self.clock.since_start + Duration::from_nanos(u64::try_from(ahead).unwrap_or(0))
    }
}
