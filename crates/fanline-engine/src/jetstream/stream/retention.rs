//! Consumers of a stream, and the removal of records that they no longer need.

use super::Stream;
use crate::jetstream::consumer::{Consumers, Context};
use crate::jetstream::{Now, Port, Retention};
use crate::store::{Filters, StoreError};

impl Stream {
    /// Returns its consumers.
    pub fn consumers(&self) -> &Consumers {
        &self.consumers
    }

    /// Calls `each` with every deliver subject that was added (`true`) or removed (`false`) since the last
    /// call of this function.
    pub fn take_receivers(&mut self, each: &mut dyn FnMut(Box<[u8]>, bool)) {
        self.consumers.take_receivers(each);
    }

    /// Calls `run` with the consumers and their context. Call [`settle`](Stream::settle) afterward.
    pub fn with_consumers<R>(
        &mut self,
        now: Now,
        port: &mut dyn Port,
        run: impl FnOnce(&mut Consumers, &mut Context<'_>) -> R,
    ) -> R {
        self.clock = now;
        let mut context = Context {
            now,
            store: &mut self.store,
            port,
        };
        run(&mut self.consumers, &mut context)
    }

    /// Delivers records. Removes acknowledged records if the retention policy requires it. Call it once after
    /// one or more events.
    pub fn settle(&mut self, now: Now, port: &mut dyn Port) {
        self.with_consumers(now, port, |consumers, context| consumers.settle(context));
        let mut unneeded = std::mem::take(&mut self.unneeded);
        self.consumers.take_unneeded(&mut unneeded);
        for sequence in unneeded.drain(..) {
            // If the disk cannot remove a record now, it is removed after the next restart.
            let _ = match self.config.retention {
                Retention::Limits => Ok(false),
                Retention::WorkQueue => self.drop_record(sequence, true),
                Retention::Interest => self.drop_record(sequence, false),
            };
        }
        self.unneeded = unneeded;
    }

    /// In a stream with interest retention, removes the records that no consumer or copy needs. Call it after
    /// a consumer is deleted, and after the recovery of all consumers.
    ///
    /// # Errors
    /// The disk cannot be read or written. The next call removes the remaining records.
    pub fn remove_unneeded(&mut self) -> Result<(), StoreError> {
        if self.config.retention != Retention::Interest {
            return Ok(());
        }
        let mut everything = Filters::default();
        let mut from = self.store.first_sequence();
        while let Some(sequence) = self.store.next_matching(&mut everything, from)? {
            self.drop_record(sequence, false)?;
            from = sequence + 1;
        }
        Ok(())
    }

    /// Removes records of a work queue that were acknowledged, but which a crash has restored. Call it after
    /// the recovery of all consumers.
    ///
    /// # Errors
    /// Those of [`remove_unneeded`](Stream::remove_unneeded).
    pub fn remove_acknowledged(&mut self) -> Result<(), StoreError> {
        if self.config.retention != Retention::WorkQueue {
            return Ok(());
        }
        let mut everything = Filters::default();
        let mut from = self.store.first_sequence();
        let end = self.consumers.last_examined();
        while let Some(sequence) = self.store.next_matching(&mut everything, from)?
            && sequence <= end
        {
            from = sequence + 1;
            let Some(record) = self.store.read(sequence)? else {
                continue;
            };
            if self.consumers.has_acknowledged(sequence, record.subject) {
                self.drop_record(sequence, true)?;
            }
        }
        Ok(())
    }

    /// Sets the streams that copy from this one. A record is needed until all of them have copied it.
    ///
    /// # Errors
    /// Those of [`remove_unneeded`](Stream::remove_unneeded).
    pub fn set_copies(&mut self, copies: &[String]) -> Result<(), StoreError> {
        if self.config.retention != Retention::Interest {
            return Ok(());
        }
        for copy in copies {
            self.copies.entry(copy.as_str().into()).or_insert(0);
        }
        if self.copies.len() == copies.len() {
            return Ok(());
        }
        self.copies
            .retain(|known, _| copies.iter().any(|copy| **copy == **known));
        self.remove_unneeded()
    }

    /// Returns whether a copy may still need this record.
    pub(super) fn is_needed_by_copies(&self, sequence: u64) -> bool {
        self.copies.values().any(|from| *from <= sequence)
    }

    /// Registers that a copy has all records below a sequence, and removes records that are no longer needed.
    pub(super) fn note_copied(&mut self, copy: &str, until: u64) -> Result<(), StoreError> {
        let from = match self.copies.get_mut(copy) {
            Some(known) => std::mem::replace(known, until),
            None => {
                self.copies.insert(copy.into(), until);
                0
            }
        };
        if self.config.retention != Retention::Interest {
            return Ok(());
        }
        let mut everything = Filters::default();
        let mut next = from;
        while let Some(sequence) = self.store.next_matching(&mut everything, next)?
            && sequence < until
        {
            self.drop_record(sequence, false)?;
            next = sequence + 1;
        }
        Ok(())
    }

    /// Removes a record unless a consumer or copy needs it. With `needed_or_not`, removes it in any case.
    /// Returns whether it was removed.
    fn drop_record(&mut self, sequence: u64, needed_or_not: bool) -> Result<bool, StoreError> {
        let Some(record) = self.store.read(sequence)? else {
            return Ok(false);
        };
        let subject = std::mem::take(&mut self.edits.subject);
        let subject = copied(subject, record.subject);
        let is_removed = needed_or_not
            || !(self.is_needed_by_copies(sequence) || self.consumers.needs(sequence, &subject));
        let removed = match is_removed {
            true => self.store.remove(sequence, false),
            false => Ok(false),
        };
        if removed == Ok(true) {
            self.markers.remove(&sequence);
            self.consumers.handle_removed(sequence, &subject);
        }
        self.edits.subject = subject;
        removed
    }

    /// Removes a record on request. Returns whether it existed.
    pub(super) fn remove_record(&mut self, sequence: u64, erase: bool) -> Result<bool, StoreError> {
        let Some(record) = self.store.read(sequence)? else {
            return Ok(false);
        };
        let subject = record.subject.to_vec();
        let removed = self.store.remove(sequence, erase)?;
        self.has_removed = true;
        self.markers.remove(&sequence);
        self.consumers.handle_removed(sequence, &subject);
        Ok(removed)
    }

    /// Updates markers and consumers after a purge of many records.
    pub(super) fn note_purged(&mut self, port: &mut dyn Port) {
        self.has_removed = true;
        let first = self.store.first_sequence();
        self.markers.retain(|sequence| *sequence >= first);
        let mut context = Context {
            now: self.clock,
            store: &mut self.store,
            port,
        };
        // If counting fails, the reported number of pending records is wrong until the next count.
        let _ = self.consumers.handle_purged(&mut context);
    }
}

fn copied(mut buffer: Vec<u8>, source: &[u8]) -> Vec<u8> {
    buffer.clear();
    buffer.extend_from_slice(source);
    buffer
}
