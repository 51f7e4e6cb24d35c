//! `CONSUMER.CREATE` without a name and with a name, and the older request for durable consumers.

use serde::Deserialize;

use super::{Answer, Call, json};
use crate::headers::Block;
use crate::jetstream::account::JetStream;
use crate::jetstream::advisory::Action;
use crate::jetstream::consumer::{Consumer, ConsumerId};
use crate::jetstream::streams::Key;
use crate::jetstream::{
    ApiError, ConsumerConfig, Overlaps, Pedantry, Retention, check_consumer_name, stored_metadata,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    stream_name: String,
    config: ConsumerConfig,
    action: CreateAction,
    pedantic: bool,
}

/// Whether the consumer must not exist, must exist, or may exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CreateAction {
    #[default]
    #[serde(rename = "")]
    Either,
    Create,
    Update,
}

/// Handles `CONSUMER.CREATE.<stream>`.
pub(super) fn unnamed(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let mut request: Request = parse_request(call)?;
    if !request.config.durable_name.is_empty() {
        return Err(ApiError::CONSUMER_EPHEMERAL_WITH_DURABLE_NAME);
    }
    if request.config.name.is_empty() {
        request.config.name = call.js.random.consumer_name();
    }
    create(call, request)
}

/// Handles `CONSUMER.CREATE.<stream>.<consumer>`, with an optional filter after the names.
pub(super) fn named(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let mut request: Request = parse_request(call)?;
    let config = &mut request.config;
    let (name, filter) = (call.name(1), call.names.get(2).copied());
    if !config.durable_name.is_empty() && config.durable_name != name {
        return Err(ApiError::CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT);
    }
    if let Some(filter) = filter {
        if !config.filter_subjects.is_empty() {
            return Err(ApiError::CONSUMER_MULTIPLE_FILTERS_NOT_ALLOWED);
        }
        if config.filter_subject != filter {
            return Err(ApiError::CONSUMER_CREATE_FILTER_SUBJECT_MISMATCH);
        }
    }
    config.name = name.to_owned();
    create(call, request)
}

/// Handles `CONSUMER.DURABLE.CREATE.<stream>.<consumer>`.
pub(super) fn durable(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let mut request: Request = parse_request(call)?;
    let config = &mut request.config;
    if config.durable_name.is_empty() {
        return Err(ApiError::CONSUMER_DURABLE_NAME_NOT_SET);
    }
    if config.durable_name != call.name(1) {
        return Err(ApiError::CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT);
    }
    config.name = config.durable_name.clone();
    create(call, request)
}

fn parse_request(call: &Call<'_>) -> Result<Request, ApiError> {
    let request: Request = call.body()?;
    if request.stream_name != call.name(0) {
        return Err(ApiError::STREAM_MISMATCH);
    }
    Ok(request)
}

