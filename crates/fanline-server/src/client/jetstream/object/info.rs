//! What describes an object, as JSON that every client reads.

use std::collections::BTreeMap;

use fanline_engine::jetstream::{Metadata, Timestamp};
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
