//! MQTT.

use serde_json::{Value as Json, json};

use super::{duration_text, tls};
use crate::MqttOptions;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Address, Block, Bool, Duration, Integer, Port, Text};
use crate::config::table::{Entry, within, works};

pub(super) const OPTIONS: &[Entry] = &[
    works(
        "mqtt",
        Block,
        |draft, given| {
            let host = draft.loaded.options.host.clone();
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
        .help("The address to listen on."),
    within("mqtt.port", Port)
        .default("off")
        .help("The port, 1883 by custom; -1 picks a free one."),
    within("mqtt.tls", Block)
        .like("tls")
        .help("TLS for this listener."),
    within("mqtt.authorization", Block)
        .alias(&["authentication"])
        .like("leafnodes.authorization")
        .help("What these clients must show instead; refused so far."),
    within("mqtt.no_auth_user", Text).help("The user of those who show nothing; refused so far."),
    within("mqtt.ack_wait", Duration)
        .alias(&["ackwait"])
        .default("30s")
        .help("When a message that was not acknowledged is handed out again."),
    within("mqtt.max_ack_pending", Integer)
        .alias(&["max_pending", "max_inflight"])
        .default("1024")
        .limit("1 to 65535")
        .help("Messages above QoS 0 that wait for acknowledgements of one client."),
    within("mqtt.stream_replicas", Integer).help("Without effect: this server runs alone."),
    within("mqtt.consumer_replicas", Integer).help("Without effect."),
    within("mqtt.consumer_memory_storage", Bool)
        .default("false")
        .help("How far sessions are, is kept in memory only."),
    within("mqtt.consumer_inactive_threshold", Duration)
        .help("Without effect: a session has a consumer for as long as it lives."),
    within("mqtt.js_domain", Text).help("Another server's JetStream; refused so far."),
    within("mqtt.js_api_timeout", Duration).help("Without effect: JetStream is in this process."),
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
            // Taken without effect, it would let in whom it is to keep out.
            "authorization" | "authentication" | "no_auth_user" => {
                return Err(field.fault(format!(
                    "{}: credentials of their own for MQTT clients are not supported by Fanline \
                     yet; without it, the server's apply to them",
                    field.key
                )));
            }
            "js_domain" => {
                return Err(field.fault(
                    "js_domain: MQTT needs JetStream on this server with Fanline, not on another",
                ));
            }
            "ack_wait" | "ackwait" => options.ack_wait = field.duration()?,
            "max_ack_pending" | "max_pending" | "max_inflight" => {
                let number = field.integer()?;
                options.max_ack_pending = match u16::try_from(number) {
                    Ok(number @ 1..) => number,
                    _ => {
                        let what = "invalid value, should be between 1 and 65535";
                        return Err(field.fault(format!("{}: {what}", field.key)));
                    }
                };
            }
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
        "tls": mqtt.tls.as_ref().map(tls::show),
        "ack_wait": duration_text(mqtt.ack_wait),
        "max_ack_pending": mqtt.max_ack_pending,
        "consumer_memory_storage": mqtt.consumer_memory_storage,
        "reject_qos2_publish": mqtt.reject_qos2_publish,
        "downgrade_qos2_subscribe": mqtt.downgrade_qos2_subscribe,
    })
}
