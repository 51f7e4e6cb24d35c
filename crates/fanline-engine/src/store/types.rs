//! The words of the log: what goes in, what comes out, what can go wrong.

use super::disk::DiskError;

/// A record as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place in the stream; the first is 1 unless configured otherwise.
    pub sequence: u64,
    /// When it was stored: nanoseconds since 1970 UTC.
    pub unix_nanos: i64,
    /// What it was published to.
    pub subject: &'a [u8],
    /// The whole block of headers, or empty.
    pub headers: &'a [u8],
    /// What it says.
    pub payload: &'a [u8],
    /// When its own time to live ends, in nanoseconds since 1970 UTC.
    pub expires_at: Option<i64>,
}

/// A record to be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// The time it is stamped with: nanoseconds since 1970 UTC.
    pub unix_nanos: i64,
    /// What it was published to; at most 65,535 bytes.
    pub subject: &'a [u8],
    /// The whole block of headers, or empty.
    pub headers: &'a [u8],
    /// What it says.
    pub payload: &'a [u8],
    /// When its own time to live ends, in nanoseconds since 1970 UTC. [`NEVER`] also exempts it from
    /// [`StoreLimits::age_nanos_max`].
    pub expires_at: Option<i64>,
    /// Whether the next record belongs to the same atomic batch: after a crash all of a batch is there, or nothing.
    pub more_in_batch: bool,
}

/// The [`expires_at`](NewRecord::expires_at) of what does not grow old.
pub const NEVER: i64 = i64::MAX;

/// What is in a store, as `StreamInfo.state` shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreState {
    /// The first live record; one more than the last sequence when there is none; 0 when there
    /// never was any.
    pub first_sequence: u64,
    /// When the first live record was stored; `None` when there is none.
    pub first_unix_nanos: Option<i64>,
    /// The highest sequence ever given out, whether or not that record still lives.
    pub last_sequence: u64,
    /// When the newest record was stored, even if it is gone; `None` when there never was any.
    pub last_unix_nanos: Option<i64>,
    /// Live records.
    pub messages: u64,
    /// Their size as nats-server counts it: see [`Store::record_bytes`](super::Store::record_bytes).
    pub bytes: u64,
    /// Distinct subjects of live records.
    pub subjects: u64,
    /// Sequences between the first and the last that are not live.
    pub deleted: u64,
    /// What was damaged on disk and has been given up since the store was opened.
    pub lost: Lost,
}

/// Records that could not be read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub messages: u64,
    /// Their size on disk, as far as it could be told.
    pub bytes: u64,
}

/// What is known of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectState {
    /// Live records; at least one.
    pub messages: u64,
    /// The sequence of the newest.
    pub last: u64,
}

/// What happens to a record that would exceed a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discard {
    /// The oldest make room.
    #[default]
    Old,
    /// The new one is refused. The limit per subject still drops the oldest of the subject.
    New,
    /// As `New`, and the limit per subject refuses too.
    NewPerSubject,
}

/// Limits of a store; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLimits {
    /// Live records.
    pub messages_max: Option<u64>,
    /// Bytes of live records.
    pub bytes_max: Option<u64>,
    /// Nanoseconds after which a record goes.
    pub age_nanos_max: Option<i64>,
    /// Live records of one subject.
    pub messages_per_subject_max: Option<u64>,
    /// What happens when one is reached.
    pub discard: Discard,
}

/// Why a record went without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A limit on messages, bytes, or messages of the subject, when another record was added.
    Limit,
    /// The limits were lowered.
    LimitChange,
    /// It was older than the stream keeps.
    Age,
    /// Its own time to live ended.
    TimeToLive,
    /// It was damaged on disk.
    Damage,
}

/// A record that went without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed<'a> {
    /// Which.
    pub sequence: u64,
    /// What it was published to.
    pub subject: &'a [u8],
    /// Whether no live record of the subject was left at that moment.
    pub was_last_of_subject: bool,
    /// Why.
    pub cause: Cause,
}

/// What a store can refuse.
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
    /// Longer than a record can be: subject above 65,535 bytes or all of it 512 MiB.
    #[error("record too large")]
    TooLarge,
    /// A sequence that was already given out.
    #[error("sequence {sequence} is not above the last one, {last}")]
    SequenceTaken {
        /// What was asked for.
        sequence: u64,
        /// The highest given out.
        last: u64,
    },
    /// Too much waits to be synced: the disk is too slow.
    #[error("too much waits for the disk")]
    Busy,
    /// The record is on disk but its checksum is wrong. It has been given up and counted.
    #[error("record {0} is damaged on disk")]
    Damaged(u64),
    /// What is on disk was sealed with another key, or with one where none was given.
    #[error("it is encrypted with another key")]
    WrongKey,
    /// The disk failed. Reads go on where they can; appends are refused until a write succeeds.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
