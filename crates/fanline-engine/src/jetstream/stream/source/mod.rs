//! Mirrors and sources: records copied from another stream.
//!
//! An origin in the same account is read directly from its log ([`local`]). For an origin in another domain
//! or account, a consumer is created there through the origin's API ([`remote`]).

mod copy;
mod local;
mod progress;
mod reader;
mod recover;
mod remote;
mod request;

use std::collections::VecDeque;

use ring::digest::{SHA256, digest};
use serde::Serialize;

use super::Stream;
use crate::ids;
use crate::jetstream::{
    ApiError, External, Now, Port, StreamConfig, StreamSource, SubjectTransform,
};
use crate::store::{Filters, StoreError};
use crate::subject::Filter;
use crate::subject::transform::Transform;
use reader::Reader;

pub(super) use progress::SavedProgress;

pub(super) const SOURCE_HEADER: &str = "Nats-Stream-Source";

/// Number of characters in a stream's identity.
const IDENTITY_CHARS: usize = 8;

/// An origin to copy from.
pub(super) struct Source {
    config: StreamSource,
    /// Name of the origin in the headers of copies. For a remote origin, a hash of its location is appended.
    label: String,
    is_mirror: bool,
    /// Filters of the records to copy.
    filters: Filters,
    /// Subject transforms. The first one with a matching filter applies.
    renames: Vec<Rename>,
    /// Next sequence of the origin to copy; `None` until the origin has reported where to begin.
    next: Option<u64>,
    /// Identity of the origin, which differs from that of earlier streams of this name.
    identity: String,
    /// Last copied sequence of the origin.
    last_copied: u64,
    lag: u64,
    active: Option<i64>,
    /// Sequences of the origin's records, each with the sequence of its copy here. When the copy is durable,
    /// the origin no longer needs the record.
    to_remove: VecDeque<(u64, u64)>,
    /// Reader of a remote origin; `None` for a local one.
    reader: Option<Reader>,
}

struct Rename {
    filter: Box<[u8]>,
    transform: Option<Transform>,
}

/// Status of a mirror or a source, as in `StreamInfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceStatus {
    /// Name of the origin.
    pub name: String,
    /// Location of a remote origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// Number of sequences of the origin that are not copied yet.
    pub lag: u64,
    /// Last copied sequence of the origin; omitted for a mirror, whose last sequence is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Nanoseconds since the last message of the origin; -1 for never.
    pub active: i64,
    /// Error of the last attempt to read a remote origin, if any; or that there is no such local one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// Whether the origin is a stream of the same server, or nowhere.
    #[serde(skip)]
    pub is_local: bool,
    /// Filter of the records to copy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Filters of the records to copy, with their transforms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_transforms: Vec<SubjectTransform>,
}

/// Returns the origins in a configuration: the origin of a mirror, or the sources.
pub(super) fn all(config: &StreamConfig) -> Result<Vec<Source>, ApiError> {
    match &config.mirror {
        Some(mirror) => Ok(vec![
            Source::new(mirror, true).map_err(ApiError::mirror_invalid_transform_destination)?,
        ]),
        None => config
            .sources
            .iter()
            .map(|source| {
                Source::new(source, false).map_err(ApiError::source_invalid_transform_destination)
            })
            .collect(),
    }
}

impl Source {
    fn new(
        config: &StreamSource,
        is_mirror: bool,
    ) -> Result<Self, crate::subject::transform::TransformError> {
        let mut renames = Vec::new();
        for rename in &config.subject_transforms {
            let transform = match rename.dest.is_empty() {
                true => None,
                false => Some(Transform::new(&rename.src, &rename.dest)?),
            };
            let filter = if rename.src.is_empty() {
                ">"
            } else {
                &rename.src
            };
            renames.push(Rename {
                filter: filter.as_bytes().into(),
                transform,
            });
        }
        if renames.is_empty() && !config.filter_subject.is_empty() {
            let filter = config.filter_subject.as_bytes().into();
            renames.push(Rename {
                filter,
                transform: None,
            });
        }
        Ok(Source {
            filters: Filters::new(renames.iter().map(|rename| &*rename.filter))?,
            config: config.clone(),
            label: label(config),
            is_mirror,
            renames,
            next: None,
            identity: String::new(),
            last_copied: 0,
            lag: 0,
            active: None,
            to_remove: VecDeque::new(),
            reader: config
                .external
                .as_ref()
                .map(|external| Reader::new(&config.name, external)),
        })
    }

    /// Returns the subject under which to store a copy.
    fn rename(&self, subject: &[u8], random: u32) -> Vec<u8> {
        let matching = self.renames.iter().find(|rename| {
            Filter::parse(&rename.filter).is_ok_and(|filter| filter.matches(subject))
        });
        let mut renamed = Vec::new();
        match matching.and_then(|rename| rename.transform.as_ref()) {
            Some(transform) if transform.apply(subject, random, &mut renamed) => renamed,
            _ => subject.to_vec(),
        }
    }

