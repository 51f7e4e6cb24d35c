//! Removing records on request.

use super::{Filters, Store, StoreError};
use crate::topic::FilterError;

impl Store {
    /// Removes one record; says whether it was there. With `erase` its bytes are overwritten.
    ///
    /// # Errors
    /// The disk cannot be read or written.
    pub fn remove(&mut self, sequence: u64, erase: bool) -> Result<bool, StoreError> {
        let Some(place) = self.place(sequence)? else {
            return Ok(false);
        };
        if erase {
            self.erase(&place)?;
        }
        self.drop_at(&place, None)?;
        Ok(true)
    }

    /// Removes what a filter matches (empty: everything) below a sequence, but for the newest `keep`
    /// of what it matches; says how many. What is removed so is not told by
    /// [`removed`](Store::removed).
    ///
    /// A purge of everything below a sequence that does not exist yet makes it the next one.
    ///
    /// # Errors
    /// The disk cannot be read or written.
    pub fn purge(
        &mut self,
        filter: &[u8],
        below: Option<u64>,
        keep: u64,
    ) -> Result<u64, StoreError> {
        let filters = filter.split(|_| false).filter(|f| !f.is_empty());
        // A filter that is none matches nothing.
        let Ok::<_, FilterError>(mut filters) = Filters::new(filters) else {
            return Ok(0);
        };
        if filters.matches_all() && keep == 0 && below.is_none_or(|below| below > self.last) {
            return self.purge_all(below);
        }
        let below = below.unwrap_or(self.last + 1);
        let total = self.count_matching(&mut filters, 0)?;
        let most = total.saturating_sub(keep);
        let mut purged = 0;
        let mut at = self.first;
        while purged < most
            && let Some(sequence) = self.next_matching(&mut filters, at)?
            && sequence < below
        {
            self.drop_sequence(sequence, None)?;
            purged += 1;
            at = sequence + 1;
        }
        Ok(purged)
    }

    fn purge_all(&mut self, below: Option<u64>) -> Result<u64, StoreError> {
        let purged = self.messages;
        let next = below.unwrap_or(0).max(self.last + 1);
        self.last = next - 1;
        self.first = next;
        self.messages = 0;
        self.bytes = 0;
        self.subjects.clear();
        self.expiry.clear();
        self.restart(next);
        Ok(purged)
    }
}
