//! `STREAM.LEADER.STEPDOWN` and `CONSUMER.LEADER.STEPDOWN`: another server takes over the lead. Consumers are replicated
//! together with their stream, and streams with the others of their service, so the lead of all of them moves.

use serde::Deserialize;

use super::{Answer, Call, success};
use crate::jetstream::{ApiError, Placement};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Request {
    placement: Option<Placement>,
}

pub(super) fn stream(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    check_cluster(call)?;
    call.stream_key()?;
    match call.js.is_replicated() {
        true => step_down(call),
        false => Ok(success()),
    }
}

pub(super) fn consumer(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    check_cluster(call)?;
    let (key, id) = call.consumer_key()?;
    // nats-server does not replicate some consumers of replicated streams.
    match call.js.group_of_consumer(key, id) {
        Some(_) => step_down(call),
        None => Ok(success()),
    }
}

pub(super) fn check_cluster(call: &Call<'_>) -> Result<(), ApiError> {
    match call.js.settings.cluster {
        Some(_) => Ok(()),
        None => Err(ApiError::CLUSTER_REQUIRED),
    }
}

fn step_down(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    // Any other text is ignored, as in nats-server.
    let request: Request = match call.message.payload.trim_ascii_start() {
        [b'{' | b'[', ..] => call.body()?,
        _ => Request::default(),
    };
    let preferred = request
        .placement
        .map(|placement| preferred(call, placement));
    call.js.step_down = Some(preferred.transpose()?.flatten());
    Ok(success())
}

/// Returns the server that must lead, if the placement names one. Checks that there is a suitable one.
fn preferred(call: &Call<'_>, placement: Placement) -> Result<Option<String>, ApiError> {
    let group = &call.js.group;
    let name = placement.preferred;
    if !name.is_empty() {
        if name == group.leader {
            let why = format!("preferred server \"{name}\" is already leader");
            return Err(ApiError::step_down(why));
        }
        return match group.followers.iter().any(|it| it.name == name) {
            true => Ok(Some(name)),
            false => Err(ApiError::step_down(format!(
                "preferred server \"{name}\" not known"
            ))),
        };
    }
    let cluster = call.js.settings.cluster.as_ref();
    let is_here = placement.cluster.is_empty()
        || cluster.is_some_and(|cluster| cluster.name == placement.cluster);
    // The tags of other servers are not known here.
    let may_suit = is_here && placement.tags.is_empty();
    let mut online = group.followers.iter().filter(|it| !it.offline);
    match may_suit && online.next().is_some() {
        true => Ok(None),
        false => Err(ApiError::step_down("no replacement peer connected")),
    }
}
