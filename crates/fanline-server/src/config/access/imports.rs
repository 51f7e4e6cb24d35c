//! Imports of an account: `imports`.

use fanline_engine::auth::{Import, ImportKind};
use serde_json::Value as Json;

use crate::config::read::{Given, Read};
use crate::config::table::Kind::Block;
use crate::config::table::{self, Entry, set};

/// An entry of `imports`.
#[derive(Default)]
pub(super) struct ImportBlock {
    stream: Option<Source>,
    service: Option<Source>,
    to: Option<String>,
    prefix: Option<String>,
    share: bool,
    allow_trace: bool,
}

impl table::Block for ImportBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "stream",
            Block,
            |import, given| set(&mut import.stream, source(given).map(Some)),
            |import| import.stream.clone().map_or(Json::Null, table::show),
        )
        .block::<Source>()
        .like("accounts.*.imports.service")
        .help("A stream."),
        Entry::<Self>::new(
            "service",
            Block,
            |import, given| set(&mut import.service, source(given).map(Some)),
            |import| import.service.clone().map_or(Json::Null, table::show),
        )
        .block::<Source>()
        .help("A service."),
        Entry::<Self>::text("to", |import| &mut import.to).help("The local filter."),
        Entry::<Self>::text("prefix", |import| &mut import.prefix)
            .shown_elsewhere()
            .help("Prefix of the local subject, as `to`."),
        Entry::<Self>::flag("share", |import| &mut import.share)
            .default("false")
            .help("Send the requester's identity to the responder."),
        Entry::<Self>::flag("allow_trace", |import| &mut import.allow_trace)
            .default("false")
            .help("Traces continue beyond the import."),
    ];
}

/// The source of an import: `{ account: A, subject: s }`.
#[derive(Clone, Default)]
struct Source {
    account: Option<String>,
    subject: Option<String>,
}

impl table::Block for Source {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("account", |source| &mut source.account).help("The exporting account."),
        Entry::<Self>::text("subject", |source| &mut source.subject).help("The exporter's filter."),
    ];
}

fn source(given: &Given<'_>) -> Read<Source> {
    let source = table::read(Source::default(), given)?;
    match source.account.is_some() && source.subject.is_some() {
        true => Ok(source),
        false => Err(given.fault("an import needs an account and a subject")),
    }
}

/// Reads an entry of `imports`.
pub(super) fn import(given: &Given<'_>) -> Read<Import> {
    let block = table::read(ImportBlock::default(), given)?;
    let share = block.share;
    let (kind, source) = match (block.stream, block.service) {
        (Some(source), None) => (ImportKind::Stream, source),
        (None, Some(source)) => (ImportKind::Service { share }, source),
        _ => return Err(given.fault("Expected an import to be a stream or a service")),
    };
    let subject = source.subject.unwrap_or_default();
    let prefix = block.prefix;
    let prefixed = prefix.map(|prefix| format!("{}.{subject}", prefix.trim_end_matches('.')));
    Ok(Import {
        kind,
        account: source.account.unwrap_or_default(),
        to: block.to.or(prefixed),
        subject,
        allow_trace: block.allow_trace,
    })
}

/// Returns an entry of `imports` as JSON.
pub(super) fn show(import: &Import) -> Json {
    let mut block = ImportBlock {
        to: import.to.clone(),
        allow_trace: import.allow_trace,
        ..ImportBlock::default()
    };
    let source = Some(Source {
        account: Some(import.account.clone()),
        subject: Some(import.subject.clone()),
    });
    match import.kind {
        ImportKind::Stream => block.stream = source,
        ImportKind::Service { share } => (block.service, block.share) = (source, share),
    }
    table::show(block)
}