fn create(call: &mut Call<'_>, request: Request) -> Result<Answer, ApiError> {
    check_consumer_name(&request.config.name)?;
    if request.config.num_replicas > 1 && call.js.settings.cluster.is_none() {
        return Err(ApiError::STREAM_REPLICAS_NOT_SUPPORTED);
    }
    let key = call.stream_key()?;
    let pedantry = match request.pedantic {
        true => Pedantry::Pedantic,
        false => Pedantry::Lax,
    };
    let JetStream {
        settings, streams, ..
    } = &mut *call.js;
    let stream = streams.touch(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
    let mut config = request.config;
    let asset_limits = &settings.asset_limits;
    asset_limits.fill_consumer(&mut config, stream.config(), &settings.limits, pedantry)?;
    let config = config.checked(stream.config(), pedantry)?;
    let existing = stream.consumers().find(&config.name);
    let id = match (existing, request.action) {
        (None, CreateAction::Update) => return Err(ApiError::CONSUMER_DOES_NOT_EXIST),
        (None, _) => make(call, key, config)?,
        (Some(id), action) => change(call, (key, id), config, action)?,
    };
    let info = call.consumer_info(key, id)?;
    let copies = info
        .config
        .as_ref()
        .is_some_and(|config| config.direct || config.sourcing);
    if copies {
        let identity = call.stream(key)?.identity();
        let block = Block::new(&mut call.headers);
        block.add("Nats-Stream-Identity", identity.as_bytes()).end();
    }
    json(&info)
}

fn make(call: &mut Call<'_>, key: Key, mut config: ConsumerConfig) -> Result<ConsumerId, ApiError> {
    check_against_others(call.js, key, &config, None)?;
    stored_metadata_of(&mut config);
    let (now, is_direct) = (call.now, config.direct);
    let name = config.name.clone();
    let id = call.js.create_consumer(key, config, now, call.port)?;
    if !is_direct {
        let names = (call.names[0], name.as_str());
        let advisories = &mut call.js.advisories;
        advisories.consumer(Action::Create, names, now, call.port);
    }
    Ok(id)
}

/// Changes the configuration of an existing consumer, if the requested configuration differs.
fn change(
    call: &mut Call<'_>,
    (key, id): (Key, ConsumerId),
    mut config: ConsumerConfig,
    action: CreateAction,
) -> Result<ConsumerId, ApiError> {
    let stream = call.js.streams.get(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
    let consumer = stream.consumers().get(id);
    let is = consumer.ok_or(ApiError::CONSUMER_NOT_FOUND)?.config();
    // The pause of an existing consumer is changed by another request, so the field is ignored.
    config.pause_until = is.pause_until;
    if is.same_as(&config) {
        return Ok(id);
    }
    if action == CreateAction::Create {
        return Err(ApiError::CONSUMER_ALREADY_EXISTS);
    }
    is.check_update(&config)?;
    // A client that uses the name by mistake must not receive the records of an active subscriber.
    let moves = is.deliver_subject != config.deliver_subject;
    if moves && consumer.is_some_and(Consumer::is_bound) {
        return Err(ApiError::CONSUMER_NAME_EXIST);
    }
    check_against_others(call.js, key, &config, Some(id))?;
    stored_metadata_of(&mut config);
    call.js
        .change_consumer((key, id), config, call.now, call.port)?;
    Ok(id)
}

fn stored_metadata_of(config: &mut ConsumerConfig) {
    let level = config.required_level();
    stored_metadata(&mut config.metadata, level);
}

/// Checks the rules that involve the account and the stream's other consumers. `except` is the consumer to
/// check, if it already exists.
fn check_against_others(
    js: &JetStream,
    key: Key,
    config: &ConsumerConfig,
    except: Option<ConsumerId>,
) -> Result<(), ApiError> {
    let limits = &js.settings.limits;
    let acks = config.max_ack_pending;
    if limits.max_ack_pending > 0 && acks > limits.max_ack_pending {
        return Err(ApiError::consumer_max_pending_ack_excess(
            limits.max_ack_pending,
        ));
    }
    let stream = js.streams.get(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
    let consumers_max =
        limits.consumers_max(stream.config(), js.settings.asset_limits.consumers_default);
    let others = stream
        .consumers()
        .iter()
        .filter(|(id, c)| Some(*id) != except && !c.config().direct);
    let others = others.map(|(_, consumer)| consumer.config());
    if stream.config().retention == Retention::WorkQueue && !config.direct {
        return check_work_queue(config, others)
            .and_then(|()| check_count(consumers_max, stream, except));
    }
    match config.direct {
        true => Ok(()),
        false => check_count(consumers_max, stream, except),
    }
}

fn check_count(
    max: usize,
    stream: &crate::jetstream::stream::Stream,
    except: Option<ConsumerId>,
) -> Result<(), ApiError> {
    let counted = stream
        .consumers()
        .iter()
        .filter(|(_, c)| !c.config().direct)
        .count();
    match except.is_none() && counted >= max {
        true => Err(ApiError::MAXIMUM_CONSUMERS_LIMIT),
        false => Ok(()),
    }
}

/// Checks that at most one consumer of a work queue receives each record.
fn check_work_queue<'a>(
    config: &ConsumerConfig,
    others: impl Iterator<Item = &'a ConsumerConfig>,
) -> Result<(), ApiError> {
    let is_filtered = config.filters().next().is_some();
    let mut own = Overlaps::default();
    for filter in config.filters() {
        own.add(filter)?;
    }
    for other in others {
        if !is_filtered {
            return Err(ApiError::CONSUMER_WQ_MULTIPLE_UNFILTERED);
        }
        let is_open = other.filters().next().is_none();
        let mut is_shared = is_open;
        for filter in other.filters() {
            is_shared |= own.find(filter)?.is_some();
        }
        if is_shared {
            return Err(ApiError::CONSUMER_WQ_CONSUMER_NOT_UNIQUE);
        }
    }
    Ok(())
}
