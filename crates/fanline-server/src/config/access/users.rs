//! Users: `[ { user: a, password: b }, { nkey: U… } ]`.

use fanline_engine::auth::{ConnectionKind, Identity, Password, Permissions, User};
use serde_json::{Value as Json, json};

use super::fault;
use super::permissions::{permissions, show_permissions};
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Block, Text, Texts};
use crate::config::table::{self, Entry, set};

/// An entry of `users`.
#[derive(Default)]
pub(in crate::config) struct UserBlock {
    name: Option<String>,
    password: Option<String>,
    nkey: Option<String>,
    permissions: Option<Permissions>,
    connection_kinds: Vec<ConnectionKind>,
    proxy_required: bool,
}

impl table::Block for UserBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("user", |user| &mut user.name)
            .alias(&["username"])
            .help("User name."),
        Entry::<Self>::new(
            "password",
            Text,
            |user, given| {
                user.password = Some(given.text()?.to_owned());
                Ok(())
            },
            |user| json!(user.password),
        )
        .alias(&["pass"])
        .secret()
        .help("The password, in clear or as a bcrypt hash."),
        Entry::<Self>::text("nkey", |user| &mut user.nkey)
            .help("The public key of a user that authenticates by signature."),
        Entry::<Self>::new(
            "permissions",
            Block,
            |user, given| set(&mut user.permissions, permissions(given).map(Some)),
            |user| {
                user.permissions
                    .as_ref()
                    .map_or(Json::Null, show_permissions)
            },
        )
        .block::<Permissions>()
        .alias(&["permission", "authorization"])
        .like("authorization.default_permissions")
        .help("Permissions of the user."),
        Entry::<Self>::new(
            "allowed_connection_types",
            Texts,
            |user, given| {
                let kinds = given.texts()?;
                let kinds = kinds.iter().map(|kind| ConnectionKind::parse(kind));
                let kinds = kinds.collect::<Result<_, _>>();
                set(
                    &mut user.connection_kinds,
                    kinds.map_err(|e| fault(given, e)),
                )
            },
            |user| {
                user.connection_kinds
                    .iter()
                    .map(|kind| kind.name())
                    .collect()
            },
        )
        .alias(&["connection_types", "clients"])
        .limit("STANDARD, WEBSOCKET, LEAFNODE, LEAFNODE_WS, MQTT, MQTT_WS, IN_PROCESS")
        .default("all")
        .help("Kinds of connections that the user may use."),
        Entry::<Self>::flag("proxy_required", |user| &mut user.proxy_required)
            .default("false")
            .help("The user must connect through a trusted proxy; see `proxies`."),
    ];
}

impl UserBlock {
    /// Returns the user, if the block identifies one.
    pub(in crate::config) fn finish(self, given: &Given<'_>) -> Read<User> {
        let identity = match (self.nkey, self.name) {
            (Some(nkey), None) if self.password.is_none() => {
                if nkey.len() != 56 || !nkey.starts_with('U') {
                    return Err(given.fault("Not a valid public nkey for a user"));
                }
                Identity::Nkey(nkey)
            }
            (Some(_), _) => {
                return Err(given.fault("Nkey users do not take usernames or passwords"));
            }
            (None, Some(name)) => Identity::Name(name, self.password.unwrap_or_default().into()),
            (None, None) => return Err(given.fault("User entry requires a user")),
        };
        Ok(User {
            identity,
            permissions: self.permissions,
            connection_kinds: self.connection_kinds,
            proxy_required: self.proxy_required,
        })
    }
}

/// Reads a list of users.
pub(in crate::config) fn users(given: &Given<'_>) -> Read<Vec<User>> {
    let user = |given: &Given<'_>| table::read(UserBlock::default(), given)?.finish(given);
    given.items()?.iter().map(user).collect()
}

/// Returns a user with its password as JSON.
pub(in crate::config) fn show_user(user: &User) -> Json {
    let mut block = UserBlock {
        permissions: user.permissions.clone(),
        connection_kinds: user.connection_kinds.clone(),
        proxy_required: user.proxy_required,
        ..UserBlock::default()
    };
    match &user.identity {
        Identity::Name(name, password) => {
            block.name = Some(name.clone());
            block.password = Some(show_password(password).to_owned());
        }
        Identity::Nkey(nkey) => block.nkey = Some(nkey.clone()),
    }
    table::show(block)
}

/// Returns a password as it is configured.
pub(in crate::config) fn show_password(password: &Password) -> &str {
    match password {
        Password::Plain(text) | Password::Bcrypt(text) => text,
    }
}
