//! Common options of listeners: the address, and credentials of a listener's own clients.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::duration_text;
use super::tls::timeout;
use crate::Auth;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Address, Any, Block, Port, Text};
use crate::config::table::{self, Entry, set};

/// The block of a listener other than the client listener.
pub(in crate::config) trait Listener: Sized + 'static {
    /// Returns host and port. There is no port if the listener is off.
    fn address(&self) -> (&String, Option<u16>);
    /// Returns host and port, to be set while the block is read.
    fn address_mut(&mut self) -> (&mut String, &mut Option<u16>);
}

/// The block of a listener with credentials of its own.
pub(in crate::config) trait ClientListener: Listener {
    /// Returns the credentials, and the time limit of authentication.
    fn authorization(&self) -> (Option<&Auth>, Option<Duration>);
    /// Returns the credentials and the time limit, to be set while the block is read.
    fn authorization_mut(&mut self) -> (&mut Option<Auth>, &mut Option<Duration>);
}

impl<T: Listener> Entry<T> {
    /// The option `listen`.
    pub(super) const LISTEN: Self = Entry::unshown("listen", Address, |block: &mut T, given| {
        let (host, port) = block.address_mut();
        given.listen(host, port)
    })
    .help("`host` and `port` in one.");

    /// The option `host`.
    pub(super) const HOST: Self = Entry::new(
        "host",
        Text,
        |block: &mut T, given| given.overwrite(block.address_mut().0),
        |block| json!(block.address().0),
    )
    .alias(&["net"])
    .default("0.0.0.0")
    .help("Address to listen on, whatever the server's `host`; 127.0.0.1 under `fanline serve` by default.");

    /// The option `port`.
    pub(super) const PORT: Self = Entry::new(
        "port",
        Port,
        |block: &mut T, given| set(block.address_mut().1, given.port()),
        |block| json!(block.address().1),
    )
    .default("off")
    .help("Port; -1 picks a free one.");
}

impl<T: ClientListener> Entry<T> {
    /// The option `authorization`.
    pub(super) const AUTHORIZATION: Self = Entry::new(
        "authorization",
        Block,
        |block: &mut T, given| {
            let (auth, timeout) = block.authorization_mut();
            (*auth, *timeout) = read(given)?;
            Ok(())
        },
        |block| {
            let (auth, timeout) = block.authorization();
            show(auth, timeout)
        },
    )
    .block::<Credentials>()
    .alias(&["authentication"]);
}

/// The block `authorization` of a listener: one user or one token.
#[derive(Default)]
struct Credentials {
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
    timeout: Option<Duration>,
}

impl table::Block for Credentials {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("user", |own| &mut own.user)
            .alias(&["username"])
            .help("User name."),
        Entry::<Self>::text("password", |own| &mut own.password)
            .alias(&["pass"])
            .secret()
            .help("Password of the user."),
        Entry::<Self>::text("token", |own| &mut own.token)
            .secret()
            .help("A token."),
        Entry::<Self>::new(
            "timeout",
            Any,
            |own, given| set(&mut own.timeout, timeout(given).map(Some)),
            |own| json!(own.timeout.map(duration_text)),
        )
        .help("Time limit of authentication."),
    ];
}

/// Reads a listener's `authorization` block: credentials and time limit.
fn read(given: &Given<'_>) -> Read<(Option<Auth>, Option<Duration>)> {
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

/// Returns a listener's `authorization` block as JSON. Secrets are masked later, by the names of their keys.
fn show(auth: Option<&Auth>, timeout: Option<Duration>) -> Json {
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
