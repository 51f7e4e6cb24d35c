//! Errors that replace answers which must not be sent.

use serde::{Deserialize, Serialize};

use super::endpoints::ENDPOINTS;
use super::{TYPE_PREFIX, TYPE_SUFFIX, error_body, typed};
use crate::jetstream::ApiError;

/// Returns the answer with an error that replaces another answer, which must not be sent: the one to an API request, or the
/// acknowledgement of a publish. Returns `None` for the confirmation of an acknowledgement: its client would take any
/// answer for a confirmation.
pub fn refusal_of(answer: &[u8], error: &ApiError) -> Option<Vec<u8>> {
    if answer.is_empty() {
        return None;
    }
    let Answered {
        r#type: kind,
        stream,
        domain,
    } = serde_json::from_slice(answer).unwrap_or_default();
    let kind = kind.strip_prefix(TYPE_PREFIX);
    if let Some(kind) = kind.and_then(|kind| kind.strip_suffix(TYPE_SUFFIX)) {
        let mut endpoints = ENDPOINTS.iter();
        let endpoint = endpoints.find(|endpoint| endpoint.kind == kind);
        let on_error = endpoint.map_or("", |endpoint| endpoint.on_error);
        return Some(typed(kind, &error_body(error, on_error)));
    }
    serde_json::to_vec(&RefusedPublish {
        error,
        stream,
        domain,
        seq: 0,
    })
    .ok()
}

/// Fields that tell what an answer is for.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answered {
    r#type: String,
    stream: String,
    domain: String,
}

/// The answer to a publish that failed.
#[derive(Serialize)]
struct RefusedPublish<'a> {
    error: &'a ApiError,
    stream: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    domain: String,
    seq: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_replaced_by_errors_of_their_kind() {
        let check = |answer: &str, expected: Option<&str>| {
            let refusal = refusal_of(answer.as_bytes(), &ApiError::TEMPORARILY_UNAVAILABLE);
            let error = r#""error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}"#;
            let expected = expected.map(|text| text.replace("ERROR", error));
            let text = refusal.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(text, expected, "{answer}");
        };
        check(
            r#"{"type":"io.nats.jetstream.api.v1.stream_purge_response","success":true,"purged":5}"#,
            Some(r#"{"type":"io.nats.jetstream.api.v1.stream_purge_response",ERROR,"purged":0}"#),
        );
        check(
            r#"{"type":"io.nats.jetstream.api.v1.stream_create_response","config":{"name":"S"}}"#,
            Some(r#"{"type":"io.nats.jetstream.api.v1.stream_create_response",ERROR}"#),
        );
        check(
            r#"{"stream":"S","seq":5}"#,
            Some(r#"{ERROR,"stream":"S","seq":0}"#),
        );
        check(
            r#"{"stream":"S","domain":"hub","seq":5,"duplicate": true}"#,
            Some(r#"{ERROR,"stream":"S","domain":"hub","seq":0}"#),
        );
        // The flow control of a batch, which ends.
        check(
            r#"{"type":"ack","seq":1,"msgs":5}"#,
            Some(r#"{ERROR,"stream":"","seq":0}"#),
        );
        check("", None);
    }
}
