//! What describes an object, as JSON that every client reads.

use std::collections::BTreeMap;

use crate::jetstream::{Metadata, Timestamp};
use serde::{Deserialize, Serialize};

/// What its owner says of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectMeta {
    /// Its name, which may be any text.
    pub name: String,
    /// What it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Free labels.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// How it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<ObjectOptions>,
}

/// How an object is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectOptions {
    /// It has no bytes, and stands for another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<ObjectLink>,
    /// Bytes of a piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_chunk_size: Option<u32>,
}

/// Another object, or a whole store when there is no name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectLink {
    /// The store.
    pub bucket: String,
    /// The object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// What is known of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectInfo {
    /// What its owner says of it.
    #[serde(flatten)]
    pub meta: ObjectMeta,
    /// The store.
    pub bucket: String,
    /// The id of its pieces.
    pub nuid: String,
    /// Bytes.
    pub size: u64,
    /// When it was put.
    pub mtime: Timestamp,
    /// Pieces.
    pub chunks: u64,
    /// `SHA-256=` and the digest of its bytes in base 64 for URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// It is there no more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl ObjectInfo {
    /// What it stands for, when it has no bytes of its own.
    pub fn link(&self) -> Option<&ObjectLink> {
        self.meta.options.as_ref()?.link.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nats.go writes, and what is written here, are the same.
    #[test]
    fn other_clients_read_it() {
        let plain = r#"{"name":"cup.png","options":{"max_chunk_size":131072},"bucket":"images","nuid":"zSLbu3","size":4,"mtime":"2026-11-22T02:47:15.5Z","chunks":1,"digest":"SHA-256=-BEdAA=="}"#;
        let link = r#"{"name":"alias","options":{"link":{"bucket":"images","name":"cup.png"}},"bucket":"images","nuid":"a","size":0,"mtime":"2026-11-22T02:47:15Z","chunks":0}"#;
        let deleted = r#"{"name":"gone","headers":{"K":["v"]},"metadata":{"a":"b"},"bucket":"images","nuid":"a","size":0,"mtime":"0001-01-01T00:00:00Z","chunks":0,"deleted":true}"#;
        for json in [plain, link, deleted] {
            let info: ObjectInfo = serde_json::from_str(json).expect("readable");
            assert_eq!(serde_json::to_string(&info).expect("writable"), json);
        }
    }
}
