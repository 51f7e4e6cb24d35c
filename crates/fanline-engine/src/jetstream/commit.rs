//! Group commit of an account's streams: their logs, and what is kept beside them.

use std::time::Duration;

use super::Port;
use super::account::JetStream;
use super::streams::{Entry, Key, StreamId};
use crate::store::{DiskError, SyncId, SyncRequest};

/// Set in the ids of syncs of documents, which are counted apart from those of logs.
const OF_DOCUMENTS: u64 = 1 << 63;

/// How long after a failure the disk is tried again.
const DISK_RETRY_DELAY: Duration = Duration::from_millis(250);

/// What to sync for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSync {
    /// To be given to [`JetStream::handle_synced`].
    pub stream: StreamId,
    /// The stream's name, and so its folder's.
    pub name: String,
    /// What to sync.
    pub request: SyncRequest,
}

impl JetStream {
    /// Returns what to sync now; to be polled until there is nothing.
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

    /// Takes the result of a sync that [`poll_sync`](Self::poll_sync) has requested. Then `poll_sync` and
    /// [`release_acks`](Self::release_acks) are due.
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
        let Some(Entry {
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

    /// Sends the acknowledgements and answers that are true by now; errors, where the disk fails. To be called when
    /// [`poll_sync`](Self::poll_sync) has returned `None`, so that the disk is busy meanwhile.
    pub fn release_acks(&mut self, now: Duration, port: &mut dyn Port) {
        let mut unreleased = std::mem::take(&mut self.unreleased);
        for key in unreleased.drain(..) {
            let Some(entry) = self.streams.entry(key) else {
                continue;
            };
            entry.stream.release_acks(port);
            let is_resting = entry.rests(now);
            let failure = entry.failure();
            // While a disk that has failed is tried again, nobody knows whether it works.
            let before = entry.retried();
            match failure {
                Some(error) => self.fail_held(key, error, port),
                None => self.release_held(key, port),
            }
            if !is_resting {
                self.note_disk(key, failure.or(before), now);
            }
            // A checkpoint that was begun goes on by itself.
            self.streams.set_timer(key);
        }
        self.unreleased = unreleased;
    }

    /// Notes whether the disk fails. That it does, and that it does no more, is reported once.
    fn note_disk(&mut self, key: Key, failure: Option<DiskError>, now: Duration) {
        let rest = failure.map(|error| (error, now.saturating_add(DISK_RETRY_DELAY)));
        let was = self.streams.set_rest(key, rest);
        if was == failure {
            return;
        }
        let name = self.streams.get(key).map(|stream| &stream.config().name);
        let name = name.cloned().unwrap_or_default();
        self.report(match failure {
            Some(error) => format!("stream {name}: the disk takes nothing: {error}"),
            None => format!("stream {name}: the disk works again"),
        });
    }
}

impl Entry {
    /// What to sync now: the log first, since states of consumers count on removals there.
    fn next_request(&mut self, now: Duration) -> Option<SyncRequest> {
        if self.rests(now) {
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

    /// Why the disk takes nothing now.
    fn failure(&self) -> Option<DiskError> {
        let documents = self.documents.as_ref();
        let documents = documents.filter(|_| self.stream.may_write_states());
        let of_documents = documents.and_then(|documents| documents.failure());
        self.stream.failure().or(of_documents)
    }

    /// Why the disk failed before, while a sync is under way that tries it again.
    fn retried(&self) -> Option<DiskError> {
        let documents = self.documents.as_ref();
        let is_syncing = self.stream.is_syncing() || documents.is_some_and(|it| it.is_syncing());
        self.rests.filter(|_| is_syncing).map(|(error, _)| error)
    }

    /// Whether the disk has failed, and is not tried again yet.
    fn rests(&self, now: Duration) -> bool {
        self.rests.is_some_and(|(_, until)| now < until)
    }
}
