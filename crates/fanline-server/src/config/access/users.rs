//! Users: `[ { user: a, password: b }, { nkey: U… } ]`.

use fanline_engine::auth::{ConnectionKind, Identity, User};

use super::fault;
use super::permissions::permissions;
use crate::config::read::{Given, Read};

/// Reads a list of users.
pub(in crate::config) fn users(given: &Given<'_>) -> Read<Vec<User>> {
    given.items()?.iter().map(user).collect()
}

fn user(given: &Given<'_>) -> Read<User> {
    let (mut name, mut password, mut nkey) = (None, None, None);
    let mut user = User::new("", "");
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "user" | "username" => name = field.some_text()?,
            "pass" | "password" => password = Some(field.text()?.to_owned()),
            "nkey" => nkey = field.some_text()?,
            "permissions" | "permission" | "authorization" => {
                user.permissions = Some(permissions(&field)?);
            }
            "allowed_connection_types" | "connection_types" | "clients" => {
                for kind in field.texts()? {
                    let kind = ConnectionKind::parse(&kind).map_err(|e| fault(&field, e))?;
                    user.connection_kinds.push(kind);
                }
            }
            // Of those of leaf nodes, and read there.
            "account" => {}
            "proxy_required" => user.proxy_required = field.boolean()?,
            _ => {}
        }
    }
    user.identity = match (nkey, name) {
        (Some(nkey), None) if password.is_none() => {
            let is_key = nkey.len() == 56 && nkey.starts_with('U');
            if !is_key {
                return Err(given.fault("Not a valid public nkey for a user"));
            }
            Identity::Nkey(nkey)
        }
        (Some(_), _) => return Err(given.fault("Nkey users do not take usernames or passwords")),
        (None, Some(name)) => Identity::Name(name, password.unwrap_or_default().into()),
        (None, None) => return Err(given.fault("User entry requires a user")),
    };
    Ok(user)
}
