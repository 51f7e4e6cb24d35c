//! Conversion of version 1 tokens to claims of version 2.
//!
//! In version 1, the token's type, tags, and `issuer_account` are next to `nats`, and an empty `nats` is
//! omitted. Fields that version 1 does not have are removed, so that they grant no rights and set no limits.

use serde_json::{Map, Value};

use super::{
    AccountClaims, ActivationClaims, Body as _, JwtError, OperatorClaims, Raw, UserClaims,
};

/// Fields of an operator.
const OPERATOR: &[&str] = &["signing_keys", "system_account"];
/// Fields of an account.
const ACCOUNT: &[&str] = &[
    "imports",
    "exports",
    "limits",
    "signing_keys",
    "revocations",
];
/// Limits of an account. Version 1 has no JetStream.
const LIMITS: &[&str] = &[
    "subs",
    "data",
    "payload",
    "imports",
    "exports",
    "wildcards",
    "disallow_bearer",
    "conn",
    "leaf",
];
/// Fields of a user.
const USER: &[&str] = &[
    "pub",
    "sub",
    "resp",
    "src",
    "times",
    "times_location",
    "subs",
    "data",
    "payload",
    "bearer_token",
];
/// User limits that are unlimited by default in version 1, but 0 by default in version 2.
const UNLIMITED: &[&str] = &["subs", "data", "payload"];

/// Returns the `nats` object of a token of type `kind`, in the form of version 2.
pub(super) fn migrate(kind: &str, raw: &mut Raw) -> Result<Map<String, Value>, JwtError> {
    let mut nats = match std::mem::take(&mut raw.nats) {
        Value::Null => Map::new(),
        Value::Object(nats) => nats,
        _ => {
            return Err(JwtError::Content(
                "payload",
                "`nats` is not an object".into(),
            ));
        }
    };
    match kind {
        OperatorClaims::TYPE => keep(&mut nats, OPERATOR),
        AccountClaims::TYPE => migrate_account(&mut nats)?,
        UserClaims::TYPE => {
            keep(&mut nats, USER);
            for limit in UNLIMITED {
                let given = nats.entry(*limit).or_insert(Value::Null);
                if given.is_null() {
                    *given = (-1).into();
                }
            }
        }
        ActivationClaims::TYPE => {
            // In this token, `type` is the kind of import that the activation allows.
            if let Some(kind) = nats.remove("type") {
                nats.insert("kind".into(), kind);
            }
            keep(&mut nats, &["subject", "kind"]);
        }
        _ => return Ok(nats),
    }
    nats.insert("tags".into(), std::mem::take(&mut raw.tags));
    let account = std::mem::take(&mut raw.issuer_account);
    nats.insert("issuer_account".into(), account.into());
    Ok(nats)
}

fn migrate_account(nats: &mut Map<String, Value>) -> Result<(), JwtError> {
    keep(nats, ACCOUNT);
    if let Some(Value::Object(limits)) = nats.get_mut("limits") {
        keep(limits, LIMITS);
    }
    // Scoped keys exist since version 2. Treated as a plain key, a scoped key would grant more than its
    // scope.
    let keys = nats.get("signing_keys").and_then(Value::as_array);
    match keys.is_some_and(|keys| keys.iter().any(Value::is_object)) {
        true => Err(JwtError::Content(
            "payload",
            "a token of version 1 cannot have scoped signing keys".into(),
        )),
        false => Ok(()),
    }
}

fn keep(fields: &mut Map<String, Value>, known: &[&str]) {
    fields.retain(|name, _| known.contains(&name.as_str()));
}
