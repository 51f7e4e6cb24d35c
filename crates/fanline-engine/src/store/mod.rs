//! The log of one stream: records in the order of their sequences, found by sequence, by subject and
//! by time, dropped by limits, in memory or on a [`Disk`].
//!
//! The store decides and does not wait. What it writes it hands to its [`Disk`] at once or in
//! batches; what must reach the disk before an acknowledgement it asks for by
//! [`Store::next_sync`], and is told by [`Store::synced`]. Both kinds of store are the same code: a
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

#![allow(dead_code, reason = "some of it is for the store on disk")]

mod disk;
mod expiry;
mod filters;
mod limits;
mod log;
mod query;
mod record;
mod removal;
mod removals;
mod segment;
mod slots;
mod subjects;
mod sync;
#[cfg(test)]
mod tests;
mod types;

use std::collections::VecDeque;
use std::time::Duration;

pub use disk::{Disk, DiskError, FileId};
pub use filters::Filters;
pub use sync::{SyncId, SyncMode, SyncRequest};
pub use types::{
    Cause, Discard, Lost, NEVER, NewRecord, Record, Removed, StoreError, StoreLimits, StoreState,
    SubjectState,
};

use expiry::Expiry;
use log::Spare;
use removals::Removals;
use segment::Segment;
use slots::Slots;
use subjects::Subjects;

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
}

impl Store {
    /// A store whose records last as long as it does.
    pub fn memory(limits: &StoreLimits) -> Self {
        let mut store = Store {
            segments: VecDeque::new(),
            subjects: Subjects::default(),
            limits: *limits,
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
        };
        let active = Segment::new(1, Slots::with_base(1), Vec::new());
        store.segments.push_back(active);
        store
    }

    /// How many bytes a record counts for: as nats-server counts, 16 more than its subject, headers
    /// and payload in memory; on disk 30 more, or 34 when it has headers.
    pub fn record_bytes(&self, record: &NewRecord<'_>) -> u64 {
        let content = record.subject.len() + record.headers.len() + record.payload.len();
        self.counted_bytes(content as u64, !record.headers.is_empty())
    }

    fn counted_bytes(&self, content_bytes: u64, _has_headers: bool) -> u64 {
        content_bytes + 16
    }

    /// The highest sequence whose record is as safe as the store makes it: every acknowledgement up
    /// to it may be sent. In memory that is every record; on disk see [`SyncMode`].
    pub fn durable(&self) -> u64 {
        self.last
    }

    /// What is to be brought to the disk now; `None` when nothing is, or while it is being done. To
    /// be asked after every batch of appends, and again after [`synced`](Self::synced).
    pub fn next_sync(&mut self, _now: Duration) -> Option<SyncRequest> {
        None
    }

    /// When [`next_sync`](Self::next_sync) has something to do although nothing was appended.
    pub fn next_sync_at(&self) -> Option<Duration> {
        None
    }

    /// The shell has done, or failed to do, what [`next_sync`](Self::next_sync) asked for.
    pub fn synced(&mut self, _id: SyncId, _result: Result<(), DiskError>) {}

    /// Hands `each` what limits, age and damage have removed since last time. It is remembered until
    /// asked for, so it must be asked for after appends and [`expire`](Self::expire).
    pub fn removed(&mut self, each: &mut dyn FnMut(&Removed<'_>)) {
        self.removals.drain(each);
    }
}
