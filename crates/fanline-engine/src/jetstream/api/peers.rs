//! Requests that change the servers of a stream or a consumer. Its servers are fixed, so valid requests get the answer for
//! a cluster without another suitable server.

use serde::Deserialize;

use super::leader_stepdown::check_cluster;
use super::{Answer, Call};
use crate::jetstream::ApiError;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Request {
    /// Name or id of a server.
    peer: String,
}

/// Handles `STREAM.PEER.REMOVE` and `STREAM.PEER.EVACUATE`.
pub(super) fn stream(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    check_cluster(call)?;
    let peer = requested(call)?;
    let key = call.stream_key()?;
    match call.js.cluster_info(key).has_member(&peer) {
        true => Err(ApiError::PEER_REMAP),
        false => Err(ApiError::CLUSTER_PEER_NOT_MEMBER),
    }
}

/// Handles `CONSUMER.PEER.REMOVE` and `CONSUMER.PEER.EVACUATE`.
pub(super) fn consumer(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    check_cluster(call)?;
    let peer = requested(call)?;
    let (key, id) = call.consumer_key()?;
    let members = call.js.shown_cluster_of_consumer(key, id);
    match members.is_some_and(|members| members.has_member(&peer)) {
        true => Err(ApiError::PEER_REMAP),
        false => Err(ApiError::CLUSTER_PEER_NOT_MEMBER),
    }
}

/// Handles `STREAM.CANCEL_MOVE`.
pub(super) fn cancel_move(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    check_cluster(call)?;
    call.stream_key()?;
    Err(ApiError::STREAM_MOVE_NOT_IN_PROGRESS)
}

fn requested(call: &Call<'_>) -> Result<String, ApiError> {
    if call.has_empty_body() {
        return Err(ApiError::BAD_REQUEST);
    }
    let Request { peer } = call.body()?;
    match peer.is_empty() {
        true => Err(ApiError::BAD_REQUEST),
        false => Ok(peer),
    }
}
