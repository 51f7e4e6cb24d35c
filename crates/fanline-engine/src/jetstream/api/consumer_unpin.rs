//! `CONSUMER.UNPIN`: unpins the pinned client, so that another client can be pinned.

use serde::Deserialize;

use super::{Answer, Call};
use crate::jetstream::{ApiError, decode};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    group: String,
}

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: Request = decode(call.message.payload, call.js.settings.strictness)?;
    if request.group.is_empty() {
        return Err(ApiError::invalid_json("consumer group not specified"));
    }
    let (key, id) = call.consumer_key()?;
    let now = call.now;
    let stream = call
        .js
        .streams
        .touch(key)
        .ok_or(ApiError::STREAM_NOT_FOUND)?;
    let consumer = stream.consumers().get(id);
    let config = consumer.ok_or(ApiError::CONSUMER_NOT_FOUND)?.config();
    if !config.priority_groups.contains(&request.group) {
        return Err(ApiError::CONSUMER_INVALID_PRIORITY_GROUP);
    }
    stream.with_consumers(now, call.port, |consumers, context| {
        consumers.unpin(id, context);
    });
    Ok(Answer::Json(b"{}".to_vec()))
}
