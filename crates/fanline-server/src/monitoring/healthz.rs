//! `/healthz`: whether the server, or a stream or consumer, works.

use fanline_engine::jetstream::{AccountOverview, OverviewWanted};
use hyper::StatusCode;
use serde::Serialize;

use super::answer::{Answer, Refusal};
use super::query::Query;
use super::{Monitor, collect};

#[derive(Serialize)]
struct Healthz<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Problem<'a>>,
}

/// A problem, and the account, stream, or consumer that has it.
#[derive(Default, Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    account: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    stream: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    consumer: &'a str,
    error: String,
    #[serde(skip)]
    status: StatusCode,
}

/// The account, stream, and consumer to check. If all names are empty, the server is checked.
struct Target<'a> {
    account: &'a str,
    stream: &'a str,
    consumer: &'a str,
}

pub(super) async fn answer(monitor: &Monitor, query: &Query) -> Result<Answer, Refusal> {
    // These parameters are for clusters. They have no effect here, but must be valid.
    for name in [
        "js-enabled",
        "js-enabled-only",
        "js-server-only",
        "js-meta-only",
    ] {
        query.flag(name)?;
    }
    let details = query.flag("details")?;
    let target = Target {
        account: query.text("account"),
        stream: query.text("stream"),
        consumer: query.text("consumer"),
    };
    let problem = match target.is_named_in_part() {
        Some(error) => Some(Problem {
            kind: "BAD_REQUEST",
            error: error.into(),
            status: StatusCode::BAD_REQUEST,
            ..Problem::default()
        }),
        None => examine(monitor, &target).await,
    };
    Ok(match problem {
        None => Answer::compact_json(&Healthz {
            status: "ok",
            error: None,
            errors: Vec::new(),
        }),
        Some(problem) => unwell(problem, details),
    })
}

async fn examine<'a>(monitor: &Monitor, target: &Target<'a>) -> Option<Problem<'a>> {
    let wanted = OverviewWanted {
        streams: !target.stream.is_empty(),
        consumers: !target.consumer.is_empty(),
        ..OverviewWanted::default()
    };
    let alive = match collect::totals(&monitor.shared).await {
        Ok(_) => collect::jetstream(&monitor.shared, wanted).await,
        Err(refusal) => Err(refusal),
    };
    match alive {
        Ok(None) => None,
        Ok(Some(accounts)) => target.missing_in(&accounts),
        Err(refusal) => Some(Problem {
            kind: "UNKNOWN",
            error: refusal.to_string(),
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..Problem::default()
        }),
    }
}

impl<'a> Target<'a> {
    /// Returns an error text if a parameter that is needed to identify the stream or consumer is missing.
    fn is_named_in_part(&self) -> Option<&'static str> {
        if !self.consumer.is_empty() && self.stream.is_empty() {
            Some("\"stream\" must not be empty when checking consumer health")
        } else if !self.stream.is_empty() && self.account.is_empty() {
            Some("\"account\" must not be empty when checking stream health")
        } else {
            None
        }
    }

    /// Returns the requested account, stream, or consumer that does not exist.
    fn missing_in(&self, accounts: &[AccountOverview]) -> Option<Problem<'a>> {
        let Target {
            account,
            stream,
            consumer,
        } = *self;
        let missing = |kind, error| {
            Some(Problem {
                kind,
                account,
                stream,
                consumer: if kind == "CONSUMER" { consumer } else { "" },
                error,
                status: StatusCode::NOT_FOUND,
            })
        };
        if account.is_empty() {
            return None;
        }
        let found = accounts.iter().find(|found| found.name == account);
        let Some(AccountOverview { overview, .. }) = found else {
            let error = format!("JetStream account {account:?} not found");
            return missing("ACCOUNT", error).map(|problem| Problem {
                stream: "",
                ..problem
            });
        };
        if stream.is_empty() {
            return None;
        }
        let mut streams = overview.stream_detail.iter();
        let Some(found) = streams.find(|found| found.name == stream) else {
            let error = format!("JetStream stream {stream:?} not found on account {account:?}");
            return missing("STREAM", error);
        };
        let mut consumers = found.consumer_detail.iter();
        if consumer.is_empty() || consumers.any(|found| found.name == consumer) {
            return None;
        }
        let error = format!(
            "JetStream consumer {consumer:?} not found for stream {stream:?} on account {account:?}"
        );
        missing("CONSUMER", error)
    }
}

fn unwell(problem: Problem<'_>, details: bool) -> Answer {
    let status = problem.status;
    let health = match details {
        true => Healthz {
            status: "error",
            error: None,
            errors: vec![problem],
        },
        false => Healthz {
            status: match status {
                StatusCode::BAD_REQUEST => "error",
                _ => "unavailable",
            },
            error: Some(problem.error),
            errors: Vec::new(),
        },
    };
    Answer::compact_json(&health).with_status(status)
}
