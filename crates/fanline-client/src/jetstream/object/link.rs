//! Links to other objects, or to whole stores.

use super::{ObjectInfo, ObjectLink, ObjectMeta, ObjectOptions, ObjectStore};
use crate::jetstream::JetStreamError;
use crate::random_name;

impl ObjectStore {
    /// Creates a link to an object of this or another store. It replaces an existing link of the same name.
    ///
    /// [`get`](ObjectStore::get) of the link returns the object.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`] when the object does not exist; [`JetStreamError::InvalidName`] when the
    /// object is a link, or when `name` is the name of an object that is not a link; and the errors of [a
    /// publish](crate::jetstream::JetStream::publish).
    pub async fn link(
        &self,
        name: &str,
        store: &ObjectStore,
        object: &str,
    ) -> Result<ObjectInfo, JetStreamError> {
        let target = store.info(object).await?;
        if target.link().is_some() {
            return Err(JetStreamError::invalid_name(
                "object",
                object,
                "it is a link",
            ));
        }
        let link = ObjectLink {
            bucket: store.bucket.clone(),
            name: object.to_owned(),
        };
        self.put_link(name, link).await
    }

    /// Creates a link to a whole store.
    ///
    /// # Errors
    ///
    /// Those of [`link`](ObjectStore::link).
    pub async fn link_store(
        &self,
        name: &str,
        store: &ObjectStore,
    ) -> Result<ObjectInfo, JetStreamError> {
        let link = ObjectLink {
            bucket: store.bucket.clone(),
            name: String::new(),
        };
        self.put_link(name, link).await
    }

    async fn put_link(&self, name: &str, link: ObjectLink) -> Result<ObjectInfo, JetStreamError> {
        if name.is_empty() {
            return Err(JetStreamError::invalid_name("object", name, "it is empty"));
        }
        let before = self.info_or_none(name).await?;
        if before.is_some_and(|before| !before.deleted && before.link().is_none()) {
            return Err(JetStreamError::invalid_name(
                "object",
                name,
                "an object has it",
            ));
        }
        let mut info = ObjectInfo {
            bucket: self.bucket.clone(),
            nuid: random_name(),
            meta: ObjectMeta {
                name: name.to_owned(),
                options: Some(ObjectOptions {
                    link: Some(link),
                    max_chunk_size: None,
                }),
                ..Default::default()
            },
            ..Default::default()
        };
        self.describe(&mut info).await?;
        Ok(info)
    }
}
