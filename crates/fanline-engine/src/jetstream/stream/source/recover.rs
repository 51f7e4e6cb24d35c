//! Recovers the progress of copying from the stream's own log.

use super::super::Stream;
use super::SOURCE_HEADER;
use crate::headers::find;
use crate::store::StoreError;

impl Stream {
    /// Reads from the log how far each origin was copied.
    pub(in crate::jetstream::stream) fn recover_sources(&mut self) -> Result<(), StoreError> {
        let last = self.store.last_sequence();
        let mut missing = 0;
        for source in &mut self.sources {
            if source.is_mirror && last > 0 {
                source.next.get_or_insert(last + 1);
                source.last_copied = last;
            }
            missing += usize::from(source.next.is_none());
        }
        let mut sequence = last;
        let first = self.store.first_sequence();
        while missing > 0 && sequence >= first.max(1) {
            match self.store.read(sequence) {
                Ok(Some(record)) => {
                    let header = find(record.headers, SOURCE_HEADER.as_bytes()).unwrap_or_default();
                    let open = self
                        .sources
                        .iter_mut()
                        .filter(|source| source.next.is_none());
                    for source in open {
                        if let Some(sequence) = source.sequence_of(header) {
                            (source.next, source.last_copied) = (Some(sequence + 1), sequence);
                            missing -= 1;
                        }
                    }
                }
                Ok(None) | Err(StoreError::Damaged(_)) => {}
                Err(error) => return Err(error),
            }
            sequence -= 1;
        }
        Ok(())
    }
}
