//! `STREAM.CREATE`.

use std::collections::{HashSet, VecDeque};

use serde::Serialize;

use super::{Answer, Call, json, stream_info};
use crate::jetstream::account::JetStream;
use crate::jetstream::advisory::Action;
use crate::jetstream::streams::Key;
use crate::jetstream::{
    ApiError, Now, Pedantry, Port, StreamConfig, StreamInfo, decode_with_flag, shown_metadata,
    stored_metadata,
};

/// Maximum number of direct and indirect origins to check for a cycle. A stream with more is refused.
const ORIGINS_MAX: usize = 100_000;

#[derive(Serialize)]
struct Reply {
    #[serde(flatten)]
    info: StreamInfo,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    did_create: bool,
}

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let (mut config, pedantry) = parse_request(call)?;
    if config.name != call.name(0) {
        return Err(ApiError::STREAM_MISMATCH);
    }
    let (now, js) = (call.now, &mut *call.js);
    js.settings.limits.check_tier(config.num_replicas)?;
    let asset_limits = js.settings.asset_limits;
    asset_limits.fill_stream(&mut config, pedantry)?;
    let mut config = config.checked_new(pedantry)?;
    js.check_replicas(&config)?;
    follow_origin(js, &mut config);
    stored_metadata_of(&mut config);
    let key = match js.streams.find(&config.name) {
        Some(key) => {
            let is_same = js
                .streams
                .get(key)
                .is_some_and(|s| s.config().same_as(&config));
            is_same.then_some(key).ok_or(ApiError::STREAM_NAME_EXIST)?
        }
        None => {
            if let Some(why) = js.unrecovered.get(&config.name) {
                return Err(ApiError::stream_offline_reason(why));
            }
            check_against_others(js, &config, None)?;
            js.create_stream(config, now, call.port)?
        }
    };
    let info = stream_info::shown(call, key)?;
    json(&Reply {
        info,
        did_create: true,
    })
}

/// Returns the reply for a restored stream.
pub(in crate::jetstream) fn created_reply(js: &mut JetStream, key: Key, now: Now) -> Vec<u8> {
    let domain = js.settings.domain.clone();
    let version = js.settings.server_version.clone();
    let cluster = js.shown_cluster(key);
    let Some(stream) = js.streams.touch(key) else {
        return Vec::new();
    };
    let mut info = StreamInfo::of(stream, domain.as_deref(), now);
    shown_metadata(&mut info.config.metadata, &version);
    info.cluster = cluster;
    let body = serde_json::to_vec(&Reply {
        info,
        did_create: false,
    });
    super::typed("stream_create", &body.unwrap_or_default())
}

/// Parses the requested configuration of a stream.
pub(super) fn parse_request(call: &Call<'_>) -> Result<(StreamConfig, Pedantry), ApiError> {
    let json = match call.message.payload.trim_ascii() {
        b"" | b"null" => b"{}",
        json => json,
    };
    let (config, pedantic) = decode_with_flag(json, "pedantic", call.js.settings.strictness)?;
    let pedantry = match pedantic {
        true => Pedantry::Pedantic,
        false => Pedantry::Lax,
    };
    Ok((config, pedantry))
}

pub(super) fn stored_metadata_of(config: &mut StreamConfig) {
    let level = config.required_level();
    stored_metadata(&mut config.metadata, level);
}

/// Lets a mirror answer direct gets for its origin if the origin allows direct gets.
fn follow_origin(js: &JetStream, config: &mut StreamConfig) {
    let origin = config
        .mirror
        .as_ref()
        .filter(|mirror| mirror.external.is_none());
    let key = origin.and_then(|mirror| js.streams.find(&mirror.name));
    if let Some(origin) = key.and_then(|key| js.streams.get(key)) {
        config.mirror_direct = origin.config().allow_direct;
    }
}

/// Checks the rules that involve the account and its other streams. `except` is the stream to check, if it
/// already exists.
pub(super) fn check_against_others(
    js: &JetStream,
    config: &StreamConfig,
    except: Option<Key>,
) -> Result<(), ApiError> {
    js.settings.asset_limits.check_stream(config)?;
    let streams = &js.streams;
    if streams.is_any_stored(&config.subjects, except)? {
        return Err(ApiError::STREAM_SUBJECT_OVERLAP);
    }
    check_origins(js, config)?;
    let limits = &js.settings.limits;
    let count = i64::try_from(streams.len()).unwrap_or(i64::MAX);
    if except.is_none() && limits.max_streams > 0 && count >= limits.max_streams {
        return Err(ApiError::MAXIMUM_STREAMS_LIMIT);
    }
    let mut others = js.reserved(except);
    limits.check(config, others)?;
    others.join(js.reserved_elsewhere);
    js.settings.server_limits.check(config, others)
}

fn check_origins(js: &JetStream, config: &StreamConfig) -> Result<(), ApiError> {
    let too_big = match config.mirror {
        Some(_) => ApiError::MIRROR_MAX_MESSAGE_SIZE_TOO_BIG,
        None => ApiError::SOURCE_MAX_MESSAGE_SIZE_TOO_BIG,
    };
    let config_of = |name: &str| {
        let found = js.streams.find(name).and_then(|key| js.streams.get(key));
        found.map(|stream| stream.config())
    };
    for name in local_origins(config) {
        let size = config_of(name).map_or(-1, |origin| origin.max_msg_size);
        if config.max_msg_size > 0 && size > config.max_msg_size {
            return Err(too_big);
        }
    }
    // Like nats-server, this goes breadth-first and also refuses an origin of an origin that came before. Such a stream
    // would receive messages twice.
    let mut seen = HashSet::new();
    let mut next = VecDeque::from([&*config.name]);
    let mut looked_at = 0;
    while let Some(name) = next.pop_front() {
        seen.insert(name);
        looked_at += 1;
        if looked_at > ORIGINS_MAX {
            return Err(ApiError::stream_invalid_config(
                "too many origins to rule out a cycle",
            ));
        }
        let current = match name == config.name {
            true => Some(config),
            false => config_of(name),
        };
        for origin in current.into_iter().flat_map(local_origins) {
            if seen.contains(origin) {
                return Err(ApiError::stream_invalid_config("detected cycle"));
            }
            next.push_back(origin);
        }
    }
    Ok(())
}

fn local_origins(config: &StreamConfig) -> impl Iterator<Item = &str> {
    let origins = config.mirror.iter().chain(&config.sources);
    let local = origins.filter(|origin| origin.external.is_none());
    local.map(|origin| origin.name.as_str())
}

impl JetStream {
    /// Creates a stream with a configuration that the caller has checked.
    pub(in crate::jetstream) fn create_stream(
        &mut self,
        config: StreamConfig,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<Key, ApiError> {
        let key = self.create_empty_stream(config, now, port)?;
        if let Some(stream) = self.streams.get(key) {
            let name = stream.config().name.clone();
            self.advisories.stream(Action::Create, &name, now, port);
        }
        Ok(key)
    }
}
