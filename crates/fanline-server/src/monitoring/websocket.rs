//! WebSocket on the monitoring port, for the dashboard.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use fanline_engine::auth::Vouched;
use fanline_engine::codec::websocket::{UpgradeResult, UpgradeRules, upgrade as agree};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming as Body};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tracing::debug;

use crate::ipc::{Incoming, Listener, Transport, Upgraded};
use crate::options::ClientCertificates;
use crate::shared::Shared;

/// Paths that serve a WebSocket.
const PATHS: [&str; 2] = ["/", "/ws"];
/// Capacity in bytes, in each direction, of the pipe between the socket and the session.
const PIPE_BYTES: usize = 64 * 1024;

/// Upgrades a WebSocket request by the rules of the WebSocket listener. Returns `None` for other requests, or
/// if there is no WebSocket listener.
pub(super) fn upgrade(
    shared: &Arc<Shared>,
    request: &mut Request<Body>,
    address: SocketAddr,
) -> Option<Response<Full<Bytes>>> {
    let listener = shared.common.listeners.websocket.as_ref()?;
    let asks = request.headers().contains_key("upgrade");
    if !asks || !PATHS.contains(&request.uri().path()) {
        return None;
    }
    if !may_upgrade(shared, address) {
        debug!(
            "{address} - Monitoring: not upgraded: the WebSocket listener requires more than this port"
        );
        return None;
    }
    hand_over(shared, request, address, &listener.rules, None)
}

/// Returns whether this port meets the requirements of the WebSocket listener: TLS, a certificate, and a local
/// peer if that listener is on loopback. Otherwise this port would bypass the listener.
fn may_upgrade(shared: &Shared, address: SocketAddr) -> bool {
    let options = shared.options();
    let tls = shared.tls();
    let is_as_encrypted = match &tls.websocket {
        None => true,
        Some(tls) => {
            options.monitoring_tls
                && tls.options().client_certificates == ClientCertificates::NotAsked
        }
    };
    let listens_to_all = (shared.addresses.websocket)
        .is_none_or(|listener| !listener.ip().to_canonical().is_loopback());
    is_as_encrypted && (listens_to_all || address.ip().to_canonical().is_loopback())
}

/// Upgrades a WebSocket request and assigns the connection to a shard. Returns `None` for other requests.
/// `identity` is the identity of a client that is already authenticated.
pub(super) fn hand_over(
    shared: &Arc<Shared>,
    request: &mut Request<Body>,
    address: SocketAddr,
    rules: &UpgradeRules,
    identity: Option<Box<Vouched>>,
) -> Option<Response<Full<Bytes>>> {
    let agreed = match agree(&as_text(request), rules) {
        UpgradeResult::Granted(agreed) => agreed,
        UpgradeResult::Refused(refusal) => return Some(as_response(&refusal.response())),
        UpgradeResult::Partial => return None,
    };
    let response = as_response(&agreed.response);
    let upgraded = hyper::upgrade::on(request);
    let shared = Arc::clone(shared);
    tokio::task::spawn_local(async move {
        let mut outside = match upgraded.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => return debug!("Monitoring: not upgraded: {error}"),
        };
        let (mut ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let incoming = Incoming::Upgraded(Upgraded {
            stream: theirs,
            agreed,
            address,
            identity,
        });
        shared.assign(Transport::Wire(incoming, Listener::WebSocket), None);
        // An error is ignored, because the session handles the end of the connection.
        let _ = tokio::io::copy_bidirectional(&mut outside, &mut ours).await;
    });
    Some(response)
}

/// Returns the request as text, for the engine's parser.
fn as_text(request: &Request<Body>) -> Vec<u8> {
    let mut text = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri().path());
    for (name, value) in request.headers() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{name}: {}\r\n", value.to_str().unwrap_or_default());
    }
    text.push_str("\r\n");
    text.into_bytes()
}

fn as_response(text: &str) -> Response<Full<Bytes>> {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok());
    let mut response = Response::builder().status(status.unwrap_or(StatusCode::BAD_REQUEST));
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        response = response.header(name, value);
    }
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    response.body(body).unwrap_or_default()
}
