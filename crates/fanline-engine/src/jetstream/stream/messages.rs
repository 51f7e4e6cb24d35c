//! Reads, deletes, and purges records, for the API.

use super::Stream;
use super::append::refused;
use crate::jetstream::{ApiError, Now, Port};
use crate::store::{Filters, Record, StoreError};

/// A way to select a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// The record of this sequence.
    Sequence(u64),
    /// The last record with a subject that a filter matches.
    Last(&'a [u8]),
    /// The first record from a sequence on with a subject that a filter matches. An empty filter matches all.
    Next(&'a [u8], u64),
    /// The first record from a time on with a subject that a filter matches. An empty filter matches all.
    NextAt(&'a [u8], i64),
}

/// The records that a purge removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purge<'a> {
    /// Filter of the subjects; empty means all.
    pub filter: &'a [u8],
    /// Sequence below which records are removed; `None` for all.
    pub below: Option<u64>,
    /// Number of newest records to preserve.
    pub keep: u64,
}

impl Stream {
    /// Returns the selected record; `None` if it does not exist.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn message(&mut self, selection: Selection<'_>) -> Result<Option<Record<'_>>, StoreError> {
        match self.find(selection)? {
            Some(sequence) => self.store.read(sequence),
            None => Ok(None),
        }
    }

    /// Returns the sequence of the selected record.
    pub(super) fn find(&mut self, selection: Selection<'_>) -> Result<Option<u64>, StoreError> {
        match selection {
            Selection::Sequence(sequence) => Ok(Some(sequence)),
            Selection::Last(filter) => match self.store.subject(filter) {
                Some(known) => Ok(Some(known.last)),
                None => self.store.last_matching(filter),
            },
            Selection::Next(filter, from) => {
                let filter = Some(filter).filter(|filter| !filter.is_empty());
                match Filters::new(filter) {
                    Ok(mut filters) => self.store.next_matching(&mut filters, from),
                    Err(_) => Ok(None),
                }
            }
            Selection::NextAt(filter, unix_nanos) => {
                let from = self.store.sequence_at(unix_nanos)?;
                self.find(Selection::Next(filter, from))
            }
        }
    }

    /// Deletes one record. With `erase`, its bytes are overwritten.
    ///
    /// # Errors
    /// The stream does not allow deletions, the record does not exist, or the disk fails.
    pub fn delete_message(&mut self, sequence: u64, erase: bool, now: Now) -> Result<(), ApiError> {
        self.clock = now;
        if self.config.sealed {
            return Err(ApiError::STREAM_SEALED);
        }
        if self.config.deny_delete {
            return Err(ApiError::stream_msg_delete_failed(
                "message delete not permitted",
            ));
        }
        if sequence > self.store.last_sequence() {
            return Err(ApiError::stream_msg_delete_failed("stream store EOF"));
        }
        let is_removed = self.remove_record(sequence, erase);
        if !is_removed.map_err(ApiError::stream_msg_delete_failed)? {
            return Err(ApiError::stream_msg_delete_failed("no message found"));
        }
        Ok(())
    }

    /// Removes records, and returns their number.
    ///
    /// # Errors
    /// The stream does not allow purges, or the disk fails.
    pub fn purge(
        &mut self,
        purge: &Purge<'_>,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<u64, ApiError> {
        self.clock = now;
        if self.config.sealed {
            return Err(ApiError::STREAM_SEALED);
        }
        if self.config.deny_purge {
            return Err(ApiError::stream_purge_failed("stream purge not permitted"));
        }
        let purged = self.store.purge(purge.filter, purge.below, purge.keep);
        let purged =
            purged.map_err(|error| ApiError::stream_purge_failed(refused(error).description))?;
        self.settle_removed(port);
        self.note_purged(port);
        Ok(purged)
    }
}
