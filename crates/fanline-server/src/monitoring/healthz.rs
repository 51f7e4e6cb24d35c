//! `/healthz`: whether this server can do its work.

use hyper::StatusCode;
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::query::Query;
use super::{Monitor, collect};

#[derive(Serialize)]
struct Healthz {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Problem>,
}

#[derive(Serialize)]
struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    error: String,
}

pub(super) async fn answer(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    // There is no JetStream that could be unwell, so these make no difference but must be right.
    for name in [
        "js-enabled",
        "js-enabled-only",
        "js-server-only",
        "js-meta-only",
    ] {
        query.flag(name)?;
    }
    let details = query.flag("details")?;
    if let Some(problem) = incomplete(query) {
        let answer = unwell("error", "BAD_REQUEST", problem.into(), details);
        return Ok(answer.with_status(StatusCode::BAD_REQUEST));
    }
    match collect::totals(&monitor.shared).await {
        Ok(_) => Ok(Answer::compact_json(&Healthz {
            status: "ok",
            error: None,
            errors: Vec::new(),
        })),
        Err(refusal) => {
            let answer = unwell("unavailable", "UNKNOWN", refusal.to_string(), details);
            Ok(answer.with_status(StatusCode::SERVICE_UNAVAILABLE))
        }
    }
}

/// What is missing to tell which stream or consumer is meant.
fn incomplete(query: &Query) -> Option<&'static str> {
    let is_given = |name| !query.text(name).is_empty();
    if is_given("consumer") && !is_given("stream") {
        Some("\"stream\" must not be empty when checking consumer health")
    } else if is_given("stream") && !is_given("account") {
        Some("\"account\" must not be empty when checking stream health")
    } else {
        None
    }
}

fn unwell(status: &'static str, kind: &'static str, error: String, details: bool) -> Answer {
    let mut health = Healthz {
        status,
        error: None,
        errors: Vec::new(),
    };
    if details {
        health.errors.push(Problem { kind, error });
    } else {
        health.error = Some(error);
    }
    Answer::compact_json(&health)
}
