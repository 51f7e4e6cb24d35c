//! Local origins: streams of the same account, which are read directly from their log. Only durable records
//! are copied, so that after a crash a copy has no records that its origin has lost.

use super::super::Stream;
use super::Source;
use super::copy::{CopiedRecord, without_conditions};
use crate::jetstream::{Now, Port, Retention};
use crate::store::{Search, StoreError};

/// Maximum number of records to copy in one call.
const PULL_MAX: usize = 1_000;

impl Stream {
    /// Copies new records from an origin. Returns `true` if more remain. Call it when the origin has stored
    /// or synced records, and when this stream has synced.
    pub fn pull(&mut self, origin: &mut Stream, now: Now, port: &mut dyn Port) -> bool {
        self.clock = now;
        let mut has_more = false;
        let mut sources = std::mem::take(&mut self.sources);
        let mut copied_below = None;
        for source in &mut sources {
            let is_it =
                source.config.name == origin.config.name && source.config.external.is_none();
            if is_it {
                // If the disk cannot be read, the next call tries again.
                has_more |= self.pull_source(source, origin, port).unwrap_or(false);
                self.remove_copied(source, origin);
                let until = source.copied_below();
                copied_below = Some(copied_below.map_or(until, |other: u64| other.min(until)));
            }
        }
        self.sources = sources;
        if let Some(until) = copied_below {
            // If the disk cannot remove records now, they are removed after the next restart.
            let _ = origin.note_copied(&self.config.name, until);
        }
        has_more
    }

    fn pull_source(
        &mut self,
        source: &mut Source,
        origin: &mut Stream,
        port: &mut dyn Port,
    ) -> Result<bool, StoreError> {
        let mut next = match (source.next, &source.config.opt_start_time) {
            (Some(next), _) => next,
            (None, Some(time)) => origin.store.sequence_at(time.unix_nanos())?,
            (None, None) => source.config.opt_start_seq.max(1),
        };
        source.active = Some(self.clock.unix_nanos);
        if source.identity.is_empty() {
            source.identity = origin.identity();
        }
        let durable = origin.store.durable();
        let mut copied = 0;
        let mut is_searching = false;
        while copied < PULL_MAX {
            let found = match origin.store.search(&mut source.filters, next)? {
                Search::Found(sequence) => Some(sequence),
                Search::Nothing => None,
                Search::NotBelow(sequence) => {
                    is_searching = !origin.store.has_unsynced_removal(next..sequence);
                    if is_searching {
                        next = next.max(sequence);
                    }
                    break;
                }
            };
            let end = found.unwrap_or(durable + 1).min(durable + 1);
            if origin.store.has_unsynced_removal(next..end) {
                break;
            }
            let Some(sequence) = found.filter(|sequence| *sequence <= durable) else {
                next = next.max(durable + 1);
                break;
            };
            match origin.store.read(sequence) {
                Ok(Some(record)) => {
                    let copy = CopiedRecord {
                        sequence,
                        unix_nanos: record.unix_nanos,
                        expires_at: record.expires_at,
                        subject: source.rename(record.subject, self.random()),
                        headers: without_conditions(record.headers),
                        payload: record.payload.to_vec(),
                    };
                    let origin_subject = record.subject.to_vec();
                    let Ok(copy_sequence) = self.store_copy(source, copy, &origin_subject, port)
                    else {
                        // Retried later: there is no room for the copy, or a counter cannot be read.
                        break;
                    };
                    source.to_remove.push_back((sequence, copy_sequence));
                    source.last_copied = sequence;
                }
                Ok(None) | Err(StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
            next = sequence + 1;
            copied += 1;
        }
        source.next = Some(next);
        source.lag = (origin.store.last_sequence() + 1).saturating_sub(next);
        Ok(copied == PULL_MAX || is_searching)
    }

    /// Removes records whose copies are durable from an origin with work queue retention.
    fn remove_copied(&self, source: &mut Source, origin: &mut Stream) {
        if origin.config.retention == Retention::Limits {
            source.to_remove.clear();
            return;
        }
        let durable = self.store.durable();
        while let Some((sequence, copy)) = source.to_remove.front().copied()
            && copy <= durable
        {
            source.to_remove.pop_front();
            if origin.config.retention == Retention::WorkQueue {
                // If the disk cannot remove the record now, the record stays, and is copied again after a
                // restart.
                let _ = origin.remove_record(sequence, false);
            }
        }
    }
}

impl Source {
    /// Returns the lowest sequence of the origin without a durable copy.
    fn copied_below(&self) -> u64 {
        let next = self.next.unwrap_or(0);
        self.to_remove
            .front()
            .map_or(next, |(sequence, _)| *sequence)
    }
}
