//! What accounts let each other have: `exports` and `imports`.

use std::time::Duration;

use fanline_engine::auth::{
    Export, ExportKind, Import, ImportKind, Latency, ResponseKind, Sampling,
};

use crate::config::read::{Given, Read};
use crate::config::value::Value;

/// Reads the exports of an account.
pub(super) fn exports(given: &Given<'_>) -> Read<Vec<Export>> {
    given.items()?.iter().map(export).collect()
}

/// Reads the imports of an account.
pub(super) fn imports(given: &Given<'_>) -> Read<Vec<Import>> {
    given.items()?.iter().map(import).collect()
}

fn export(given: &Given<'_>) -> Read<Export> {
    let (mut stream, mut service, mut response) = (None, None, None);
    let (mut response_threshold, mut latency) = (None, None);
    let (mut accounts, mut account_token_position, mut allow_trace) = (None, None, false);
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "stream" => stream = field.some_text()?,
            "service" => service = field.some_text()?,
            "accounts" => accounts = Some(field.texts()?),
            "account_token_position" => account_token_position = Some(field.count()?),
            "response" | "response_type" => response = Some(response_kind(&field)?),
            "response_threshold" | "threshold" | "response_max_time" | "response_time" => {
                response_threshold = Some(field.duration()?);
            }
            "latency" => latency = Some(latency_of(&field)?),
            _ => allow_trace = field.boolean()?,
        }
    }
    let of_service = response.is_some() || response_threshold.is_some() || latency.is_some();
    let (kind, subject) = match (stream, service) {
        (Some(_), Some(_)) => {
            return Err(given.fault("Detected stream but already saw a service"));
        }
        (Some(_), None) if of_service => {
            return Err(given.fault("response, threshold and latency belong to a service"));
        }
        (Some(subject), None) => (ExportKind::Stream, subject),
        (None, Some(subject)) => {
            let kind = ExportKind::Service {
                response: response.unwrap_or_default(),
                response_threshold: response_threshold.filter(|time: &Duration| !time.is_zero()),
                latency,
            };
            (kind, subject)
        }
        (None, None) => return Err(given.fault("Expected an export to be a stream or a service")),
    };
    Ok(Export {
        kind,
        subject,
        accounts: accounts.filter(|names: &Vec<String>| !names.is_empty()),
        account_token_position: account_token_position.filter(|position| *position > 0),
        allow_trace,
    })
}

fn response_kind(field: &Given<'_>) -> Read<ResponseKind> {
    let text = field.text()?;
    match text.to_ascii_lowercase().as_str() {
        "single" | "singleton" => Ok(ResponseKind::Single),
        "stream" => Ok(ResponseKind::Stream),
        "chunk" | "chunked" => Ok(ResponseKind::Chunked),
        _ => Err(field.fault(format!("Unknown response type: \"{text}\""))),
    }
}

fn latency_of(given: &Given<'_>) -> Read<Latency> {
    let mut latency = Latency {
        subject: String::new(),
        sampling: Sampling::Percent(100),
    };
    if let Value::Text(subject) = &given.node.value {
        latency.subject.clone_from(subject);
        return Ok(latency);
    }
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "subject" => field.text()?.clone_into(&mut latency.subject),
            _ => latency.sampling = sampling(&field)?,
        }
    }
    if latency.subject.is_empty() {
        return Err(given.fault("Latency subject required, but missing"));
    }
    Ok(latency)
}

fn sampling(field: &Given<'_>) -> Read<Sampling> {
    let percent = match &field.node.value {
        Value::Text(text) if text.eq_ignore_ascii_case("headers") => {
            return Ok(Sampling::Headers);
        }
        Value::Text(text) => text.trim_end_matches('%').parse().ok(),
        _ => u8::try_from(field.integer()?).ok(),
    };
    percent
        .filter(|percent| (1..=100).contains(percent))
        .map(Sampling::Percent)
        .ok_or_else(|| field.fault("sampling must be in the range 1 to 100, or \"headers\""))
}

fn import(given: &Given<'_>) -> Read<Import> {
    let (mut source, mut to, mut prefix) = (None, None, None);
    let (mut share, mut allow_trace) = (false, false);
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            key @ ("stream" | "service") => {
                if source.is_some() {
                    return Err(given.fault("Expected an import to be a stream or a service"));
                }
                source = Some((key == "service", source_of(&field)?));
            }
            "to" => to = field.some_text()?,
            "prefix" => prefix = field.some_text()?,
            "share" => share = field.boolean()?,
            _ => allow_trace = field.boolean()?,
        }
    }
    let (is_service, (account, subject)) =
        source.ok_or_else(|| given.fault("Expected an import to be a stream or a service"))?;
    let prefixed = prefix.map(|prefix| format!("{}.{subject}", prefix.trim_end_matches('.')));
    Ok(Import {
        kind: if is_service {
            ImportKind::Service { share }
        } else {
            ImportKind::Stream
        },
        account,
        to: to.or(prefixed),
        subject,
        allow_trace,
    })
}

/// `{ account: A, subject: s }`.
fn source_of(given: &Given<'_>) -> Read<(String, String)> {
    let (mut account, mut subject) = (None, None);
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "account" => account = field.some_text()?,
            _ => subject = field.some_text()?,
        }
    }
    account
        .zip(subject)
        .ok_or_else(|| given.fault("an import needs an account and a subject"))
}
