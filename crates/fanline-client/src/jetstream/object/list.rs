//! Which objects there are, and hearing of changes.

use super::{ObjectInfo, ObjectStore};
use crate::jetstream::{JetStreamError, Ordered, OrderedOptions, Start};

/// Changes of objects, in order: first what is there, then what comes.
pub struct ObjectWatch {
    ordered: Ordered,
    is_current: bool,
    becomes_current: bool,
}

impl ObjectStore {
    /// All objects.
    ///
    /// # Errors
    ///
    /// Those of a request.
    pub async fn list(&self) -> Result<Vec<ObjectInfo>, JetStreamError> {
        let mut watch = self.watch(false).await?;
        let mut objects = Vec::new();
        while let Some(info) = watch.next().await? {
            if !info.deleted {
                objects.push(info);
            }
        }
        watch.close().await?;
        Ok(objects)
    }

    /// Hears of every object that is put or deleted; with `updates_only`, not of those that are
    /// there already.
    ///
    /// # Errors
    ///
    /// Those of a request.
    pub async fn watch(&self, updates_only: bool) -> Result<ObjectWatch, JetStreamError> {
        let options = OrderedOptions {
            filters: vec![format!("$O.{}.M.>", self.bucket)],
            start: match updates_only {
                true => Start::New,
                false => Start::LastPerSubject,
            },
            headers_only: false,
        };
        let ordered = self.jetstream.ordered(&self.stream, options).await?;
        Ok(ObjectWatch {
            is_current: false,
            becomes_current: ordered.pending() == 0,
            ordered,
        })
    }
}

impl ObjectWatch {
    /// The next change. `None`, once, says that all that was there when the watch began has been
    /// given. Cancel safe.
    ///
    /// # Errors
    ///
    /// When the connection or the store is gone.
    pub async fn next(&mut self) -> Result<Option<ObjectInfo>, JetStreamError> {
        if self.becomes_current && !self.is_current {
            self.is_current = true;
            return Ok(None);
        }
        let delivery = self.ordered.next().await?;
        self.becomes_current |= delivery.pending == 0;
        let info = serde_json::from_slice(delivery.message.payload());
        info.map(Some).map_err(JetStreamError::unexpected)
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
