//! `CONSUMER.RESET`: resets a consumer to another sequence.

use serde::{Deserialize, Serialize};

use super::{Answer, Call, json};
use crate::jetstream::consumer::ConsumerInfo;
use crate::jetstream::{ApiError, Strictness};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    seq: u64,
}

#[derive(Serialize)]
struct Reply {
    #[serde(flatten)]
    info: ConsumerInfo,
    reset_seq: u64,
}

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    // As in nats-server, this request ignores unknown fields, even in strict mode.
    let request: Request = call.body_as(Strictness::Lenient)?;
    let (key, id) = call.consumer_key()?;
    let now = call.now;
    let stream = call
        .js
        .streams
        .touch(key)
        .ok_or(ApiError::STREAM_NOT_FOUND)?;
    let reset_seq = stream.with_consumers(now, call.port, |consumers, context| {
        consumers.reset(id, request.seq, context)
    })?;
    call.js.persist_consumer_states(key, true, now, call.port);
    call.changes = Some(key);
    let info = call.consumer_info(key, id)?;
    json(&Reply { info, reset_seq })
}
