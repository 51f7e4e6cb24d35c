//! `CONSUMER.PAUSE`: pauses a consumer until a time. Without a time, resumes it.

use serde::{Deserialize, Serialize};

use super::{Answer, Call, json};
use crate::jetstream::{ApiError, Timestamp};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    pause_until: Option<Timestamp>,
}

#[derive(Serialize)]
struct Reply {
    paused: bool,
    pause_until: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_remaining: Option<i64>,
}

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let request: Request = call.body()?;
    let (key, id) = call.consumer_key()?;
    let until = request.pause_until.filter(|until| !until.is_zero());
    // The answer shows the time in UTC, even if the request has another time zone.
    let until = until.map(|until| Timestamp::from_unix_nanos(until.unix_nanos()));
    let now = call.now;
    let remaining = until.map(|until| until.unix_nanos().saturating_sub(now.unix_nanos));
    let pause_remaining = remaining.filter(|remaining| *remaining > 0);
    call.js.pause_consumer((key, id), until, now, call.port)?;
    json(&Reply {
        paused: pause_remaining.is_some(),
        pause_until: until.unwrap_or(Timestamp::ZERO),
        pause_remaining,
    })
}
