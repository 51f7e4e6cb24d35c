//! MQTT.

use std::time::Duration;

use fanline_engine::MqttLimits;
use fanline_engine::auth::ListenerAccess;

use super::{Auth, TlsOptions, listener};

/// A listener for MQTT clients, 3.1.1 and 5.0. It needs [`Options::jetstream`](super::Options::jetstream), where
/// sessions, retained messages and those of QoS 1 and 2 are kept.
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
    /// Port, 1883 by custom; 0 lets the system choose.
    pub port: u16,
    /// TLS; none when `None`.
    pub tls: Option<TlsOptions>,
    /// What MQTT clients must show, instead of [`Options::auth`](super::Options::auth): one token, which they send as
    /// their password, or one user.
    pub auth: Option<Auth>,
    /// User of MQTT clients that show no credentials.
    pub no_auth_user: Option<String>,
    /// How long a client may take to connect, instead of
    /// [`Limits::auth_timeout`](super::Limits::auth_timeout).
    pub auth_timeout: Option<Duration>,
    /// After which time a message that was not acknowledged is handed out again by the stream that keeps it. What
    /// is under way to a client that is connected is not sent again.
    pub ack_wait: Duration,
    /// Messages above QoS 0 that a client may have unacknowledged, in each direction.
    pub max_ack_pending: u16,
    /// The longest keep alive of clients of 5.0, in seconds: one that asks for more, or for none, is told this.
    pub max_keep_alive: Option<u16>,
    /// Clients of 5.0 get the reason 0x80 (unspecified error) in place of 0x87 (not authorized) for what permissions
    /// deny.
    pub obscure_not_authorized: bool,
    /// QoS 2 is refused from clients.
    pub reject_qos2_publish: bool,
    /// Who subscribes with QoS 2 is granted 1.
    pub downgrade_qos2_subscribe: bool,
    /// How far sessions are, is kept in memory only.
    pub consumer_memory_storage: bool,
    /// The JetStream domain that keeps what MQTT keeps. It can be this server's own alone
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
    /// What its clients show in place of what others do, or which option makes no sense.
    pub(crate) fn access(&self) -> Result<ListenerAccess, String> {
        listener::access("mqtt", self.auth.as_ref(), self.no_auth_user.clone())
    }

    /// What the engine grants; `in_memory` when there is no folder for streams.
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
