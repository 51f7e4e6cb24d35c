//! Every limit that a peer can run into, with its effect when reached.

use std::time::Duration;

use crate::mqtt::Settings;

/// What one server grants its clients. The defaults are nats-server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest header + payload of one message. More: `Maximum Payload Violation`, closed.
    pub payload_bytes_max: usize,
    /// Longest protocol line without payload. More: `maximum control line exceeded`, closed.
    pub control_line_bytes_max: usize,
    /// Open client connections. More: the new one gets `maximum connections exceeded`, closed.
    pub connections_max: usize,
    /// Subscriptions of one connection; `None` is unlimited. More: the `SUB` is refused with
    /// `maximum subscriptions exceeded`, the connection stays.
    pub subscriptions_max: Option<usize>,
    /// Bytes queued for one connection. More: it is dropped as a slow consumer, with no `-ERR`.
    pub pending_bytes_max: usize,
    /// How long a queued write may wait for the peer. Longer: dropped as a slow consumer.
    pub write_deadline: Duration,
    /// How long a client may take to authenticate. Longer: `Authentication Timeout`, closed.
    pub auth_timeout: Duration,
    /// Silence after which a client is pinged.
    pub ping_interval: Duration,
    /// The same for WebSocket clients, where it differs.
    pub websocket_ping_interval: Option<Duration>,
    /// Unanswered pings; one more and the client gets `Stale Connection`, closed.
    pub pings_out_max: u32,
    /// A publisher is not held back for slow subscribers; they are dropped all the sooner.
    pub no_fast_producer_stall: bool,
    /// Whether headers are offered at all (`no_header_support` is the opposite).
    pub headers: bool,
    /// What MQTT clients are granted besides.
    pub mqtt: Settings,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            payload_bytes_max: 1024 * 1024,
            control_line_bytes_max: 4096,
            connections_max: 65_536,
            subscriptions_max: None,
            pending_bytes_max: 64 * 1024 * 1024,
            write_deadline: Duration::from_secs(10),
            auth_timeout: Duration::from_secs(2),
            ping_interval: Duration::from_secs(120),
            websocket_ping_interval: None,
            pings_out_max: 2,
            no_fast_producer_stall: false,
            headers: true,
            mqtt: Settings::default(),
        }
    }
}
