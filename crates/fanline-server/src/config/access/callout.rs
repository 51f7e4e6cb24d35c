//! `auth_callout { issuer: A…, account: AUTH, auth_users: [ auth ] }`.

use fanline_engine::auth::nkey::{KeyKind, PublicKey};
use fanline_engine::auth::{Callout, GLOBAL_ACCOUNT};

use crate::config::read::{Given, Read};

/// Reads who is asked who may connect.
pub(in crate::config) fn callout(given: &Given<'_>) -> Read<Callout> {
    let (mut issuer, mut account, mut xkey) = (None, None, None);
    let (mut auth_users, mut allowed_accounts) = (Vec::new(), Vec::new());
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "issuer" => issuer = Some(issuer_key(&field)?),
            "account" | "acc" => account = field.some_text()?,
            "auth_users" | "users" => auth_users = field.texts()?,
            "allowed_accounts" => allowed_accounts = field.texts()?,
            "xkey" | "key" => xkey = Some(curve_key(&field)?),
            _ => {}
        }
    }
    let Some(issuer) = issuer else {
        return Err(given.fault("Authorization callouts require an issuer to be specified"));
    };
    if auth_users.is_empty() {
        return Err(given.fault("Authorization callouts require authorized users to be specified"));
    }
    Ok(Callout {
        issuer,
        account: account.unwrap_or_else(|| GLOBAL_ACCOUNT.into()),
        auth_users,
        allowed_accounts,
        xkey,
    })
}

fn curve_key(given: &Given<'_>) -> Read<PublicKey> {
    let text = given.text()?;
    PublicKey::parse_as(KeyKind::Curve, text).ok_or_else(|| {
        given.fault(format!(
            "Expected callout xkey to be a valid public xkey, got {text:?}"
        ))
    })
}

fn issuer_key(given: &Given<'_>) -> Read<PublicKey> {
    let text = given.text()?;
    PublicKey::parse_as(KeyKind::Account, text).ok_or_else(|| {
        given.fault(format!(
            "Expected callout user to be a valid public account nkey, got {text:?}"
        ))
    })
}
