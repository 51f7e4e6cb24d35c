//! Group commit of an account's streams: their logs and documents.

use std::time::Duration;

use super::Port;
use super::account::JetStream;
use super::streams::{Key, StreamEntry, StreamId};
use crate::store::{DiskError, SyncId, SyncRequest};

/// Bit that marks the sync ids of documents. The log and the documents of a stream number their syncs
/// independently.
const OF_DOCUMENTS: u64 = 1 << 63;

/// Delay after a failure before the disk is used again.
const DISK_RETRY_DELAY: Duration = Duration::from_millis(250);

/// A sync request of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSync {
    /// Id to pass to [`JetStream::handle_synced`].
    pub stream: StreamId,
    /// Name of the stream and of its folder.
    pub name: String,
    /// What to sync.
    pub request: SyncRequest,
}

impl JetStream {
    /// Returns the next sync to perform. Call it until it returns `None`.
    pub fn poll_sync(&mut self, now: Duration) -> Option<StreamSync> {
        while let Some(key) = self.unsynced.last().copied() {
            if let Some(entry) = self.streams.entry(key)
                && let Some(request) = entry.next_request(now)
            {
                return Some(StreamSync {
                    stream: entry.id,
                    name: entry.stream.config().name.clone(),
                    request,
                });
            }
            self.unsynced.pop_last();
            self.unreleased.push(key);
        }
        None
    }

    /// Takes the result of a sync that [`poll_sync`](Self::poll_sync) requested. Call `poll_sync` and
    /// [`release_acks`](Self::release_acks) afterwards.
    pub fn handle_synced(
        &mut self,
        stream: StreamId,
        sync: SyncId,
        result: Result<(), DiskError>,
        now: Duration,
    ) {
        let Some(key) = self.streams.by_id(stream) else {
            return;
        };
        self.streams.touch(key);
        self.unsynced.insert(key);
        let Some(StreamEntry {
            stream, documents, ..
        }) = self.streams.entry(key)
        else {
            return;
        };
        if sync.0 & OF_DOCUMENTS == 0 {
            stream.handle_synced(sync, result);
        } else if let Some(documents) = documents {
            documents.handle_synced(SyncId(sync.0 ^ OF_DOCUMENTS), result);
        }
        let failure = result.err().or_else(|| stream.failure());
        self.note_disk(key, failure, now);
    }

    /// Sends the acknowledgements and answers whose changes are durable now, or errors if the disk fails.
    /// Call it when [`poll_sync`](Self::poll_sync) has returned `None`, so that the next sync already runs
    /// while the answers are sent.
    pub fn release_acks(&mut self, now: Duration, port: &mut dyn Port) {
        let mut unreleased = std::mem::take(&mut self.unreleased);
        for key in unreleased.drain(..) {
            let Some(entry) = self.streams.entry(key) else {
                continue;
            };
            entry.stream.release_acks(port);
            let is_backing_off = entry.is_backing_off(now);
            let failure = entry.failure();
            // While a sync tries a failed disk again, the earlier failure still counts, because the result of
            // that sync is unknown.
            let before = entry.retried();
            match failure {
                Some(error) => self.fail_answers(key, error, port),
                None => self.release_answers(key, port),
            }
            if !is_backing_off {
                self.note_disk(key, failure.or(before), now);
            }
            // Sets the timer for the next part of a checkpoint in progress.
            self.streams.set_timer(key);
        }
        self.unreleased = unreleased;
    }

    /// Records whether the disk fails. Each change is reported once.
    fn note_disk(&mut self, key: Key, failure: Option<DiskError>, now: Duration) {
        let backoff = failure.map(|error| (error, now.saturating_add(DISK_RETRY_DELAY)));
        let was = self.streams.set_backoff(key, backoff);
        if was == failure {
            return;
        }
        let name = self.streams.get(key).map(|stream| &stream.config().name);
        let name = name.cloned().unwrap_or_default();
        self.report(match failure {
            Some(error) => format!("stream {name}: the disk refuses writes: {error}"),
            None => format!("stream {name}: the disk accepts writes again"),
        });
    }
}

impl StreamEntry {
    /// Returns the next sync to perform. The log is synced first, because a consumer's state may omit records
    /// that the log has removed.
    fn next_request(&mut self, now: Duration) -> Option<SyncRequest> {
        if self.is_backing_off(now) {
            return None;
        }
        if let Some(request) = self.stream.poll_sync(now) {
            return Some(request);
        }
        if !self.stream.may_write_states() {
            return None;
        }
        let mut request = self.documents.as_mut()?.poll_sync()?;
        request.id.0 |= OF_DOCUMENTS;
        Some(request)
    }

    /// Returns the error because of which the disk refuses writes now, if any.
    fn failure(&self) -> Option<DiskError> {
        let documents = self.documents.as_ref();
        let documents = documents.filter(|_| self.stream.may_write_states());
        let of_documents = documents.and_then(|documents| documents.failure());
        self.stream.failure().or(of_documents)
    }

    /// Returns the disk's earlier error if a sync that tries the disk again is in progress.
    fn retried(&self) -> Option<DiskError> {
        let documents = self.documents.as_ref();
        let is_syncing = self.stream.is_syncing() || documents.is_some_and(|it| it.is_syncing());
        self.backoff.filter(|_| is_syncing).map(|(error, _)| error)
    }

    /// Returns whether the disk has failed and the next attempt is not due yet.
    fn is_backing_off(&self, now: Duration) -> bool {
        self.backoff.is_some_and(|(_, until)| now < until)
    }
}
