//! Watches of keys.

use super::keys::check_filter;
use super::{Entry, KeyValue, Operation};
use crate::jetstream::{JetStreamError, Ordered, OrderedOptions, Start};

/// Options of a watch.
#[derive(Clone, Copy, Debug, Default)]
pub struct WatchOptions {
    /// Whether to return the stored history of each key instead of only its last value.
    pub with_history: bool,
    /// Whether to leave out entries that existed before the watch.
    pub updates_only: bool,
    /// Whether to leave out deletions.
    pub ignore_deletes: bool,
    /// Whether to leave out values.
    pub meta_only: bool,
    /// Revision of the first entry to return.
    pub from_revision: Option<u64>,
}

/// A watch of keys. It returns existing entries first, and then changes, in order.
pub struct Watch {
    bucket: KeyValue,
    ordered: Ordered,
    ignore_deletes: bool,
    /// Whether the end of the existing entries was reported.
    is_current: bool,
    /// Whether the end of the existing entries must be reported next.
    becomes_current: bool,
}

impl KeyValue {
    /// Watches the keys that match the filter; `>` matches all.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::InvalidName`]; and the [errors of every request](crate::jetstream).
    pub async fn watch(
        &self,
        filter: &str,
        options: WatchOptions,
    ) -> Result<Watch, JetStreamError> {
        check_filter(filter)?;
        let start = match (options.from_revision, options) {
            (Some(revision), _) => Start::Sequence(revision),
            (
                None,
                WatchOptions {
                    updates_only: true, ..
                },
            ) => Start::New,
            (
                None,
                WatchOptions {
                    with_history: true, ..
                },
            ) => Start::All,
            (None, _) => Start::LastPerSubject,
        };
        let ordered_options = OrderedOptions {
            filters: vec![format!("{}{filter}", self.prefix)],
            start,
            headers_only: options.meta_only,
        };
        let ordered = self
            .jetstream
            .ordered(&self.stream, ordered_options)
            .await?;
        Ok(Watch {
            bucket: self.clone(),
            ignore_deletes: options.ignore_deletes,
            is_current: false,
            becomes_current: ordered.pending() == 0,
            ordered,
        })
    }
}

impl Watch {
    /// Returns the next entry: first those that existed when the watch started, then `None` once, then each
    /// change when it happens. Cancel safe.
    ///
    /// # Errors
    ///
    /// When the connection is closed or the bucket was deleted.
    pub async fn next(&mut self) -> Result<Option<Entry>, JetStreamError> {
        loop {
            if self.becomes_current && !self.is_current {
                self.is_current = true;
                return Ok(None);
            }
            let delivery = self.ordered.next().await?;
            self.becomes_current |= delivery.pending == 0;
            let entry = self.bucket.entry_of(&delivery);
            if !(self.ignore_deletes && entry.operation != Operation::Put) {
                return Ok(Some(entry));
            }
        }
    }

    /// Ends the watch.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn close(self) -> Result<(), JetStreamError> {
        self.ordered.close().await
    }
}
