//! `STREAM.INFO`: the description of a stream, with subjects and deleted sequences if requested.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::page::Page;
use super::{Answer, Call, json};
use crate::jetstream::account::JetStream;
use crate::jetstream::stream::Stream;
use crate::jetstream::streams::Key;
use crate::jetstream::{ApiError, StreamInfo, shown_metadata};

/// Maximum number of subjects on a page.
const SUBJECTS_MAX: usize = 100_000;
/// Maximum number of deleted sequences in a reply.
const DELETED_MAX: usize = 1_000_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    offset: i64,
    deleted_details: bool,
    subjects_filter: String,
}

#[derive(Serialize)]
struct Reply {
    #[serde(flatten)]
    page: Page,
    #[serde(flatten)]
    info: StreamInfo,
}

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: Request = call.body()?;
    let key = call.stream_key()?;
    let mut info = shown(call, key)?;
    note_missing_origins(call.js, &mut info);
    info.cluster = Some(call.js.cluster_info(key));
    let stream = call.stream(key)?;
    let mut page = Page::new(0, 0, 0);
    if !request.subjects_filter.is_empty() {
        let subjects = subjects(stream, &request.subjects_filter);
        if !subjects.is_empty() {
            page = Page::at(subjects.len(), request.offset, SUBJECTS_MAX);
            let shown = page.of(&subjects);
            info.state.subjects = (!shown.is_empty()).then(|| shown.iter().cloned().collect());
        }
    }
    if request.deleted_details && info.state.num_deleted > 0 {
        info.state.deleted = Some(deleted(stream)?);
    }
    json(&Reply { page, info })
}

/// Returns a stream's description, with the labels that replies for a single stream contain.
pub(super) fn shown(call: &mut Call<'_>, key: Key) -> Result<StreamInfo, ApiError> {
    let now = call.now;
    let domain = call.js.settings.domain.clone();
    let version = call.js.settings.server_version.clone();
    let mut info = StreamInfo::of(call.stream(key)?, domain.as_deref(), now);
    shown_metadata(&mut info.config.metadata, &version);
    info.cluster = call.js.shown_cluster(key);
    Ok(info)
}

/// Shows which local origins have never existed. Like nats-server, a stream is silent about an origin that was deleted.
pub(super) fn note_missing_origins(js: &JetStream, info: &mut StreamInfo) {
    for origin in info.mirror.iter_mut().chain(&mut info.sources) {
        if origin.is_local && origin.active < 0 && js.streams.find(&origin.name).is_none() {
            origin.error = Some(ApiError::STREAM_NOT_FOUND);
        }
    }
}

/// Returns the subjects that a filter matches, in order, with their numbers of records.
fn subjects(stream: &mut Stream, filter: &str) -> Vec<(String, u64)> {
    let mut found = BTreeMap::new();
    stream
        .store()
        .subjects(filter.as_bytes(), &mut |subject, state| {
            let name = String::from_utf8_lossy(subject).into_owned();
            *found.entry(name).or_insert(0) += state.messages;
        });
    found.into_iter().collect()
}

fn deleted(stream: &mut Stream) -> Result<Vec<u64>, ApiError> {
    let mut sequences = Vec::new();
    let found = stream.store().deleted(&mut |range| {
        let room = DELETED_MAX - sequences.len();
        sequences.extend(range.take(room));
    });
    found.map_err(ApiError::stream_store_failed)?;
    Ok(sequences)
}
