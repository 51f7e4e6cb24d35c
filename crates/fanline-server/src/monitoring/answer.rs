//! HTTP responses: a page, JSON, or an error.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// A response body with its type and status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

/// The reason for an error response. It determines the status.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("404 page not found")]
    NotFound,
    /// A parameter is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// A shard did not reply in time.
    #[error("a shard did not answer in time")]
    Silent,
    /// JetStream did not reply in time.
    #[error("JetStream did not answer in time")]
    JetStreamSilent,
}

impl Answer {
    /// Returns JSON over several lines, for people.
    pub(super) fn json(value: &impl Serialize) -> Self {
        Answer::json_text(serde_json::to_string_pretty(value))
    }

    /// Returns JSON on one line.
    pub(super) fn compact_json(value: &impl Serialize) -> Self {
        Answer::json_text(serde_json::to_string(value))
    }

    fn json_text(text: serde_json::Result<String>) -> Self {
        Answer {
            status: StatusCode::OK,
            content_type: "application/json",
            body: text.expect("what monitoring tells has text keys and finite numbers only"),
        }
    }

    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Answer { status, ..self }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Answer {
            status: match refusal {
                Refusal::NotFound => StatusCode::NOT_FOUND,
                Refusal::BadRequest(_) => StatusCode::BAD_REQUEST,
                Refusal::Silent | Refusal::JetStreamSilent => StatusCode::SERVICE_UNAVAILABLE,
            },
            content_type: "text/plain; charset=utf-8",
            body: format!("{refusal}\n"),
        }
    }
}

impl From<Answer> for Response<Full<Bytes>> {
    fn from(answer: Answer) -> Self {
        let mut response = Response::new(Full::from(answer.body));
        *response.status_mut() = answer.status;
        let headers = response.headers_mut();
        let content_type = HeaderValue::from_static(answer.content_type);
        headers.insert(CONTENT_TYPE, content_type);
        // Dashboards in a browser may have other origins. All clients get the same responses, so any origin
        // may read them.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        // The body contains names that clients chose, so browsers must not interpret it as HTML.
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

/// A number. If it is whole, it is written without a fraction, as in nats-server. Some readers of
/// `"auth_timeout": 2` accept integers only.
pub(super) struct Number(pub(super) f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "only taken when it is the same number"
        )]
        let whole = self.0 as i64;
        #[expect(
            clippy::float_cmp,
            clippy::cast_precision_loss,
            reason = "this asks whether nothing was lost"
        )]
        if whole as f64 == self.0 {
            serializer.serialize_i64(whole)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_fraction_only_when_they_need_it() {
        let text = |number| serde_json::to_string(&Number(number)).unwrap();
        assert_eq!(text(2.0), "2");
        assert_eq!(text(0.0), "0");
        assert_eq!(text(0.25), "0.25");
    }
}
