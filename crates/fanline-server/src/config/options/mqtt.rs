//! MQTT.

use std::time::Duration as Seconds;

use serde_json::{Value as Json, json};

use super::{duration_text, listener, tls};
use crate::MqttOptions;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Address, Any, Block, Bool, Duration, Integer, Port, Text};
use crate::config::table::{Entry, shown, within, works};

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "mqtt",
        Block,
        |draft, given| {
            draft.note_numbers(given, &["ack_wait", "ackwait", "max_keep_alive"])?;
            let host = draft.listener_host.clone();
            let (mqtt, is_on) = read(given, host)?;
            draft.loaded.options.mqtt = is_on.then_some(mqtt);
            Ok(())
        },
        |loaded| loaded.options.mqtt.as_ref().map_or(Json::Null, show),
    )
    .default("off")
    .flags("--mqtt")
    .help("A listener for MQTT clients, 3.1.1 and 5.0. It needs JetStream."),
    within("mqtt.listen", Address).help("`host` and `port` in one."),
    within("mqtt.host", Text)
        .alias(&["net"])
        .default("0.0.0.0")
        .help("The address to listen on, whatever `host` is; under `fanline serve` 127.0.0.1 unless the block says so."),
    within("mqtt.port", Port)
        .default("off")
        .help("The port, 1883 by custom; -1 picks a free one."),
    shown("mqtt.tls", Block, |loaded| {
        let listener = loaded.options.mqtt.as_ref();
        let tls = listener.and_then(|listener| listener.tls.as_ref());
        tls.map_or(Json::Null, tls::show)
    })
    .like("tls")
    .reloads()
    .help("TLS for this listener. A reload turns it on or off, too."),
    within("mqtt.authorization", Block)
        .alias(&["authentication"])
        .help("What these clients must show instead: one user, or one token as their password."),
    within("mqtt.authorization.user", Text)
        .alias(&["username"])
        .help("A user."),
    within("mqtt.authorization.password", Text)
        .alias(&["pass"])
        .secret()
        .help("Its password."),
    within("mqtt.authorization.token", Text)
        .secret()
        .help("A token."),
    within("mqtt.authorization.timeout", Any).help("How long it may take."),
    within("mqtt.no_auth_user", Text).help("The user of those who show nothing."),
    shown("mqtt.ack_wait", Duration, |loaded| {
        let mqtt = loaded.options.mqtt.as_ref();
        mqtt.map_or(Json::Null, |mqtt| duration_text(mqtt.ack_wait))
    })
    .alias(&["ackwait"])
    .default("30s")
    .reloads()
    .help("When a message that was not acknowledged is handed out again."),
    shown("mqtt.max_ack_pending", Integer, |loaded| {
        let mqtt = loaded.options.mqtt.as_ref();
        mqtt.map_or(Json::Null, |mqtt| json!(mqtt.max_ack_pending))
    })
    .alias(&["max_pending", "max_inflight"])
    .default("1024")
    .limit("0 to 65535; 0 is the default")
    .reloads()
    .help("Messages above QoS 0 that wait for acknowledgements of one client."),
    shown("mqtt.max_keep_alive", Duration, |loaded| {
        let mqtt = loaded.options.mqtt.as_ref();
        let seconds = mqtt.and_then(|mqtt| mqtt.max_keep_alive);
        seconds.map_or(Json::Null, |seconds| duration_text(Seconds::from_secs(seconds.into())))
    })
    .limit("1s to 65535s")
    .reloads()
    .help("The longest keep alive of clients of 5.0, which are told it. nats-server does not have it."),
    shown("mqtt.obscure_not_authorized", Bool, |loaded| {
        let mqtt = loaded.options.mqtt.as_ref();
        mqtt.map_or(Json::Null, |mqtt| json!(mqtt.obscure_not_authorized))
    })
    .default("false")
    .reloads()
    .help("What permissions deny clients of 5.0 has the reason 0x80 in place of 0x87. nats-server does not have it."),
    within("mqtt.stream_replicas", Integer).help("Without effect: this server runs alone."),
    within("mqtt.consumer_replicas", Integer).help("Without effect."),
    within("mqtt.consumer_memory_storage", Bool)
        .default("false")
        .help("How far sessions are, is kept in memory only."),
    within("mqtt.consumer_inactive_threshold", Duration)
        .alias(&["consumer_auto_cleanup"])
        .help("Without effect: a session has a consumer for as long as it lives."),
    within("mqtt.js_domain", Text)
        .limit("this server's own")
        .help("The domain of the JetStream that keeps sessions: with Fanline, this server's own."),
    within("mqtt.js_api_timeout", Duration)
        .alias(&["api_timeout"])
        .help("Without effect: JetStream is in this process."),
    within("mqtt.reject_qos2_publish", Bool)
        .default("false")
        .help("Refuse QoS 2 from clients."),
    within("mqtt.downgrade_qos2_subscribe", Bool)
        .default("false")
        .help("Grant QoS 1 to those who subscribe with 2."),
];