    /// Returns the filters and destinations as the header of a copy contains them.
    fn named(&self) -> (String, String) {
        let filters: Vec<_> = self
            .renames
            .iter()
            .map(|rename| String::from_utf8_lossy(&rename.filter).into_owned())
            .collect();
        let destinations: Vec<_> = self
            .renames
            .iter()
            .map(|rename| {
                rename
                    .transform
                    .as_ref()
                    .map_or(&b">"[..], Transform::destination)
            })
            .map(|destination| String::from_utf8_lossy(destination).into_owned())
            .collect();
        let or_all = |names: Vec<String>| {
            if names.is_empty() {
                ">".to_owned()
            } else {
                // The separator is a form feed, as in nats-server, because a comma may be part of a subject.
                names.join("\x0c")
            }
        };
        (or_all(filters), or_all(destinations))
    }

    /// Returns the origin's sequence from the header of a copy, if this is the source of the copy.
    fn sequence_of(&self, header: &[u8]) -> Option<u64> {
        let mut words = std::str::from_utf8(header).ok()?.split(' ');
        let (name, sequence) = (words.next()?, words.next()?);
        let (filters, destinations) = self.named();
        let is_it = name == self.label
            && words.next().is_none_or(|word| word == filters)
            && words.next().is_none_or(|word| word == destinations);
        if is_it { sequence.parse().ok() } else { None }
    }
}

impl Stream {
    /// Returns the names of the local streams that this stream copies from.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        let local = self
            .sources
            .iter()
            .filter(|source| source.config.external.is_none());
        local.map(|source| source.config.name.as_str())
    }

    /// Reads these origins, which are on other servers of the cluster, by the API of this account, and all other
    /// local ones from their logs.
    pub(in crate::jetstream) fn read_elsewhere(&mut self, origins: &[String], port: &mut dyn Port) {
        let local = self.sources.iter_mut();
        for source in local.filter(|source| source.config.external.is_none()) {
            let is_elsewhere = origins.contains(&source.config.name);
            match &mut source.reader {
                Some(reader) if !is_elsewhere => {
                    reader.delete_consumer(port);
                    source.reader = None;
                    self.inboxes_changed = true;
                }
                None if is_elsewhere => {
                    let own_api = External::default();
                    source.reader = Some(Reader::new(&source.config.name, &own_api));
                }
                _ => {}
            }
        }
    }

    /// Returns eight characters that differ from those of earlier streams of this name, and are stable across
    /// restarts.
    pub fn identity(&self) -> String {
        let mixed = self.config.name.bytes().fold(
            self.created
                .unsigned_abs()
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
            |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3),
        );
        ids::from_number((mixed ^ (mixed >> 32)).into(), IDENTITY_CHARS)
    }

    /// Returns the status of the mirror or of all sources.
    pub fn source_status(&self, now: Now) -> Vec<SourceStatus> {
        let status = |source: &Source| SourceStatus {
            name: source.config.name.clone(),
            external: source.config.external.clone(),
            lag: source.lag,
            seq: Some(source.last_copied).filter(|seq| !source.is_mirror && *seq > 0),
            active: source
                .active
                .map_or(-1, |at| now.unix_nanos.saturating_sub(at)),
            error: source.reader.as_ref().and_then(Reader::error).cloned(),
            is_local: source.reader.is_none(),
            filter_subject: source.config.filter_subject.clone(),
            subject_transforms: source.config.subject_transforms.clone(),
        };
        self.sources.iter().map(status).collect()
    }

    /// Replaces the sources. Those with an unchanged configuration continue at their position.
    pub(super) fn replace_sources(
        &mut self,
        mut sources: Vec<Source>,
        port: &mut dyn Port,
    ) -> Result<(), StoreError> {
        let mut before = std::mem::take(&mut self.sources);
        for source in &mut sources {
            if let Some(at) = before.iter().position(|old| old.config == source.config) {
                std::mem::swap(source, &mut before[at]);
            }
        }
        for reader in before.iter_mut().filter_map(|old| old.reader.as_mut()) {
            reader.delete_consumer(port);
            self.inboxes_changed = true;
        }
        self.sources = sources;
        self.recover_sources()
    }
}

/// Returns the name of an origin in headers. For a remote origin, a hash of its location is appended, as in
/// nats-server.
fn label(config: &StreamSource) -> String {
    let name = &config.name;
    let Some(External { api, .. }) = &config.external else {
        return name.clone();
    };
    let hash = digest(&SHA256, api.as_bytes());
    let bytes = hash.as_ref().iter().take(IDENTITY_CHARS);
    let tag = ids::from_numbers(bytes.map(|byte| u64::from(*byte)));
    format!("{name}:{tag}")
}
