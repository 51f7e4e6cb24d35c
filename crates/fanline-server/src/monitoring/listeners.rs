//! WebSocket and TLS fields of `/varz`.

use std::sync::Arc;

use serde::Serialize;

use super::Monitor;
use super::answer::Number;
use crate::options::{ClientCertificates, TlsOptions};
use crate::tls::Tls;
use crate::{Options, WebSocketOptions};

/// WebSocket fields. Empty if WebSocket is off; defaults are left out. Times are in nanoseconds, except
/// `auth_timeout`, which is in seconds.
#[derive(Default, Serialize)]
pub(super) struct WebSocket {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advertise: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_auth_user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwt_cookie: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handshake_timeout: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_timeout: Option<Number>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_tls: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_map: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tls_pinned_certs: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    same_origin: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed_origins: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    compression: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert_not_after: Option<String>,
}

impl WebSocket {
    pub(super) fn of(monitor: &Monitor, options: &Options) -> Self {
        let Some(websocket) = &options.websocket else {
            return WebSocket::default();
        };
        let address = monitor.shared.addresses.websocket;
        let tls = websocket.tls.as_ref();
        WebSocket {
            host: Some(websocket.host.clone()),
            port: address.map(|address| address.port()),
            advertise: websocket.advertise.clone(),
            no_auth_user: websocket.no_auth_user.clone(),
            jwt_cookie: websocket.jwt_cookie.clone(),
            handshake_timeout: Some(websocket.handshake_timeout)
                .filter(|time| *time != WebSocketOptions::default().handshake_timeout)
                .map(|time| time.as_nanos()),
            auth_timeout: websocket
                .auth_timeout
                .map(|time| Number(time.as_secs_f64())),
            no_tls: tls.is_none(),
            tls_map: tls.is_some_and(|tls| {
                tls.client_certificates == ClientCertificates::RequiredAndMapped
            }),
            tls_pinned_certs: tls.map_or_else(Vec::new, pins),
            same_origin: websocket.same_origin,
            allowed_origins: websocket.allowed_origins.clone(),
            compression: websocket.compression,
            tls_cert_not_after: not_after(monitor.shared.tls().websocket.as_ref()),
        }
    }
}

/// Returns the pinned keys in hexadecimal digits.
fn pins(tls: &TlsOptions) -> Vec<String> {
    let pins = tls.pinned_certs.iter();
    pins.map(|hash| hash.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect()
}

/// Returns the expiry of a listener's certificate.
pub(super) fn not_after(tls: Option<&Arc<Tls>>) -> Option<String> {
    tls.and_then(|tls| tls.not_after())
}

/// Returns the time limit of the TLS handshake in seconds.
pub(super) fn tls_timeout(tls: Option<&TlsOptions>) -> Number {
    let timeout = tls.map_or_else(|| TlsOptions::default().timeout, |tls| tls.timeout);
    Number(timeout.as_secs_f64())
}
