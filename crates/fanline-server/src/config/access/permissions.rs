//! Permissions: `{ publish: "a.>", subscribe: { allow: [ … ], deny: [ … ] }, allow_responses: true }`.

use fanline_engine::auth::{AllowResponses, Allowed, Pattern, Permissions};

use super::fault;
use crate::config::read::{Given, Read, go_duration};
use crate::config::value::Value;

/// Reads one text as a pattern.
type Parse = fn(&str) -> Result<Pattern, fanline_engine::auth::AccessError>;

/// Reads a block of permissions.
pub(in crate::config) fn permissions(given: &Given<'_>) -> Read<Permissions> {
    let mut permissions = Permissions::default();
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "publish" | "pub" | "import" => permissions.publish = allowed(&field, Pattern::parse)?,
            "subscribe" | "sub" | "export" => {
                permissions.subscribe = allowed(&field, Pattern::parse_with_queue)?;
            }
            _ => permissions.responses = responses(&field)?,
        }
    }
    // Whoever may answer is not meant to publish everywhere.
    if permissions.responses.is_some() && permissions.publish.allow.is_none() {
        permissions.publish.allow = Some(Vec::new());
    }
    Ok(permissions)
}

fn allowed(given: &Given<'_>, parse: Parse) -> Read<Allowed> {
    let mut allowed = Allowed::default();
    if let Value::Map(_) = given.node.value {
        for field in given.fields()? {
            match field.key.to_ascii_lowercase().as_str() {
                "allow" => allowed.allow = some(patterns(&field, parse)?),
                _ => allowed.deny = patterns(&field, parse)?,
            }
        }
    } else {
        allowed.allow = some(patterns(given, parse)?);
    }
    Ok(allowed)
}

/// An empty list allows everything, as none does.
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

fn responses(given: &Given<'_>) -> Read<Option<AllowResponses>> {
    let mut responses = AllowResponses::default();
    if let Value::Bool(is_allowed) = given.node.value {
        return Ok(is_allowed.then_some(responses));
    }
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "max" | "max_msgs" | "max_messages" | "max_responses" => match field.integer()? {
                0 => {}
                number => responses.max = u64::try_from(number).ok(),
            },
            // A negative time is for ever.
            _ if field.text().is_ok_and(|t| t.trim().starts_with('-')) => responses.expires = None,
            _ => {
                let expires = go_duration(field.text()?).map_err(|e| fault(&field, e))?;
                if !expires.is_zero() {
                    responses.expires = Some(expires);
                }
            }
        }
    }
    Ok(Some(responses))
}
