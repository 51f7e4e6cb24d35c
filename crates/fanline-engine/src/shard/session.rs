//! One client connection, as the engine sees it.

use std::time::Duration;

use super::FORGOTTEN_AT_ONCE;
use super::backlog::Backlog;
use super::mqtt::Mqtt;
use super::permit::Restriction;
use crate::auth::certificate::CertificateNames;
use crate::auth::nkey::PublicKey;
use crate::auth::{AccountId, Check, ConnectionKind, Grant, Vouched};
use crate::codec::leaf::Leaf;
use crate::codec::nats::connect::ConnectOptions;
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::parse::ParseLimits;
use crate::exchange::router::RouteMemo;
use crate::outbox::Outbox;

/// A session's place in its shard, from [`Shard::open`](super::Shard::open) until
/// [`Shard::remove`](super::Shard::remove).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub(super) u32);

impl SessionId {
    /// A small number, used again after the session is removed.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn from_index(index: usize) -> Self {
        SessionId(u32::try_from(index).expect("fewer than 2^32 connections"))
    }
}

/// Who is at the other end.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The address, as told to the client in INFO.
    pub ip: String,
    /// Its port, 0 when there is none.
    pub port: u16,
    /// How it comes.
    pub kind: ConnectionKind,
    /// What TLS says of it, when it comes over TLS.
    pub tls: Option<Box<TlsPeer>>,
    /// Credentials of its cookies, for what its CONNECT leaves out.
    pub cookies: CookieCredentials,
    /// What it has to sign, never the same twice; empty when nobody asks for a signature.
    pub nonce: String,
    /// It was sent INFO before TLS began, and gets no other.
    pub is_greeted: bool,
    /// The trusted proxy that it comes through, once that has said so.
    pub proxy: Option<PublicKey>,
    /// Who it is as far as the server knows already; its CONNECT is not asked then.
    pub vouched: Option<Box<Vouched>>,
}

/// What TLS says of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsPeer {
    /// `1.2` or `1.3`.
    pub version: &'static str,
    /// The cipher suite's name.
    pub cipher_suite: String,
    /// Whether the handshake came before INFO.
    pub is_first: bool,
    /// The names of the client's certificate, when it had to show one.
    pub names: Option<CertificateNames>,
}

/// Credentials that came in cookies; empty where there was none.
#[derive(Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each holds what its name says")]
pub struct CookieCredentials {
    pub jwt: String,
    pub user: String,
    pub password: String,
    pub token: String,
}

// Secrets never reach a log, not even through `{:?}`.
impl std::fmt::Debug for CookieCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieCredentials(..)")
    }
}

/// Everything about one connection. What a delivery touches comes first.
pub(super) struct Session {
    pub(super) out: Outbox,
    pub(super) out_msgs: u64,
    pub(super) out_bytes: u64,
    /// Set once it is decided that the connection ends; nothing is delivered to it any more.
    pub(super) ending: Option<CloseReason>,
    /// Whether it is in the list of those with something to write.
    pub(super) is_dirty: bool,
    /// Whether it understands HMSG.
    pub(super) takes_headers: bool,
    /// What it may do, unless that is everything.
    pub(super) restriction: Option<Box<Restriction>>,
    /// What it has beside others when it speaks MQTT.
    pub(super) mqtt: Option<Box<Mqtt>>,
    pub(super) cid: u64,
    /// The server's own: not counted, and not told of.
    pub(super) is_insider: bool,
    /// What there is of it when it is another server and no client.
    pub(super) leaf: Option<Box<Leaf>>,
    /// Where it publishes and subscribes.
    pub(super) account: AccountId,
    /// Whether it is counted among those of its account.
    pub(super) is_counted: bool,
    pub(super) memo: RouteMemo,
    pub(super) parse_limits: ParseLimits,
    pub(super) in_msgs: u64,
    pub(super) in_bytes: u64,
    pub(super) subscriptions: usize,
    /// How many of them are in a group.
    pub(super) in_groups: u32,
    pub(super) stalls: u64,
    pub(super) awaits_auth: bool,
    /// The work that it takes to know whether it may connect.
    pub(super) check: Option<Check>,
    pub(super) grant: Grant,
    pub(super) has_connected: bool,
    /// Whether it was sent the second INFO, which follows its first PING after CONNECT.
    pub(super) was_told_account: bool,
    pub(super) options: ConnectOptions,
    pub(super) peer: Peer,
    pub(super) opened_at: Duration,
    pub(super) active_at: Duration,
    pub(super) ping_at: Duration,
    /// When what it was let in by does not hold any more.
    pub(super) expires_at: Option<Duration>,
    /// When the token of its account expires.
    pub(super) account_expires_at: Option<Duration>,
    pub(super) pings_out: u32,
    pub(super) pinged_at: Duration,
    pub(super) rtt: Option<Duration>,
    /// What waited for it when it was dropped for reading too slowly.
    pub(super) backlog: Option<Box<Backlog>>,
    /// Its entry in the shard's timers.
    pub(super) deadline: Duration,
}

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
    pub(super) fn is_client(&self) -> bool {
        !self.is_insider && self.leaf.is_none()
    }

    /// Whether what it wants may be forgotten by and by once it ends.
    pub(super) fn may_leave_slowly(&self) -> bool {
        let is_simple = self.is_client() && self.mqtt.is_none() && self.in_groups == 0;
        is_simple && self.subscriptions > FORGOTTEN_AT_ONCE
    }

    /// The user's name; `[REDACTED]` for a token, which is all secret.
    pub(super) fn user(&self) -> &str {
        let options = &self.options;
        match &*self.grant.user {
            "" if !options.nkey.is_empty() => &options.nkey,
            "" if !options.user.is_empty() => &options.user,
            "" if !options.auth_token.is_empty() => "[REDACTED]",
            user => user,
        }
    }

    pub(super) fn status(&self) -> ConnectionStatus {
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
            mqtt_client: (self.mqtt.as_ref()).map_or_else(String::new, |m| m.client_id().into()),
            mqtt: (self.mqtt.as_ref()).map(|mqtt| Box::new(mqtt.status())),
            tls: self.peer.tls.clone(),
            proxy: self.peer.proxy,
            subscriptions_list: Vec::new(),
            backlog: self.backlog.clone(),
        }
    }
}
