//! The stream's consumers, and the records that stay only while a consumer needs them.

use super::Stream;
use crate::jetstream::consumer::{Consumers, Context};
use crate::jetstream::{Now, Port, Retention};
use crate::store::{Filters, StoreError};

impl Stream {
    /// Its consumers.
    pub fn consumers(&self) -> &Consumers {
        &self.consumers
    }

    /// Hands `each` the subjects that a consumer pushes to since last asked (true), or does no more.
    pub fn take_receivers(&mut self, each: &mut dyn FnMut(Box<[u8]>, bool)) {
        self.consumers.take_receivers(each);
    }

    /// Its consumers, with what they need to do something. Afterwards [`settle`](Stream::settle) is due.
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

    /// Delivers what can be delivered, and removes what has been acknowledged if it goes then. To be
    /// called once after whatever has happened.
    pub fn settle(&mut self, now: Now, port: &mut dyn Port) {
        self.with_consumers(now, port, |consumers, context| consumers.settle(context));
        let mut done = std::mem::take(&mut self.done);
        self.consumers.take_done(&mut done);
        for sequence in done.drain(..) {
            // What the disk cannot remove now goes with the next restart's look at it.
            let _ = match self.config.retention {
                Retention::Limits => Ok(false),
                Retention::WorkQueue => self.drop_record(sequence, true),
                Retention::Interest => self.drop_record(sequence, false),
            };
        }
        self.done = done;
    }

    /// Removes what no consumer needs any more, on a stream that keeps nothing else. To be called when a
    /// consumer has gone, and after a restart once all consumers are back.
    ///
    /// # Errors
    /// The disk cannot be read or written; what is left goes next time.
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

    /// Removes what a work queue's consumers have acknowledged, where a crash undid the removal. To be called after a
    /// restart once all consumers are back.
    ///
    /// # Errors
    /// As of [`remove_unneeded`](Stream::remove_unneeded).
    pub fn remove_acknowledged(&mut self) -> Result<(), StoreError> {
        if self.config.retention != Retention::WorkQueue {
            return Ok(());
        }
        let mut everything = Filters::default();
        let mut from = self.store.first_sequence();
        let end = self.consumers.looked_at();
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

    /// Takes note of the streams that copy from this one, of which there are no others: until they have taken a
    /// record, it is needed.
    ///
    /// # Errors
    /// As of [`remove_unneeded`](Stream::remove_unneeded).
    pub fn keep_for_copies(&mut self, copies: &[String]) -> Result<(), StoreError> {
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

    /// Whether a stream that copies from this one may still take this record.
    pub(super) fn is_to_be_copied(&self, sequence: u64) -> bool {
        self.copies.values().any(|from| *from <= sequence)
    }

    /// A stream that copies from this one has what lies before a sequence: that goes if nobody else needs it.
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

    /// Removes a record, whoever needs it or only if nobody does; says whether it was there and went.
    fn drop_record(&mut self, sequence: u64, needed_or_not: bool) -> Result<bool, StoreError> {
        let Some(record) = self.store.read(sequence)? else {
            return Ok(false);
        };
        let subject = std::mem::take(&mut self.edits.subject);
        let subject = copied(subject, record.subject);
        let goes = needed_or_not
            || !(self.is_to_be_copied(sequence) || self.consumers.needs(sequence, &subject));
        let removed = match goes {
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

    /// Removes a record on request; says whether it was there.
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

    /// Many records were purged.
    pub(super) fn note_purged(&mut self, port: &mut dyn Port) {
        self.has_removed = true;
        let first = self.store.first_sequence();
        self.markers.retain(|sequence| *sequence >= first);
        let mut context = Context {
            now: self.clock,
            store: &mut self.store,
            port,
        };
        // What is shown of the backlog is wrong until the next time.
        let _ = self.consumers.handle_purged(&mut context);
    }
}

fn copied(mut buffer: Vec<u8>, source: &[u8]) -> Vec<u8> {
    buffer.clear();
    buffer.extend_from_slice(source);
    buffer
}
