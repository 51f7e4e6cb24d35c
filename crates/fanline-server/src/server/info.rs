//! INFO of a server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use fanline_engine::{ListenerInfo, ServerInfo};

use crate::options::{Addresses, Options, WebSocketOptions};
use crate::tls;
use crate::version::{COMPATIBLE_VERSION, VERSION};

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
    let name = options.server_name.as_ref().unwrap_or(&server_id).clone();
    // A server with remotes needs a cluster name that stays the same after a restart.
    let attaches = !options.leafnodes.remotes.is_empty();
    let own_name = || attaches.then(|| name.clone());
    let cluster = options.cluster_name.clone().or_else(own_name);
    ServerInfo {
        server_name: name,
        server_id,
        version: COMPATIBLE_VERSION.into(),
        fanline: VERSION.into(),
        host,
        port,
        auth_required: options.auth.is_required(),
        headers: options.limits.headers,
        max_payload: options.limits.payload_bytes_max,
        jetstream: options.jetstream.is_some(),
        cluster,
        cluster_is_generated: false,
        // The first other server of the cluster changes this.
        connect_urls: Arc::default(),
        domain: options.jetstream.as_ref().and_then(|js| js.domain.clone()),
        ip,
        tls: tls::info_of(options.tls.as_ref(), options.allow_non_tls),
        websocket: options
            .websocket
            .as_ref()
            .zip(addresses.websocket)
            .map(|(websocket, address)| Box::new(websocket_info(websocket, address))),
        lame_duck: false,
        started_at: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    }
}

/// Returns the WebSocket listener's address for INFO of WebSocket clients.
fn websocket_info(options: &WebSocketOptions, address: SocketAddr) -> ListenerInfo {
    ListenerInfo {
        // The listener's `advertise` option is not used here. It is for the INFO of other servers in a
        // cluster.
        host: options.host.clone(),
        port: address.port(),
        tls: tls::info_of(options.tls.as_ref(), false),
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
