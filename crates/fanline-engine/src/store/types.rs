//! Public types of the log: records, state, limits, and errors.

use super::disk::DiskError;

/// A stored record, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Sequence in the stream; the first is 1 unless configured otherwise.
    pub sequence: u64,
    /// Time at which it was stored, in nanoseconds since 1970 UTC.
    pub unix_nanos: i64,
    /// Subject to which it was published.
    pub subject: &'a [u8],
    /// Whole header block, or empty.
    pub headers: &'a [u8],
    /// Payload.
    pub payload: &'a [u8],
    /// End of its own time to live, in nanoseconds since 1970 UTC, if any.
    pub expires_at: Option<i64>,
}

/// A record to be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// Time to store with the record, in nanoseconds since 1970 UTC.
    pub unix_nanos: i64,
    /// Subject to which it was published; at most 65,535 bytes.
    pub subject: &'a [u8],
    /// Whole header block, or empty.
    pub headers: &'a [u8],
    /// Payload.
    pub payload: &'a [u8],
    /// End of its own time to live, in nanoseconds since 1970 UTC. [`NEVER`] also exempts it from
    /// [`StoreLimits::age_nanos_max`].
    pub expires_at: Option<i64>,
    /// Whether the next record belongs to the same atomic batch. After a crash either the whole batch exists
    /// or none of it.
    pub more_in_batch: bool,
}

/// An [`expires_at`](NewRecord::expires_at) that exempts a record from age limits.
pub const NEVER: i64 = i64::MAX;

/// Totals of a store, as in `StreamInfo.state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreState {
    /// Sequence of the first live record. Without a live record, one above the last sequence; 0 if there
    /// never was a record.
    pub first_sequence: u64,
    /// Time of the first live record; `None` when none is live.
    pub first_unix_nanos: Option<i64>,
    /// Highest sequence ever assigned, even if that record has been removed.
    pub last_sequence: u64,
    /// Time of the newest record, even if it has been removed; `None` if there never was a record.
    pub last_unix_nanos: Option<i64>,
    /// Number of live records.
    pub messages: u64,
    /// Size of live records as nats-server counts it: see
    /// [`Store::record_bytes`](super::Store::record_bytes).
    pub bytes: u64,
    /// Number of distinct subjects of live records.
    pub subjects: u64,
    /// Number of sequences between the first and the last that are not live.
    pub deleted: u64,
    /// Damaged records that the store has removed since it was opened.
    pub lost: Lost,
}

/// Records that could not be read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Number of records.
    pub messages: u64,
    /// Size on disk, as far as it is known.
    pub bytes: u64,
}

/// Totals of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectState {
    /// Number of live records; at least one.
    pub messages: u64,
    /// Sequence of the newest record.
    pub last: u64,
}

/// Action when a record would exceed a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discard {
    /// The oldest records are removed.
    #[default]
    Old,
    /// The new record is refused. The limit per subject still removes the oldest record of the subject.
    New,
    /// The new record is refused, even if it exceeds only the limit per subject.
    NewPerSubject,
}

/// Limits of a store; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLimits {
    /// Number of live records.
    pub messages_max: Option<u64>,
    /// Bytes of live records.
    pub bytes_max: Option<u64>,
    /// Age at which a record is removed, in nanoseconds.
    pub age_nanos_max: Option<i64>,
    /// Number of live records of one subject.
    pub messages_per_subject_max: Option<u64>,
    /// Action when a record would exceed a limit.
    pub discard: Discard,
}

/// Reason for which the store removed a record without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A limit on messages, bytes, or messages per subject, when another record was appended.
    Limit,
    /// The limits were lowered.
    LimitChange,
    /// The record exceeded the stream's maximum age.
    Age,
    /// The record's own time to live ended.
    TimeToLive,
    /// The record was damaged on disk.
    Damage,
}

/// A record that the store removed without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed<'a> {
    /// Sequence.
    pub sequence: u64,
    /// Subject to which it was published.
    pub subject: &'a [u8],
    /// Whether this was the last live record of the subject.
    pub was_last_of_subject: bool,
    /// Reason of the removal.
    pub cause: Cause,
}

/// Reason for which an operation on a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// [`StoreLimits::messages_max`] with [`Discard::New`].
    #[error("maximum messages exceeded")]
    MessagesMax,
    /// [`StoreLimits::bytes_max`] with [`Discard::New`].
    #[error("maximum bytes exceeded")]
    BytesMax,
    /// [`StoreLimits::messages_per_subject_max`] with [`Discard::NewPerSubject`].
    #[error("maximum messages per subject exceeded")]
    MessagesPerSubjectMax,
    /// The subject exceeds 65,535 bytes, or the whole record 512 MiB.
    #[error("record too large")]
    TooLarge,
    /// The sequence was already assigned.
    #[error("sequence {sequence} is not above the last one, {last}")]
    SequenceTaken {
        /// Requested sequence.
        sequence: u64,
        /// Highest assigned sequence.
        last: u64,
    },
    /// Too many bytes wait for a sync: the disk is too slow.
    #[error("too many bytes wait for a sync")]
    Busy,
    /// The record's checksum is wrong. The store has removed and counted it.
    #[error("record {0} is damaged on disk")]
    Damaged(u64),
    /// The files are encrypted with another key, or encrypted while no key is configured.
    #[error("the files are encrypted with another key")]
    WrongKey,
    /// The disk failed. Reads continue where possible; appends are refused until a write succeeds.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
