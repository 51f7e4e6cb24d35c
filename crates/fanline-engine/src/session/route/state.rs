//! The state of one route.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::auth::{AccountId, Rights};
use crate::codec::compression::Compressed;
use crate::codec::route::{Carries, GossipMode, PROTOCOL, RouteInfo};
use crate::codec::s2::Level;
use crate::session::SubscriptionStatus;

/// A connection to a peer that this server has dialed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RouteDial {
    /// Number of the dialing task, which is unique while the server runs.
    pub id: u64,
    /// User and password of the route's URL; empty without one.
    pub user: String,
    /// The password.
    pub password: String,
    /// Whether the route is configured; otherwise the server has learned of it by gossip.
    pub is_explicit: bool,
    /// The mode of the gossip that the server has learned of the peer by.
    pub gossip_mode: GossipMode,
    /// What the route is to carry.
    pub carries: Carries,
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for RouteDial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteDial")
            .field("id", &self.id)
            .field("is_explicit", &self.is_explicit)
            .field("gossip_mode", &self.gossip_mode)
            .field("carries", &self.carries)
            .finish_non_exhaustive()
    }
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The dialer's CONNECT has not arrived.
    Connecting,
    /// The peer's INFO has not arrived.
    Greeting,
    /// The route is registered: messages and interest cross.
    Ready,
}

/// The reason why a dialed connection ended, as far as it matters for the next attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RouteOutcome {
    /// The connection failed, or has ended after it was registered.
    #[default]
    Ended,
    /// The peer is this server itself.
    OwnServer,
    /// The peer, whose id this is, is connected by another route that carries the same.
    Duplicate(String),
    /// The peer has no such slot, or one of both sides has no pool.
    Superfluous,
}

/// The state of one route.
#[derive(Debug)]
pub(crate) struct Route {
    /// The dialed connection; `None` for an accepted one.
    pub(crate) dial: Option<RouteDial>,
    pub(crate) phase: Phase,
    /// The peer's INFO; default before it has arrived.
    pub(crate) info: RouteInfo,
    /// What the route carries. Before it is registered, this is what the dialer requests.
    pub(crate) carries: Carries,
    /// The account of a dedicated route. Its lines do not contain the account.
    pub(crate) dedicated_to: Option<AccountId>,
    /// Whether the peer has accepted this server's credentials.
    pub(crate) is_proven: bool,
    /// Whether this server or the configuration of it has the peer among its routes.
    pub(crate) is_explicit: bool,
    pub(crate) outcome: RouteOutcome,
    /// The error that the peer sent.
    pub(crate) complaint: Option<String>,
    /// The peer's permissions.
    pub(crate) rights: Option<Arc<Rights>>,
    /// The compression of the connection.
    pub(crate) compressed: Option<Compressed>,
}

impl Route {
    /// Creates the state of a connection: a dialed one with `dial`, otherwise an accepted one.
    pub(crate) fn new(
        dial: Option<RouteDial>,
        compressed: Option<Compressed>,
        rights: Option<Arc<Rights>>,
    ) -> Self {
        Route {
            phase: match dial {
                Some(_) => Phase::Greeting,
                None => Phase::Connecting,
            },
            carries: (dial.as_ref()).map_or_else(Carries::default, |dial| dial.carries.clone()),
            dedicated_to: None,
            is_proven: false,
            is_explicit: dial.as_ref().is_some_and(|dial| dial.is_explicit),
            dial,
            info: RouteInfo::default(),
            outcome: RouteOutcome::default(),
            complaint: None,
            rights,
            compressed,
        }
    }

    /// Returns the compression level of output for a round-trip time.
    pub(crate) fn level(&self, rtt: Option<Duration>) -> Option<Level> {
        let compressed = self.compressed.as_ref()?;
        Some(compressed.level(rtt))
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Returns whether the peer may subscribe to a filter.
    pub(crate) fn may_subscribe(&self, filter: &[u8], queue: &[u8]) -> bool {
        let rights = self.rights.as_ref();
        rights.is_none_or(|rights| rights.may_subscribe(filter, queue))
    }

    /// Returns whether a message may go to the peer.
    pub(crate) fn may_send(&self, subject: &[u8], group: &[u8]) -> bool {
        let rights = self.rights.as_ref();
        self.is_ready() && rights.is_none_or(|rights| rights.may_receive(subject, group))
    }

    /// Returns whether the peer understands the clusters of leaf nodes.
    pub(crate) fn takes_clusters(&self) -> bool {
        self.info.lnoc && self.info.lnocu
    }

    /// Returns whether the peer continues traces.
    pub(crate) fn takes_traces(&self) -> bool {
        self.info.proto >= u64::from(PROTOCOL)
    }

    /// Returns facts about the ended connection.
    pub(crate) fn ended(&self) -> RouteEnded {
        RouteEnded {
            was_ready: self.is_ready(),
            peer_name: self.info.server_name.clone(),
            outcome: self.outcome.clone(),
            complaint: self.complaint.clone(),
        }
    }
}

/// Facts about an ended route that the dialer needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteEnded {
    /// Whether the route was registered.
    pub was_ready: bool,
    /// Name of the peer; empty if it is not known.
    pub peer_name: String,
    /// Why the connection ended.
    pub outcome: RouteOutcome,
    /// The error that the peer sent.
    pub complaint: Option<String>,
}

/// What a status of routes contains in addition, because it takes long to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteDetail {
    /// Nothing.
    None,
    /// The lists of the peers' subscriptions.
    Subscriptions,
    /// The numbers of subscriptions that were announced to the peers.
    Announced,
}

/// A route in monitoring.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "named as in nats-server's /routez")]
pub struct RouteStatus {
    pub rid: u64,
    pub remote_id: String,
    pub remote_name: String,
    pub did_solicit: bool,
    pub is_configured: bool,
    pub ip: String,
    pub port: u16,
    pub opened_at: Duration,
    pub active_at: Duration,
    pub rtt: Option<Duration>,
    pub pending_size: usize,
    pub in_msgs: u64,
    pub out_msgs: u64,
    pub in_bytes: u64,
    pub out_bytes: u64,
    pub subscriptions: usize,
    /// Empty unless requested.
    pub subscriptions_list: Vec<SubscriptionStatus>,
    /// Number of subscriptions that this server has announced to the peer; 0 unless requested.
    pub announced: usize,
    /// Whether the peer has permissions by which it may ignore announced subscriptions.
    pub is_restricted: bool,
    /// Name of the account of a dedicated route; empty for other routes.
    pub account: String,
    /// Name of the compression.
    pub compression: &'static str,
}
