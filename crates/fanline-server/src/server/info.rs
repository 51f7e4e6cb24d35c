//! What clients are told of a server, and where it is.

use std::net::SocketAddr;
use std::time::SystemTime;

use fanline_engine::{ListenerInfo, ServerInfo};

use super::{COMPATIBLE_VERSION, VERSION};
use crate::options::{Addresses, Options, WebSocketOptions};
use crate::{listen, tls};

pub(super) fn server_info(
    options: &Options,
    addresses: &Addresses,
    server_id: String,
) -> ServerInfo {
    let (host, port, ip) = match options.client_advertise.as_deref().map(split_host_port) {
        Some((host, Some(port))) => (host, port, None),
        Some((host, None)) => (host, addresses.clients.port(), None),
        None => (options.host.clone(), addresses.clients.port(), None),
    };
    ServerInfo {
        server_name: options
            .server_name
            .clone()
            .unwrap_or_else(|| server_id.clone()),
        server_id,
        version: COMPATIBLE_VERSION.into(),
        fanline: VERSION.into(),
        host,
        port,
        auth_required: options.auth.is_required(),
        headers: options.limits.headers,
        max_payload: options.limits.payload_bytes_max,
        jetstream: options.jetstream.is_some(),
        domain: options.jetstream.as_ref().and_then(|js| js.domain.clone()),
        ip,
        connect_urls: listen::reachable_urls(addresses.clients),
        tls: tls::told(options.tls.as_ref(), options.allow_non_tls),
        websocket: options
            .websocket
            .as_ref()
            .zip(addresses.websocket)
            .map(|(websocket, address)| Box::new(websocket_info(websocket, address))),
        leafs: None,
        lame_duck: false,
        started_at: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    }
}

/// What WebSocket clients are told of where they are.
fn websocket_info(options: &WebSocketOptions, address: SocketAddr) -> ListenerInfo {
    let advertised = options.advertise.as_deref().map(split_host_port);
    let (host, port) = match advertised.clone() {
        Some((host, port)) => (host, port.unwrap_or_else(|| address.port())),
        None => (options.host.clone(), address.port()),
    };
    ListenerInfo {
        connect_urls: match advertised {
            Some(_) => vec![format!("{host}:{port}")],
            None => listen::reachable_urls(address),
        },
        host,
        port,
        tls: tls::told(options.tls.as_ref(), false),
    }
}

fn split_host_port(text: &str) -> (String, Option<u16>) {
    match text
        .rsplit_once(':')
        .map(|(host, port)| (host, port.parse()))
    {
        Some((host, Ok(port))) => (host.into(), Some(port)),
        _ => (text.into(), None),
    }
}
