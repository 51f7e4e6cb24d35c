//! Lists and watches of objects.

use super::{ObjectInfo, ObjectStore};
use crate::jetstream::{JetStreamError, Ordered, OrderedOptions, Start};

/// A watch of objects. It returns existing objects first, and then changes, in order.
pub struct ObjectWatch {
    ordered: Ordered,
    is_current: bool,
    becomes_current: bool,
}

impl ObjectStore {
    /// Returns all objects.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
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

    /// Watches for objects that are stored or deleted. With `updates_only`, leaves out existing objects.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
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
    /// Returns the next description: first those of objects that existed when the watch started, then `None`
    /// once, then each change when it happens. Cancel safe.
    ///
    /// # Errors
    ///
    /// When the connection is closed or the store was deleted.
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

    /// Ends the watch.
    ///
    /// # Errors
    ///
    /// The [errors of every request](crate::jetstream).
    pub async fn close(self) -> Result<(), JetStreamError> {
        self.ordered.close().await
    }
}
