//! `STREAM.NAMES` and `STREAM.LIST`: all streams, or those with a matching subject.

use serde::Serialize;

use super::page::{INFOS_MAX, NAMES_MAX, Page, PageRequest};
use super::{Answer, Call, json};
use crate::jetstream::streams::{Key, has_subject};
use crate::jetstream::{ApiError, StreamInfo};

#[derive(Serialize)]
struct Names<'a> {
    #[serde(flatten)]
    page: Page,
    /// Names; `null` if there are none, as in nats-server.
    streams: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
struct Infos {
    #[serde(flatten)]
    page: Page,
    streams: Vec<StreamInfo>,
}

pub(super) fn names(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: PageRequest = call.body()?;
    let matching = matching(call, &request.subject);
    let page = Page::new(matching.len(), request.offset, NAMES_MAX);
    let names: Vec<&str> = page.of(&matching).iter().map(|(name, _)| *name).collect();
    json(&Names {
        page,
        streams: Some(names).filter(|names| !names.is_empty()),
    })
}

pub(super) fn infos(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: PageRequest = call.body()?;
    let matching: Vec<Key> = matching(call, &request.subject)
        .into_iter()
        .map(|(_, key)| key)
        .collect();
    let page = Page::new(matching.len(), request.offset, INFOS_MAX);
    let domain = call.js.settings.domain.clone();
    let mut streams = Vec::new();
    for key in page.of(&matching) {
        if let Some(stream) = call.js.streams.get_mut(*key) {
            streams.push(StreamInfo::of(stream, domain.as_deref(), call.now));
        }
    }
    json(&Infos { page, streams })
}

fn matching<'a>(call: &'a Call<'_>, subject: &str) -> Vec<(&'a str, Key)> {
    let mut sorted = call.js.streams.sorted();
    sorted.retain(|(_, key)| {
        let stream = call.js.streams.get(*key);
        subject.is_empty() || stream.is_some_and(|stream| has_subject(stream, subject))
    });
    sorted
}
