//! `$JS.API`: every request that can be made, one file each.
//!
//! A request's topic says what is asked of whom, its payload how. [`ENDPOINTS`] is the table of all but
//! the two that clients send all day, which are tried first.

mod account_info;
mod cluster_only;
mod consumer_create;
mod consumer_delete;
mod consumer_info;
mod consumer_list;
mod consumer_next;
mod consumer_pause;
mod consumer_reset;
mod consumer_unpin;
mod direct_get;
mod endpoints;
mod page;
mod stream_create;
mod stream_delete;
mod stream_info;
mod stream_list;
mod stream_message;
mod stream_purge;
mod stream_restore;
mod stream_snapshot;
mod stream_update;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::account::JetStream;
use super::consumer::ConsumerId;
use super::held;
use super::stream::Stream;
use super::streams::Key;
use super::{API_LEVEL, ApiError, Message, Now, Outcome, Port, Strictness, decode, shown_metadata};
use crate::headers::{self, no_responders_status};
use endpoints::ENDPOINTS;

pub(super) use endpoints::Endpoint;
pub(super) use stream_create::created_reply;

/// Requests of one consumer or stream: without it, nobody subscribes to them.
const NEXT: &[u8] = b"CONSUMER.MSG.NEXT.";
const DIRECT_GET: &[u8] = b"DIRECT.GET.";

/// A request, and all that is needed to answer it.
struct Call<'a> {
    js: &'a mut JetStream,
    message: &'a Message<'a>,
    /// What the wildcards of the endpoint's path stand for.
    names: Vec<&'a str>,
    /// The headers of the answer, if it is to have any.
    headers: Vec<u8>,
    /// The stream that must be on the disk as it is now before the answer goes out.
    changes: Option<Key>,
    now: Now,
    port: &'a mut dyn Port,
}

/// What a request is answered with.
enum Answer {
    /// A JSON object.
    Json(Vec<u8>),
    /// It was answered otherwise, or is not to be answered.
    Sent,
}

/// Answers a request; `path` is its topic behind the API's prefix. What is no request gets no answer.
pub(super) fn handle(
    js: &mut JetStream,
    path: &[u8],
    message: &Message<'_>,
    now: Now,
    port: &mut dyn Port,
) {
    if let Some(names) = path.strip_prefix(NEXT) {
        return consumer_next::handle(js, names, message, now, port);
    }
    if let Some(names) = path.strip_prefix(DIRECT_GET) {
        return direct_get::handle(js, names, message, now, port);
    }
    let Ok(path) = std::str::from_utf8(path) else {
        return;
    };
    let found = ENDPOINTS
        .iter()
        .find_map(|endpoint| Some((endpoint, endpoint.names(path)?)));
    let Some((endpoint, names)) = found else {
        return;
    };
    let mut call = Call {
        js,
        message,
        names,
        headers: Vec::new(),
        changes: None,
        now,
        port,
    };
    let result = match asks_too_much(message.headers) {
        true => Err(ApiError::REQUIRED_API_LEVEL),
        false => (endpoint.handle)(&mut call),
    };
    call.answer(endpoint, result);
}

/// Answers a request of an account that has no JetStream.
pub(super) fn refuse(path: &[u8], message: &Message<'_>, port: &mut dyn Port) {
    if path.starts_with(NEXT) || path.starts_with(DIRECT_GET) {
        return no_responders(message, port);
    }
    let path = std::str::from_utf8(path).unwrap_or_default();
    let endpoint = ENDPOINTS
        .iter()
        .find(|endpoint| endpoint.names(path).is_some());
    if let Some(endpoint) = endpoint.filter(|_| !message.reply.is_empty()) {
        let error = ApiError::NOT_ENABLED_FOR_ACCOUNT;
        let answer = Message {
            topic: message.reply,
            payload: &refusal(endpoint, &error),
            ..Message::default()
        };
        port.answer(&answer, Err(&error));
    }
}

impl<'a> Call<'a> {
    fn answer(&mut self, endpoint: &'static Endpoint, result: Result<Answer, ApiError>) {
        self.js.stats.total += 1;
        match (result, self.changes) {
            (Ok(Answer::Sent), _) => {}
            (Ok(Answer::Json(body)), Some(key)) => self.answer_later(key, endpoint, &body),
            (Ok(Answer::Json(body)), None) => self.reply(endpoint.kind, &body, Ok(0)),
            (Err(error), _) => {
                self.js.stats.errors += 1;
                let body = error_body(&error, endpoint.on_error);
                self.reply(endpoint.kind, &body, Err(&error));
            }
        }
    }

    /// Sends an answer once what was done to a stream is on the disk.
    fn answer_later(&mut self, key: Key, endpoint: &'static Endpoint, body: &[u8]) {
        let payload = typed(endpoint.kind, body);
        let advisories = &mut self.js.advisories;
        advisories.audit(self.message, &payload, self.now, self.port);
        let answer = held::Answer {
            reply: self.message.reply.into(),
            payload,
            endpoint: Some(endpoint),
        };
        self.js.hold(key, answer, self.port);
    }

    /// Sends an answer that other messages follow; [`Answer::Sent`] is to be returned then.
    fn reply_first(&mut self, kind: &str, answer: &Answer) {
        if let Answer::Json(body) = answer {
            self.reply(kind, body, Ok(0));
        }
    }

    fn reply(&mut self, kind: &str, body: &[u8], outcome: Outcome<'_>) {
        let reply = typed(kind, body);
        let message = Message {
            topic: self.message.reply,
            headers: &self.headers,
            payload: &reply,
            ..Message::default()
        };
        self.port.answer(&message, outcome);
        let advisories = &mut self.js.advisories;
        advisories.audit(self.message, &reply, self.now, self.port);
    }

