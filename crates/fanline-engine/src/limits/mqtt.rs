//! Limits of MQTT clients.

use std::time::Duration;

/// Most bytes of a CONNECT, which precedes authentication. More: closed.
pub const CONNECT_BYTES_MAX: usize = 256 * 1024;

/// What a server grants all its MQTT clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MqttLimits {
    /// Largest packet that is read. More: 0x95, closed.
    pub packet_bytes_max: usize,
    /// Messages above QoS 0 that a client may have unacknowledged. More: 0x93, closed; in 3.1.1, which has
    /// no such limit, the identifiers are one.
    pub receive_maximum: u16,
    /// Messages above QoS 0 that wait for acknowledgements of one client. More wait where they are kept.
    pub in_flight_max: u16,
    /// The longest keep alive; one who asks for none, or a longer one, is told this (5.0 only).
    pub keep_alive_max: Option<u16>,
    /// The longest that a session outlives its connection, in seconds (5.0 only).
    pub session_expiry_max: Option<u32>,
    /// `obscure_not_authorized`: what permissions deny has the reason 0x80 in place of 0x87, so that nobody learns
    /// that there is something (5.0 only).
    pub obscures_denials: bool,
    /// `reject_qos2_publish`.
    pub reject_qos2_publish: bool,
    /// `downgrade_qos2_subscribe`.
    pub downgrade_qos2_subscribe: bool,
    /// `ack_wait`: after which time the keeper hands a message out again. One that is under way to its client
    /// is not sent again.
    pub ack_wait: Duration,
    /// How long a client may take to connect, where that differs from others.
    pub auth_timeout: Option<Duration>,
    /// What is kept is kept in memory only, as there is no folder for it.
    pub in_memory: bool,
    /// `consumer_memory_storage`: how far a session is, is kept in memory only.
    pub consumers_in_memory: bool,
}

impl Default for MqttLimits {
    fn default() -> Self {
        MqttLimits {
            packet_bytes_max: 1024 * 1024 + CONNECT_BYTES_MAX,
            receive_maximum: 1024,
            in_flight_max: 1024,
            keep_alive_max: None,
            session_expiry_max: None,
            obscures_denials: false,
            reject_qos2_publish: false,
            downgrade_qos2_subscribe: false,
            ack_wait: Duration::from_secs(30),
            auth_timeout: None,
            in_memory: false,
            consumers_in_memory: false,
        }
    }
}
