//! The log of one stream: records in sequence order, in memory or on a [`Disk`].
//!
//! Records are found by sequence, subject, or time, and removed by request or by limits. A record is *live*
//! until it is removed.
//!
//! The store never blocks on a sync. [`Store::poll_sync`] writes pending bytes and requests the sync that
//! acknowledgements wait for; [`Store::handle_synced`] takes its result. Stores in memory and on disk share
//! this code: the bytes of a segment are in a buffer or in a file.
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
mod snapshot;
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
    /// Segments in sequence order; never empty. Records are appended to the last segment.
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
    /// Sequence and time of the first live record, cached by the first query.
    first_time: Option<(u64, i64)>,
    expiry: Expiry,
    /// No record below this sequence can exceed the age limit.
    expiry_checked_below: u64,
    /// Sequence and time of the oldest record that can exceed the age limit, cached.
    oldest_expiring: Option<(u64, i64)>,
    unreported: UnreportedRemovals,
    spare: Spare,
    /// Hashes of the subjects in the last segment.
    active_hashes: Vec<u64>,
    /// Size of a segment in bytes at which a new one begins. A larger record gets a segment of its own.
    segment_bytes: usize,
    /// `None` for a store in memory.
    files: Option<Box<Files>>,
    upkeep: Upkeep,
    /// Number of requests for slots so far, as a clock for their eviction from memory.
    loads: u64,
    /// Index of the segment whose slots were requested last. It usually contains the next record to read.
    loaded: usize,
    /// Numbers of segments with an open file but without slots in memory.
    opened: VecDeque<u32>,
    /// Whether the count of some subject includes a damaged record, whose subject is unknown.
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
            oldest_expiring: None,
            unreported: UnreportedRemovals::default(),
            spare: Spare::default(),
            active_hashes: Vec::new(),
            segment_bytes: MEMORY_SEGMENT_BYTES,
            files: None,
            upkeep: Upkeep::default(),
            loads: 0,
            loaded: 0,
            opened: VecDeque::new(),
            must_recount: false,
        }
    }

    /// Returns the size of a record as limits and [`StoreState::bytes`] count it, like
    /// nats-server. In memory: subject, headers, and payload, plus 16. On disk: plus 30, or plus 34 with
    /// headers.
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

    /// Returns the error of the last write to disk, or `None` if it succeeded. After an error the store
    /// refuses appends. Records that are not [`durable`](Self::durable) yet may still become durable.
    pub fn failure(&self) -> Option<DiskError> {
        self.files.as_ref()?.failure
    }

    /// Returns the highest sequence up to which acknowledgements may be sent. In memory that is the last
    /// sequence; on disk it depends on the [`SyncMode`].
    pub fn durable(&self) -> u64 {
        self.files.as_ref().map_or(self.last, |f| f.durable())
    }

    /// Returns the highest sequence that was appended with a record. [`durable`](Self::durable) reaches this
    /// sequence, but perhaps no later one, because later sequences were skipped and have no record.
    pub fn appended(&self) -> u64 {
        self.files.as_ref().map_or(self.last, |f| f.appended())
    }

    /// Returns whether one of these sequences has a removed record that a power cut may restore, because the
    /// removal is not on disk yet. A copy of the stream waits until the removal is on disk: if the copy
    /// skipped a record that is restored later, the record would be missing from the copy forever.
    pub fn has_unsynced_removal(&mut self, sequences: Range<u64>) -> bool {
        let files = self
            .files
            .as_mut()
            .filter(|files| files.mode == SyncMode::Commit);
        files.is_some_and(|files| files.has_unsynced_removal(sequences))
    }

    /// Returns whether acknowledgements wait for a sync: the store is on disk, in [`SyncMode::Commit`].
    pub fn commits(&self) -> bool {
        let mode = self.files.as_ref().map(|files| files.mode);
        mode == Some(SyncMode::Commit)
    }

    /// Returns whether [`removed`](Self::removed) has records to report.
    pub fn has_unreported(&self) -> bool {
        !self.unreported.is_empty()
    }

    /// Calls `each` for every record that the store has removed since the last call because of limits, age,
    /// or damage. Removals accumulate between calls, so call this after appends and after
    /// [`expire`](Self::expire).
    pub fn removed(&mut self, each: &mut dyn FnMut(&Removed<'_>)) {
        self.unreported.drain(each);
    }
}
