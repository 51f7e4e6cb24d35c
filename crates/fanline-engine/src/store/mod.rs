//! The log of one stream: records in the order of their sequences, found by sequence, by subject and
//! by time, dropped by limits, in memory or on a [`Disk`].
//!
//! The store decides and does not wait. What it writes it hands to its [`Disk`] at once or in
//! batches; what must reach the disk before an acknowledgement, it requests by
//! [`Store::poll_sync`]; [`Store::handle_synced`] takes the result. Both kinds of store are the same code: a
//! segment's bytes are a buffer or a file.
//!
//! The bytes on disk are described in `docs/formats/log.md`.
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
mod expiry;
#[cfg(test)]
pub(crate) mod faulty;
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
mod packing;
mod query;
mod record;
mod recovery;
mod removal;
mod removals;
mod scan;
mod segment;
mod segments;
mod slots;
mod subjects;
mod tail;
#[cfg(test)]
mod tests;
mod types;
mod unsynced;
mod upkeep;
pub mod wrapped;

use std::collections::VecDeque;
use std::ops::Range;

pub use cipher::{Algorithm, Key};
pub use commit::{SyncId, SyncMode, SyncRequest};
pub use disk::{Disk, DiskError, FileId};
pub use filters::Filters;
pub(crate) use log::SEQUENCE_MAX;
pub use packing::Compression;
pub use query::Search;
pub use recovery::{Damage, FileOptions, Recovery};
pub use types::{
    Cause, Discard, Lost, NEVER, NewRecord, Record, Removed, StoreError, StoreLimits, StoreState,
    SubjectState,
};

use expiry::Expiry;
use files::Files;
use removals::Removals;
use segment::{Body, Segment};
use segments::Spare;
use slots::Slots;
use subjects::Subjects;
use upkeep::Upkeep;

const MEMORY_SEGMENT_BYTES: usize = 1 << 20;

/// All records of a stream.
pub struct Store {
    /// In the order of sequences; never empty. Records are added to the last.
    segments: VecDeque<Segment>,
    subjects: Subjects,
    limits: StoreLimits,
    messages: u64,
    bytes: u64,
    /// The first live sequence; one above the last when there is none.
    first: u64,
    last: u64,
    last_unix_nanos: Option<i64>,
    lost: Lost,
    /// The time of the first record, once it was asked for.
    first_time: Option<(u64, i64)>,
    expiry: Expiry,
    /// Records below this cannot grow too old.
    expiry_checked_below: u64,
    /// The oldest record that can, and its time.
    ages_next: Option<(u64, i64)>,
    removals: Removals,
    spare: Spare,
    /// Names, hashed, of what the last segment holds.
    held: Vec<u64>,
    /// A segment grows to this, or to one record.
    segment_bytes: usize,
    /// Of a store on disk.
    files: Option<Box<Files>>,
    upkeep: Upkeep,
    /// How often slots were asked for.
    loads: u64,
    /// Numbers of segments whose files were opened though their slots were not read.
    opened: VecDeque<u32>,
    /// A live record was found damaged so that its subject cannot be told: some subject counts it.
    must_recount: bool,
}

impl Store {
    /// A store whose records last as long as it does.
    pub fn memory(limits: &StoreLimits) -> Self {
        let mut store = Store::empty();
        store.limits = *limits;
        let body = Body::Memory(Vec::new());
        let active = Segment::new(1, Slots::with_base(1), body);
        store.segments.push_back(active);
        store
    }

    /// Without limits, and without a segment to write to.
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
            removals: Removals::default(),
            spare: Spare::default(),
            held: Vec::new(),
            segment_bytes: MEMORY_SEGMENT_BYTES,
            files: None,
            upkeep: Upkeep::default(),
            loads: 0,
            opened: VecDeque::new(),
            must_recount: false,
        }
    }

    /// How many bytes a record counts for: as nats-server counts, 16 more than its subject, headers
    /// and payload in memory; on disk 30 more, or 34 when it has headers.
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

    /// Why the disk does not take what is written; `None` when it does. While there is one, appends
    /// are refused, and what was appended but is not [`durable`](Self::durable) may yet become so.
    pub fn failure(&self) -> Option<DiskError> {
        self.files.as_ref()?.failure
    }

    /// The highest sequence whose record is as safe as the store makes it: every acknowledgement up
    /// to it may be sent. In memory that is every record; on disk see [`SyncMode`].
    pub fn durable(&self) -> u64 {
        self.files.as_ref().map_or(self.last, |f| f.durable())
    }

    /// Whether a power cut may bring back one of these records, because its removal is not on the disk yet. A copy
    /// that passed it over would never get it.
    pub fn has_unsynced_removal(&mut self, sequences: Range<u64>) -> bool {
        let files = self
            .files
            .as_mut()
            .filter(|files| files.mode == SyncMode::Commit);
        files.is_some_and(|files| files.has_unsynced_removal(sequences))
    }

    /// Whether what is told of it waits for its disk: it has one, and [`SyncMode::Commit`].
    pub fn commits(&self) -> bool {
        let mode = self.files.as_ref().map(|files| files.mode);
        mode == Some(SyncMode::Commit)
    }

    /// Hands `each` what limits, age and damage have removed since last time. It is remembered until
    /// asked for, so it must be asked for after appends and [`expire`](Self::expire).
    pub fn removed(&mut self, each: &mut dyn FnMut(&Removed<'_>)) {
        self.removals.drain(each);
    }
}
