//! `$JS.API`: one file for each request.
//!
//! A request's subject contains the operation and the name of its object. Its payload contains the
//! parameters. [`ENDPOINTS`] lists all requests except the two most frequent ones, which are handled before
//! the list is searched.

mod account_info;
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
mod leader_stepdown;
mod page;
mod peers;
mod refusal;
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
use super::peers::Elsewhere;
use super::pending_answers;
use super::stream::Stream;
use super::streams::Key;
use super::{API_LEVEL, ApiError, Message, Now, Outcome, Port, Strictness, decode, shown_metadata};
use crate::headers::{self, no_responders_status};
use endpoints::ENDPOINTS;

pub(super) use endpoints::Endpoint;
pub use refusal::refusal_of;
pub(super) use stream_create::created_reply;
pub(super) use stream_list::{listed_info, listed_subject, matching_names, remote_on_page};

/// The two most frequent requests: the beginning of their subjects, after the API prefix.
const NEXT: &[u8] = b"CONSUMER.MSG.NEXT.";
const DIRECT_GET: &[u8] = b"DIRECT.GET.";

/// Start and end of the `type` of an answer.
const TYPE_PREFIX: &str = "io.nats.jetstream.api.v1.";
const TYPE_SUFFIX: &str = "_response";

/// A request with its context.
struct Call<'a> {
    js: &'a mut JetStream,
    message: &'a Message<'a>,
    /// Names at the wildcards of the endpoint's path.
    names: Vec<&'a str>,
    /// What other servers of the cluster contribute to the answer.
    elsewhere: &'a Elsewhere,
    /// Headers of the answer, if any.
    headers: Vec<u8>,
    /// Stream that the request has changed. The answer is sent when the stream's changes so far are synced.
    changes: Option<Key>,
    now: Now,
    port: &'a mut dyn Port,
}

/// The answer to a request.
enum Answer {
    /// A JSON object.
    Json(Vec<u8>),
    /// The answer was already sent in another form, or the request gets no answer.
    Sent,
}

/// Answers a request. `path` is the request's subject after the API prefix. Unknown requests get no answer.
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
    answer(js, path, message, &Elsewhere::default(), now, port);
}

/// Answers a request that is in the list.
pub(super) fn answer(
    js: &mut JetStream,
    path: &[u8],
    message: &Message<'_>,
    elsewhere: &Elsewhere,
    now: Now,
    port: &mut dyn Port,
) {
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
        elsewhere,
        headers: Vec::new(),
        changes: None,
        now,
        port,
    };
    let result = match requires_newer_level(message.headers) {
        true => Err(ApiError::REQUIRED_API_LEVEL),
        false => (endpoint.handle)(&mut call),
    };
    call.answer(endpoint, result);
}

/// Returns the stream that a request names; `None` if it names none.
pub(super) fn stream_named(path: &str) -> Option<&str> {
    let frequent = [NEXT, DIRECT_GET].iter().find_map(|prefix| {
        let names = path.as_bytes().strip_prefix(*prefix)?;
        path.get(path.len() - names.len()..)
    });
    if let Some(names) = frequent {
        return names.split('.').next();
    }
    let names = ENDPOINTS.iter().find_map(|endpoint| endpoint.names(path));
    names?.first().copied()
}

/// Returns the subjects of all requests, after the prefix of the API.
#[cfg(test)]
pub(super) fn paths() -> Vec<String> {
    let frequent = [NEXT, DIRECT_GET].map(|prefix| String::from_utf8_lossy(prefix).into_owned());
    let mut paths: Vec<String> = ENDPOINTS.iter().map(|it| it.path().to_owned()).collect();
    paths.extend(frequent.iter().map(|prefix| format!("{prefix}*.>")));
    paths.push("DIRECT.GET.*".to_owned());
    paths
}

