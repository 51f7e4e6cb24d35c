//! The peers of this server, and events about them for the runtime.

use hashbrown::HashMap;

use super::imports::Imports;
use crate::auth::AccountId;
use crate::codec::route::GossipMode;
use crate::exchange::session::SessionId;
use crate::session::announced::Announced;

/// Largest number of servers that the server has learned of by gossip and the runtime has not taken. Further
/// ones are ignored.
const EVENTS_MAX: usize = 4096;

/// State that routes share on one shard.
#[derive(Default)]
pub(crate) struct RouteConnections {
    /// The registered route of each peer, by the peer's id.
    pub(super) peers: HashMap<String, SessionId>,
    /// All registered routes, in the order of registration.
    pub(super) ready: Vec<SessionId>,
    /// The interest that was announced to all peers, by account.
    pub(super) announced: HashMap<AccountId, AnnouncedIn>,
    pub(super) imports: Imports,
    /// Reused buffer for lines of interest.
    pub(super) lines: Vec<u8>,
    events: Vec<RouteEvent>,
}

/// The interest in one account that was announced to all peers.
pub(super) struct AnnouncedIn {
    /// Name of the account. A removed account has no other name, and its interest must be withdrawn.
    pub(super) name: Box<[u8]>,
    pub(super) weights: Announced,
}

/// An event that concerns the whole server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteEvent {
    /// A peer was registered.
    Joined {
        /// The peer's id.
        id: String,
        /// The peer's name.
        name: String,
        /// The peer's addresses for clients, as `host:port`.
        client_urls: Vec<String>,
    },
    /// The route to a peer has ended.
    Left {
        /// The peer's id.
        id: String,
    },
    /// A peer has announced another server. The runtime dials it, unless it is among the configured routes.
    Discovered {
        /// The other server's id.
        id: String,
        /// Its address, as `nats-route://host:port/`.
        url: String,
        /// The mode of the gossip.
        gossip_mode: GossipMode,
    },
}

impl RouteConnections {
    /// Returns whether a server is a registered peer.
    pub(crate) fn has_peer(&self, id: &str) -> bool {
        self.peers.contains_key(id)
    }

    pub(super) fn push_event(&mut self, event: RouteEvent) {
        let is_discovery = matches!(event, RouteEvent::Discovered { .. });
        if !is_discovery || self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }

    /// Returns whether there are events.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Takes the events.
    pub(crate) fn take_events(&mut self) -> Vec<RouteEvent> {
        std::mem::take(&mut self.events)
    }
}
