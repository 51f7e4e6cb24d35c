//! What clients of one listener show in place of what others do: one block, for WebSocket and for MQTT.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::duration_text;
use super::tls::timeout;
use crate::Auth;
use crate::config::read::{Given, Read};

/// What a block `authorization` of a listener says.
#[derive(Default)]
pub(super) struct Authorization {
    /// One user or one token.
    pub(super) auth: Option<Auth>,
    /// How long it may take.
    pub(super) timeout: Option<Duration>,
}

/// Reads a block `authorization` of a listener.
pub(super) fn read(given: &Given<'_>) -> Read<Authorization> {
    let (mut user, mut password, mut token, mut time) = (None, None, None, None);
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "user" | "username" => user = field.some_text()?,
            "pass" | "password" => password = field.some_text()?,
            "token" => token = field.some_text()?,
            "timeout" => time = Some(timeout(&field)?),
            _ => {}
        }
    }
    let auth = match (user, password, token) {
        (None, None, token) => token.map(Auth::Token),
        (user, password, None) => Some(Auth::User {
            name: user.unwrap_or_default(),
            password: password.unwrap_or_default(),
        }),
        _ => return Err(given.fault("Cannot have a user/pass and token")),
    };
    Ok(Authorization {
        auth,
        timeout: time,
    })
}

/// Shows it with its secrets, which are masked by their names where they are told.
pub(super) fn show(auth: Option<&Auth>, timeout: Option<Duration>) -> Json {
    let timeout = timeout.map(duration_text);
    match auth {
        Some(Auth::Token(token)) => json!({ "token": token, "timeout": timeout }),
        Some(Auth::User { name, password }) => {
            json!({ "user": name, "password": password, "timeout": timeout })
        }
        _ if timeout.is_some() => json!({ "timeout": timeout }),
        _ => Json::Null,
    }
}
