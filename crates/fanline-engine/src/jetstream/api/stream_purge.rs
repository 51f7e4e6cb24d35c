//! `STREAM.PURGE`.

use serde::{Deserialize, Serialize};

use super::{Answer, Call, json};
use crate::jetstream::ApiError;
use crate::jetstream::stream::Purge;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    seq: u64,
    filter: String,
    keep: u64,
}

#[derive(Serialize)]
struct Reply {
    success: bool,
    purged: u64,
}

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: Request = call.body()?;
    if request.seq > 0 && request.keep > 0 {
        return Err(ApiError::BAD_REQUEST);
    }
    let purge = Purge {
        filter: request.filter.as_bytes(),
        below: Some(request.seq).filter(|seq| *seq > 0),
        keep: request.keep,
    };
    let key = call.stream_key()?;
    let now = call.now;
    let stream = call
        .js
        .streams
        .touch(key)
        .ok_or(ApiError::STREAM_NOT_FOUND)?;
    let purged = stream.purge(&purge, now, call.port)?;
    call.changes = Some(key);
    json(&Reply {
        success: true,
        purged,
    })
}
