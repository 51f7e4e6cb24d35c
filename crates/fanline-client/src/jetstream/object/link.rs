//! Names that stand for other objects, or for whole stores.

use super::{ObjectInfo, ObjectLink, ObjectMeta, ObjectOptions, ObjectStore};
use crate::jetstream::JetStreamError;
use crate::random_name;

impl ObjectStore {
    /// Makes a name that stands for an object of a store, this one or another; whoever
    /// [gets](ObjectStore::get) it gets that. A link of the name is replaced.
    ///
    /// # Errors
    ///
    /// [`JetStreamError::NotFound`] when there is no such object; [`JetStreamError::InvalidName`] when
    /// that is a link itself, or an object has the name; those of a publish.
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

    /// Makes a name that stands for a whole store.
    ///
    /// # Errors
    ///
    /// As [`link`](ObjectStore::link).
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
