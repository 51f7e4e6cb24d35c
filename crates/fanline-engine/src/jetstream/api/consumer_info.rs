//! `CONSUMER.INFO`.

use super::{Answer, Call, json};
use crate::jetstream::ApiError;

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    call.no_body()?;
    let (key, id) = call.consumer_key()?;
    let info = call.consumer_info(key, id)?;
    json(&info)
}
