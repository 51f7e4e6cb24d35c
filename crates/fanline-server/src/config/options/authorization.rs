//! Who may connect.

use serde_json::{Value as Json, json};

use super::duration_text;
use crate::Auth;
use crate::config::table::Kind::{Any, Block, Blocks, Bool, Text};
use crate::config::table::{Entry, refused, works};

const LATER: &str = "Fanline has one user or one token so far";

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "authorization",
        Block,
        |_, given| given.map().map(drop),
        |loaded| show_auth(&loaded.options.auth),
    )
    .reloads()
    .help("Who may connect."),
    works(
        "authorization.user",
        Text,
        |draft, given| {
            draft.user = given.some_text()?;
            Ok(())
        },
        |loaded| match &loaded.options.auth {
            Auth::User { name, .. } => json!(name),
            _ => Json::Null,
        },
    )
    .alias(&["username"])
    .flags("--user")
    .reloads()
    .help("The one user."),
    works(
        "authorization.password",
        Text,
        |draft, given| {
            draft.password = given.some_text()?;
            Ok(())
        },
        |loaded| match &loaded.options.auth {
            Auth::User { password, .. } => json!(password),
            _ => Json::Null,
        },
    )
    .alias(&["pass"])
    .flags("--pass")
    .secret()
    .reloads()
    .help("Its password."),
    works(
        "authorization.token",
        Text,
        |draft, given| {
            draft.token = given.some_text()?;
            Ok(())
        },
        |loaded| match &loaded.options.auth {
            Auth::Token(token) => json!(token),
            _ => Json::Null,
        },
    )
    .flags("--auth")
    .secret()
    .reloads()
    .help("One token for all."),
    works(
        "authorization.timeout",
        Any,
        |draft, given| {
            draft.loaded.options.limits.auth_timeout = super::tls::timeout(given)?;
            Ok(())
        },
        |loaded| duration_text(loaded.options.limits.auth_timeout),
    )
    .default("2s")
    .reloads()
    .help("How long a client may take to say who it is: seconds or a duration."),
    refused("authorization.users", Blocks, LATER).help("Several users."),
    refused("authorization.default_permissions", Block, LATER)
        .alias(&["default_permission", "permissions"])
        .help("What users without permissions may do."),
    refused("authorization.auth_callout", Block, LATER).help("A service that decides."),
    refused("authorization.proxy_required", Bool, LATER).help("Only through a proxy."),
    refused("no_auth_user", Text, LATER).help("The user of those who show nothing."),
    refused("accounts", Block, LATER).help("Accounts."),
];

/// Shows what clients must show.
pub(super) fn show_auth(auth: &Auth) -> Json {
    match auth {
        Auth::Token(token) => json!({ "token": token }),
        Auth::User { name, password } => json!({ "user": name, "password": password }),
        _ => Json::Null,
    }
}
