//! Hearing of every change to keys.

use super::keys::check_filter;
use super::{Entry, KeyValue, Operation};
use crate::jetstream::{JetStreamError, Ordered, OrderedOptions, Start};

/// What a watch tells of.
#[derive(Clone, Copy, Debug, Default)]
pub struct WatchOptions {
    /// First all that is kept of each key, not its last value only.
    pub with_history: bool,
    /// What is there already is left out.
    pub updates_only: bool,
    /// Deletions are left out.
    pub ignore_deletes: bool,
    /// Values are left out.
    pub meta_only: bool,
    /// Begins at this revision.
    pub from_revision: Option<u64>,
}

/// Changes of the keys that match, in order: first what is there, then what comes.
pub struct Watch {
    bucket: KeyValue,
    ordered: Ordered,
    ignore_deletes: bool,
    /// What was there has been given, and it has been said so.
    is_current: bool,
    /// The next thing to say is that what was there has been given.
    becomes_current: bool,
}

impl KeyValue {
    /// Watches the keys that match; `>` stands for all.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::InvalidName`]; those of a request.
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
    /// The next change. `None`, once, says that all that was there when the watch began has been
    /// given. Cancel safe.
    ///
    /// # Errors
    ///
    /// When the connection or the bucket is gone.
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

    /// Ends it.
    ///
    /// # Errors
    ///
    /// Those of a request.
    pub async fn close(self) -> Result<(), JetStreamError> {
        self.ordered.close().await
    }
}
