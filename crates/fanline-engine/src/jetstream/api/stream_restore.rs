//! `STREAM.RESTORE`: returns the subject to which a client sends a backup.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::stream_create::{check_against_others, stored_metadata_of};
use super::{Answer, Call, json};
use crate::jetstream::{ApiError, Pedantry, StreamConfig};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    config: StreamConfig,
    /// State of the stream. It is ignored, because the backup determines the state.
    #[serde(rename = "state")]
    _state: Value,
}

#[derive(Serialize)]
struct Reply {
    deliver_subject: String,
}

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    if call.message.payload.is_empty() {
        return Err(ApiError::BAD_REQUEST);
    }
    let request: Request = call.body()?;
    let mut config = request.config;
    if config.name.is_empty() {
        config.name = call.name(0).to_owned();
    }
    if config.name != call.name(0) {
        return Err(ApiError::STREAM_MISMATCH);
    }
    let is_taken = call.stream_key().is_ok() || call.js.transfers.is_restoring(&config.name);
    if is_taken {
        return Err(ApiError::STREAM_NAME_EXIST_RESTORE_FAILED);
    }
    let mut config = config.checked(Pedantry::Lax)?;
    call.js.check_replicas(&config)?;
    stored_metadata_of(&mut config);
    check_against_others(call.js, &config, None)?;
    let deliver_subject = call.js.start_restore(config, call.now, call.port)?;
    json(&Reply { deliver_subject })
}
