//! MQTT.

use std::time::Duration as Seconds;

use serde_json::{Value as Json, json};

use super::duration_text;
use super::listener::{ClientListener, Listener};
use super::tls::{self, TlsBlock};
use crate::config::read::{Given, Read};
use crate::config::table::Kind::{Block, Duration, Integer};
use crate::config::table::{self, Entry, set};
use crate::{Auth, MqttOptions};

pub(super) const OPTIONS: &[super::Entry] = &[super::Entry::new(
    "mqtt",
    Block,
    |draft, given| {
        let host = draft.listener_host.clone();
        set(&mut draft.loaded.options.mqtt, read(given, host))
    },
    |draft| {
        let mqtt = draft.loaded.options.mqtt.clone();
        mqtt.map_or(Json::Null, |options| {
            let port = Some(options.port);
            table::show(MqttBlock { options, port })
        })
    },
)
.block::<MqttBlock>()
.default("off")
.flags("--mqtt")
.help("A listener for MQTT clients, 3.1.1 and 5.0. It requires JetStream.")];

/// The block `mqtt`.
struct MqttBlock {
    options: MqttOptions,
    port: Option<u16>,
}

impl Listener for MqttBlock {
    fn address(&self) -> (&String, Option<u16>) {
        (&self.options.host, self.port)
    }

    fn address_mut(&mut self) -> (&mut String, &mut Option<u16>) {
        (&mut self.options.host, &mut self.port)
    }
}

impl ClientListener for MqttBlock {
    fn authorization(&self) -> (Option<&Auth>, Option<Seconds>) {
        (self.options.auth.as_ref(), self.options.auth_timeout)
    }

    fn authorization_mut(&mut self) -> (&mut Option<Auth>, &mut Option<Seconds>) {
        (&mut self.options.auth, &mut self.options.auth_timeout)
    }
}

impl table::Block for MqttBlock {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::LISTEN,
        Entry::<Self>::HOST,
        Entry::<Self>::PORT.help("Port, usually 1883; -1 picks a free one."),
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
        .help("TLS for this listener. A reload turns it on or off, too."),
        Entry::<Self>::AUTHORIZATION
        .help("Credentials of these clients instead: one user, or one token as their password."),
        Entry::<Self>::text("no_auth_user", |block| &mut block.options.no_auth_user)
            .help("The user of clients without credentials."),
        Entry::<Self>::duration("ack_wait", |block| &mut block.options.ack_wait)
            .needs_unit()
            .alias(&["ackwait"])
            .default("30s")
            .apart()
            .reloads()
            .help("Time after which an unacknowledged message is redelivered."),
        Entry::<Self>::new(
            "max_ack_pending",
            Integer,
            |block, given| set(&mut block.options.max_ack_pending, max_ack_pending(given)),
            |block| json!(block.options.max_ack_pending),
        )
        .alias(&["max_pending", "max_inflight"])
        .default("1024")
        .limit("0 to 65535; 0 is the default")
        .apart()
        .reloads()
        .help("Unacknowledged messages above QoS 0 for each client."),
        Entry::<Self>::new(
            "max_keep_alive",
            Duration,
            |block, given| {
                let seconds = u16::try_from(given.duration()?.as_secs());
                let seconds = seconds.ok().filter(|seconds| *seconds > 0);
                let wrong = || given.fault("max_keep_alive must be between 1s and 65535s");
                block.options.max_keep_alive = Some(seconds.ok_or_else(wrong)?);
                Ok(())
            },
            |block| {
                let seconds = block.options.max_keep_alive;
                json!(seconds.map(|seconds| duration_text(Seconds::from_secs(seconds.into()))))
            },
        )
        .needs_unit()
        .limit("1s to 65535s")
        .apart()
        .reloads()
        .help("The longest keep alive of 5.0 clients, reported in CONNACK. nats-server does not have it."),
        Entry::<Self>::flag("obscure_not_authorized", |block| {
            &mut block.options.obscure_not_authorized
        })
        .default("false")
        .apart()
        .reloads()
        .help("Denied operations of 5.0 clients get reason code 0x80 in place of 0x87. nats-server does not have it."),
        Entry::ignored("stream_replicas", Integer).help("Without effect: this server runs alone."),
        Entry::ignored("consumer_replicas", Integer).help("Without effect."),
        Entry::<Self>::flag("consumer_memory_storage", |block| {
            &mut block.options.consumer_memory_storage
        })
        .default("false")
        .help("Store session cursors in memory only."),
        Entry::ignored("consumer_inactive_threshold", Duration)
            .alias(&["consumer_auto_cleanup"])
            .help("Without effect: a session has a consumer for as long as it lives."),
        Entry::<Self>::text("js_domain", |block| &mut block.options.js_domain)
            .limit("this server's own")
            .help("The domain of the JetStream that stores sessions. With Fanline, this server's own."),
        Entry::ignored("js_api_timeout", Duration)
            .alias(&["api_timeout"])
            .help("Without effect: JetStream is in this process."),
        Entry::<Self>::flag("reject_qos2_publish", |block| &mut block.options.reject_qos2_publish)
            .default("false")
            .help("Reject messages with QoS 2."),
        Entry::<Self>::flag("downgrade_qos2_subscribe", |block| {
            &mut block.options.downgrade_qos2_subscribe
        })
        .default("false")
        .help("Grant QoS 1 to subscriptions with QoS 2."),
    ];
}

/// Reads a block `mqtt`. Without a port in it there is no listener.
fn read(given: &Given<'_>, host: String) -> Read<Option<MqttOptions>> {
    let options = MqttOptions {
        host,
        ..MqttOptions::default()
    };
    let port = None;
    let MqttBlock { options, port } = table::read(MqttBlock { options, port }, given)?;
    Ok(port.map(|port| MqttOptions { port, ..options }))
}

fn max_ack_pending(given: &Given<'_>) -> Read<u16> {
    match u16::try_from(given.integer()?) {
        Ok(0) => Ok(MqttOptions::default().max_ack_pending),
        Ok(number) => Ok(number),
        Err(_) => {
            let what = "invalid value, should be between 0 and 65535";
            Err(given.fault(format!("{}: {what}", given.key)))
        }
    }
}
