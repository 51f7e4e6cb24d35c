//! The log of one stream: records in sequence order, found by sequence, by subject, and by time, removed by
//! limits, in memory or on a [`Disk`].
//!
//! The store never waits. It writes to its [`Disk`] at once or in batches. It requests a sync of what must
//! reach the disk before an acknowledgement by [`Store::poll_sync`], and takes the result by
//! [`Store::handle_synced`]. Both kinds of store share this code: a segment's bytes are a buffer or a file.
//!
//! `docs/formats/log.md` describes the bytes on disk.
//!
//! ```
//! use fanline_engine::store::{Filters, NewRecord, Store, StoreLimits};
//!
//! let mut store = Store::memory(&StoreLimits::default());
//! let order = NewRecord { subject: b"orders.eu", payload: b"3 apples", ..NewRecord::default() };
//! assert_eq!(store.append(&order), Ok(1));
//! assert_eq!(store.read(1).unwrap().unwrap().payload, b"3 apples");
//! let mut europe = Filters::new([&b"orders.eu"[..]]).unwrap();
//! assert_eq!(store.next_matching(&mut europe, 1), Ok(Some(1)));
//! ```

mod checkpoint;
mod cipher;
mod commit;
mod compaction;
mod disk;
#[cfg(test)]
pub(crate) mod disk_tests;
pub mod documents;
mod encoding;
mod expiry;
mod files;
mod filters;
#[cfg(test)]
mod forged_tests;
mod frozen;
mod index;
mod limits;
mod log;
mod marks;
#[cfg(test)]
mod marks_tests;
mod query;
mod record;
mod recovery;
mod removal;
mod scan;
mod segment;
mod segments;
#[cfg(any(test, feature = "simulation"))]
pub mod simulated_disk;
mod slots;
mod subjects;
mod tail;
#[cfg(test)]
mod tests;
mod types;
mod unreported;
mod unsynced;
mod upkeep;
pub mod wrapped;

use std::collections::VecDeque;
use std::ops::Range;

pub use cipher::{Algorithm, Key};
pub use commit::{SyncId, SyncMode, SyncRequest};
pub use disk::{Disk, DiskError, FileId};
pub use encoding::Compression;
pub use filters::Filters;
pub(crate) use log::SEQUENCE_MAX;
pub use query::Search;
pub use recovery::{Damage, FileOptions, Recovery};
pub use types::{
    Cause, Discard, Lost, NEVER, NewRecord, Record, Removed, StoreError, StoreLimits, StoreState,
    SubjectState,
};

use expiry::Expiry;
use files::Files;
use segment::{Body, Segment};
use segments::Spare;
use slots::Slots;
use subjects::Subjects;
use unreported::UnreportedRemovals;
use upkeep::Upkeep;

const MEMORY_SEGMENT_BYTES: usize = 1 << 20;

/// All records of one stream.
pub struct Store {
    /// In sequence order; never empty. Records are appended to the last.
    segments: VecDeque<Segment>,
    subjects: Subjects,
    limits: StoreLimits,
    messages: u64,
    bytes: u64,
    /// The first live sequence; one above the last sequence when no record is live.
    first: u64,
    last: u64,
    last_unix_nanos: Option<i64>,
    lost: Lost,
    /// Sequence and time of the first record, cached by the first query.
    first_time: Option<(u64, i64)>,
    expiry: Expiry,
    /// No record below this sequence can exceed the age limit.
    expiry_checked_below: u64,
    /// Sequence and time of the oldest record that can exceed the age limit.
    ages_next: Option<(u64, i64)>,
    unreported: UnreportedRemovals,
    spare: Spare,
    /// Hashed names of the subjects in the last segment.
    active_hashes: Vec<u64>,
    /// Bytes at which a new segment begins; a single larger record still fits.
    segment_bytes: usize,
    /// `None` for a store in memory.
    files: Option<Box<Files>>,
    upkeep: Upkeep,
    /// How many times slots were requested, as a clock for eviction.
    loads: u64,
    /// Numbers of segments whose file is open although their slots are not in memory.
    opened: VecDeque<u32>,
    /// A live record is too damaged to read its subject, so some subject's count includes it.
    must_recount: bool,
}

