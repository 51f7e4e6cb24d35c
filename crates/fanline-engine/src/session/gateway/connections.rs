//! The registered gateway connections, and events about them for the runtime.

use std::time::Duration;

use hashbrown::HashMap;

use super::recent::Recent;
use super::replies::Replies;
use crate::auth::AccountId;
use crate::codec::gateway::ReplyMark;
use crate::exchange::session::SessionId;
use crate::session::route::AnnouncedIn;
use crate::session::route::imports::Imports;

/// Largest number of events about other clusters that the runtime has not taken. Further ones are ignored.
const EVENTS_MAX: usize = 4096;

/// State that gateway connections share.
#[derive(Default)]
pub(crate) struct GatewayConnections {
    /// Accepted connections, which receive interest.
    pub(super) inbound: Vec<SessionId>,
    /// Dialed connections, at most one to each cluster.
    pub(super) outbound: Vec<Outbound>,
    /// The interest that was announced in each account, to all accepted connections.
    pub(super) announced: HashMap<AccountId, AnnouncedIn>,
    pub(super) imports: Imports,
    pub(super) recent: Recent,
    pub(super) replies: Replies,
    /// The other clusters that the runtime knows.
    pub(super) known: Vec<KnownGateway>,
    /// The mark of this server, once it was needed.
    pub(super) own_mark: Option<ReplyMark>,
    /// Reused buffer for lines of interest.
    pub(super) lines: Vec<u8>,
    events: Vec<GatewayEvent>,
}

/// A dialed and registered connection.
pub(super) struct Outbound {
    pub(super) id: SessionId,
    /// Name of the other cluster.
    pub(super) gateway: String,
    /// The hash of the name, which is part of marks.
    pub(super) hash: [u8; 6],
}

/// Another cluster that the server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownGateway {
    /// Its name.
    pub gateway: String,
    /// Its addresses, as `host:port`.
    pub urls: Vec<String>,
}

/// An event that concerns the whole server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// A connection was registered.
    Joined {
        /// Name of the other cluster.
        gateway: String,
        /// The peer's id.
        id: String,
        /// Whether this server has dialed the connection.
        is_dialed: bool,
        /// The addresses of the other cluster, as `host:port`.
        urls: Vec<String>,
    },
    /// A registered connection has ended.
    Left {
        /// Name of the other cluster.
        gateway: String,
        /// Whether this server had dialed the connection.
        is_dialed: bool,
    },
    /// A peer has announced another cluster, or addresses of a known one. The runtime dials it unless it is
    /// connected.
    Discovered {
        /// Name of the other cluster.
        gateway: String,
        /// Its addresses, as `host:port`.
        urls: Vec<String>,
    },
}

impl GatewayConnections {
    /// Returns whether there is no registered connection.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.inbound.is_empty() && self.outbound.is_empty()
    }

    /// Returns whether a cluster is connected by a dialed connection.
    pub(super) fn has_outbound_to(&self, gateway: &str) -> bool {
        self.outbound.iter().any(|link| link.gateway == gateway)
    }

    pub(crate) fn push_event(&mut self, event: GatewayEvent) {
        let is_discovery = matches!(event, GatewayEvent::Discovered { .. });
        if !is_discovery || self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }

    /// Returns whether there are events.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes the events.
    pub(crate) fn take_events(&mut self) -> Vec<GatewayEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns when the next reply subject expires.
    pub(crate) fn next_expiry(&self) -> Option<Duration> {
        self.replies.next_expiry()
    }
}
