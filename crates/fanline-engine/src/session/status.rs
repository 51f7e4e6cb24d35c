//! Status of connections for monitoring.

use std::time::Duration;

use super::Session;
use super::connections::REMOVED_AT_ONCE_MAX;
use crate::auth::nkey::PublicKey;
use crate::auth::{AccountId, ConnectionKind, TlsPeer};
use crate::exchange::backlog::Backlog;

/// A connection in monitoring.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named as in nats-server's /connz")]
pub struct ConnectionStatus {
    pub cid: u64,
    pub account: AccountId,
    pub ip: String,
    pub port: u16,
    pub opened_at: Duration,
    pub active_at: Duration,
    pub rtt: Option<Duration>,
    pub pending_bytes: usize,
    pub in_msgs: u64,
    pub in_bytes: u64,
    pub out_msgs: u64,
    pub out_bytes: u64,
    pub stalls: u64,
    pub subscriptions: usize,
    pub name: String,
    pub lang: String,
    pub version: String,
    /// The user's name; `[REDACTED]` for a token.
    pub user: String,
    pub kind: ConnectionKind,
    /// The MQTT client id; empty for other connections.
    pub mqtt_client: String,
    /// The MQTT session.
    pub mqtt: Option<Box<MqttStatus>>,
    pub tls: Option<Box<TlsPeer>>,
    /// The key of the proxy that the connection comes through.
    pub proxy: Option<PublicKey>,
    pub subscriptions_list: Vec<SubscriptionStatus>,
    /// Backlog of a slow subscriber. After it was disconnected, the backlog at that time.
    pub backlog: Option<Box<Backlog>>,
}

/// A connected MQTT session in monitoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MqttStatus {
    /// Protocol level: 4 is 3.1.1, 5 is 5.0.
    pub level: u8,
    /// Largest number of seconds between two packets of the client; 0 means no limit.
    pub keep_alive: u16,
    /// Seconds that the session outlives its connection; `u32::MAX` means forever.
    pub expiry: u32,
    /// Messages above QoS 0 that the client has not acknowledged.
    pub in_flight: usize,
    /// Messages that wait for room in the client's receive window.
    pub waiting: usize,
}

/// A subscription in monitoring.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "named as in nats-server's /subsz")]
pub struct SubscriptionStatus {
    pub subject: String,
    pub queue: String,
    pub sid: String,
    pub msgs: u64,
    pub max: Option<u64>,
    pub cid: u64,
    pub account: AccountId,
}

impl Session {
    /// Returns whether the session is a client's, not another server's or a system client's.
    pub(crate) fn is_client(&self) -> bool {
        !self.is_system_client && !self.kind.is_link()
    }

    /// Returns whether the subscriptions may be removed in steps when the connection ends.
    pub(crate) fn may_end_in_steps(&self) -> bool {
        let is_simple = self.is_client() && !self.kind.is_mqtt() && self.in_groups == 0;
        (is_simple || self.kind.is_link()) && self.subscriptions > REMOVED_AT_ONCE_MAX
    }

    pub(crate) fn status(&self) -> ConnectionStatus {
        ConnectionStatus {
            cid: self.cid,
            account: self.account,
            ip: self.peer.ip.clone(),
            port: self.peer.port,
            opened_at: self.opened_at,
            active_at: self.active_at,
            rtt: self.rtt,
            pending_bytes: self.out.pending_bytes(),
            in_msgs: self.in_msgs,
            in_bytes: self.in_bytes,
            out_msgs: self.out_msgs,
            out_bytes: self.out_bytes,
            stalls: self.stalls,
            subscriptions: self.subscriptions,
            name: self.options.name.clone(),
            lang: self.options.lang.clone(),
            version: self.options.version.clone(),
            user: self.user().into(),
            kind: self.peer.kind,
            mqtt_client: (self.kind.mqtt()).map_or_else(String::new, |m| m.client_id().into()),
            mqtt: (self.kind.mqtt()).map(|mqtt| Box::new(mqtt.status())),
            tls: self.peer.tls.clone(),
            proxy: self.peer.proxy,
            subscriptions_list: Vec::new(),
            backlog: self.backlog.clone(),
        }
    }
}
