//! `STREAM.UPDATE`.

use super::stream_create::{check_against_others, parse_request, stored_metadata_of};
use super::{Answer, Call, json, stream_info};
use crate::jetstream::advisory::Action;
use crate::jetstream::config::ConsumerLimits;
use crate::jetstream::stream::Stream;
use crate::jetstream::{ApiError, ConsumerConfig, Nanos};

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let (mut requested, pedantry) = parse_request(call)?;
    if requested.name.is_empty() {
        // An invalid name gets the error of this check instead of "not found".
        requested = requested.checked(pedantry)?;
    }
    if requested.name != call.name(0) {
        return Err(ApiError::STREAM_MISMATCH);
    }
    let key = call.stream_key()?;
    let (now, js) = (call.now, &mut *call.js);
    let stream = js.streams.get(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
    let asset_limits = js.settings.asset_limits;
    asset_limits.fill_stream(&mut requested, pedantry)?;
    let mut config = stream.config().updated(requested, pedantry)?;
    js.check_replica_update(stream.config(), &config)?;
    check_consumers(stream, &config.consumer_limits)?;
    stored_metadata_of(&mut config);
    check_against_others(js, &config, Some(key))?;
    js.change_stream(key, config, now, call.port)?;
    js.advisories
        .stream(Action::Update, call.names[0], now, call.port);
    let info = stream_info::shown(call, key)?;
    json(&info)
}

/// Checks that existing consumers do not exceed the new limits for consumers.
fn check_consumers(stream: &Stream, limits: &ConsumerLimits) -> Result<(), ApiError> {
    let exceeds = |config: &ConsumerConfig| {
        let idles = limits.inactive_threshold > Nanos::ZERO
            && config.inactive_threshold > limits.inactive_threshold;
        let waits = limits.max_ack_pending > 0 && config.max_ack_pending > limits.max_ack_pending;
        (idles || waits) && !config.direct
    };
    let consumers = stream
        .consumers()
        .iter()
        .map(|(_, consumer)| consumer.config());
    let mut names: Vec<_> = consumers
        .filter(|config| exceeds(config))
        .map(|config| config.name.as_str())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    names.sort_unstable();
    let detail = format!("change to limits violates consumers: {}", names.join(", "));
    Err(ApiError::stream_update(detail))
}
