//! All limits that a peer can reach, with their effects.

use std::time::Duration;

mod account;
mod mqtt;

pub use account::AccountLimits;
pub(crate) use account::tier_name;
pub use mqtt::{CONNECT_BYTES_MAX, MqttLimits};

/// Limits of a server's clients. The defaults are nats-server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size in bytes of headers and payload of one message. If exceeded, the client receives `Maximum Payload
    /// Violation` and is disconnected.
    pub payload_bytes_max: usize,
    /// Size in bytes of a protocol line without payload. If exceeded, the client receives `maximum control
    /// line exceeded` and is disconnected.
    pub control_line_bytes_max: usize,
    /// Number of client connections. If exceeded, the new client receives `maximum connections exceeded` and
    /// is disconnected.
    pub connections_max: usize,
    /// Subscriptions of one connection; `None` is unlimited. If exceeded, the `SUB` is refused with `maximum
    /// subscriptions exceeded`; the connection stays open.
    pub subscriptions_max: Option<usize>,
    /// Tokens of a filter; `None` is unlimited. If exceeded, the `SUB` is refused with `Permissions Violation
    /// for Subscription to "…", too many tokens`; the connection stays open.
    pub subscription_tokens_max: Option<u8>,
    /// Pending output of one connection, in bytes. If exceeded, the client is disconnected as a slow
    /// consumer; no `-ERR` is sent. Connections to other servers have a higher limit, see
    /// [`pending_bytes_max_of`](Limits::pending_bytes_max_of).
    pub pending_bytes_max: usize,
    /// Longest time that queued output may wait for the peer. If exceeded, the peer is disconnected as a slow
    /// consumer.
    pub write_deadline: Duration,
    /// Limits of leaf connections.
    pub leafs: LinkLimits,
    /// Limits of routes.
    pub routes: LinkLimits,
    /// Limits of gateways.
    pub gateways: LinkLimits,
    /// Longest time that a client may take to authenticate. If exceeded, the client receives `Authentication
    /// Timeout` and is disconnected.
    pub auth_timeout: Duration,
    /// Authentication timeout of WebSocket clients, if it differs.
    pub websocket_auth_timeout: Option<Duration>,
    /// Authentication timeout of leaf nodes, if it differs.
    pub leaf_auth_timeout: Option<Duration>,
    /// Idle time after which the server pings a client.
    pub ping_interval: Duration,
    /// Ping interval of WebSocket clients, if it differs.
    pub websocket_ping_interval: Option<Duration>,
    /// Number of pings that a client may leave unanswered. If exceeded, the client receives `Stale
    /// Connection` and is disconnected.
    pub pings_out_max: u32,
    /// Whether publishers are not delayed for slow subscribers. The subscribers then reach their limits
    /// sooner.
    pub no_fast_producer_stall: bool,
    /// Whether the server offers headers; the opposite of `no_header_support`.
    pub headers: bool,
    /// Bytes of a message that a protocol trace shows; `None` means all bytes. The trace omits the rest.
    pub traced_bytes_max: Option<usize>,
    /// Whether a protocol trace shows headers of messages and no payloads.
    pub traces_headers_only: bool,
    /// Additional limits of MQTT clients.
    pub mqtt: MqttLimits,
}

/// Limits of connections to other servers. Where there is none, that of clients applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkLimits {
    /// Longest time that queued output may wait for the peer.
    pub write_deadline: Option<Duration>,
    /// Whether a connection is closed if some of the output that was pending when it blocked is still pending
    /// at the write deadline. Otherwise each byte that the peer accepts restarts the deadline.
    pub closes_at_deadline: bool,
    /// Idle time after which the peer is pinged. Routes are pinged every 30 s at least.
    pub ping_interval: Option<Duration>,
    /// Number of pings that the peer may leave unanswered.
    pub pings_out_max: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            payload_bytes_max: 1024 * 1024,
            control_line_bytes_max: 4096,
            connections_max: 65_536,
            subscriptions_max: None,
            subscription_tokens_max: None,
            pending_bytes_max: 64 * 1024 * 1024,
            write_deadline: Duration::from_secs(10),
            leafs: LinkLimits::default(),
            routes: LinkLimits::default(),
            gateways: LinkLimits::default(),
            auth_timeout: Duration::from_secs(2),
            websocket_auth_timeout: None,
            leaf_auth_timeout: None,
            ping_interval: Duration::from_secs(120),
            websocket_ping_interval: None,
            pings_out_max: 2,
            no_fast_producer_stall: false,
            headers: true,
            traced_bytes_max: None,
            traces_headers_only: false,
            mqtt: MqttLimits::default(),
        }
    }
}

/// Pending output of one connection to another server, in bytes. All interest is sent at once when the
/// connection opens, and a million subjects must not exceed the limit. If exceeded, the server is
/// disconnected like a client.
const LEAF_PENDING_BYTES_MAX: usize = 1024 * 1024 * 1024;

impl Limits {
    /// Returns how long a client, or another server, may take to authenticate.
    pub fn auth_timeout_of(&self, is_leaf: bool) -> Duration {
        let own = self.leaf_auth_timeout.filter(|_| is_leaf);
        own.unwrap_or(self.auth_timeout)
    }

    /// Returns the limit of pending bytes of a client, or of a connection to another server.
    pub fn pending_bytes_max_of(&self, is_leaf: bool) -> usize {
        match is_leaf {
            true => self.pending_bytes_max.max(LEAF_PENDING_BYTES_MAX),
            false => self.pending_bytes_max,
        }
    }
}
