//! NATS over WebSocket.

use serde_json::{Value as Json, json};

use super::{duration_text, listener, tls};
use crate::WebSocketOptions;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Address, Any, Block, Bool, Duration, Port, Text, Texts};
use crate::config::table::{Entry, shown, within, works};

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "websocket",
        Block,
        |draft, given| {
            draft.note_numbers(given, &["ping_interval"])?;
            let host = draft.listener_host.clone();
            let (websocket, is_on) = read(given, host)?;
            draft.loaded.options.websocket = is_on.then_some(websocket);
            Ok(())
        },
        |loaded| loaded.options.websocket.as_ref().map_or(Json::Null, show),
    )
    .alias(&["ws"])
    .default("off")
    .help("A listener for clients over WebSocket."),
    within("websocket.listen", Address).help("`host` and `port` in one."),
    within("websocket.host", Text)
        .alias(&["net"])
        .default("0.0.0.0")
        .help("The address to listen on, whatever `host` is; under `fanline serve` 127.0.0.1 unless the block says so."),
    within("websocket.port", Port)
        .default("off")
        .help("The port; -1 picks a free one."),
    within("websocket.advertise", Text).help("The address that other servers of the cluster would tell clients. It has no effect without routes."),
    shown("websocket.tls", Block, |loaded| {
        let listener = loaded.options.websocket.as_ref();
        let tls = listener.and_then(|listener| listener.tls.as_ref());
        tls.map_or(Json::Null, tls::show)
    })
    .like("tls")
    .reloads()
    .help("TLS for this listener. A reload changes it, but does not turn it on or off."),
    within("websocket.no_tls", Bool)
        .default("false")
        .help("Required to listen without `tls`. With `tls`, it has no effect: TLS wins."),
    within("websocket.same_origin", Bool)
        .default("false")
        .help("Pages must come from the host that they connect to."),
    within("websocket.allowed_origins", Texts)
        .alias(&[
            "allowed_origin",
            "allow_origins",
            "allow_origin",
            "origins",
            "origin",
        ])
        .help("Pages must come from one of these."),
    within("websocket.handshake_timeout", Duration)
        .default("2s")
        .help("How long TLS and the upgrade may take."),
    within("websocket.compression", Bool)
        .alias(&["compress"])
        .default("false")
        .help("Offer permessage-deflate."),
    within("websocket.authorization", Block)
        .alias(&["authentication"])
        .help("What these clients must show instead: one user or one token."),
    within("websocket.authorization.user", Text)
        .alias(&["username"])
        .help("A user."),
    within("websocket.authorization.password", Text)
        .alias(&["pass"])
        .secret()
        .help("Its password."),
    within("websocket.authorization.token", Text)
        .secret()
        .help("A token."),
    within("websocket.authorization.timeout", Any).help("How long it may take."),
    within("websocket.no_auth_user", Text).help("The user of those who show nothing."),
    within("websocket.jwt_cookie", Text).help("The cookie with a user's JWT."),
    within("websocket.user_cookie", Text).help("The cookie with a user's name."),
    within("websocket.pass_cookie", Text).help("The cookie with a password."),
    within("websocket.token_cookie", Text).help("The cookie with a token."),
    within("websocket.headers", Block).help("More headers of the response."),
    within("websocket.headers.*", Text).help("One of them."),
    within("websocket.ping_interval", Duration).help("Silence after which a client is pinged."),
];

/// Reads a block `websocket`, and whether there is a port in it, without which it is off.
fn read(given: &Given<'_>, host: String) -> Read<(WebSocketOptions, bool)> {
    let mut options = WebSocketOptions {
        host,
        ..WebSocketOptions::default()
    };
    let (mut port, mut no_tls) = (None, false);
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "listen" => {
                let (host, number) = field.address()?;
                options.host = host.unwrap_or(options.host);
                port = number;
            }
            "host" | "net" => options.host = field.some_text()?.unwrap_or(options.host),
            "port" => port = field.port()?,
            "advertise" => options.advertise = field.some_text()?,
            "tls" => options.tls = Some(tls::read(&field)?),
            "no_tls" => no_tls = field.boolean()?,
            "same_origin" => options.same_origin = field.boolean()?,
            "allowed_origins" | "allowed_origin" | "allow_origins" | "allow_origin" | "origins"
            | "origin" => options.allowed_origins = field.texts()?,
            "handshake_timeout" => options.handshake_timeout = field.duration()?,
            "compression" | "compress" => options.compression = field.boolean()?,
            "authorization" | "authentication" => {
                let own = listener::read(&field)?;
                (options.auth, options.auth_timeout) = (own.auth, own.timeout);
            }
            "no_auth_user" => options.no_auth_user = field.some_text()?,
            "jwt_cookie" => options.jwt_cookie = field.some_text()?,
            "user_cookie" => options.user_cookie = field.some_text()?,
            "pass_cookie" => options.pass_cookie = field.some_text()?,
            "token_cookie" => options.token_cookie = field.some_text()?,
            "headers" => {
                for header in field.fields()? {
                    let pair = (header.key.to_owned(), header.text()?.to_owned());
                    options.headers.push(pair);
                }
            }
            "ping_interval" => options.ping_interval = Some(field.duration()?),
            _ => {}
        }
    }
    if port.is_some() && options.tls.is_none() && !no_tls {
        return Err(given.fault(
            "websocket requires TLS configuration: add a `tls` block, or `no_tls: true` to listen without",
        ));
    }
    options.port = port.unwrap_or(0);
    Ok((options, port.is_some()))
}

fn show(websocket: &WebSocketOptions) -> Json {
    json!({
        "host": websocket.host,
        "port": websocket.port,
        "no_tls": websocket.tls.is_none(),
        "advertise": websocket.advertise,
        "same_origin": websocket.same_origin,
        "allowed_origins": websocket.allowed_origins,
        "handshake_timeout": duration_text(websocket.handshake_timeout),
        "compression": websocket.compression,
        "authorization": listener::show(websocket.auth.as_ref(), websocket.auth_timeout),
        "no_auth_user": websocket.no_auth_user,
        "jwt_cookie": websocket.jwt_cookie,
        "user_cookie": websocket.user_cookie,
        "pass_cookie": websocket.pass_cookie,
        "token_cookie": websocket.token_cookie,
        "headers": websocket.headers,
        "ping_interval": websocket.ping_interval.map(duration_text),
    })
}
