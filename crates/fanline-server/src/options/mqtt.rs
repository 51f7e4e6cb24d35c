//! Options of MQTT.

use std::time::Duration;

use fanline_engine::MqttLimits;
use fanline_engine::auth::ListenerAccess;

use super::{Auth, TlsOptions, listener};

/// A listener for MQTT clients, 3.1.1 and 5.0. It needs [`Options::jetstream`](super::Options::jetstream),
/// which stores sessions, retained messages, and messages of QoS 1 and 2.
///
/// ```
/// use fanline_server::{JetStreamOptions, MqttOptions, Options};
///
/// let options = Options {
///     jetstream: Some(JetStreamOptions::default()),
///     mqtt: Some(MqttOptions { port: 1883, ..MqttOptions::default() }),
///     ..Options::default()
/// };
/// assert!(options.mqtt.is_some());
/// ```
#[derive(Clone, Debug)]
pub struct MqttOptions {
    /// Address or host name to listen on.
    pub host: String,
    /// Port; 1883 is usual, and 0 lets the system choose.
    pub port: u16,
    /// TLS; none when `None`.
    pub tls: Option<TlsOptions>,
    /// Credentials of MQTT clients instead of [`Options::auth`](super::Options::auth): one user, or one token
    /// that clients send as their password.
    pub auth: Option<Auth>,
    /// User of MQTT clients without credentials.
    pub no_auth_user: Option<String>,
    /// Time limit until a client sends CONNECT, instead of
    /// [`Limits::auth_timeout`](super::Limits::auth_timeout).
    pub auth_timeout: Option<Duration>,
    /// Time after which a stream redelivers an unacknowledged message. Messages in flight to a connected client
    /// are not sent again.
    pub ack_wait: Duration,
    /// Largest number of unacknowledged messages above QoS 0, for each client and direction.
    pub max_ack_pending: u16,
    /// The longest keep alive of 5.0 clients, in seconds. A client that requests a longer keep alive, or
    /// none, receives this value.
    pub max_keep_alive: Option<u16>,
    /// Whether 5.0 clients receive reason code 0x80 (unspecified error) instead of 0x87 (not authorized) for
    /// denied operations.
    pub obscure_not_authorized: bool,
    /// Whether messages of QoS 2 are rejected.
    pub reject_qos2_publish: bool,
    /// Whether subscriptions with QoS 2 are granted QoS 1.
    pub downgrade_qos2_subscribe: bool,
    /// Whether session cursors are stored in memory only.
    pub consumer_memory_storage: bool,
    /// The JetStream domain that stores MQTT state. Only this server's own domain is supported
    /// ([`JetStreamOptions::domain`](super::JetStreamOptions::domain)).
    pub js_domain: Option<String>,
}

impl Default for MqttOptions {
    fn default() -> Self {
        let settings = MqttLimits::default();
        MqttOptions {
            host: "127.0.0.1".into(),
            port: 0,
            tls: None,
            auth: None,
            no_auth_user: None,
            auth_timeout: None,
            ack_wait: settings.ack_wait,
            max_ack_pending: settings.in_flight_max,
            max_keep_alive: None,
            obscure_not_authorized: false,
            reject_qos2_publish: false,
            downgrade_qos2_subscribe: false,
            consumer_memory_storage: false,
            js_domain: None,
        }
    }
}

impl MqttOptions {
    /// Returns the access rules of MQTT clients.
    pub(crate) fn access(&self) -> Result<ListenerAccess, String> {
        listener::access("mqtt", self.auth.as_ref(), self.no_auth_user.clone())
    }

    /// Returns the engine's settings. `in_memory` is true if streams have no folder.
    pub(crate) fn settings(&self, in_memory: bool) -> MqttLimits {
        MqttLimits {
            receive_maximum: self.max_ack_pending.max(1),
            in_flight_max: self.max_ack_pending.max(1),
            keep_alive_max: self.max_keep_alive,
            obscures_denials: self.obscure_not_authorized,
            reject_qos2_publish: self.reject_qos2_publish,
            downgrade_qos2_subscribe: self.downgrade_qos2_subscribe,
            ack_wait: self.ack_wait,
            auth_timeout: self.auth_timeout,
            in_memory,
            consumers_in_memory: self.consumer_memory_storage,
            ..MqttLimits::default()
        }
    }
}