    /// The nth name in the topic; every endpoint knows how many there are.
    fn name(&self, nth: usize) -> &'a str {
        self.names.get(nth).copied().unwrap_or_default()
    }

    /// The body as JSON; an empty one is like an empty object.
    fn body<T: DeserializeOwned + Default>(&self) -> Result<T, ApiError> {
        self.body_as(self.js.settings.strictness)
    }

    fn body_as<T: DeserializeOwned + Default>(
        &self,
        strictness: Strictness,
    ) -> Result<T, ApiError> {
        match self.message.payload.trim_ascii() {
            b"" | b"null" => Ok(T::default()),
            json => decode(json, strictness),
        }
    }

    /// Whether the body is empty, or JSON that says nothing.
    fn asks_nothing(&self) -> bool {
        match self.message.payload.trim_ascii() {
            b"" | b"null" => true,
            [b'{', within @ .., b'}'] | [b'[', within @ .., b']'] => within.trim_ascii().is_empty(),
            _ => false,
        }
    }

    /// Refuses what should have no body but has one.
    fn no_body(&self) -> Result<(), ApiError> {
        match self.asks_nothing() {
            true => Ok(()),
            false => Err(ApiError::NOT_EMPTY_REQUEST),
        }
    }

    /// The stream that the topic names first.
    fn stream_key(&self) -> Result<Key, ApiError> {
        let name = self.name(0);
        match (self.js.streams.find(name), self.js.broken.get(name)) {
            (Some(key), _) => Ok(key),
            (None, Some(why)) => Err(ApiError::stream_offline_reason(why)),
            (None, None) => Err(ApiError::STREAM_NOT_FOUND),
        }
    }

    /// The stream of a key, to do something with.
    fn stream(&mut self, key: Key) -> Result<&mut Stream, ApiError> {
        let stream = self.js.streams.touch(key);
        stream.ok_or(ApiError::STREAM_NOT_FOUND)
    }

    /// The stream and the consumer that the topic names.
    fn consumer_key(&self) -> Result<(Key, ConsumerId), ApiError> {
        let key = self.stream_key()?;
        let stream = self.js.streams.get(key);
        let consumer = stream.and_then(|stream| stream.consumers().find(self.name(1)));
        Ok((key, consumer.ok_or(ApiError::CONSUMER_NOT_FOUND)?))
    }

    /// What a consumer tells of itself, with the labels that one consumer is shown with.
    fn consumer_info(
        &mut self,
        key: Key,
        id: ConsumerId,
    ) -> Result<super::consumer::ConsumerInfo, ApiError> {
        let (now, version) = (self.now, self.js.settings.server_version.clone());
        let stream = self
            .js
            .streams
            .touch(key)
            .ok_or(ApiError::STREAM_NOT_FOUND)?;
        let info = stream.with_consumers(now, self.port, |consumers, context| {
            consumers.info(id, context)
        });
        let mut info = info.ok_or(ApiError::CONSUMER_NOT_FOUND)?;
        if let Some(config) = &mut info.config {
            shown_metadata(&mut config.metadata, &version);
        }
        Ok(info)
    }
}

/// An answer whose fields are those of `body`.
fn json(body: &impl Serialize) -> Result<Answer, ApiError> {
    let bytes = serde_json::to_vec(body);
    // Of strings and numbers only, it can be written.
    bytes.map(Answer::Json).map_err(|_| ApiError::BAD_REQUEST)
}

/// `{"success":true}`, as many requests are answered with.
fn success() -> Answer {
    Answer::Json(br#"{"success":true}"#.to_vec())
}

/// A body of an error, and of what else a reply of its kind always holds.
fn error_body(error: &ApiError, on_error: &str) -> Vec<u8> {
    let mut body = br#"{"error":"#.to_vec();
    body.extend(serde_json::to_vec(error).unwrap_or_default());
    body.extend(on_error.as_bytes());
    body.push(b'}');
    body
}

/// A reply that holds an error and nothing else.
pub(super) fn failed_reply(kind: &str, error: &ApiError) -> Vec<u8> {
    typed(kind, &error_body(error, ""))
}

/// The answer to a request that is refused.
pub(super) fn refusal(endpoint: &Endpoint, error: &ApiError) -> Vec<u8> {
    typed(endpoint.kind, &error_body(error, endpoint.on_error))
}

/// The same object with its type in front.
fn typed(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut reply = format!(r#"{{"type":"io.nats.jetstream.api.v1.{kind}_response""#).into_bytes();
    let fields = body.strip_prefix(b"{").unwrap_or(body);
    if fields != b"}" {
        reply.push(b',');
    }
    reply.extend(fields);
    reply
}

/// Answers as the server does when a request has no subscriber, unless it has others than JetStream: a
/// service of another account, or a client that watches.
pub(super) fn no_responders(message: &Message<'_>, port: &mut dyn Port) {
    if message.reply.is_empty() || port.has_others(message.topic) {
        return;
    }
    let mut headers = Vec::new();
    port.publish(&Message {
        topic: message.reply,
        headers: no_responders_status(&mut headers, message.topic),
        ..Message::default()
    });
}

/// Whether a request asks for a level of the API that we do not speak.
pub(super) fn asks_too_much(headers: &[u8]) -> bool {
    let Some(value) = headers::find(headers, b"Nats-Required-Api-Level") else {
        return false;
    };
    match std::str::from_utf8(value.trim_ascii()) {
        Ok("") => false,
        Ok(level) => level
            .parse::<i64>()
            .map_or(true, |level| level > i64::from(API_LEVEL)),
        Err(_) => true,
    }
}
