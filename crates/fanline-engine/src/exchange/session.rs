//! A connection's state in the exchange.

use std::time::Duration;

use super::backlog::Backlog;
use super::restriction::Restriction;
use super::router::RouteMemo;
use crate::auth::{AccountId, Check, Grant, Peer};
use crate::codec::nats::connect::ConnectOptions;
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::parse::ParseLimits;
use crate::outbox::Outbox;

/// Index of a session in its shard, from [`Shard::open`](crate::Shard::open) until
/// [`Shard::remove`](crate::Shard::remove).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Returns the index, a small number that is reused after the session is removed.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn from_index(index: usize) -> Self {
        SessionId(u32::try_from(index).expect("fewer than 2^32 connections"))
    }
}

/// All state of one connection. The fields that deliveries use come first.
pub(crate) struct Session<K> {
    pub(crate) out: Outbox,
    pub(crate) out_msgs: u64,
    pub(crate) out_bytes: u64,
    /// Set when the connection is ending. Its session receives no more messages.
    pub(crate) ending: Option<CloseReason>,
    /// Whether the session is in the list of sessions with pending output.
    pub(crate) is_dirty: bool,
    /// Whether the peer supports `HMSG`.
    pub(crate) takes_headers: bool,
    /// Permissions; `None` if the session may do everything.
    pub(crate) restriction: Option<Box<Restriction>>,
    /// The protocol, with its own state.
    pub(crate) kind: K,
    pub(crate) cid: u64,
    /// Whether this is a system client, which is neither counted nor listed.
    pub(crate) is_system_client: bool,
    /// The account in which the session publishes and subscribes.
    pub(crate) account: AccountId,
    /// Whether the session is counted in its account.
    pub(crate) is_counted: bool,
    pub(crate) memo: RouteMemo,
    pub(crate) parse_limits: ParseLimits,
    pub(crate) in_msgs: u64,
    pub(crate) in_bytes: u64,
    pub(crate) subscriptions: usize,
    /// Number of the session's subscriptions in queue groups.
    pub(crate) in_groups: u32,
    pub(crate) stalls: u64,
    pub(crate) awaits_auth: bool,
    /// The check that must finish before the client may connect.
    pub(crate) check: Option<Check>,
    pub(crate) grant: Grant,
    pub(crate) has_connected: bool,
    pub(crate) options: ConnectOptions,
    pub(crate) peer: Peer,
    pub(crate) opened_at: Duration,
    pub(crate) active_at: Duration,
    pub(crate) pings: Pings,
    /// Time at which the credentials expire.
    pub(crate) expires_at: Option<Duration>,
    /// Time at which the account's token expires.
    pub(crate) account_expires_at: Option<Duration>,
    /// The last measured round-trip time.
    pub(crate) rtt: Option<Duration>,
    /// The backlog when the session was ended as a slow consumer.
    pub(crate) backlog: Option<Box<Backlog>>,
}

/// State of the pings to a peer.
pub(crate) struct Pings {
    /// Time at which the next ping is due.
    pub(crate) next_at: Duration,
    /// Time at which the last ping was sent.
    pub(crate) sent_at: Duration,
    /// Number of unanswered pings.
    pub(crate) unanswered: u32,
}

impl<K> Session<K> {
    /// Counts a new subscription.
    pub(crate) fn count_subscription(&mut self, queue: &[u8]) {
        self.subscriptions += 1;
        self.in_groups += u32::from(!queue.is_empty());
    }

    /// Counts a removed subscription.
    pub(crate) fn uncount_subscription(&mut self, queue: &[u8]) {
        self.subscriptions = self.subscriptions.saturating_sub(1);
        self.in_groups -= u32::from(!queue.is_empty());
    }

    /// Returns the user's name; `[REDACTED]` for a token, which is secret.
    pub(crate) fn user(&self) -> &str {
        let options = &self.options;
        match &*self.grant.user {
            "" if !options.nkey.is_empty() => &options.nkey,
            "" if !options.user.is_empty() => &options.user,
            "" if !options.auth_token.is_empty() => "[REDACTED]",
            user => user,
        }
    }
}
