//! Checks options and derives settings of shards and listeners from them, for start and reload.

use std::sync::Arc;

use fanline_engine::MqttLimits;
use fanline_engine::auth::{ConnectionKind, ListenerAccess};
use fanline_engine::codec::websocket::UpgradeRules;
use fanline_engine::{Auth, Limits};

use crate::error::StartError;
use crate::ipc::{Listeners, WebSocketListener};
use crate::options::{ClientCertificates, MqttOptions, Options, TlsOptions, WebSocketOptions};
use crate::tls::ListenersTls;
use crate::{cluster, gateway, leaf};

pub(super) fn check(options: &Options, shards_max: usize) -> Result<(), StartError> {
    let limits = &options.limits;
    let jetstream = options.jetstream.as_ref();
    let domain = jetstream.and_then(|js| js.domain.as_deref());
    let js_domain = options
        .mqtt
        .as_ref()
        .and_then(|mqtt| mqtt.js_domain.as_deref());
    let is_no_token = |c: char| c.is_whitespace() || ".*>".contains(c);
    let problem = if options.shards.is_some_and(|n| n.get() > shards_max) {
        format!("shards must be at most {shards_max}")
    } else if limits.payload_bytes_max > limits.pending_bytes_max {
        "max_payload cannot be higher than max_pending".into()
    } else if limits.payload_bytes_max >= 1_000_000_000 {
        "max_payload must be less than 1,000,000,000".into()
    } else if limits.control_line_bytes_max > 64 * 1024 {
        "max_control_line must be at most 65,536".into()
    } else if options
        .server_name
        .as_deref()
        .is_some_and(|n| n.contains(char::is_whitespace))
    {
        "server name cannot contain spaces".into()
    } else if domain.is_some_and(|d| d.is_empty() || d.contains(is_no_token)) {
        "invalid domain name: may not contain ., * or >".into()
    } else if options.mqtt.is_some() && jetstream.is_none() {
        "mqtt requires JetStream to be enabled if running in standalone mode".into()
    } else if let Some(wanted) = js_domain.filter(|wanted| domain != Some(*wanted)) {
        let own = domain.unwrap_or("none");
        format!(
            "mqtt: js_domain {wanted:?} is not this server's JetStream domain ({own}): Fanline stores MQTT \
             state in its own domain"
        )
    } else if options.monitoring_tls && options.tls.is_none() {
        "monitoring over HTTPS needs TLS".into()
    } else if options.lame_duck_grace_period >= options.lame_duck_duration {
        "lame duck grace period must be shorter than the lame duck duration".into()
    } else {
        let checked = leaf::check(options)
            .and_then(|()| cluster::check(options))
            .and_then(|()| gateway::check(options));
        return checked.map_err(StartError::Option);
    };
    Err(StartError::Option(problem))
}

/// Returns the handshake settings of listeners.
pub(super) fn listeners(options: &Options) -> Result<Listeners, StartError> {
    let websocket = options.websocket.as_ref().map(|websocket| {
        Ok::<_, StartError>(WebSocketListener {
            rules: UpgradeRules {
                mqtt: options.mqtt.is_some(),
                leafnodes: options.leafnodes.listener.is_some(),
                ..websocket.upgrade_rules().map_err(StartError::Option)?
            },
            handshake_timeout: websocket.handshake_timeout,
        })
    });
    Ok(Listeners {
        proxy_protocol: options.proxy_protocol,
        websocket: websocket.transpose()?,
    })
}

/// Reads the TLS settings and files for new connections.
pub(super) fn tls(options: &Options) -> Result<Arc<ListenersTls>, StartError> {
    let tls = ListenersTls::read(options);
    tls.map(Arc::new)
        .map_err(|error| StartError::Tls(error.to_string()))
}

/// Returns the access rules of the server, together with the rules of the WebSocket and MQTT listeners and of
/// client certificates.
pub(super) fn auth(options: &Options) -> Result<Auth, StartError> {
    let own = options.websocket.as_ref().map(WebSocketOptions::access);
    let own = own.transpose().map_err(StartError::Option)?;
    let of_mqtt = options.mqtt.as_ref().map(MqttOptions::access);
    let of_mqtt = of_mqtt.transpose().map_err(StartError::Option)?;
    let (own, of_mqtt) = (own.unwrap_or_default(), of_mqtt.unwrap_or_default());
    let kinds = certificate_kinds(options);
    let is_plain = own == ListenerAccess::default() && of_mqtt == ListenerAccess::default();
    let directory = options.auth.directory();
    if is_plain && directory.certificate_kinds() == kinds {
        return Ok(options.auth.clone());
    }
    let access = directory.with_listeners(own, of_mqtt);
    let access = access.and_then(|access| access.with_certificate_kinds(&kinds));
    let access = access.map_err(|error| StartError::Option(format!("listeners: {error}")))?;
    Ok(Auth::Directory(Arc::new(access)))
}

/// Returns the connection kinds that take the user from the client certificate. MQTT and leaf nodes over
/// WebSocket use their own listener's `verify_and_map`, with the certificate that the client presents to the
/// WebSocket listener.
fn certificate_kinds(options: &Options) -> Vec<ConnectionKind> {
    use ConnectionKind::{Leafnode, LeafnodeWebSocket, Mqtt, MqttWebSocket, Standard, WebSocket};
    let websocket = options.websocket.as_ref();
    let mqtt = options.mqtt.as_ref();
    let leafs = options.leafnodes.listener.as_ref();
    let listeners: [(Option<&TlsOptions>, &[ConnectionKind]); 4] = [
        (options.tls.as_ref(), &[Standard]),
        (websocket.and_then(|own| own.tls.as_ref()), &[WebSocket]),
        (
            mqtt.and_then(|own| own.tls.as_ref()),
            &[Mqtt, MqttWebSocket],
        ),
        (
            leafs.and_then(|own| own.tls.as_ref()),
            &[Leafnode, LeafnodeWebSocket],
        ),
    ];
    let maps = |tls: &TlsOptions| tls.client_certificates == ClientCertificates::RequiredAndMapped;
    let mapped = listeners
        .into_iter()
        .filter(|(tls, _)| tls.is_some_and(maps));
    mapped.flat_map(|(_, kinds)| kinds).copied().collect()
}

pub(super) fn limits(options: &Options) -> Limits {
    let websocket = options.websocket.as_ref();
    let jetstream = options.jetstream.as_ref();
    let in_memory = jetstream.is_none_or(|jetstream| jetstream.store_dir.is_none());
    let leafs = options.leafnodes.listener.as_ref();
    Limits {
        mqtt: mqtt_settings(options.mqtt.as_ref(), in_memory),
        websocket_auth_timeout: websocket.and_then(|websocket| websocket.auth_timeout),
        websocket_ping_interval: websocket.and_then(|websocket| websocket.ping_interval),
        leaf_auth_timeout: leafs.and_then(|leafs| leafs.auth_timeout),
        ..options.limits.clone()
    }
}

fn mqtt_settings(mqtt: Option<&MqttOptions>, in_memory: bool) -> MqttLimits {
    mqtt.map_or_else(MqttLimits::default, |mqtt| mqtt.settings(in_memory))
}