/// Reads a block `mqtt`, and whether there is a port in it, without which it is off.
fn read(given: &Given<'_>, host: String) -> Read<(MqttOptions, bool)> {
    let mut options = MqttOptions {
        host,
        ..MqttOptions::default()
    };
    let mut port = None;
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "listen" => {
                let (host, number) = field.address()?;
                options.host = host.unwrap_or(options.host);
                port = number;
            }
            "host" | "net" => options.host = field.some_text()?.unwrap_or(options.host),
            "port" => port = field.port()?,
            "tls" => options.tls = Some(tls::read(&field)?),
            "authorization" | "authentication" => {
                let own = listener::read(&field)?;
                (options.auth, options.auth_timeout) = (own.auth, own.timeout);
            }
            "no_auth_user" => options.no_auth_user = field.some_text()?,
            "js_domain" => options.js_domain = field.some_text()?,
            "ack_wait" | "ackwait" => options.ack_wait = field.duration()?,
            "max_ack_pending" | "max_pending" | "max_inflight" => {
                let number = field.integer()?;
                options.max_ack_pending = match u16::try_from(number) {
                    Ok(0) => MqttOptions::default().max_ack_pending,
                    Ok(number) => number,
                    _ => {
                        let what = "invalid value, should be between 0 and 65535";
                        return Err(field.fault(format!("{}: {what}", field.key)));
                    }
                };
            }
            "max_keep_alive" => {
                let seconds = u16::try_from(field.duration()?.as_secs());
                options.max_keep_alive = match seconds {
                    Ok(seconds @ 1..) => Some(seconds),
                    _ => return Err(field.fault("max_keep_alive must be between 1s and 65535s")),
                };
            }
            "obscure_not_authorized" => options.obscure_not_authorized = field.boolean()?,
            "consumer_memory_storage" => options.consumer_memory_storage = field.boolean()?,
            "reject_qos2_publish" => options.reject_qos2_publish = field.boolean()?,
            "downgrade_qos2_subscribe" => options.downgrade_qos2_subscribe = field.boolean()?,
            _ => {}
        }
    }
    options.port = port.unwrap_or(0);
    Ok((options, port.is_some()))
}

fn show(mqtt: &MqttOptions) -> Json {
    json!({
        "host": mqtt.host,
        "port": mqtt.port,
        "authorization": listener::show(mqtt.auth.as_ref(), mqtt.auth_timeout),
        "no_auth_user": mqtt.no_auth_user,
        "consumer_memory_storage": mqtt.consumer_memory_storage,
        "js_domain": mqtt.js_domain,
        "reject_qos2_publish": mqtt.reject_qos2_publish,
        "downgrade_qos2_subscribe": mqtt.downgrade_qos2_subscribe,
    })
}
