//! `CONSUMER.DELETE`.

use super::{Answer, Call, success};
use crate::jetstream::ApiError;

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    call.no_body()?;
    let (key, id) = call.consumer_key()?;
    call.js.delete_consumer(key, id, call.now, call.port);
    call.changes = Some(key);
    Ok(success())
}