impl Store {
    /// Creates a store in memory.
    pub fn memory(limits: &StoreLimits) -> Self {
        let mut store = Store::empty();
        store.limits = *limits;
        let body = Body::Memory(Vec::new());
        let active = Segment::new(1, Slots::with_base(1), body);
        store.segments.push_back(active);
        store
    }

    /// Creates a store without limits and without a segment to append to.
    fn empty() -> Self {
        Store {
            segments: VecDeque::new(),
            subjects: Subjects::default(),
            limits: StoreLimits::default(),
            messages: 0,
            bytes: 0,
            first: 1,
            last: 0,
            last_unix_nanos: None,
            lost: Lost::default(),
            first_time: None,
            expiry: Expiry::default(),
            expiry_checked_below: 0,
            ages_next: None,
            unreported: UnreportedRemovals::default(),
            spare: Spare::default(),
            active_hashes: Vec::new(),
            segment_bytes: MEMORY_SEGMENT_BYTES,
            files: None,
            upkeep: Upkeep::default(),
            loads: 0,
            opened: VecDeque::new(),
            must_recount: false,
        }
    }

    /// Returns the bytes that a record counts for in limits and in [`StoreState::bytes`], as in nats-server.
    /// In memory: subject, headers, and payload, plus 16. On disk: plus 30, or plus 34 with headers.
    pub fn record_bytes(&self, record: &NewRecord<'_>) -> u64 {
        let content = record.subject.len() + record.headers.len() + record.payload.len();
        self.counted_bytes(content as u64, !record.headers.is_empty())
    }

    fn counted_bytes(&self, content_bytes: u64, has_headers: bool) -> u64 {
        match (&self.files, has_headers) {
            (None, _) => content_bytes + 16,
            (Some(_), false) => content_bytes + 30,
            (Some(_), true) => content_bytes + 34,
        }
    }

    /// Returns why the last write to disk failed, or `None` while writes succeed. After a failure the store
    /// refuses appends; records that are not [`durable`](Self::durable) yet may still become durable.
    pub fn failure(&self) -> Option<DiskError> {
        self.files.as_ref()?.failure
    }

    /// Returns the highest sequence whose record is as safe as the store makes it: acknowledgements up to it
    /// may be sent. In memory that is every record; on disk see [`SyncMode`].
    pub fn durable(&self) -> u64 {
        self.files.as_ref().map_or(self.last, |f| f.durable())
    }

    /// Returns the highest sequence of an appended record, which [`durable`](Self::durable) reaches. Later sequences
    /// were skipped.
    pub fn appended(&self) -> u64 {
        self.files.as_ref().map_or(self.last, |f| f.appended())
    }

    /// Returns whether a power cut may restore one of these records because its removal is not on the disk
    /// yet. A copy of the stream must wait for that: a record that it skipped would be missing from the copy
    /// forever.
    pub fn has_unsynced_removal(&mut self, sequences: Range<u64>) -> bool {
        let files = self
            .files
            .as_mut()
            .filter(|files| files.mode == SyncMode::Commit);
        files.is_some_and(|files| files.has_unsynced_removal(sequences))
    }

    /// Whether acknowledgements wait for a sync: the store is on disk, in [`SyncMode::Commit`].
    pub fn commits(&self) -> bool {
        let mode = self.files.as_ref().map(|files| files.mode);
        mode == Some(SyncMode::Commit)
    }

    /// Calls `each` for every record that limits, age, or damage have removed since the last call. Removals
    /// accumulate until this call, so call it after appends and after [`expire`](Self::expire).
    pub fn removed(&mut self, each: &mut dyn FnMut(&Removed<'_>)) {
        self.unreported.drain(each);
    }
}
