//! NATS over WebSocket.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::listener::{ClientListener, Listener};
use super::tls::{self, TlsBlock};
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Block, Text};
use crate::config::table::{self, Entry, set};
use crate::{Auth, WebSocketOptions};

pub(super) const OPTIONS: &[super::Entry] = &[super::Entry::new(
    "websocket",
    Block,
    |draft, given| {
        let host = draft.listener_host.clone();
        set(&mut draft.loaded.options.websocket, read(given, host))
    },
    |draft| {
        let websocket = draft.loaded.options.websocket.as_ref();
        websocket.map_or(Json::Null, |websocket| {
            table::show(WebSocketBlock::of(websocket))
        })
    },
)
.block::<WebSocketBlock>()
.alias(&["ws"])
.default("off")
.help("A listener for WebSocket clients.")];

/// The block `websocket`.
struct WebSocketBlock {
    options: WebSocketOptions,
    port: Option<u16>,
    no_tls: bool,
}

impl WebSocketBlock {
    fn of(websocket: &WebSocketOptions) -> Self {
        WebSocketBlock {
            port: Some(websocket.port),
            no_tls: websocket.tls.is_none(),
            options: websocket.clone(),
        }
    }
}

impl Listener for WebSocketBlock {
    fn address(&self) -> (&String, Option<u16>) {
        (&self.options.host, self.port)
    }

    fn address_mut(&mut self) -> (&mut String, &mut Option<u16>) {
        (&mut self.options.host, &mut self.port)
    }
}

impl ClientListener for WebSocketBlock {
    fn authorization(&self) -> (Option<&Auth>, Option<Duration>) {
        (self.options.auth.as_ref(), self.options.auth_timeout)
    }

    fn authorization_mut(&mut self) -> (&mut Option<Auth>, &mut Option<Duration>) {
        (&mut self.options.auth, &mut self.options.auth_timeout)
    }
}

impl table::Block for WebSocketBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::LISTEN,
        Entry::<Self>::HOST,
        Entry::<Self>::PORT,
        Entry::<Self>::text("advertise", |block| &mut block.options.advertise)
            .help("The address that other servers of the cluster advertise to clients. No effect without routes."),
        Entry::<Self>::new(
            "tls",
            Block,
            |block, given| set(&mut block.options.tls, tls::read(given).map(Some)),
            |block| block.options.tls.as_ref().map_or(Json::Null, tls::show),
        )
        .block::<TlsBlock>()
        .like("tls")
        .apart()
        .reloads()
        .help("TLS for this listener. A reload changes it, but does not turn it on or off."),
        Entry::<Self>::flag("no_tls", |block| &mut block.no_tls)
            .default("false")
            .help("Required to listen without `tls`. With `tls` it has no effect."),
        Entry::<Self>::flag("same_origin", |block| &mut block.options.same_origin)
            .default("false")
            .help("Pages must come from the host that they connect to."),
        Entry::<Self>::texts("allowed_origins", |block| &mut block.options.allowed_origins)
            .alias(&["allowed_origin", "allow_origins", "allow_origin", "origins", "origin"])
            .help("Origins that pages must come from."),
        Entry::<Self>::duration("handshake_timeout", |block| &mut block.options.handshake_timeout)
            .default("2s")
            .help("Time limit of TLS and the upgrade."),
        Entry::<Self>::flag("compression", |block| &mut block.options.compression)
            .alias(&["compress"])
            .default("false")
            .help("Offer permessage-deflate."),
        Entry::<Self>::AUTHORIZATION
        .help("Credentials of these clients instead: one user or one token."),
        Entry::<Self>::text("no_auth_user", |block| &mut block.options.no_auth_user)
            .help("The user of clients without credentials."),
        Entry::<Self>::text("jwt_cookie", |block| &mut block.options.jwt_cookie)
            .help("Cookie with a user's JWT."),
        Entry::<Self>::text("user_cookie", |block| &mut block.options.user_cookie)
            .help("Cookie with a user name."),
        Entry::<Self>::text("pass_cookie", |block| &mut block.options.pass_cookie)
            .help("Cookie with a password."),
        Entry::<Self>::text("token_cookie", |block| &mut block.options.token_cookie)
            .help("Cookie with a token."),
        Entry::<Self>::new(
            "headers",
            Block,
            |block, given| {
                let headers = table::read(Headers::default(), given)?;
                block.options.headers.extend(headers.0);
                Ok(())
            },
            |block| json!(block.options.headers),
        )
        .block::<Headers>()
        .help("Additional headers of the response."),
        Entry::<Self>::maybe_duration("ping_interval", |block| &mut block.options.ping_interval)
            .needs_unit()
            .help("Idle time after which a client is pinged."),
    ];
}

/// The block `headers`.
#[derive(Default)]
struct Headers(Vec<(String, String)>);

impl table::Block for Headers {
    const OPTIONS: &'static [Entry<Self>] =
        &[Entry::<Self>::unshown("*", Text, |headers, given| {
            headers
                .0
                .push((given.key.to_owned(), given.text()?.to_owned()));
            Ok(())
        })
        .help("An entry.")];
}

/// Reads a block `websocket`. Without a port in it there is no listener.
fn read(given: &Given<'_>, host: String) -> Read<Option<WebSocketOptions>> {
    let block = WebSocketBlock {
        options: WebSocketOptions {
            host,
            ..WebSocketOptions::default()
        },
        port: None,
        no_tls: false,
    };
    let block = table::read(block, given)?;
    let Some(port) = block.port else {
        return Ok(None);
    };
    if block.options.tls.is_none() && !block.no_tls {
        return Err(given.fault(
            "websocket requires TLS configuration: add a `tls` block, or `no_tls: true` to listen without",
        ));
    }
    Ok(Some(WebSocketOptions {
        port,
        ..block.options
    }))
}
