//! `STREAM.NAMES` and `STREAM.LIST`: all streams, or those with a matching subject. In a cluster, these are the streams
//! of all servers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::page::{INFOS_MAX, NAMES_MAX, Page, PageRequest};
use super::stream_info::note_missing_origins;
use super::{Answer, Call, json};
use crate::jetstream::account::JetStream;
use crate::jetstream::peers::Elsewhere;
use crate::jetstream::streams::{Key, has_subject};
use crate::jetstream::{ApiError, Now, StreamInfo};

#[derive(Serialize)]
struct Names<'a> {
    #[serde(flatten)]
    page: Page,
    /// Names; `null` if there are none, as in nats-server.
    streams: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
struct Infos<'a> {
    #[serde(flatten)]
    page: Page,
    streams: Vec<Info<'a>>,
    /// Names of streams whose servers have not answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<&'a str>,
}

/// The description of a stream.
#[derive(Serialize)]
#[serde(untagged)]
enum Info<'a> {
    Here(Box<StreamInfo>),
    Elsewhere(&'a Value),
}

/// The server of a listed stream.
#[derive(Clone, Copy)]
enum Place<'a> {
    Here(Key),
    /// The id of another server.
    Elsewhere(&'a str),
}

pub(super) fn names(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: PageRequest = call.body()?;
    let listed = listed(call.js, &request.subject, call.elsewhere);
    let page = Page::new(listed.len(), request.offset, NAMES_MAX);
    let names: Vec<&str> = page.of(&listed).iter().map(|(name, _)| *name).collect();
    json(&Names {
        page,
        streams: Some(names).filter(|names| !names.is_empty()),
    })
}

pub(super) fn infos(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: PageRequest = call.body()?;
    let listed: Vec<(String, Option<Key>)> = listed(call.js, &request.subject, call.elsewhere)
        .into_iter()
        .map(|(name, place)| match place {
            Place::Here(key) => (name.to_owned(), Some(key)),
            Place::Elsewhere(_) => (name.to_owned(), None),
        })
        .collect();
    let page = Page::new(listed.len(), request.offset, INFOS_MAX);
    let (mut streams, mut missing) = (Vec::new(), Vec::new());
    for (name, key) in page.of(&listed) {
        match (key, call.elsewhere.infos.get(name)) {
            (Some(key), _) => streams.extend(info(call.js, *key, call.now).map(Info::Here)),
            (None, Some(info)) => streams.push(Info::Elsewhere(info)),
            (None, None) => missing.push(&**name),
        }
    }
    json(&Infos {
        page,
        streams,
        missing,
    })
}

/// Returns the streams with a matching subject, in name order.
fn listed<'a>(
    js: &'a JetStream,
    subject: &str,
    elsewhere: &'a Elsewhere,
) -> Vec<(&'a str, Place<'a>)> {
    let others = elsewhere.names.iter();
    let others = others.map(|(name, id)| (name.as_str(), Place::Elsewhere(id)));
    let mut listed: BTreeMap<&str, Place<'_>> = others.collect();
    listed.extend(matching(js, subject).map(|(name, key)| (name, Place::Here(key))));
    listed.into_iter().collect()
}

fn matching<'a>(js: &'a JetStream, subject: &str) -> impl Iterator<Item = (&'a str, Key)> {
    let sorted = js.streams.sorted().into_iter();
    sorted.filter(move |(_, key)| {
        let stream = js.streams.get(*key);
        subject.is_empty() || stream.is_some_and(|stream| has_subject(stream, subject))
    })
}

fn info(js: &mut JetStream, key: Key, now: Now) -> Option<Box<StreamInfo>> {
    let (domain, cluster) = (js.settings.domain.clone(), js.shown_cluster(key));
    let stream = js.streams.get_mut(key)?;
    let mut info = StreamInfo::of(stream, domain.as_deref(), now);
    info.cluster = cluster;
    note_missing_origins(js, &mut info);
    Some(Box::new(info))
}

/// Returns the subject of the streams that a request lists; empty for all streams.
pub(in crate::jetstream) fn listed_subject(payload: &[u8]) -> String {
    page_request(payload).subject
}

/// Returns the names of the streams of other servers on the page of a list, with the ids of their servers.
pub(in crate::jetstream) fn remote_on_page(
    js: &JetStream,
    payload: &[u8],
    elsewhere: &Elsewhere,
) -> Vec<(String, String)> {
    let request = page_request(payload);
    let listed = listed(js, &request.subject, elsewhere);
    let page = Page::new(listed.len(), request.offset, INFOS_MAX);
    let remote = page
        .of(&listed)
        .iter()
        .filter_map(|(name, place)| match place {
            Place::Here(_) => None,
            Place::Elsewhere(id) => Some(((*name).to_owned(), (*id).to_owned())),
        });
    remote.collect()
}

/// Returns the names of the streams of this server with a matching subject.
pub(in crate::jetstream) fn matching_names(js: &JetStream, subject: &str) -> Vec<String> {
    let names = matching(js, subject);
    names.map(|(name, _)| name.to_owned()).collect()
}

/// Returns the description of a stream in a list.
pub(in crate::jetstream) fn listed_info(
    js: &mut JetStream,
    name: &str,
    now: Now,
) -> Option<Box<StreamInfo>> {
    let key = js.streams.find(name)?;
    info(js, key, now)
}

/// Parses a request leniently: an invalid one is refused when it is answered.
fn page_request(payload: &[u8]) -> PageRequest {
    serde_json::from_slice(payload).unwrap_or_default()
}
