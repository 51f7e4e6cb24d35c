//! `STREAM.SNAPSHOT`: sends a stream's backup in chunks.

use serde::{Deserialize, Serialize};

use super::{Answer, Call, json};
use crate::jetstream::transfer::SnapshotOptions;
use crate::jetstream::{ApiError, StateInfo, StreamConfig};
use crate::subject::is_literal_subject;

const CHUNK_BYTES_DEFAULT: usize = 128 * 1024;
const CHUNK_BYTES_MIN: usize = 1024;
const CHUNK_BYTES_MAX: usize = 1024 * 1024;
const WINDOW_BYTES_DEFAULT: usize = 8 * 1024 * 1024;
const WINDOW_BYTES_MIN: usize = 1024;
const WINDOW_BYTES_MAX: usize = 32 * 1024 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    deliver_subject: String,
    no_consumers: bool,
    chunk_size: usize,
    window_size: usize,
    /// Whether to verify every record first. It is ignored, because records are verified as they are sent.
    #[serde(rename = "jsck")]
    _check: bool,
}

#[derive(Serialize)]
struct Reply {
    config: StreamConfig,
    state: StateInfo,
}

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    if call.message.payload.is_empty() {
        return Err(ApiError::BAD_REQUEST);
    }
    let request: Request = call.body()?;
    let key = call.stream_key()?;
    if request.deliver_subject.is_empty() {
        return Err(ApiError::BAD_REQUEST);
    }
    if !is_literal_subject(request.deliver_subject.as_bytes()) {
        return Err(ApiError::SNAPSHOT_DELIVER_SUBJECT_INVALID);
    }
    let stream = call.stream(key)?;
    let reply = json(&Reply {
        config: stream.config().clone(),
        state: StateInfo::of(stream),
    })?;
    let bytes = |requested: usize, default, min, max| match requested {
        0 => default,
        requested => requested.clamp(min, max),
    };
    let options = SnapshotOptions {
        deliver: request.deliver_subject,
        chunk_bytes: bytes(
            request.chunk_size,
            CHUNK_BYTES_DEFAULT,
            CHUNK_BYTES_MIN,
            CHUNK_BYTES_MAX,
        ),
        window_bytes: bytes(
            request.window_size,
            WINDOW_BYTES_DEFAULT,
            WINDOW_BYTES_MIN,
            WINDOW_BYTES_MAX,
        ),
        with_consumers: !request.no_consumers,
    };
    // Sends the reply before the first chunk.
    call.reply_first("stream_snapshot", &reply);
    let (name, now) = (call.names[0], call.now);
    call.js.start_snapshot(name, options, now, call.port)?;
    Ok(Answer::Sent)
}
