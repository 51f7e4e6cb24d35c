//! Permissions: `{ publish: "a.>", subscribe: { allow: [ … ], deny: [ … ] }, allow_responses: true }`.

use fanline_engine::auth::{AccessError, AllowResponses, Allowed, Pattern, Permissions};
use serde_json::{Value as Json, json};

use super::fault;
use crate::clock::go_text;
use crate::config::read::{Given, Read, go_duration};
use crate::config::table::Kind::{Any, Duration, Integer, Texts};
use crate::config::table::{self, Entry, set};
use crate::config::value::Value;

/// A parser of a subject pattern.
type Parse = fn(&str) -> Result<Pattern, AccessError>;

impl table::Block for Permissions {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "publish",
            Any,
            |own, given| set(&mut own.publish, allowed(given, Pattern::parse)),
            |own| table::show(AllowedBlock::of(&own.publish)),
        )
        .block::<AllowedBlock>()
        .alias(&["pub", "import"])
        .default("everything")
        .help("Subjects, or `{ allow: [ … ], deny: [ … ] }`; `deny` takes precedence."),
        Entry::<Self>::new(
            "subscribe",
            Any,
            |own, given| {
                set(
                    &mut own.subscribe,
                    allowed(given, Pattern::parse_with_queue),
                )
            },
            |own| table::show(AllowedBlock::of(&own.subscribe)),
        )
        .block::<AllowedBlock>()
        .alias(&["sub", "export"])
        .like("authorization.default_permissions.publish")
        .default("everything")
        .help("Subscribe permissions; `\"subject queue\"` applies to members of that queue group."),
        Entry::<Self>::new(
            "allow_responses",
            Any,
            |own, given| set(&mut own.responses, responses(given)),
            |own| own.responses.map_or(Json::Null, table::show),
        )
        .block::<AllowResponses>()
        .alias(&["publish_allow_responses"])
        .default("false")
        .help("Permission to publish to reply subjects of received messages: `true`, or a block."),
    ];
}

/// Reads a block of permissions.
pub(in crate::config) fn permissions(given: &Given<'_>) -> Read<Permissions> {
    let mut permissions = table::read(Permissions::default(), given)?;
    // A missing allow list permits every subject. With `allow_responses` alone, a client may only respond, so
    // its list is empty.
    if permissions.responses.is_some() && permissions.publish.allow.is_none() {
        permissions.publish.allow = Some(Vec::new());
    }
    Ok(permissions)
}

/// Returns a block of permissions as JSON.
pub(in crate::config) fn show_permissions(permissions: &Permissions) -> Json {
    table::show(permissions.clone())
}

/// The allowed and denied subjects for publishing or subscribing.
struct AllowedBlock {
    allowed: Allowed,
    parse: Parse,
}

impl AllowedBlock {
    fn of(allowed: &Allowed) -> Self {
        AllowedBlock {
            allowed: allowed.clone(),
            parse: Pattern::parse,
        }
    }
}

impl table::Block for AllowedBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "allow",
            Texts,
            |block, given| {
                set(
                    &mut block.allowed.allow,
                    patterns(given, block.parse).map(some),
                )
            },
            |block| json!(block.allowed.allow.as_deref().map(pattern_texts)),
        )
        .help("Permitted subjects."),
        Entry::<Self>::new(
            "deny",
            Texts,
            |block, given| set(&mut block.allowed.deny, patterns(given, block.parse)),
            |block| json!(pattern_texts(&block.allowed.deny)),
        )
        .help("Denied subjects."),
    ];
}

fn allowed(given: &Given<'_>, parse: Parse) -> Read<Allowed> {
    let mut allowed = Allowed::default();
    if let Value::Map(_) = given.node.value {
        return Ok(table::read(AllowedBlock { allowed, parse }, given)?.allowed);
    }
    allowed.allow = some(patterns(given, parse)?);
    Ok(allowed)
}

/// Returns `None` for an empty list, because an empty list in a configuration allows every subject.
fn some(patterns: Vec<Pattern>) -> Option<Vec<Pattern>> {
    (!patterns.is_empty()).then_some(patterns)
}

fn patterns(given: &Given<'_>, parse: Parse) -> Read<Vec<Pattern>> {
    let texts = given.texts()?;
    let parsed = texts.iter().map(|text| parse(text));
    parsed
        .collect::<Result<_, _>>()
        .map_err(|e| fault(given, e))
}

/// Returns each pattern as a text: a subject filter, followed by the queue group if there is one.
pub(crate) fn pattern_texts(patterns: &[Pattern]) -> Vec<String> {
    let text = |pattern: &Pattern| match pattern.queue() {
        Some(queue) => format!("{} {queue}", pattern.subject()),
        None => pattern.subject().to_owned(),
    };
    patterns.iter().map(text).collect()
}

impl table::Block for AllowResponses {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::new(
            "max",
            Integer,
            |responses, given| {
                match given.integer()? {
                    0 => {}
                    number => responses.max = u64::try_from(number).ok(),
                }
                Ok(())
            },
            |responses| json!(responses.max),
        )
        .alias(&["max_msgs", "max_messages", "max_responses"])
        .default("1")
        .help("Responses permitted for each message."),
        Entry::<Self>::new(
            "expires",
            Duration,
            |responses, given| {
                let text = given.text()?;
                // A negative duration means unlimited.
                if text.trim().starts_with('-') {
                    responses.expires = None;
                    return Ok(());
                }
                let expires = go_duration(text).map_err(|e| fault(given, e))?;
                if !expires.is_zero() {
                    responses.expires = Some(expires);
                }
                Ok(())
            },
            |responses| json!(responses.expires.map(go_text)),
        )
        .alias(&["expiration", "ttl"])
        .default("2m")
        .help("Lifetime of the permission."),
    ];
}

fn responses(given: &Given<'_>) -> Read<Option<AllowResponses>> {
    let responses = AllowResponses::default();
    if let Value::Bool(is_allowed) = given.node.value {
        return Ok(is_allowed.then_some(responses));
    }
    table::read(responses, given).map(Some)
}
