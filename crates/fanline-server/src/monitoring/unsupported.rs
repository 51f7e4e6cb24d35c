//! Endpoints of unsupported features. They respond as nats-server does when a feature is off.

use hyper::StatusCode;
use serde::Serialize;

use super::answer::Answer;

#[derive(Serialize)]
struct Empty {}

/// Responds to `/raftz`. A single server has no Raft groups.
pub(super) fn raftz() -> Answer {
    not_there("No Raft nodes registered")
}

fn not_there(why: &'static str) -> Answer {
    Answer {
        status: StatusCode::NOT_FOUND,
        content_type: "text/plain; charset=utf-8",
        body: why.into(),
    }
}

/// Responds to `/ipqueuesz` with an empty object. nats-server's internal queues do not exist here.
pub(super) fn ipqueuesz() -> Answer {
    Answer::json(&Empty {})
}
