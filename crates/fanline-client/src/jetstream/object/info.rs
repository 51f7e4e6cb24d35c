//! Descriptions of objects, in the JSON that all NATS clients share.

use std::collections::BTreeMap;

use crate::jetstream::{Metadata, Timestamp};
use serde::{Deserialize, Serialize};

/// The properties of an object that its owner sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectMeta {
    /// Name, which may be any text.
    pub name: String,
    /// Description for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Labels.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Storage options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<ObjectOptions>,
}

/// The storage options of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectOptions {
    /// Target, if the object is a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<ObjectLink>,
    /// Number of bytes of a chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_chunk_size: Option<u32>,
}

/// The target of a link: an object, or a whole store if it has no name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectLink {
    /// Name of the store.
    pub bucket: String,
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// The description of a stored object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectInfo {
    /// Properties that the object's owner set.
    #[serde(flatten)]
    pub meta: ObjectMeta,
    /// Name of the store.
    pub bucket: String,
    /// Id of the object's chunks.
    pub nuid: String,
    /// Number of bytes of the object.
    pub size: u64,
    /// Time at which the object was stored.
    pub mtime: Timestamp,
    /// Number of chunks.
    pub chunks: u64,
    /// `SHA-256=`, and the digest of the object's bytes in the base64 variant for URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Whether the object was deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl ObjectInfo {
    /// Returns the target, if the object is a link.
    pub fn link(&self) -> Option<&ObjectLink> {
        self.meta.options.as_ref()?.link.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that this client writes the same JSON as nats.go.
    #[test]
    fn json_matches_other_clients() {
        let plain = r#"{"name":"cup.png","options":{"max_chunk_size":131072},"bucket":"images","nuid":"zSLbu3","size":4,"mtime":"2026-11-22T02:47:15.5Z","chunks":1,"digest":"SHA-256=-BEdAA=="}"#;
        let link = r#"{"name":"alias","options":{"link":{"bucket":"images","name":"cup.png"}},"bucket":"images","nuid":"a","size":0,"mtime":"2026-11-22T02:47:15Z","chunks":0}"#;
        let deleted = r#"{"name":"gone","headers":{"K":["v"]},"metadata":{"a":"b"},"bucket":"images","nuid":"a","size":0,"mtime":"0001-01-01T00:00:00Z","chunks":0,"deleted":true}"#;
        for json in [plain, link, deleted] {
            let info: ObjectInfo = serde_json::from_str(json).expect("readable");
            assert_eq!(serde_json::to_string(&info).expect("writable"), json);
        }
    }
}
