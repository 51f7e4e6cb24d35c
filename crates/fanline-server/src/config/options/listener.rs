//! What clients of one listener show in place of what others do: one block, for WebSocket and for MQTT.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::duration_text;
use super::tls::timeout;
use crate::Auth;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::Any;
use crate::config::table::{self, Entry, set};

/// The block `authorization` of a listener: one user or one token.
#[derive(Default)]
pub(super) struct Credentials {
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
    timeout: Option<Duration>,
}

impl table::Block for Credentials {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("user", |own| &mut own.user)
            .alias(&["username"])
            .help("A user."),
        Entry::<Self>::text("password", |own| &mut own.password)
            .alias(&["pass"])
            .secret()
            .help("Its password."),
        Entry::<Self>::text("token", |own| &mut own.token)
            .secret()
            .help("A token."),
        Entry::<Self>::new(
            "timeout",
            Any,
            |own, given| set(&mut own.timeout, timeout(given).map(Some)),
            |own| json!(own.timeout.map(duration_text)),
        )
        .help("How long it may take."),
    ];
}

/// Reads a block `authorization` of a listener: what clients show, and how long it may take.
pub(super) fn read(given: &Given<'_>) -> Read<(Option<Auth>, Option<Duration>)> {
    let own = table::read(Credentials::default(), given)?;
    let auth = match (own.user, own.password, own.token) {
        (None, None, token) => token.map(Auth::Token),
        (user, password, None) => Some(Auth::User {
            name: user.unwrap_or_default(),
            password: password.unwrap_or_default(),
        }),
        _ => return Err(given.fault("Cannot have a user/pass and token")),
    };
    Ok((auth, own.timeout))
}

/// Shows such a block with its secrets, which are masked by their names later.
pub(super) fn show(auth: Option<&Auth>, timeout: Option<Duration>) -> Json {
    let mut own = Credentials {
        timeout,
        ..Credentials::default()
    };
    match auth {
        Some(Auth::Token(token)) => own.token = Some(token.clone()),
        Some(Auth::User { name, password }) => {
            (own.user, own.password) = (Some(name.clone()), Some(password.clone()));
        }
        _ if timeout.is_none() => return Json::Null,
        _ => {}
    }
    let mut shown = table::show(own);
    if let Json::Object(fields) = &mut shown {
        fields.retain(|name, value| name == "timeout" || !value.is_null());
    }
    shown
}
