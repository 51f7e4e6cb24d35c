//! Limits of MQTT clients.

use std::time::Duration;

/// Size in bytes of a CONNECT packet, which precedes authentication. If exceeded, the client is disconnected.
pub const CONNECT_BYTES_MAX: usize = 256 * 1024;

/// Limits of a server's MQTT clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MqttLimits {
    /// Size in bytes of a packet. If exceeded, the client is disconnected with reason code 0x95.
    pub packet_bytes_max: usize,
    /// Unacknowledged messages above QoS 0 from a client. If exceeded, the client is disconnected with reason
    /// code 0x93. MQTT 3.1.1 has no such limit except the number of packet identifiers.
    pub receive_maximum: u16,
    /// Unacknowledged messages above QoS 0 to a client. Further ones wait in their stream.
    pub in_flight_max: u16,
    /// Longest keep alive, in seconds. A client that requests none, or a longer one, receives this value (5.0
    /// only).
    pub keep_alive_max: Option<u16>,
    /// Longest time that a session outlives its connection, in seconds (5.0 only).
    pub session_expiry_max: Option<u32>,
    /// `obscure_not_authorized`: a denied operation has the reason code 0x80 instead of 0x87, which would
    /// reveal that something exists (5.0 only).
    pub obscures_denials: bool,
    /// `reject_qos2_publish`.
    pub reject_qos2_publish: bool,
    /// `downgrade_qos2_subscribe`.
    pub downgrade_qos2_subscribe: bool,
    /// `ack_wait`: time after which the JetStream service redelivers a message to the session. A message that
    /// is still in flight to the client is not sent to the client again.
    pub ack_wait: Duration,
    /// Longest time that an MQTT client may take to connect, if it differs from that of other clients.
    pub auth_timeout: Option<Duration>,
    /// Whether all MQTT state is in memory only, because the server has no storage directory.
    pub in_memory: bool,
    /// `consumer_memory_storage`: whether the positions of sessions are in memory only.
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
