//! `CONSUMER.NAMES` and `CONSUMER.LIST`: the consumers of a stream, except those that mirrors and sources
//! created.

use serde::Serialize;

use super::page::{INFOS_MAX, NAMES_MAX, Page, PageRequest};
use super::{Answer, Call, json};
use crate::jetstream::ApiError;
use crate::jetstream::consumer::{ConsumerId, ConsumerInfo};
use crate::jetstream::streams::Key;

#[derive(Serialize)]
struct Names {
    #[serde(flatten)]
    page: Page,
    consumers: Vec<String>,
}

#[derive(Serialize)]
struct Infos {
    #[serde(flatten)]
    page: Page,
    consumers: Vec<ConsumerInfo>,
}

pub(super) fn names(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: PageRequest = call.body()?;
    let key = call.stream_key()?;
    let listed = listed(call, key);
    let page = Page::new(listed.len(), request.offset, NAMES_MAX);
    let names = page.of(&listed).iter().map(|(name, _)| name.clone());
    json(&Names {
        page,
        consumers: names.collect(),
    })
}

pub(super) fn infos(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: PageRequest = call.body()?;
    let key = call.stream_key()?;
    let listed = listed(call, key);
    let page = Page::new(listed.len(), request.offset, INFOS_MAX);
    let now = call.now;
    let shown = page.of(&listed).iter();
    let shown: Vec<_> = shown
        .map(|(_, id)| (*id, call.js.shown_cluster_of_consumer(key, *id)))
        .collect();
    let stream = call
        .js
        .streams
        .touch(key)
        .ok_or(ApiError::STREAM_NOT_FOUND)?;
    let consumers = stream.with_consumers(now, call.port, |consumers, context| {
        let infos = shown.into_iter();
        infos
            .filter_map(|(id, cluster)| {
                let info = consumers.info(id, context)?;
                Some(ConsumerInfo { cluster, ..info })
            })
            .collect()
    });
    json(&Infos { page, consumers })
}

/// Returns the listed consumers in name order.
fn listed(call: &Call<'_>, key: Key) -> Vec<(String, ConsumerId)> {
    let consumers = call.js.streams.get(key).map(|stream| stream.consumers());
    let all = consumers.into_iter().flat_map(|consumers| consumers.iter());
    let shown = all.filter(|(_, consumer)| !consumer.config().direct);
    let mut listed: Vec<_> = shown
        .map(|(id, consumer)| (consumer.name().to_owned(), id))
        .collect();
    listed.sort_unstable();
    listed
}
