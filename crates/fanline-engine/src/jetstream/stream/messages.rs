//! Single records and purges, as the API asks for them.

use super::Stream;
use super::append::refused;
use crate::jetstream::{ApiError, Now, Port};
use crate::store::{Filters, Record, StoreError};

/// Which record is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The one of this sequence.
    Sequence(u64),
    /// The last one whose subject a filter matches.
    Last(&'a [u8]),
    /// The first one from a sequence on whose subject a filter matches; empty is all.
    Next(&'a [u8], u64),
    /// The first one of that time or later whose subject a filter matches; empty is all.
    NextAt(&'a [u8], i64),
}

/// What a purge removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purge<'a> {
    /// Records whose subject it matches; empty: all.
    pub filter: &'a [u8],
    /// Only those below this sequence.
    pub below: Option<u64>,
    /// The newest so many stay.
    pub keep: u64,
}

impl Stream {
    /// A record; `None` when there is none such.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn message(&mut self, wanted: Wanted<'_>) -> Result<Option<Record<'_>>, StoreError> {
        match self.find(wanted)? {
            Some(sequence) => self.store.read(sequence),
            None => Ok(None),
        }
    }

    /// The sequence of a record.
    pub(super) fn find(&mut self, wanted: Wanted<'_>) -> Result<Option<u64>, StoreError> {
        match wanted {
            Wanted::Sequence(sequence) => Ok(Some(sequence)),
            Wanted::Last(filter) => match self.store.subject(filter) {
                Some(known) => Ok(Some(known.last)),
                None => self.store.last_matching(filter),
            },
            Wanted::Next(filter, from) => {
                let filter = Some(filter).filter(|filter| !filter.is_empty());
                match Filters::new(filter) {
                    Ok(mut filters) => self.store.next_matching(&mut filters, from),
                    Err(_) => Ok(None),
                }
            }
            Wanted::NextAt(filter, unix_nanos) => {
                let from = self.store.sequence_at(unix_nanos)?;
                self.find(Wanted::Next(filter, from))
            }
        }
    }

    /// Deletes one record; with `erase` its bytes are overwritten.
    ///
    /// # Errors
    /// When the stream does not allow it, there is no such record, or the disk fails.
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

    /// Removes many records; says how many.
    ///
    /// # Errors
    /// When the stream does not allow it, or the disk fails.
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
