//! Exports of an account: `exports`.

use std::time::Duration;

use fanline_engine::auth::{Export, ExportKind, Latency, ResponseKind, Sampling};
use serde_json::{Value as Json, json};

use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Any, Integer, Text, Texts};
use crate::config::table::{self, Entry, set};
use crate::config::value::Value;

/// An entry of `exports`.
#[derive(Default)]
pub(super) struct ExportBlock {
    stream: Option<String>,
    service: Option<String>,
    accounts: Option<Vec<String>>,
    account_token_position: Option<usize>,
    response: Option<ResponseKind>,
    response_threshold: Option<Duration>,
    latency: Option<Latency>,
    allow_trace: bool,
}

impl table::Block for ExportBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("stream", |export| &mut export.stream)
            .help("Subject filter that other accounts may subscribe to."),
        Entry::<Self>::text("service", |export| &mut export.service)
            .help("Subject filter of requests from other accounts."),
        Entry::<Self>::new(
            "accounts",
            Texts,
            |export, given| {
                let names = given.texts()?;
                export.accounts = (!names.is_empty()).then_some(names);
                Ok(())
            },
            |export| json!(export.accounts),
        )
        .default("all")
        .help("Accounts that may import it."),
        Entry::<Self>::new(
            "account_token_position",
            Integer,
            |export, given| {
                export.account_token_position = Some(given.count()?).filter(|at| *at > 0);
                Ok(())
            },
            |export| json!(export.account_token_position),
        )
        .help("The position, from 1, of the token that must be the importer's name."),
        Entry::<Self>::new(
            "response",
            Text,
            |export, given| set(&mut export.response, response(given).map(Some)),
            |export| json!(export.response.map(response_name)),
        )
        .alias(&["response_type"])
        .default("single")
        .limit("`single`, `stream`, `chunked`")
        .help("Kind of response: one message, or a stream."),
        Entry::<Self>::maybe_duration("response_threshold", |export| {
            &mut export.response_threshold
        })
        .alias(&["threshold", "response_max_time", "response_time"])
        .help("Time limit of a response."),
        Entry::<Self>::new(
            "latency",
            Any,
            |export, given| set(&mut export.latency, latency(given).map(Some)),
            |export| export.latency.clone().map_or(Json::Null, table::show),
        )
        .block::<Latency>()
        .help("Reports of the latency of responses."),
        Entry::<Self>::flag("allow_trace", |export| &mut export.allow_trace)
            .default("false")
            .help("Traces continue beyond the import."),
    ];
}

/// Reads an entry of `exports`.
pub(super) fn export(given: &Given<'_>) -> Read<Export> {
    let block = table::read(ExportBlock::default(), given)?;
    let of_service =
        block.response.is_some() || block.response_threshold.is_some() || block.latency.is_some();
    let (kind, subject) = match (block.stream, block.service) {
        (Some(_), Some(_)) => {
            return Err(given.fault("Detected stream but already saw a service"));
        }
        (Some(_), None) if of_service => {
            return Err(given.fault("response, threshold and latency belong to a service"));
        }
        (Some(subject), None) => (ExportKind::Stream, subject),
        (None, Some(subject)) => {
            let kind = ExportKind::Service {
                response: block.response.unwrap_or_default(),
                response_threshold: block.response_threshold.filter(|time| !time.is_zero()),
                latency: block.latency,
            };
            (kind, subject)
        }
        (None, None) => return Err(given.fault("Expected an export to be a stream or a service")),
    };
    Ok(Export {
        kind,
        subject,
        accounts: block.accounts,
        account_token_position: block.account_token_position,
        allow_trace: block.allow_trace,
    })
}

/// Returns an entry of `exports` as JSON.
pub(super) fn show(export: &Export) -> Json {
    let mut block = ExportBlock {
        accounts: export.accounts.clone(),
        account_token_position: export.account_token_position,
        allow_trace: export.allow_trace,
        ..ExportBlock::default()
    };
    let subject = Some(export.subject.clone());
    match &export.kind {
        ExportKind::Stream => block.stream = subject,
        ExportKind::Service {
            response,
            response_threshold,
            latency,
        } => {
            block.service = subject;
            block.response = Some(*response);
            block.response_threshold = *response_threshold;
            block.latency.clone_from(latency);
        }
    }
    table::show(block)
}

fn response(given: &Given<'_>) -> Read<ResponseKind> {
    let text = given.text()?;
    match text.to_ascii_lowercase().as_str() {
        "single" | "singleton" => Ok(ResponseKind::Single),
        "stream" => Ok(ResponseKind::Stream),
        "chunk" | "chunked" => Ok(ResponseKind::Chunked),
        _ => Err(given.fault(format!("Unknown response type: \"{text}\""))),
    }
}

fn response_name(response: ResponseKind) -> &'static str {
    match response {
        ResponseKind::Single => "single",
        ResponseKind::Stream => "stream",
        ResponseKind::Chunked => "chunked",
    }
}

impl table::Block for Latency {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "subject",
            Text,
            |latency, given| {
                given.text()?.clone_into(&mut latency.subject);
                Ok(())
            },
            |latency| json!(latency.subject),
        )
        .help("Subject of the reports."),
        Entry::<Self>::new(
            "sampling",
            Any,
            |latency, given| set(&mut latency.sampling, sampling(given)),
            |latency| match latency.sampling {
                Sampling::Percent(percent) => json!(percent),
                Sampling::Headers => json!("headers"),
            },
        )
        .default("100%")
        .help("Percentage of measured requests."),
    ];
}

fn latency(given: &Given<'_>) -> Read<Latency> {
    let mut latency = Latency {
        subject: String::new(),
        sampling: Sampling::Percent(100),
    };
    if let Value::Text(subject) = &given.node.value {
        latency.subject.clone_from(subject);
        return Ok(latency);
    }
    let latency = table::read(latency, given)?;
    match latency.subject.is_empty() {
        true => Err(given.fault("Latency subject required, but missing")),
        false => Ok(latency),
    }
}

fn sampling(given: &Given<'_>) -> Read<Sampling> {
    if let Value::Text(text) = &given.node.value
        && text.eq_ignore_ascii_case("headers")
    {
        return Ok(Sampling::Headers);
    }
    let percent = given.percent()?;
    percent
        .filter(|percent| (1..=100).contains(percent))
        .map(Sampling::Percent)
        .ok_or_else(|| given.fault("sampling must be in the range 1 to 100, or \"headers\""))
}