/// Refuses a request, for example in an account without JetStream.
pub(super) fn refuse(path: &[u8], message: &Message<'_>, error: &ApiError, port: &mut dyn Port) {
    if path.starts_with(NEXT) || path.starts_with(DIRECT_GET) {
        return no_responders(message, port);
    }
    let path = std::str::from_utf8(path).unwrap_or_default();
    let endpoint = ENDPOINTS
        .iter()
        .find(|endpoint| endpoint.names(path).is_some());
    if let Some(endpoint) = endpoint.filter(|_| !message.reply.is_empty()) {
        let answer = Message {
            subject: message.reply,
            payload: &refusal(endpoint, error),
            ..Message::default()
        };
        port.answer(&answer, Err(error));
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

    /// Sends an answer after all earlier changes to a stream are synced.
    fn answer_later(&mut self, key: Key, endpoint: &'static Endpoint, body: &[u8]) {
        let payload = typed(endpoint.kind, body);
        let advisories = &mut self.js.advisories;
        advisories.audit(self.message, &payload, self.now, self.port);
        let answer = pending_answers::Answer {
            reply: self.message.reply.into(),
            payload,
            endpoint: Some(endpoint),
        };
        self.js.answer_when_durable(key, answer, self.port);
    }

    /// Sends an answer that must precede other messages. The caller then returns [`Answer::Sent`].
    fn reply_first(&mut self, kind: &str, answer: &Answer) {
        if let Answer::Json(body) = answer {
            self.reply(kind, body, Ok(0));
        }
    }

    fn reply(&mut self, kind: &str, body: &[u8], outcome: Outcome<'_>) {
        let reply = typed(kind, body);
        let message = Message {
            subject: self.message.reply,
            headers: &self.headers,
            payload: &reply,
            ..Message::default()
        };
        self.port.answer(&message, outcome);
        let advisories = &mut self.js.advisories;
        advisories.audit(self.message, &reply, self.now, self.port);
    }

    /// Returns the nth name in the subject; empty if the subject has fewer names.
    fn name(&self, nth: usize) -> &'a str {
        self.names.get(nth).copied().unwrap_or_default()
    }

    /// Parses the body as JSON. An empty body counts as an empty object.
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

    /// Returns whether the body is empty, `null`, or an empty JSON object or array.
    fn has_empty_body(&self) -> bool {
        match self.message.payload.trim_ascii() {
            b"" | b"null" => true,
            [b'{', within @ .., b'}'] | [b'[', within @ .., b']'] => within.trim_ascii().is_empty(),
            _ => false,
        }
    }

    /// Returns an error if the body is not empty.
    fn no_body(&self) -> Result<(), ApiError> {
        match self.has_empty_body() {
            true => Ok(()),
            false => Err(ApiError::NOT_EMPTY_REQUEST),
        }
    }

    /// Returns the stream whose name is the first one in the subject.
    fn stream_key(&self) -> Result<Key, ApiError> {
        let name = self.name(0);
        match (self.js.streams.find(name), self.js.unrecovered.get(name)) {
            (Some(key), _) => Ok(key),
            (None, Some(why)) => Err(ApiError::stream_offline_reason(why)),
            (None, None) => Err(ApiError::STREAM_NOT_FOUND),
        }
    }

    /// Returns the stream of a key, and marks the stream for the next call of `settle`.
    fn stream(&mut self, key: Key) -> Result<&mut Stream, ApiError> {
        let stream = self.js.streams.touch(key);
        stream.ok_or(ApiError::STREAM_NOT_FOUND)
    }

    /// Returns the stream and the consumer whose names are the first ones in the subject.
    fn consumer_key(&self) -> Result<(Key, ConsumerId), ApiError> {
        let key = self.stream_key()?;
        let stream = self.js.streams.get(key);
        let consumer = stream.and_then(|stream| stream.consumers().find(self.name(1)));
        Ok((key, consumer.ok_or(ApiError::CONSUMER_NOT_FOUND)?))
    }

    /// Returns a consumer's description, with the labels that replies for a single consumer contain.
    fn consumer_info(
        &mut self,
        key: Key,
        id: ConsumerId,
    ) -> Result<super::consumer::ConsumerInfo, ApiError> {
        let (now, version) = (self.now, self.js.settings.server_version.clone());
        let cluster = self.js.shown_cluster_of_consumer(key, id);
        let stream = self
            .js
            .streams
            .touch(key)
            .ok_or(ApiError::STREAM_NOT_FOUND)?;
        let info = stream.with_consumers(now, self.port, |consumers, context| {
            consumers.info(id, context)
        });
        let mut info = info.ok_or(ApiError::CONSUMER_NOT_FOUND)?;
        info.cluster = cluster;
        if let Some(config) = &mut info.config {
            shown_metadata(&mut config.metadata, &version);
        }
        Ok(info)
    }
}

/// Serializes the fields of an answer.
fn json(body: &impl Serialize) -> Result<Answer, ApiError> {
    let bytes = serde_json::to_vec(body);
    // Serializing only strings and numbers does not fail.
    bytes.map(Answer::Json).map_err(|_| ApiError::BAD_REQUEST)
}

/// Returns `{"success":true}`, the answer to many requests.
fn success() -> Answer {
    Answer::Json(br#"{"success":true}"#.to_vec())
}

/// Returns the body of an error reply. `on_error` contains other fields that replies of this kind always
/// have.
fn error_body(error: &ApiError, on_error: &str) -> Vec<u8> {
    let mut body = br#"{"error":"#.to_vec();
    body.extend(serde_json::to_vec(error).unwrap_or_default());
    body.extend(on_error.as_bytes());
    body.push(b'}');
    body
}

/// Returns a reply that contains only an error.
pub(super) fn failed_reply(kind: &str, error: &ApiError) -> Vec<u8> {
    typed(kind, &error_body(error, ""))
}

/// Returns the reply to a refused request.
pub(super) fn refusal(endpoint: &Endpoint, error: &ApiError) -> Vec<u8> {
    typed(endpoint.kind, &error_body(error, endpoint.on_error))
}

/// Adds the field `type` before the fields of the body.
fn typed(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut reply = format!(r#"{{"type":"{TYPE_PREFIX}{kind}{TYPE_SUFFIX}""#).into_bytes();
    let fields = body.strip_prefix(b"{").unwrap_or(body);
    if fields != b"}" {
        reply.push(b',');
    }
    reply.extend(fields);
    reply
}

/// Answers a request as if it had no responders. Does nothing if the request has other subscribers: a service
/// of another account may answer, or a client monitors requests.
pub(super) fn no_responders(message: &Message<'_>, port: &mut dyn Port) {
    if message.reply.is_empty() || port.has_others(message.subject) {
        return;
    }
    let mut headers = Vec::new();
    port.publish(&Message {
        subject: message.reply,
        headers: no_responders_status(&mut headers, message.subject),
        ..Message::default()
    });
}

/// Returns whether a request requires an API level that this server does not support.
pub(super) fn requires_newer_level(headers: &[u8]) -> bool {
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
