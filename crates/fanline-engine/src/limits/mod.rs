//! Every limit that a peer can run into, with its effect when reached.

use std::time::Duration;

mod account;
mod mqtt;

pub use account::AccountLimits;
pub(crate) use account::tier_name;
pub use mqtt::{CONNECT_BYTES_MAX, MqttLimits};

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
    /// Tokens of a filter; `None` is unlimited. More: the `SUB` is refused with
    /// `Permissions Violation for Subscription to "…", too many tokens`, the connection stays.
    pub subscription_tokens_max: Option<u8>,
    /// Bytes queued for one connection. More: it is dropped as a slow consumer, with no `-ERR`. A link to another
    /// server may have more, see [`pending_bytes_max_of`](Limits::pending_bytes_max_of).
    pub pending_bytes_max: usize,
    /// How long a queued write may wait for the peer. Longer: dropped as a slow consumer.
    pub write_deadline: Duration,
    /// The same for links to other servers, where it differs.
    pub leaf_write_deadline: Option<Duration>,
    /// A link is dropped when what waits at one moment is not written within the deadline, as a client is.
    /// Otherwise every byte that its other side takes gives it as much time again.
    pub leafs_close_at_deadline: bool,
    /// How long a client may take to authenticate. Longer: `Authentication Timeout`, closed.
    pub auth_timeout: Duration,
    /// The same for WebSocket clients, where it differs.
    pub websocket_auth_timeout: Option<Duration>,
    /// The same for servers that come as leaf nodes, where it differs.
    pub leaf_auth_timeout: Option<Duration>,
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
    /// Bytes that a trace of the protocol shows of a message; `None` is all. More: they are left out.
    pub traced_bytes_max: Option<usize>,
    /// A trace of the protocol shows the headers of messages and no payloads.
    pub traces_headers_only: bool,
    /// What MQTT clients are granted besides.
    pub mqtt: MqttLimits,
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
            leaf_write_deadline: None,
            leafs_close_at_deadline: false,
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

/// Bytes queued for one link to another server: what is wanted here is told in one go, and a million subjects
/// are no reason to drop it. More: as a client with too much.
const LEAF_PENDING_BYTES_MAX: usize = 1024 * 1024 * 1024;

impl Limits {
    /// How long a queued write may wait for a client, or for a link to another server.
    pub fn write_deadline_of(&self, is_leaf: bool) -> Duration {
        let own = self.leaf_write_deadline.filter(|_| is_leaf);
        own.unwrap_or(self.write_deadline)
    }

    /// How long a client, or another server, may take to say who it is.
    pub fn auth_timeout_of(&self, is_leaf: bool) -> Duration {
        let own = self.leaf_auth_timeout.filter(|_| is_leaf);
        own.unwrap_or(self.auth_timeout)
    }

    /// How many bytes may be queued for a client, or for a link to another server.
    pub fn pending_bytes_max_of(&self, is_leaf: bool) -> usize {
        match is_leaf {
            true => self.pending_bytes_max.max(LEAF_PENDING_BYTES_MAX),
            false => self.pending_bytes_max,
        }
    }
}
