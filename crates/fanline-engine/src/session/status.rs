//! What monitoring shows of connections.

use std::time::Duration;

use super::Session;
use super::connections::FORGOTTEN_AT_ONCE;
use crate::auth::nkey::PublicKey;
use crate::auth::{AccountId, ConnectionKind, TlsPeer};
use crate::exchange::backlog::Backlog;

/// What monitoring tells of a connection.
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
    /// The user's name; `[REDACTED]` for a token, which is all secret.
    pub user: String,
    pub kind: ConnectionKind,
    /// The client id of one that speaks MQTT.
    pub mqtt_client: String,
    /// What there is of its session.
    pub mqtt: Option<Box<MqttStatus>>,
    pub tls: Option<Box<TlsPeer>>,
    /// The key of the proxy that it comes through.
    pub proxy: Option<PublicKey>,
    pub subscriptions_list: Vec<SubscriptionStatus>,
    /// What waits for it while it is behind, or waited when it was dropped for that.
    pub backlog: Option<Box<Backlog>>,
}

/// What monitoring tells of an MQTT session that is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MqttStatus {
    /// The protocol level: 4 is 3.1.1, 5 is 5.0.
    pub level: u8,
    /// Seconds between its packets at the most; 0 is any.
    pub keep_alive: u16,
    /// Seconds that it outlives its connection; `u32::MAX` is for ever.
    pub expiry: u32,
    /// Messages above QoS 0 that its client has not acknowledged.
    pub in_flight: usize,
    /// Messages that wait for room.
    pub waiting: usize,
}

/// What monitoring tells of a subscription.
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
    /// Whether it is a client's, and neither another server's nor the server's own.
    pub(crate) fn is_client(&self) -> bool {
        !self.is_insider && !self.kind.is_leaf()
    }

    /// Whether what it wants may be forgotten by and by once it ends.
    pub(crate) fn may_leave_slowly(&self) -> bool {
        let is_simple = self.is_client() && !self.kind.is_mqtt() && self.in_groups == 0;
        is_simple && self.subscriptions > FORGOTTEN_AT_ONCE
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
