//! `STREAM.DELETE`.

use super::{Answer, Call, success};
use crate::jetstream::ApiError;

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    call.no_body()?;
    if call.js.delete_unrecovered(call.names[0])? {
        return Ok(success());
    }
    let key = call.stream_key()?;
    call.js.delete_stream(key, call.now, call.port)?;
    Ok(success())
}
